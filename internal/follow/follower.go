// Package follow keeps a replica of the learner equal to a model's feedback log. It knows the epochs
// that the log announces ([Epochs]), plans new ones ([LoggedEpochs], which the joiner uses), teaches a
// learner what its epoch starts from, and reads and writes snapshots. A decider follows by [Open];
// programs that recompute what deciders did give a [Follower] the records themselves ([New]).
package follow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"

	"hindsight/internal/envelope"
	"hindsight/internal/intake"
	"hindsight/internal/join"
	"hindsight/internal/loop"
	"hindsight/internal/model"
	"hindsight/internal/watch"
	"hindsight/pkg/codec"
	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
	"hindsight/pkg/stream"
)

// Config is what a follower needs.
type Config struct {
	Log        stream.Log
	Name       string // of the model
	Partitions int
	Build      Build
	Logger     *slog.Logger
	Metrics    *watch.Metrics
	Encoding   codec.Encoding // of snapshots
	Warns      bool           // of changes that the oracle notices: one follower of all does
}

// Follower keeps one replica of the learner equal to the feedback log.
type Follower struct {
	In         *intake.Input // the feedback log
	Warmed     bool          // an epoch began from earlier feedback, which a snapshot makes dispensable
	ChunkBytes int           // of a snapshot in one record

	// While a learner is taught for minutes what its epoch starts from, Apart runs that without
	// the lock that [Follower.TakeHead] is called with, and Pause is called now and then, whose
	// error ends it. nil: disabled.
	Apart func(ctx context.Context, offset int64, f func() error) error
	Pause func() error

	log    stream.Log
	topics join.Topics
	logger *slog.Logger
	epochs *Epochs
	heart  *loop.Replica

	rounds  []int64 // per partition: the highest round whose feedback was seen
	told    []int64 // per partition: the highest that a mark or a snapshot told of when it was opened
	last    int64   // the last feedback that the log told of when it was opened
	safe    int64   // a restart may read feedback from here
	behind  bool    // the position was a hint, and no feedback has confirmed it
	kept    []int64 // offsets of the snapshots in the log
	broken  int     // snapshots in the log that are damaged
	size    int     // bytes of the snapshot that was restored
	sizeAt  int64   // its log time; 0: there was none
	parsed  codec.Feedback
	scope   *watch.Scope // nil: disabled
	others  *Strangers   // nil: disabled
	warns   bool
	encoder envelope.Encoder // of snapshots
}

// New returns a follower of a model's feedback log that has seen nothing and is given the records by
// [Follower.Take]. It reads back in the log what epochs start from.
func New(log stream.Log, name string, build Build, partitions int) *Follower {
	return &Follower{ChunkBytes: chunkBytes, log: log, topics: join.TopicsOf(name),
		logger: slog.New(slog.DiscardHandler),
		epochs: NewEpochs(build), heart: loop.NewReplica(), rounds: make([]int64, partitions),
		told: make([]int64, partitions)}
}

