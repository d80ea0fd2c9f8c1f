package service

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"hindsight/internal/join"
	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// logged are the epochs of a feedback log with the places of their records ([join.Epochs]).
type logged struct {
	*epochs
	log     stream.Log
	topics  join.Topics
	offsets map[int64]int64 // where the records of an epoch begin
	classAt int64           // where those that are being read began; -1: none
}

func newLogged(log stream.Log, topics join.Topics, build Build) *logged {
	return &logged{epochs: newEpochs(build), log: log, topics: topics, offsets: map[int64]int64{}, classAt: -1}
}

// Rules implements [join.Epochs].
func (e *logged) Rules(epoch int64) *loop.Rules { return e.rules(epoch) }

// Refs implements [join.Epochs]: the epochs of waiting rounds are among them, and those of deciders
// that have not yet read of the latest.
func (e *logged) Refs() (refs []codec.EpochRef) {
	for _, n := range slices.Sorted(maps.Keys(e.offsets)) {
		refs = append(refs, codec.EpochRef{Epoch: n, Offset: e.offsets[n]})
	}
	return refs
}

// newest returns the number of the newest epoch of which the log knows, 0 if there is none. Its
// record may be gone.
func (e *logged) newest() (n int64) {
	for epoch := range e.offsets {
		n = max(n, epoch)
	}
	return n
}

// Read implements [join.Epochs].
func (e *logged) Read(r *stream.Record) error {
	if e.classAt < 0 {
		e.classAt = r.Offset
	}
	if r.Type == codec.TypeClass {
		return unlessForeign(e.addClass(r.Value))
	}
	rec, err := codec.ParseEpoch(r.Value)
	if err != nil {
		return unlessForeign(err)
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
func (e *logged) Find(ctx context.Context, refs []codec.EpochRef) error {
	dropped := false
	for _, ref := range refs {
		e.offsets[ref.Epoch] = ref.Offset
		if e.rules(ref.Epoch) != nil {
			continue
		}
		if err := e.readAt(ctx, ref.Offset); err != nil {
			return fmt.Errorf("epoch %d: %w", ref.Epoch, err)
		}
		dropped = dropped || e.rules(ref.Epoch) == nil
	}
	if !dropped {
		return nil
	}
	m, err := lastMark(ctx, e.log, e.topics.Feedback)
	if err != nil {
		return err
	}
	return readSnapshots(ctx, e.log, e.topics.Snapshots, &m, func(s *stored, err error) error {
		n := s.state.rec.Epoch
		if err != nil || e.rules(n) != nil {
			return nil // of one that is no use a decider says so
		}
		if _, at := e.offsets[n]; !at {
			return nil // the feedback log does not know of it
		}
		_, err = e.define(&s.state.rec, s.state.files)
		return err
	})
}

// readAt reads the epoch whose records begin at an offset.
func (e *logged) readAt(ctx context.Context, offset int64) error {
	_, next, err := e.log.Bounds(ctx, e.topics.Feedback, 0)
	if err != nil {
		return err
	}
	return scan(ctx, e.log, e.topics.Feedback, 0, offset, next, func(r *stream.Record) error {
		if r.Type != codec.TypeClass && r.Type != codec.TypeEpoch {
			return nil
		}
		if err := e.Read(r); err != nil || r.Type == codec.TypeClass {
			return err
		}
		return errStop
	})
}
