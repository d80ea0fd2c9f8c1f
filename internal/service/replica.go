package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"

	"hindsight/internal/intake"
	"hindsight/internal/join"
	"hindsight/internal/loop"
	"hindsight/internal/watch"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// follower keeps one replica of the learner equal to the feedback log.
type follower struct {
	log    stream.Log
	topics join.Topics
	logger *slog.Logger
	epochs *epochs
	heart  *loop.Replica
	in     *intake.Input

	rounds []int64 // per partition: the highest round whose feedback was seen
	told   []int64 // per partition: the highest that a mark or a snapshot told of when it was opened
	last   int64   // the last feedback that the log told of when it was opened
	safe   int64   // a restart may read feedback from here
	behind bool    // the position was a hint, and no feedback has confirmed it
	kept   []int64 // offsets of the snapshots in the log
	broken int     // snapshots in the log that are damaged
	chunk  int     // bytes of a snapshot's record
	warmed bool    // an epoch began from earlier feedback, which a snapshot makes dispensable
	size   int     // bytes of the last snapshot that was restored or written
	sizeAt int64   // log time of the one restored; 0: there is none
	parsed codec.Feedback
	scope  *watch.Scope // nil: nobody looks
	others *strangers   // nil: nobody is told
	warns  bool         // of changes: one decider of all does

	// While a learner is taught for minutes what its epoch starts from, apart runs that without
	// the lock that take is called with, and pause is called now and then, whose error ends it.
	// nil: nobody waits.
	apart func(ctx context.Context, offset int64, f func() error) error
	pause func() error
}

// openFollower restores the replica from the last good snapshot, or from the start of
// the feedback log, and stands ready to follow.
func openFollower(ctx context.Context, log stream.Log, topics join.Topics, partitions int, build Build, logger *slog.Logger, others *strangers) (*follower, error) {
	f := &follower{log: log, topics: topics, logger: logger, others: others, epochs: newEpochs(build), heart: loop.NewReplica(), rounds: make([]int64, partitions), told: make([]int64, partitions), chunk: chunkBytes}
	best, err := f.bestSnapshot(ctx)
	if err != nil {
		return nil, err
	}
	if best != nil {
		over, err := f.passOver(ctx, best)
		if err != nil {
			return nil, err
		}
		if over {
			best = nil
		}
	}
	from := stream.Earliest
	if best != nil {
		new(leftBehind).add(len(best.bytes)) // by those before it
		if err := f.restore(&best.state); err != nil {
			return nil, err
		}
		from, f.behind = best.feedbackFrom, true
		f.size, f.sizeAt = len(best.bytes), best.time
		best = nil
		new(leftBehind).add(f.size)
	}
	f.in, err = intake.Open(ctx, log, topics.Feedback, 0, from)
	if errors.Is(err, stream.ErrTruncated) || errors.Is(err, stream.ErrAhead) {
		err = f.rewind(ctx)
	}
	if err != nil {
		return nil, err
	}
	f.safe = f.in.Next
	return f, nil
}

// bestSnapshot returns the latest good snapshot that the feedback log reaches. One
// beyond it tells of a log that lost its tail: what is learned next is not what that
// snapshot learned.
func (f *follower) bestSnapshot(ctx context.Context) (best *stored, err error) {
	last, err := lastFeedback(ctx, f.log, f.topics.Feedback)
	if err != nil {
		return nil, err
	}
	f.last = last
	m, err := lastMark(ctx, f.log, f.topics.Feedback)
	if err != nil {
		return nil, err
	}
	for i := range m.Positions {
		pos := &m.Positions[i]
		if pos.Partition >= len(f.told) {
			continue
		}
		f.told[pos.Partition] = max(pos.Released, slices.Max(append(pos.Ahead, 0)), pos.Round)
		for _, done := range pos.Done {
			f.told[pos.Partition] = max(f.told[pos.Partition], done.To)
		}
	}
	err = readSnapshots(ctx, f.log, f.topics.Snapshots, &m, func(s *stored, err error) error {
		for p := range min(len(f.told), len(s.state.rounds)) {
			f.told[p] = max(f.told[p], s.state.rounds[p])
		}
		if newer(err) { // an older one, and what this program learns from there, would be another learner
			return fmt.Errorf("snapshot in %s at offset %d: %w", f.topics.Snapshots, s.offset, err)
		}
		if err != nil {
			f.logger.Warn("snapshot passed over", "offset", s.offset, "error", err)
			if !errors.Is(err, errVoid) {
				f.broken++
			}
			return nil
		}
		f.kept = append(f.kept, s.offset)
		if s.state.through > last {
			f.logger.Warn("snapshot passed over: the feedback log has lost its tail", "snapshot", s.state.through, "feedback", last)
			return nil
		}
		if best == nil || s.state.through >= best.state.through {
			best = s
		}
		return nil
	})
	return best, err
}

