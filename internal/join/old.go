package join

import (
	"context"
	"fmt"

	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// openWithoutCuts goes on from a log whose joiner logged no cuts: era 1 begins where the last of its marks, m
// at an offset, has a restart read again. Rounds that have their feedback keep it; all else is joined again, by
// cuts. nil: the log has no mark, and is empty or has all feedback.
func (c *Core) openWithoutCuts(ctx context.Context, tail stream.Tail, at int64, m *codec.FeedbackMark) error {
	era := &codec.FeedbackMark{Era: 1, From: at, FromCut: -1, Limits: c.cfg.Limits}
	behind := at + 1
	if m == nil {
		era.From, behind, m = -1, tail.First, c.history.beginning()
	}
	cuts, err := c.readBehind(ctx, behind, tail.Open, m, era)
	if err != nil {
		return err
	}
	if cuts || era.From < 0 && era.N == 0 {
		return c.begins(ctx, tail)
	}
	era.Time, era.Eras, era.Epochs = m.Time, []codec.EraStart{{Era: 1, N: era.N}}, c.cfg.Epochs.Refs()
	era.Remembers = max(1, m.N-c.cfg.Limits.Dedup+1)
	if era.Memory, err = c.memoryBefore(ctx, era.From, era.Remembers-1); err != nil {
		return err
	}
	for p := range m.Positions {
		was := &m.Positions[p]
		d, err := c.standing(ctx, p, was.Decisions)
		if err != nil {
			return err
		}
		o, err := c.standing(ctx, c.cfg.Partitions+p, was.Outcomes)
		if err != nil {
			return err
		}
		pos := position(p, d, o)
		if _, pos.Again, err = c.cfg.Log.Bounds(ctx, c.cfg.Topics.Outcomes, p); err != nil {
			return err
		}
		era.Positions = append(era.Positions, pos)
		era.LostTails = c.history.addLost(era.LostTails, p, d.next, was.Decisions)
		era.LostTails = c.history.addLost(era.LostTails, c.cfg.Partitions+p, o.next, was.Outcomes)
	}
	c.cfg.Logger.Info("the joiner before this one logged no cuts: an era begins", "era", era.Era, "feedback", era.N,
		"lost", era.LostTails)
	return c.beginEra(ctx, tail, era)
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

// addLost adds that an input is taken again from an offset on, if it was taken further.
func (h *History) addLost(to []codec.LostTail, i int, offset, was int64) []codec.LostTail {
	if was > offset {
		topic := [...]string{lostDecisions, lostOutcomes}[i/h.Partitions]
		to = append(to, codec.LostTail{Topic: topic, Partition: i % h.Partitions, Offset: offset, Was: was})
	}
	return to
}

// standing returns an empty range of an input before an offset, with the record before it, which tells whether
// the log loses its tail later.
func (c *Core) standing(ctx context.Context, i int, from int64) (taken, error) {
	topic, p := c.history.Topic(i), i%c.cfg.Partitions
	first, end, err := c.cfg.Log.Bounds(ctx, topic, p)
	if err != nil {
		return taken{}, err
	}
	from = min(max(from, first), end)
	x := taken{since: from, next: from}
	err = stream.Scan(ctx, c.cfg.Log, topic, p, from-1, from, func(r *stream.Record) error {
		x.since, x.sum = r.Offset, codec.Sum(0, r.Offset, r.Time, r.Type, r.Value)
		return nil
	})
	return x, err
}

// addCutZero puts the cut before the steps that takes what lies between a mark of a joiner without cuts and that of
// era 1, the first behind it. It is empty, except in logs of earlier builds: their era stood where that
// joiner had stopped.
func (h *past) addCutZero(m *codec.FeedbackMark) {
	if !loop.WithoutCuts(h.from) {
		return
	}
	if len(h.passed) > 0 && h.passed[0].Mark != nil && len(h.passed[0].Mark.Positions) == h.Partitions {
		m = h.passed[0].Mark
	}
	cut := &codec.Cut{}
	for i := range 2 * h.Partitions {
		to := &cut.Decisions
		if i >= h.Partitions {
			to = &cut.Outcomes
		}
		if x := h.rangeAt(m, i); x.next > max(x.since, h.rangeAt(h.from, i).next) {
			*to = append(*to, codec.Range{Partition: i % h.Partitions, Next: x.next, Sum: x.sum})
		}
	}
	h.passed = append([]loop.Step{{N: h.from.N, Cut: cut}}, h.passed...)
}
