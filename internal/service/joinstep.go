package service

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"hindsight/internal/join"
	"hindsight/internal/loop"
	"hindsight/internal/watch"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// What one Step takes at most before it releases feedback.
const (
	stepRecords = 1000
	stepBytes   = 16 << 20
)

// Step takes the records that are there, in the order of log time over all
// partitions, and releases what can be released. It reports whether it did
// anything. After an error the joiner is dead.
func (j *Joiner) Step(ctx context.Context) (busy bool, err error) {
	taken := 0
	for taken < stepRecords {
		ok, err := j.merge(ctx)
		if errors.Is(err, errHeld) {
			break
		}
		if err != nil {
			return taken > 0, err
		}
		if !ok {
			break
		}
		taken++
		if j.given >= stepBytes {
			if err := j.release(ctx); err != nil {
				return true, err
			}
		}
	}
	if err := j.checkOrphans(ctx); err != nil {
		return true, err
	}
	if err := j.release(ctx); err != nil {
		return true, err
	}
	if err := j.refuseSurplus(ctx); err != nil {
		return true, err
	}
	if err := j.watchGuard(ctx); err != nil {
		return true, err
	}
	if e := j.failed.Load(); e != nil {
		return true, *e
	}
	j.show()
	return taken > 0, nil
}

// merge gives the heart the record with the least log time. Of equal times decisions
// go first, then lower partitions. A record is given only when every other input has
// a later one, or was found empty after the record was read. It reports false if no
// record waits.
func (j *Joiner) merge(ctx context.Context) (bool, error) {
	for {
		best := j.least()
		if best == nil {
			if err := j.pollAll(ctx); err != nil {
				return false, err
			}
			if best = j.least(); best == nil && j.tick.stamp == 0 {
				return false, nil
			}
		}
		if j.stands() {
			return false, nil
		}
		if j.tick.stamp != 0 && (best == nil || j.tick.time < best.headTime()) {
			if done, err := j.giveTick(ctx); done || err != nil {
				return done, err
			}
			continue // an earlier record came to light
		}
		settled, err := j.settle(ctx, best.read)
		if err != nil {
			return false, err
		}
		if settled {
			err := j.give(ctx, best)
			if missing(err) {
				again, err := j.rewind(ctx, best)
				if err != nil {
					return true, err
				}
				if again {
					continue
				}
			}
			best.take()
			return true, err
		}
	}
}

// least returns the input with the least head, nil if none has one.
func (j *Joiner) least() *input {
	var best *input
	var least int64
	for _, in := range j.inputs {
		if r, t := in.head(); r != nil && (best == nil || t < least) {
			best, least = in, t
		}
	}
	return best
}

func (j *Joiner) pollAll(ctx context.Context) error {
	j.stamp++
	for _, in := range j.inputs {
		if err := in.poll(ctx, j.stamp); err != nil {
			return err
		}
	}
	return nil
}

// settle makes sure that each input without a head was empty after the stamp. It
// reports false if a new record came to light, which may be an earlier one.
func (j *Joiner) settle(ctx context.Context, stamp uint64) (bool, error) {
	for _, in := range j.inputs {
		if len(in.batch) > 0 || in.clear > stamp {
			continue
		}
		j.stamp++
		if err := in.poll(ctx, j.stamp); err != nil {
			return false, err
		}
		if len(in.batch) == 0 && in.clear <= stamp {
			j.stamp++
			if err := in.check(ctx, j.stamp); err != nil {
				return false, err
			}
		}
		if len(in.batch) > 0 || in.clear <= stamp {
			return false, nil
		}
	}
	return true, nil
}

// giveTick advances the heart to the log time of our own mark once every input is
// read to it.
func (j *Joiner) giveTick(ctx context.Context) (bool, error) {
	settled, err := j.settle(ctx, j.tick.stamp)
	if err != nil || !settled {
		return settled, err
	}
	j.heart.Advance(j.tick.time)
	j.tick = advance{}
	return true, nil
}