func (f *follower) restore(s *state) error {
	ep, err := f.epochs.define(&s.rec, s.files)
	if err != nil {
		return err
	}
	copy(f.rounds, s.rounds)
	f.heart.BeginEra(s.era)
	return f.heart.Restore(ep, s.through, s.learner)
}

// lastFeedback returns the N of the last feedback in the log, 0 if there is none.
func lastFeedback(ctx context.Context, log stream.Log, topic string) (n int64, err error) {
	var parsed codec.Feedback
	err = stream.ScanBack(ctx, log, topic, 0, math.MaxInt64, 16, func(r *stream.Record) error {
		switch r.Type {
		case "":
			if err := codec.ParseFeedback(&parsed, r.Value); err != nil {
				return unlessForeign(err)
			}
			n = parsed.N
		case codec.TypeMark:
			m, err := codec.ParseFeedbackMark(r.Value)
			if err != nil {
				return unlessForeign(err)
			}
			n = max(n, m.N)
		}
		return nil
	}, func() bool { return n != 0 })
	return n, err
}

// rewind starts reading the feedback log at its first record: what is known already
// is passed over.
func (f *follower) rewind(ctx context.Context) (err error) {
	if f.in != nil {
		f.in.Close()
	}
	f.behind = false
	f.in, err = intake.Open(ctx, f.log, f.topics.Feedback, 0, stream.Earliest)
	return err
}

// take learns from the next record of the log.
func (f *follower) take(ctx context.Context, r *stream.Record) error {
	switch r.Type {
	case codec.TypeClass:
		return f.others.pass(f.topics.Feedback, 0, r, f.epochs.addClass(r.Value))
	case codec.TypeEpoch:
		rec, err := codec.ParseEpoch(r.Value)
		if err != nil {
			return f.others.pass(f.topics.Feedback, 0, r, err)
		}
		ep, err := f.epochs.addEpoch(&rec)
		if err != nil {
			return err
		}
		if err := f.warm(ctx, r, ep); err != nil {
			return err
		}
		if err := f.begin(ep); err != nil {
			return err
		}
	case codec.TypeMark:
		if m, err := codec.ParseFeedbackMark(r.Value); err == nil { // else it is for the joiner to tell
			if err := f.beginEra(&m); err != nil {
				return err
			}
		}
	case "":
		if err := codec.ParseFeedback(&f.parsed, r.Value); err != nil {
			return f.others.pass(f.topics.Feedback, 0, r, err)
		}
		before := f.changes().Count
		f.match()
		if err := f.heart.Learn(&f.parsed, nil); err != nil {
			return err
		}
		f.tellChange(before)
		f.behind = false
		f.scope.Feedback(&f.parsed)
		if p := f.parsed.Partition; p < len(f.rounds) {
			f.rounds[p] = max(f.rounds[p], f.parsed.Round)
		}
	}
	f.safe = r.Offset + 1
	return nil
}

// beginEra begins the era of a mark. Feedback that was learned and that the log has lost cannot be
// unlearned: who opens anew starts before it.
func (f *follower) beginEra(m *codec.FeedbackMark) error {
	n, ep := f.heart.LearnedThrough(), f.heart.Epoch()
	if m.Era > f.heart.Era() && (m.Voids(f.heart.Era(), n) || ep != nil && !knows(m, ep.Number)) {
		return fmt.Errorf("feedback %d was learned in era %d of the feedback log, and era %d began before it: %w", n, f.heart.Era(), m.Era, errVoid)
	}
	f.heart.BeginEra(m.Era)
	return nil
}

// knows reports whether an epoch is one of those of a mark.
func knows(m *codec.FeedbackMark, epoch int64) bool {
	return slices.ContainsFunc(m.Epochs, func(e codec.EpochRef) bool { return e.Epoch == epoch })
}

// match notes how probably the learner would have done what the baseline did in a round of an
// apprentice, which it has not learned yet. That costs what a decision does, which an apprentice
// is not asked for.
func (f *follower) match() {
	if f.scope == nil || f.parsed.Mode != codec.Apprentice {
		return
	}
	if p, ok := f.heart.Match(&f.parsed); ok {
		f.scope.Matched(f.parsed.N, p)
	}
}

