package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"hindsight/internal/join"
	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// Audit follows a feedback log record by record, as a decider does, for who
// recomputes what deciders did.
type Audit struct{ f *follower }

// NewAudit returns an audit of a model's feedback log that has seen nothing. It reads
// back there what epochs start from.
func NewAudit(log stream.Log, name string, build Build, partitions int) *Audit {
	return &Audit{&follower{log: log, topics: join.TopicsOf(name), logger: slog.New(slog.DiscardHandler), epochs: newEpochs(build),
		heart: loop.NewReplica(), rounds: make([]int64, partitions)}}
}

// Take learns from the next record. Damage is a [codec.ErrCorrupt].
func (a *Audit) Take(ctx context.Context, r *stream.Record) error { return corrupt(a.f.take(ctx, r)) }

func corrupt(err error) error {
	if errors.Is(err, errIncomplete) {
		return fmt.Errorf("%w: %w", codec.ErrCorrupt, err)
	}
	return err
}

// TakeFrom begins at an epoch record, whose class records were taken before it, after
// feedback that is not known.
func (a *Audit) TakeFrom(ctx context.Context, r *stream.Record, through int64) error {
	rec, err := codec.ParseEpoch(r.Value)
	if err != nil {
		return err
	}
	ep, err := a.f.epochs.addEpoch(&rec)
	if err != nil {
		return err
	}
	if err := a.f.warm(ctx, r, ep); err != nil {
		return err
	}
	ep.Since = 0
	fresh, err := ep.Learner.AppendBinary(nil)
	if err != nil {
		return err
	}
	return a.f.heart.Restore(ep, through, fresh)
}

// Rules returns the rules of an epoch, nil if it was not met.
func (a *Audit) Rules(epoch int64) *loop.Rules { return a.f.epochs.rules(epoch) }

// Replica returns the learner at work.
func (a *Audit) Replica() *loop.Replica { return a.f.heart }

// Restore begins at a snapshot.
func (a *Audit) Restore(s *StoredSnapshot) error { return a.f.restore(&s.state) }

// AdoptRounds fills in the last rounds of partitions of which no feedback was
// seen, after a TakeFrom.
func (a *Audit) AdoptRounds(rounds []int64) {
	for p, n := range rounds {
		if p < len(a.f.rounds) && a.f.rounds[p] == 0 {
			a.f.rounds[p] = n
		}
	}
}

// AppendState appends the bytes of a snapshot taken now.
func (a *Audit) AppendState(dst []byte) ([]byte, error) {
	s := a.f.state()
	if s == nil {
		return dst, errors.New("the learner has no snapshot")
	}
	return append(dst, s.bytes...), nil
}

// StoredSnapshot is a complete snapshot of the log.
type StoredSnapshot struct {
	stored
	Offset       int64 // of its first chunk
	FeedbackFrom int64
	Epoch        int64
	Through      int64 // feedbacks learned
	Era          int64 // of the feedback log there
	Rounds       []int64
	Bytes        []byte // in all chunks
}

// ReadSnapshots calls f for each complete snapshot kept that is not void; err tells of a damaged one,
// of which only the offset is known.
func ReadSnapshots(ctx context.Context, log stream.Log, name string, f func(s *StoredSnapshot, err error) error) error {
	topics := join.TopicsOf(name)
	m, err := lastMark(ctx, log, topics.Feedback)
	if err != nil {
		return err
	}
	return readSnapshots(ctx, log, topics.Snapshots, &m, func(s *stored, err error) error {
		if errors.Is(err, errVoid) {
			return nil
		}
		return f(&StoredSnapshot{stored: *s, Offset: s.offset, FeedbackFrom: s.feedbackFrom, Epoch: s.state.rec.Epoch,
			Through: s.state.through, Era: s.state.era, Rounds: s.state.rounds, Bytes: s.bytes}, err)
	})
}

// Models knows the models that a feedback log announced.
type Models struct{ e *epochs }

// NewModels returns no models.
func NewModels(build Build) *Models { return &Models{newEpochs(build)} }

// AddClass takes a class record.
func (m *Models) AddClass(value []byte) error { return m.e.addClass(value) }

// AddEpoch takes an epoch record, whose class records were taken before it, and
// returns the model at work with a fresh learner. Damage is a [codec.ErrCorrupt].
func (m *Models) AddEpoch(value []byte) (loop.Epoch, error) {
	rec, err := codec.ParseEpoch(value)
	if err != nil {
		return loop.Epoch{}, err
	}
	ep, err := m.e.addEpoch(&rec)
	return ep, corrupt(err)
}

// AddSnapshot takes the model of a snapshot.
func (m *Models) AddSnapshot(s *StoredSnapshot) (loop.Epoch, error) {
	return m.e.define(&s.state.rec, s.state.files)
}

// Rules returns the rules of an epoch, nil if it is not known.
func (m *Models) Rules(epoch int64) *loop.Rules { return m.e.rules(epoch) }

// Rounds returns, by partition, the highest round whose feedback was seen. It must not be
// changed.
func (a *Audit) Rounds() []int64 { return a.f.rounds }

// AppendState appends the bytes of a snapshot taken now.
func (d *Decider) AppendState(dst []byte) ([]byte, error) {
	return (&Audit{d.follower}).AppendState(dst)
}

// Replica returns the decider's learner at work, to look at.
func (d *Decider) Replica() *loop.Replica { return d.follower.heart }
