package follow

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"hindsight/internal/join"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// LoggedEpochs are the epochs of a feedback log with the places of their records ([join.Epochs]).
type LoggedEpochs struct {
	*Epochs
	logger  *slog.Logger
	log     stream.Log
	topics  join.Topics
	offsets map[int64]int64 // where the records of an epoch begin
	classAt int64           // where those that are being read began; -1: none
}

// NewLoggedEpochs returns the epochs of a model's log, of which nothing has been read.
func NewLoggedEpochs(log stream.Log, topics join.Topics, build Build, logger *slog.Logger) *LoggedEpochs {
	return &LoggedEpochs{Epochs: NewEpochs(build), logger: logger, log: log, topics: topics, offsets: map[int64]int64{},
		classAt: -1}
}

// Began notes where the records of an epoch begin that was appended.
func (e *LoggedEpochs) Began(epoch, offset int64) { e.offsets[epoch] = offset }

// Refs implements [join.Epochs]: the epochs of waiting rounds are among them, and those of deciders
// that have not yet read of the latest.
func (e *LoggedEpochs) Refs() (refs []codec.EpochRef) {
	for _, n := range slices.Sorted(maps.Keys(e.offsets)) {
		refs = append(refs, codec.EpochRef{Epoch: n, Offset: e.offsets[n]})
	}
	return refs
}

// Newest returns the number of the newest epoch of which the log knows, 0 if there is none. Its record may be gone.
func (e *LoggedEpochs) Newest() (n int64) {
	for epoch := range e.offsets {
		n = max(n, epoch)
	}
	return n
}

// Read implements [join.Epochs].
func (e *LoggedEpochs) Read(r *stream.Record) error {
	if e.classAt < 0 {
		e.classAt = r.Offset
	}
	if r.Type == codec.TypeClass {
		return codec.UnlessForeign(e.AddClass(r.Value))
	}
	rec, err := codec.ParseEpoch(r.Value)
	if err != nil {
		return codec.UnlessForeign(err)
	}
	first := e.classAt
	e.classAt = -1
	ep, err := e.addEpoch(&rec)
	if errors.Is(err, errIncomplete) {
		return nil // it begins before the part of the log that is read; Find has it
	}
	if err != nil {
		return err
	}
	if _, ok := e.offsets[ep.Number]; !ok {
		e.offsets[ep.Number] = first
	}
	return nil
}

// Find implements [join.Epochs]: it reads the epochs that a mark names, from the snapshots if
// retention has dropped their records.
func (e *LoggedEpochs) Find(ctx context.Context, refs []codec.EpochRef) error {
	dropped := false
	for _, ref := range refs {
		e.offsets[ref.Epoch] = ref.Offset
		if e.Rules(ref.Epoch) != nil {
			continue
		}
		if err := e.readAt(ctx, ref.Offset); err != nil {
			return fmt.Errorf("epoch %d: %w", ref.Epoch, err)
		}
		dropped = dropped || e.Rules(ref.Epoch) == nil
	}
	if !dropped {
		return nil
	}
	return ReadSnapshots(ctx, e.log, e.topics, func(s *Snapshot, err error) error {
		n := s.Rec.Epoch
		if err != nil || e.Rules(n) != nil {
			return nil // of one that is no use a decider says so
		}
		if _, at := e.offsets[n]; !at {
			return nil // the feedback log does not know of it
		}
		_, err = e.AddSnapshot(s)
		return err
	})
}

// readAt reads the epoch whose records begin at an offset, unless retention has dropped that.
func (e *LoggedEpochs) readAt(ctx context.Context, offset int64) error {
	first, next, err := e.log.Bounds(ctx, e.topics.Feedback, 0)
	if err != nil || offset < first && offset != stream.Earliest {
		return err
	}
	err = stream.Scan(ctx, e.log, e.topics.Feedback, 0, offset, next, func(r *stream.Record) error {
		if r.Type != codec.TypeClass && r.Type != codec.TypeEpoch {
			return nil
		}
		if err := e.Read(r); err != nil || r.Type == codec.TypeClass {
			return err
		}
		return stream.ErrStop
	})
	if errors.Is(err, stream.ErrTruncated) { // just now
		return nil
	}
	return err
}

// Renewed returns the model of the log if it has a higher version than s and all its epochs began at
// an offset or later; nil otherwise.
func (e *LoggedEpochs) Renewed(s *Source, since int64) *Source {
	if e.Last == nil || e.Last.Rec.Name != s.Name || e.Last.Rec.Version <= s.Version {
		return nil
	}
	for n, d := range e.byNum { // each of a switch of the mode, too
		if at, ok := e.offsets[n]; d.Rec.Version == e.Last.Rec.Version && (!ok || at < since) {
			return nil
		}
	}
	renewed := e.Last.source()
	return &renewed
}