// begin makes an epoch the one at work. Where nothing that the learner is made from has
// changed the very one at work goes on, and not a copy of its state.
func (f *follower) begin(ep loop.Epoch) error {
	now := f.heart.Epoch()
	if ep.Since > 0 && now != nil && ep.Learner != nil && sameLearner(f.epochs.byNum[now.Number].rec.Model, f.epochs.byNum[ep.Number].rec.Model) {
		ep.Learner = nil
	}
	return f.heart.Begin(ep)
}

// catchUp learns everything that the log holds now.
func (f *follower) catchUp(ctx context.Context) error {
	_, end, err := f.log.Bounds(ctx, f.topics.Feedback, 0)
	if err != nil {
		return err
	}
	for f.in.Consumed() < end {
		if len(f.in.Batch) == 0 {
			if err := f.in.Await(ctx); err != nil {
				return err
			}
		}
		if err := f.takeHead(ctx); errors.Is(err, loop.ErrGap) && f.behind {
			if err := f.rewind(ctx); err != nil {
				return err
			}
		} else if err != nil {
			return err
		}
	}
	return nil
}

// warm teaches the learner of an epoch that begins what its record says. One that
// was begun already is left alone.
func (f *follower) warm(ctx context.Context, r *stream.Record, ep loop.Epoch) error {
	if now := f.heart.Epoch(); ep.Learner == nil || now != nil && ep.Number <= now.Number {
		return nil
	}
	rec := &f.epochs.byNum[ep.Number].rec
	if rec.WarmTo == 0 {
		return nil
	}
	f.warmed = true
	teach := func() error {
		_, err := warmUp(ctx, f.log, f.topics.Feedback, r.Offset, rec, ep, f.pause)
		return err
	}
	if f.apart == nil {
		return teach()
	}
	return f.apart(ctx, r.Offset, teach)
}

func (f *follower) takeHead(ctx context.Context) error {
	r := &f.in.Batch[0]
	if err := f.take(ctx, r); err != nil {
		if !f.behind {
			err = f.unlearned(ctx, f.parsed.N, err)
		}
		return &stream.Error{Op: "learn", Topic: f.topics.Feedback, Offset: r.Offset, Err: err}
	}
	f.in.Batch = f.in.Batch[1:]
	return nil
}

// state returns what a snapshot holds now; nil before the first epoch.
func (f *follower) state() *state {
	ep := f.heart.Epoch()
	if ep == nil {
		return nil
	}
	s, err := f.stateOf(ep.Learner.AppendBinary)
	if err != nil {
		f.logger.Error("the learner has no snapshot", "error", err)
		return nil
	}
	return s
}

// stateOf returns the state with what appendLearner says of the learner at work.
func (f *follower) stateOf(appendLearner func([]byte) ([]byte, error)) (*state, error) {
	d := f.epochs.byNum[f.heart.Epoch().Number]
	s := &state{through: f.heart.LearnedThrough(), era: f.heart.Era(), rounds: append([]int64(nil), f.rounds...), rec: d.rec, files: d.files}
	return s, s.encode(appendLearner)
}

const (
	chunksOnTheWay = 8       // records of a snapshot that the log holds in memory at most
	chunkHead      = 1 << 10 // more than such a record has beside its chunk
)

// writeSnapshot appends a snapshot and drops those beyond the last keepSnapshots.
func (f *follower) writeSnapshot(ctx context.Context, s *state, feedbackFrom int64, nonce string) error {
	var first int64 = -1
	var failed error
	w, err := f.log.Writer(ctx, f.topics.Snapshots, 0, func(seq uint64, offset int64, err error) {
		if seq == 1 {
			first = offset
		}
		if err != nil {
			failed = err
		}
	})
	if err != nil {
		return err
	}
	defer w.Close()
	var left leftBehind
	value := make([]byte, 0, f.chunk+chunkHead)
	for i, c := range chunks(s, feedbackFrom, nonce, f.chunk) {
		left.add(len(c.Bytes))
		if i%chunksOnTheWay == 0 {
			if err := w.Flush(ctx); err != nil {
				return err
			}
		}
		value = codec.AppendSnapshot(value[:0], &c)
		if _, err := w.Append(ctx, &stream.Record{Value: value}); err != nil {
			return err
		}
	}
	if err := w.Flush(ctx); err != nil {
		return err
	}
	if failed != nil {
		return fmt.Errorf("snapshot after feedback %d: %w", s.through, failed)
	}
	f.size = len(s.bytes)
	f.kept = append(f.kept, first)
	if n := len(f.kept) - keepSnapshots; n > 0 {
		f.kept = f.kept[n:]
		return f.log.Trim(ctx, f.topics.Snapshots, 0, f.kept[0])
	}
	return nil
}