// Open returns a follower that has learned all that the feedback log holds, from the last good snapshot
// on, or from the start of the log.
func Open(ctx context.Context, c Config) (*Follower, error) {
	f := New(c.Log, c.Name, c.Build, c.Partitions)
	f.logger, f.others, f.scope, f.warns = c.Logger, NewStrangers(c.Metrics, c.Logger), c.Metrics.Scope(), c.Warns
	f.encoder.Encoding = c.Encoding
	if err := f.open(ctx); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func (f *Follower) open(ctx context.Context) error {
	best, err := f.bestSnapshot(ctx)
	if err != nil {
		return err
	}
	from := stream.Earliest
	if best != nil {
		FreeSnapshot(len(best.Bytes)) // those before it
		if err := f.Restore(best); err != nil {
			return err
		}
		from, f.behind = best.FeedbackFrom, true
		f.size, f.sizeAt = len(best.Bytes), best.Time
		best = nil
		FreeSnapshot(f.size)
	}
	f.In, err = intake.Open(ctx, f.log, f.topics.Feedback, 0, from)
	if errors.Is(err, stream.ErrTruncated) || errors.Is(err, stream.ErrAhead) {
		err = f.rewind(ctx)
	}
	if err != nil {
		return err
	}
	f.safe = f.In.Next
	if err := f.catchUp(ctx); err != nil {
		return err
	}
	return f.checkTail(ctx)
}

// Close ends reading.
func (f *Follower) Close() {
	if f.In != nil {
		f.In.Close()
	}
}

// Replica returns the learner at work.
func (f *Follower) Replica() *loop.Replica { return f.heart }

// Epoch returns what is needed to run an epoch, nil if it was not met.
func (f *Follower) Epoch(n int64) *Definition { return f.epochs.byNum[n] }

// Rules returns the rules of an epoch, nil if it was not met.
func (f *Follower) Rules(n int64) *loop.Rules { return f.epochs.Rules(n) }

// Rounds returns, by partition, the highest round whose feedback was seen. It must not be changed.
func (f *Follower) Rounds() []int64 { return f.rounds }

// Told returns the highest round of a partition that marks and snapshots told of when the follower was opened.
func (f *Follower) Told(partition int) int64 { return f.told[partition] }

// Found returns how many damaged snapshots the log had when the follower was opened, and the bytes and the
// log time of the one from which it went on; 0 if there was none.
func (f *Follower) Found() (damaged, size int, at int64) { return f.broken, f.size, f.sizeAt }

// bestSnapshot returns the latest good snapshot that the feedback log reaches. One
// beyond it tells of a log that lost its tail: what is learned next is not what that
// snapshot learned.
func (f *Follower) bestSnapshot(ctx context.Context) (best *Snapshot, err error) {
	last, err := lastFeedback(ctx, f.log, f.topics.Feedback)
	if err != nil {
		return nil, err
	}
	f.last = last
	_, m, err := join.LastMark(ctx, f.log, f.topics.Feedback)
	if err != nil {
		return nil, err
	}
	if m == nil {
		m = new(codec.FeedbackMark)
	}
	for i := range m.Positions {
		pos := &m.Positions[i]
		if pos.Partition >= len(f.told) {
			continue
		}
		f.told[pos.Partition] = pos.Round
		for _, done := range pos.Done {
			f.told[pos.Partition] = max(f.told[pos.Partition], done.To)
		}
	}
	err = readSnapshots(ctx, f.log, f.topics.Snapshots, m, func(s *Snapshot, err error) error {
		for p := range min(len(f.told), len(s.Rounds)) {
			f.told[p] = max(f.told[p], s.Rounds[p])
		}
		if Newer(err) { // an older one, and what this program learns from there, would be another learner
			return fmt.Errorf("snapshot in %s at offset %d: %w", f.topics.Snapshots, s.Offset, err)
		}
		if err != nil {
			f.logger.Warn("snapshot passed over", "offset", s.Offset, "error", err)
			if !errors.Is(err, ErrVoid) {
				f.broken++
			}
			return nil
		}
		f.kept = append(f.kept, s.Offset)
		if s.Through > last {
			f.logger.Warn("snapshot passed over: the feedback log has lost its tail", "snapshot", s.Through,
				"feedback", last)
			return nil
		}
		if best == nil || s.Through >= best.Through {
			best = s
		}
		return nil
	})
	if err == nil && best != nil {
		var over bool
		if over, err = f.passOver(ctx, best); over {
			best = nil
		}
	}
	return best, err
}

// Restore begins at a snapshot.
func (f *Follower) Restore(s *Snapshot) error {
	ep, err := f.epochs.AddSnapshot(s)
	if err != nil {
		return err
	}
	copy(f.rounds, s.Rounds)
	f.heart.BeginEra(s.Era)
	return f.heart.Restore(ep, s.Through, s.learner)
}

// lastFeedback returns the N of the last feedback in the log, 0 if there is none.
func lastFeedback(ctx context.Context, log stream.Log, topic string) (n int64, err error) {
	var parsed codec.Feedback
	err = stream.ScanBack(ctx, log, topic, 0, math.MaxInt64, 16, func(r *stream.Record) error {
		switch r.Type {
		case "":
			if err := codec.ParseFeedback(&parsed, r.Value); err != nil {
				return codec.UnlessForeign(err)
			}
			n = parsed.N
		case codec.TypeMark:
			m, err := codec.ParseFeedbackMark(r.Value)
			if err != nil {
				return codec.UnlessForeign(err)
			}
			n = max(n, m.N)
		}
		return nil
	}, func() bool { return n != 0 })
	return n, err
}

// rewind starts reading the feedback log at its first record: what is known already
// is passed over.
func (f *Follower) rewind(ctx context.Context) (err error) {
	if f.In != nil {
		f.In.Close()
	}
	f.behind = false
	f.In, err = intake.Open(ctx, f.log, f.topics.Feedback, 0, stream.Earliest)
	return err
}

// take learns from the next record of the log.
func (f *Follower) take(ctx context.Context, r *stream.Record) error {
	switch r.Type {
	case codec.TypeClass:
		return f.others.Pass(f.topics.Feedback, 0, r, f.epochs.AddClass(r.Value))
	case codec.TypeEpoch:
		rec, err := codec.ParseEpoch(r.Value)
		if err != nil {
			return f.others.Pass(f.topics.Feedback, 0, r, err)
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
			return f.others.Pass(f.topics.Feedback, 0, r, err)
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
func (f *Follower) beginEra(m *codec.FeedbackMark) error {
	n, ep := f.heart.LearnedThrough(), f.heart.Epoch()
	if m.Era > f.heart.Era() && (m.Voids(f.heart.Era(), n) || ep != nil && !knows(m, ep.Number)) {
		return fmt.Errorf("feedback %d was learned in era %d of the feedback log, and era %d began before it: %w",
			n, f.heart.Era(), m.Era, ErrVoid)
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
func (f *Follower) match() {
	if f.scope == nil || f.parsed.Mode != codec.Apprentice {
		return
	}
	if p, ok := f.heart.Match(&f.parsed); ok {
		f.scope.Matched(f.parsed.N, p)
	}
}

// begin makes an epoch the one at work. Where nothing that the learner is made from has
// changed the very one at work goes on, and not a copy of its state.
func (f *Follower) begin(ep loop.Epoch) error {
	now := f.heart.Epoch()
	if ep.Since > 0 && now != nil && ep.Learner != nil && !differ(f.Epoch(now.Number).Rec.Model,
		f.Epoch(ep.Number).Rec.Model, "actions", "warm", model.Worth) {
		ep.Learner = nil
	}
	return f.heart.Begin(ep)
}

// catchUp learns everything that the log holds now.
func (f *Follower) catchUp(ctx context.Context) error {
	_, end, err := f.log.Bounds(ctx, f.topics.Feedback, 0)
	if err != nil {
		return err
	}
	for f.In.Consumed() < end {
		if len(f.In.Batch) == 0 {
			if err := f.In.Await(ctx); err != nil {
				return err
			}
		}
		if err := f.TakeHead(ctx); errors.Is(err, loop.ErrGap) && f.behind {
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
func (f *Follower) warm(ctx context.Context, r *stream.Record, ep loop.Epoch) error {
	if now := f.heart.Epoch(); ep.Learner == nil || now != nil && ep.Number <= now.Number {
		return nil
	}
	rec := &f.epochs.byNum[ep.Number].Rec
	if rec.WarmTo == 0 {
		return nil
	}
	f.Warmed = true
	teach := func() error {
		_, err := warmUp(ctx, f.log, f.topics.Feedback, r.Offset, rec, ep, f.Pause)
		return err
	}
	if f.Apart == nil {
		return teach()
	}
	return f.Apart(ctx, r.Offset, teach)
}

// TakeHead learns from the record that is next in f.In.
func (f *Follower) TakeHead(ctx context.Context) error {
	r := &f.In.Batch[0]
	if err := f.take(ctx, r); err != nil {
		if !f.behind {
			err = f.unlearned(ctx, f.parsed.N, err)
		}
		return &stream.Error{Op: "learn", Topic: f.topics.Feedback, Offset: r.Offset, Err: err}
	}
	f.In.Batch = f.In.Batch[1:]
	return nil
}

// Snapshot returns a snapshot of now; nil before the first epoch.
func (f *Follower) Snapshot() *Snapshot {
	ep := f.heart.Epoch()
	if ep == nil {
		return nil
	}
	s, err := f.snapshotOf(ep.Learner.AppendBinary)
	if err != nil {
		f.logger.Error("the learner has no snapshot", "error", err)
		return nil
	}
	return s
}

// snapshotOf returns a snapshot with what appendLearner says of the learner at work.
func (f *Follower) snapshotOf(appendLearner func([]byte) ([]byte, error)) (*Snapshot, error) {
	d := f.epochs.byNum[f.heart.Epoch().Number]
	s := &Snapshot{Through: f.heart.LearnedThrough(), Era: f.heart.Era(), Rounds: slices.Clone(f.rounds), Rec: d.Rec,
		Files: d.Files, FeedbackFrom: f.safe}
	return s, s.encode(appendLearner)
}

const (
	chunksOnTheWay = 8       // records of a snapshot that the log holds in memory at most
	chunkHead      = 1 << 10 // more than such a record has beside its chunk
)

// WriteSnapshot appends a snapshot and drops those beyond the last keepSnapshots.
func (f *Follower) WriteSnapshot(ctx context.Context, s *Snapshot, nonce string) error {
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
	value := make([]byte, 0, f.ChunkBytes+chunkHead)
	for i, c := range chunks(s, nonce, f.ChunkBytes) {
		left.add(len(c.Bytes))
		if i%chunksOnTheWay == 0 {
			if err := w.Flush(ctx); err != nil {
				return err
			}
		}
		value = codec.AppendSnapshot(value[:0], &c)
		rec := stream.Record{Value: value}
		f.encoder.Encode(&rec)
		if _, err := w.Append(ctx, &rec); err != nil {
			return err
		}
	}
	if err := w.Flush(ctx); err != nil {
		return err
	}
	if failed != nil {
		return fmt.Errorf("snapshot after feedback %d: %w", s.Through, failed)
	}
	f.kept = append(f.kept, first)
	if n := len(f.kept) - keepSnapshots; n > 0 {
		f.kept = f.kept[n:]
		return f.log.Trim(ctx, f.topics.Snapshots, 0, f.kept[0])
	}
	return nil
}

// Newer reports whether an error is about what a later program wrote.
func Newer(err error) bool {
	return errors.Is(err, codec.ErrVersion) || errors.Is(err, oracle.ErrNewer)
}

// changes returns the changes that the oracle at work noticed.
func (f *Follower) changes() (c oracle.Changes) {
	if e := f.heart.Epoch(); e != nil {
		c, _ = learner.Changes(e.Learner)
	}
	return c
}

// tellChange warns if the feedback that was just learned raised the alarm of the oracle, which
// had noticed so many changes before. A restart learns again what came after the last snapshot,
// and warns of it again, with the same number.
func (f *Follower) tellChange(before int64) {
	c := f.changes()
	if !f.warns || c.Count <= before {
		return
	}
	last := c.Last[len(c.Last)-1]
	f.logger.Warn("the played actions lose more than predicted: regressions restart; "+
		"check whether the world, a feature or the meaning of outcomes changed",
		"feedback", f.parsed.N, "action", cmp.Or(last.Action, "all"), "outcome", cmp.Or(last.Outcome, "loss"),
		"changes", c.Count, "false_alarm_probability", oracle.ChangeAlarms)
}