// give hands the head of an input to the heart.
func (j *Joiner) give(ctx context.Context, in *input) error {
	r, _ := in.head()
	j.given += len(r.Value)
	at := loop.Place{Partition: in.partition, Offset: r.Offset}
	if in.topic == j.topics.Outcomes {
		j.m.Outcome()
		if r.Type != "" {
			j.heart.PassOutcome(at, r.Time)
			return nil
		}
		j.m.OutcomeCame()
		j.heart.AddOutcome(at, r.Time, r.Value, join.CloudEventID(r))
		return nil
	}
	return j.giveDecision(ctx, in, at, r)
}

func (j *Joiner) giveDecision(ctx context.Context, in *input, at loop.Place, r *stream.Record) error {
	switch r.Type {
	case "":
		err := j.heart.AddDecision(at, r.Time, r.Value)
		if err == nil {
			j.m.Decided(r.Time)
			j.cfg.Metrics.Scope().Decision(j.heart.Admitted())
		}
		if codec.Foreign(err) { // only the service writes decisions: nobody waits for feedback on this one
			j.heart.PassDecision(at, r.Time)
			return j.others.pass(in.topic, at.Partition, r, err)
		}
		if errors.Is(err, loop.ErrNoEpoch) && j.adoptEpoch(r) {
			return j.giveDecision(ctx, in, at, r)
		}
		if errors.Is(err, loop.ErrNoEpoch) {
			if err := j.stillOwner(ctx); err != nil {
				return err
			}
			return fmt.Errorf("%s[%d]@%d: %w: was the feedback log lost?", in.topic, at.Partition, at.Offset, err)
		}
		return err
	case codec.TypeMark:
		m, err := codec.ParseDecisionMark(r.Value)
		if err := j.others.pass(in.topic, at.Partition, r, err); err != nil {
			return err
		}
		if err == nil && m.GapFrom > 0 {
			return j.heart.AddGap(at, r.Time, m.GapFrom, m.GapTo)
		}
	}
	j.heart.PassDecision(at, r.Time)
	return nil
}

// adoptEpoch makes rounds of an epoch whose record is lost rounds of the next one.
func (j *Joiner) adoptEpoch(r *stream.Record) bool {
	var d codec.Decision
	if codec.ParseDecision(&d, r.Value) != nil || !j.epochs.adopt(d.Epoch) {
		return false
	}
	j.cfg.Logger.Error("the record of an epoch was lost with the feedback log's tail: its rounds get the rules of the next", "epoch", d.Epoch)
	return true
}

// stillOwner fails if another joiner has taken the feedback log over, which may have
// begun epochs that this one cannot know.
func (j *Joiner) stillOwner(ctx context.Context) error {
	if err := j.release(ctx); err != nil {
		return err
	}
	return j.stop(ctx)
}

// checkOrphans rejects outcomes whose decision does not exist.
func (j *Joiner) checkOrphans(ctx context.Context) error {
	n, seq := j.heart.Parked()
	if n == 0 {
		j.orphans = nil
		return nil
	}
	if j.orphans == nil {
		c := &orphanCheck{seq: seq, ends: make([]int64, j.cfg.Partitions)}
		for p := range c.ends {
			_, end, err := j.cfg.Log.Bounds(ctx, j.topics.Decisions, p)
			if err != nil {
				return err
			}
			c.ends[p] = end
		}
		j.orphans = c
	}
	for p, end := range j.orphans.ends {
		if in := j.inputs[p]; in.consumed() < end {
			return nil
		}
	}
	j.heart.Orphans(j.orphans.seq)
	j.orphans = nil
	return nil
}

// release stores the rejects, then the feedback behind them, and a mark when it is
// time for one.
func (j *Joiner) release(ctx context.Context) error {
	j.given = 0
	if err := j.tellRejects(ctx); err != nil {
		return err
	}
	j.feedbacks = j.heart.AppendReady(j.feedbacks[:0])
	if err := j.storeRejects(ctx); err != nil {
		return err
	}
	for i := range j.feedbacks {
		f := &j.feedbacks[i]
		j.buf = codec.AppendFeedback(j.buf[:0], f)
		if _, err := j.feedback.Append(ctx, &stream.Record{Key: []byte(f.ID), Value: j.buf}); err != nil {
			j.cfg.Metrics.AppendError(watch.FeedbackKind, err)
			return err
		}
		j.m.Release(f)
		j.cfg.Metrics.Scope().Feedback(f)
	}
	if j.heart.LastN()-j.marked >= int64(j.cfg.MarkEvery) {
		return j.mark(ctx)
	}
	return nil
}

