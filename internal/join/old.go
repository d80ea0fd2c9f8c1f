package join

import (
	"context"
	"fmt"
	"math"
	"slices"

	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// openWithoutCuts goes on from a log whose joiner logged no cuts: it begins era 1. m is the last mark, at
// an offset; nil: the log has none, and is empty or has all feedback. What that joiner had taken at its
// mark is told by the mark. What it took later is not: outcomes that had their part in feedback behind
// the mark are passed over by their log time.
func (c *Core) openWithoutCuts(ctx context.Context, tail stream.Tail, at int64, m *codec.FeedbackMark) error {
	era := codec.FeedbackMark{Era: 1, From: at, FromCut: -1, Memory: -1, Limits: c.cfg.Limits}
	behind := at + 1
	if m == nil {
		era.From, behind, m = -1, tail.First, c.history.beginning()
	}
	cuts, err := c.readBehind(ctx, behind, tail.Open, m, &era)
	if err != nil {
		return err
	}
	if cuts || era.From < 0 && era.N == 0 {
		return c.begins(ctx, tail)
	}
	era.Time, era.Eras, era.Epochs = m.Time, []codec.EraStart{{Era: 1, N: era.N}}, c.cfg.Epochs.Refs()
	if era.Memory, err = c.memoryBefore(ctx, era.From, m.N-c.cfg.Limits.Dedup); err != nil {
		return err
	}
	lost, err := c.missesDecisions(ctx, m)
	if err != nil {
		return err
	}
	for p := range m.Positions {
		pos, err := c.positionWithoutCuts(ctx, p, m, era.N > m.N, lost)
		if err != nil {
			return err
		}
		era.Positions = append(era.Positions, pos)
		was := &m.Positions[p]
		era.LostTails = c.history.addLost(era.LostTails, p, pos.Decisions, was.DecisionsThrough)
		era.LostTails = c.history.addLost(era.LostTails, c.cfg.Partitions+p, pos.Outcomes, was.OutcomesThrough)
	}
	c.cfg.Logger.Info("the joiner before this one logged no cuts: an era begins", "era", era.Era, "feedback", era.N,
		"lost", era.LostTails)
	if err := c.beginEra(ctx, tail, &era); err != nil {
		return err
	}
	c.queueUnfinished()
	return nil
}

// beginning is what stands for the mark of a joiner without cuts that wrote none.
func (h *History) beginning() *codec.FeedbackMark {
	m := &codec.FeedbackMark{Positions: make([]codec.Position, h.Partitions)}
	for p := range m.Positions {
		m.Positions[p].Partition = p
	}
	return m
}

// readBehind reads the feedback behind the last mark, for N and the guard of the mark of the era.
func (c *Core) readBehind(ctx context.Context, from, end int64, m, era *codec.FeedbackMark) (cuts bool, err error) {
	guard := c.heart.Guard()
	if k := len(m.Epochs); k > 0 {
		if err := guard.Restore(m.Guard, m.Epochs[k-1].Epoch, c.cfg.Epochs.Rules(m.Epochs[k-1].Epoch)); err != nil {
			return false, err
		}
	}
	era.N = m.N
	var f codec.Feedback
	err = stream.Scan(ctx, c.cfg.Log, c.cfg.Topics.Feedback, 0, from, end, func(r *stream.Record) error {
		switch r.Type {
		case codec.TypeCut:
			cuts = true
			return stream.ErrStop
		case codec.TypeClass, codec.TypeEpoch:
			if err := c.cfg.Epochs.Read(r); err != nil {
				return err
			}
			return c.begin(r)
		case "":
			if err := codec.ParseFeedback(&f, r.Value); err != nil {
				return codec.UnlessForeign(err)
			}
			if f.N != era.N+1 {
				return fmt.Errorf("%w: feedback %d where %d was due, and no mark is kept", stream.ErrTruncated,
					f.N, era.N+1)
			}
			era.N = f.N
			guard.Add(&f)
		}
		return nil
	})
	era.Guard = guard.Append(nil)
	return cuts, err
}

// memoryBefore returns the offset of the newest mark at or behind which all feedback from N on lies; -1:
// the log's beginning.
func (c *Core) memoryBefore(ctx context.Context, at, n int64) (memory int64, err error) {
	memory = -1
	err = stream.ScanBack(ctx, c.cfg.Log, c.cfg.Topics.Feedback, 0, at+1, 1024, func(r *stream.Record) error {
		if r.Type != codec.TypeMark {
			return nil
		}
		m, err := codec.ParseFeedbackMark(r.Value)
		if err == nil && m.N <= n {
			memory = r.Offset
		}
		return err
	}, func() bool { return memory >= 0 })
	return memory, err
}

// positionWithoutCuts returns where the mark of era 1 stands in a partition, before the heart has its
// say. crashed says that feedback follows the last mark, lost that decisions are missing: then all is
// taken again.
func (c *Core) positionWithoutCuts(ctx context.Context, p int, m *codec.FeedbackMark, crashed, lost bool) (
	pos codec.Position, err error) {
	was := &m.Positions[p]
	// Outcomes that wait for their decisions are orphans unless these are there now.
	parked := func(x codec.Position) bool { return len(x.Parked) > 0 }
	ahead := was.DecisionsThrough == 0 || slices.ContainsFunc(m.Positions, parked)
	from, through, outcomes := was.DecisionsFrom, was.DecisionsThrough, was.OutcomesThrough
	if lost {
		from, through, outcomes, ahead = 0, 0, was.OutcomesFrom, false
	}
	d, err := c.extent(ctx, p, from, through, m.Time, ahead)
	if err != nil {
		return pos, err
	}
	o, err := c.extent(ctx, c.cfg.Partitions+p, was.OutcomesFrom, outcomes, m.Time, false)
	if err != nil {
		return pos, err
	}
	pos = position(p, d, o)
	if crashed || lost {
		_, pos.Again, err = c.cfg.Log.Bounds(ctx, c.cfg.Topics.Outcomes, p)
	}
	return pos, err
}

// addLost adds that an input is taken again from an offset on, if it was taken further.
func (h *History) addLost(to []codec.LostTail, i int, offset, was int64) []codec.LostTail {
	if was > offset {
		topic := [...]string{lostDecisions, lostOutcomes}[i/h.Partitions]
		to = append(to, codec.LostTail{Topic: topic, Partition: i % h.Partitions, Offset: offset, Was: was})
	}
	return to
}

// missesDecisions reports whether decisions are missing that a joiner without cuts had taken, or that
// offsets mean others now: the next decision of a partition is not the one behind those released.
func (c *Core) missesDecisions(ctx context.Context, m *codec.FeedbackMark) (lost bool, err error) {
	for p := range m.Positions {
		was, e := &m.Positions[p], loop.DecisionEvent{}
		_, end, err := c.cfg.Log.Bounds(ctx, c.cfg.Topics.Decisions, p)
		if err != nil {
			return false, err
		}
		lost = lost || end < was.DecisionsThrough
		err = stream.Scan(ctx, c.cfg.Log, c.cfg.Topics.Decisions, p, was.DecisionsFrom, was.DecisionsThrough,
			func(r *stream.Record) error {
				if err := e.Parse(r.Type, r.Value); err != nil || e.D.N == 0 {
					return codec.UnlessForeign(err)
				}
				lost = lost || e.D.N > was.Released+1
				return stream.ErrStop
			})
		if err != nil {
			return false, err
		}
	}
	return lost, nil
}

// extent returns the range of an input from one offset to another that was taken by a log time: a later
// record has taken the place of one that is lost. Ahead of that it has records that are later by no more
// than clocks differ.
func (c *Core) extent(ctx context.Context, i int, from, through, time int64, ahead bool) (taken, error) {
	topic, p := c.history.Topic(i), i%c.cfg.Partitions
	first, end, err := c.cfg.Log.Bounds(ctx, topic, p)
	if err != nil {
		return taken{}, err
	}
	from = min(max(from, first), end)
	x := taken{since: from, next: from}
	err = stream.Scan(ctx, c.cfg.Log, topic, p, from, math.MaxInt64, func(r *stream.Record) error {
		late := r.Time - time
		if r.Offset < through && late > 0 || r.Offset >= through && (!ahead || late > c.cfg.Skew) {
			return stream.ErrStop
		}
		x.next, x.sum = r.Offset+1, codec.Sum(x.sum, r.Offset, r.Time, r.Type, r.Value)
		return nil
	})
	if err == nil && x.next == x.since { // then the record before tells whether the log loses its tail later
		err = stream.Scan(ctx, c.cfg.Log, topic, p, from-1, from, func(r *stream.Record) error {
			x.since, x.sum = r.Offset, codec.Sum(0, r.Offset, r.Time, r.Type, r.Value)
			return nil
		})
	}
	return x, err
}

// queueUnfinished has the rejects stored that a joiner without cuts had still to make.
func (c *Core) queueUnfinished() { c.queueAll(c.heart.Unfinished(), c.sent) }

// addCutZero puts the cut before the steps that stands for all that a joiner without cuts had taken. It
// ends where the mark of era 1 stands, the first behind it.
func (h *past) addCutZero(m *codec.FeedbackMark) {
	if !loop.WithoutCuts(h.from) {
		return
	}
	if len(h.passed) > 0 && h.passed[0].Mark != nil && len(h.passed[0].Mark.Positions) == h.Partitions {
		m = h.passed[0].Mark
	}
	cut := &codec.Cut{}
	for i := range 2 * h.Partitions {
		x := h.rangeAt(m, i)
		to := &cut.Decisions
		if i >= h.Partitions {
			to = &cut.Outcomes
		}
		if x.next > h.rangeAt(h.from, i).next {
			*to = append(*to, codec.Range{Partition: i % h.Partitions, Next: x.next, Sum: x.sum})
		}
	}
	h.passed = append([]loop.Step{{N: h.from.N, Cut: cut, Mark: m}}, h.passed...)
}

// rejectedBefore returns the log times of the outcomes of cut 0 whose rejects are stored.
func (h *past) rejectedBefore() (map[loop.Place]int64, error) {
	if !loop.WithoutCuts(h.from) {
		return nil, nil
	}
	since := int64(math.MaxInt64)
	for i := range h.from.Positions {
		since = min(since, h.from.Positions[i].OutcomesTime)
	}
	rejected := map[loop.Place]int64{}
	earlier := false
	err := stream.ScanBack(h.ctx, h.Log, h.Topics.Rejects, 0, math.MaxInt64, 1024, func(r *stream.Record) error {
		earlier = earlier || r.Time+ClockSkew < since
		x, err := codec.ParseReject(r.Value)
		if r.Type == "" && err == nil && x.Cut == 0 && x.Topic == lostOutcomes {
			rejected[loop.Place{Partition: x.Partition, Offset: x.Offset}] = x.Time
		}
		return nil
	}, func() bool { return earlier })
	return rejected, err
}