func (j *Joiner) storeRejects(ctx context.Context) error {
	j.rejected = j.heart.AppendRejects(j.rejected[:0])
	if len(j.rejected) == 0 {
		return nil
	}
	return j.putRejects(ctx)
}

func (j *Joiner) putRejects(ctx context.Context) error {
	for i := range j.rejected {
		r := &j.rejected[i]
		r.Fit()
		if _, err := j.rejects.Append(ctx, &stream.Record{Key: []byte(r.ID), Value: codec.AppendReject(nil, r)}); err != nil {
			j.cfg.Metrics.AppendError(watch.RejectsKind, err)
			return err
		}
		j.cfg.Metrics.NoteReject(r)
	}
	clear(j.rejected) // each may hold a large record
	return j.rejects.Flush(ctx)
}

// mark appends the heart's positions. Everything they pass was appended before.
func (j *Joiner) mark(ctx context.Context) error {
	m := j.heart.Mark()
	j.marked = m.N
	return j.appendMark(ctx, &m)
}

func (j *Joiner) appendMark(ctx context.Context, m *codec.FeedbackMark) error {
	m.Epochs, m.Void = j.epochRefs(), j.void
	_, err := j.feedback.Append(ctx, &stream.Record{Type: codec.TypeMark, Value: codec.AppendFeedbackMark(nil, m)})
	j.cfg.Metrics.AppendError(watch.FeedbackKind, err)
	return err
}

// epochRefs returns the places of all epochs: those of waiting rounds are among
// them, and those of deciders that have not yet read of the latest.
func (j *Joiner) epochRefs() (dst []codec.EpochRef) {
	for _, n := range slices.Sorted(maps.Keys(j.offsets)) {
		dst = append(dst, codec.EpochRef{Epoch: n, Offset: j.offsets[n]})
	}
	return dst
}

// clock returns the log time of now as far as this process can tell, whose clock may be
// wrong: by that clock, or by how long ago it saw log time move, whichever is more.
func (j *Joiner) clock(now time.Time) int64 {
	if t := j.heart.Now(); t != j.seen {
		j.seen, j.seenAt = t, now
	}
	return max(now.UnixNano(), j.seen+int64(now.Sub(j.seenAt)))
}

// Tick appends a mark if the oldest round is due by a clock that only triggers it:
// what closes the round is the log time at which the mark was appended.
func (j *Joiner) Tick(ctx context.Context, now time.Time) error {
	due, known := j.heart.Due()
	if j.whyHeld() != nil && !j.aheadMark {
		return nil
	}
	if !known || due > j.clock(now) || j.tick.stamp != 0 || now.Sub(j.tickAt) < time.Second {
		return nil
	}
	// A deadline at which log time stands is that of a window in rounds. The next record ends it:
	// a mark is due only where none comes, or rounds would be released sooner by chance.
	if due <= j.heart.Now() && now.Sub(j.seenAt) < time.Second {
		return nil
	}
	j.tickAt = now
	if err := j.mark(ctx); err != nil {
		return err
	}
	if err := j.feedback.Flush(ctx); err != nil {
		return err
	}
	at := j.acked.Load()
	return scan(ctx, j.cfg.Log, j.topics.Feedback, 0, at, at+1, func(r *stream.Record) error {
		if j.aheadMark = j.tooFar(r.Time, j.topics.Feedback, 0, at); j.aheadMark {
			return nil
		}
		j.ahead.Store(nil)
		j.stamp++
		j.tick = advance{time: r.Time, stamp: j.stamp}
		if r.Time < due {
			j.seenAt = now // log time is behind what was seen of it: no more marks than one for each time that would be due
		}
		return nil
	})
}
