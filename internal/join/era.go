package join

import (
	"context"
	"math"
	"slices"

	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// What a [codec.LostTail] calls a topic.
const (
	lostDecisions = "decisions"
	lostOutcomes  = "outcomes"
	lostRejects   = "rejects"
)

// A power failure may take the tail of each log, and a log may grow again before a joiner comes. The
// feedback log is the history: where an input does not hold what a cut took, the joiner begins an era
// with a mark that says so. All inputs go back to before the first cut that took what is lost. Rounds whose feedback
// exists keep it; all else is joined again.

// taken is a range of an input that a cut took, or at which the mark of an era stands.
type taken struct {
	since, next int64
	sum         uint32
	at          int64 // where the cut or the mark lies
}

// ledger is what the end of a feedback log says of its inputs.
type ledger struct {
	core   *Core
	tail   stream.Tail
	ranges [][]taken // by input, oldest first
	before int64     // the era stands before what lies here; none: the largest number
	gone   int64     // the first cut that took what is lost, or mark that stands behind it
	marks  []placed
	n, cut int64 // of the last in the log
	time   int64 // of the last cut
}

// placed is a mark and where it lies.
type placed struct {
	at int64
	m  *codec.FeedbackMark
}

// rangeAt returns where a mark stands in an input.
func (h *History) rangeAt(m *codec.FeedbackMark, i int) taken {
	p := &m.Positions[i%h.Partitions]
	if i < h.Partitions {
		return taken{since: p.DecisionsSince, next: p.Decisions, sum: p.DecisionsSum}
	}
	return taken{since: p.OutcomesSince, next: p.Outcomes, sum: p.OutcomesSum}
}

// position is rangeAt the other way round.
func position(p int, d, o taken) codec.Position {
	return codec.Position{Partition: p, Decisions: d.next, DecisionsSince: d.since, DecisionsSum: d.sum,
		Outcomes: o.next, OutcomesSince: o.since, OutcomesSum: o.sum}
}

// read reads the feedback log from the first mark at or behind an offset.
func (l *ledger) read(ctx context.Context, from int64) error {
	c := l.core
	l.ranges, l.marks = make([][]taken, 2*c.cfg.Partitions), nil
	var cut codec.Cut
	var f codec.Feedback
	return stream.Scan(ctx, c.cfg.Log, c.cfg.Topics.Feedback, 0, from, l.tail.Open, func(r *stream.Record) error {
		switch {
		case r.Type == codec.TypeMark:
			m, err := codec.ParseFeedbackMark(r.Value)
			if err != nil {
				return codec.UnlessForeign(err)
			}
			l.mark(r.Offset, &m)
		case len(l.marks) == 0:
		case r.Type == codec.TypeCut:
			if err := codec.ParseCut(&cut, r.Value); err != nil {
				return codec.UnlessForeign(err)
			}
			l.take(r.Offset, &cut)
		case r.Type == "":
			if err := codec.ParseFeedback(&f, r.Value); err != nil {
				return codec.UnlessForeign(err)
			}
			l.n = f.N
		case r.Type == codec.TypeClass || r.Type == codec.TypeEpoch: // its mark names them
			return c.cfg.Epochs.Read(r)
		}
		return nil
	})
}

func (l *ledger) mark(at int64, m *codec.FeedbackMark) {
	for i := range l.ranges {
		lost := slices.ContainsFunc(m.LostTails, func(x codec.LostTail) bool {
			return l.core.history.Input(x.Topic, x.Partition) == i
		})
		if k := len(l.marks); lost || k == 0 || loop.WithoutCuts(l.marks[k-1].m) {
			x := l.core.history.rangeAt(m, i)
			x.at = at
			l.ranges[i] = append(l.ranges[i], x)
		}
	}
	l.marks = append(l.marks, placed{at, m})
	l.n, l.cut, l.time = m.N, m.Cut, m.Time
}

func (l *ledger) take(at int64, cut *codec.Cut) {
	l.cut, l.time = cut.Cut, max(l.time, cut.Time)
	add := func(i int, r codec.Range) {
		l.ranges[i] = append(l.ranges[i], taken{l.ranges[i][len(l.ranges[i])-1].next, r.Next, r.Sum, at})
	}
	for _, r := range cut.Decisions {
		add(r.Partition, r)
	}
	for _, r := range cut.Outcomes {
		add(l.core.cfg.Partitions+r.Partition, r)
	}
}

// losses returns the inputs that no longer hold the last range that was taken of them, given the
// offset of the last mark, and for each how much of it is left. Only then it reads on backwards.
func (l *ledger) losses(ctx context.Context, at int64) (lost []codec.LostTail, err error) {
	c := l.core
	for back := int64(1024); ; back *= 8 {
		if err := l.read(ctx, at); err != nil {
			return nil, err
		}
		lost, l.gone = lost[:0], math.MaxInt64
		found := true
		for i := range l.ranges {
			r, gone, ok, err := l.survivor(ctx, i)
			if err != nil {
				return nil, err
			}
			found, l.gone = found && ok, min(l.gone, gone)
			lost = c.history.addLost(lost, i, r.next, l.ranges[i][len(l.ranges[i])-1].next)
		}
		if found || at == l.tail.First {
			return lost, nil
		}
		at = max(l.tail.First, l.tail.Open-back)
	}
}

// survivor returns the newest range of an input that is there, and where the first one behind it lies. ok is
// false if no range is that was read, and the input survives to its start if there are no others.
func (l *ledger) survivor(ctx context.Context, i int) (r taken, gone int64, ok bool, err error) {
	all, least := l.ranges[i], int64(math.MaxInt64)
	gone = math.MaxInt64
	for k := len(all) - 1; k >= 0; k-- {
		x := all[k]
		there := x.at < l.before && x.next <= least
		least = min(least, x.next) // an era between went back before it
		switch {
		case !there:
		case x.next > x.since:
			there, err = l.holds(ctx, i, x)
		// nothing was taken before, or by a joiner that logged no cuts
		case i < l.core.cfg.Partitions && k < len(all)-1:
			x, err = l.core.standing(ctx, i, 0) // more may be gone: rounds that are known are passed over
		default:
			x, err = l.core.standing(ctx, i, x.next)
		}
		if there || err != nil {
			return x, gone, true, err
		}
		gone = x.at
	}
	return taken{}, gone, false, nil
}

// holds reports whether an input holds what a range says was taken. What retention has dropped of it
// since, or drops meanwhile, was there.
func (l *ledger) holds(ctx context.Context, i int, x taken) (bool, error) {
	c := l.core
	var sum uint32
	next := int64(-1)
	topic, p := c.history.Topic(i), i%c.cfg.Partitions
	err := stream.Scan(ctx, c.cfg.Log, topic, p, x.since, x.next, func(r *stream.Record) error {
		sum = codec.Sum(sum, r.Offset, r.Time, r.Type, r.Value)
		next = r.Offset + 1
		return nil
	})
	first, end, bounds := c.cfg.Log.Bounds(ctx, topic, p)
	if bounds != nil || x.since < first && first > LogStart {
		return x.next <= end, bounds
	}
	return next == x.next && sum == x.sum, err
}

// lostRejects adds to what is lost the tail of the rejects, if their log does not hold the last of this
// joiner's that a mark knows of. They tell people, and nothing hangs on them: they are not made again.
func (c *Core) lostRejects(ctx context.Context, m *codec.FeedbackMark, lost []codec.LostTail) ([]codec.LostTail,
	error) {
	topic := c.cfg.Topics.Rejects
	first, _, err := c.cfg.Log.Bounds(ctx, topic, 0)
	if err != nil || m.Rejects <= first {
		return lost, err
	}
	left, found := first, false
	err = stream.ScanBack(ctx, c.cfg.Log, topic, 0, m.Rejects, 16, func(r *stream.Record) error {
		if x, err := codec.ParseReject(r.Value); r.Type == "" && err == nil && 0 < x.Cut && x.Cut <= m.Cut {
			left, found = r.Offset+1, true
		}
		return nil
	}, func() bool { return found })
	if left < m.Rejects && err == nil {
		c.through = left
		lost = append(lost, codec.LostTail{Topic: lostRejects, Offset: left, Was: m.Rejects})
	}
	return lost, err
}

// findRejects finds the last reject of a cut that is not taken again, since the last mark: it is not stored
// again.
func (c *Core) findRejects(ctx context.Context, last int64) error {
	return stream.Scan(ctx, c.cfg.Log, c.cfg.Topics.Rejects, 0, c.through, math.MaxInt64, func(r *stream.Record) error {
		if x, err := codec.ParseReject(r.Value); r.Type == "" && err == nil && 0 < x.Cut && x.Cut <= last {
			c.through = r.Offset + 1
		}
		return nil
	})
}

// hangsOn reports whether a mark stands behind what is lost. Cut 0 goes back to the last of a joiner that logged no
// cuts in any case.
func hangsOn(m *codec.FeedbackMark, lost []codec.LostTail) bool {
	return !loop.WithoutCuts(m) && slices.ContainsFunc(lost, func(x codec.LostTail) bool {
		switch p := &m.Positions[x.Partition]; x.Topic {
		case lostDecisions:
			return p.Decisions > x.Offset
		case lostOutcomes:
			return p.Outcomes > x.Offset
		}
		return false // rejects are not read
	})
}

// openEra begins an era: inputs that lost their tail are read again from there.
func (c *Core) openEra(ctx context.Context, l *ledger, last *codec.FeedbackMark, lost []codec.LostTail,
	era int64) error {
	if err := c.Flush(ctx); err != nil { // a mark stands behind the rejects of all cuts before it
		return err
	}
	if err := c.findRejects(ctx, l.cut); err != nil {
		return err
	}
	from, err := c.marksBefore(ctx, l, last, lost)
	if err != nil {
		return err
	}
	m := &codec.FeedbackMark{N: l.n, Cut: l.cut, Time: max(l.time, c.heart.Now()), Era: era, From: from.at,
		FromCut: loop.CutOf(from.m), Memory: last.Memory, Rejects: c.through, Limits: c.cfg.Limits, LostTails: lost,
		Epochs: c.cfg.Epochs.Refs(), Guard: last.Guard, Candidates: last.Candidates, Delays: last.Delays}
	if m.Memory > from.at {
		m.Memory = from.m.Memory
	}
	m.Eras = append(slices.Clone(last.Eras), codec.EraStart{Era: m.Era, N: m.N})
	for p := range c.cfg.Partitions {
		pos, err := l.position(ctx, p, last)
		if err != nil {
			return err
		}
		m.Positions = append(m.Positions, pos)
	}
	c.cfg.Logger.Error("logs have lost their tails: an era begins, and what is gone is joined again", "era", m.Era,
		"feedback", m.N, "lost", lost)
	return c.beginEra(ctx, l.tail, m)
}

// beginEra begins an era with a mark: what it says of rounds follows from the records that are left.
func (c *Core) beginEra(ctx context.Context, tail stream.Tail, m *codec.FeedbackMark) error {
	if err := c.restore(ctx, tail.Open, m, true); err != nil {
		return err
	}
	var told codec.FeedbackMark
	c.heart.Mark(&told)
	m.Positions, m.Remembers, m.Guard = told.Positions, told.Remembers, told.Guard
	m.Candidates, m.Delays = told.Candidates, told.Delays
	if err := c.appendMark(ctx, m); err != nil {
		return err
	}
	c.eras = m.Eras
	c.noteEra()
	return c.heart.SetLimits(m)
}

func (c *Core) noteEra() {
	if c.cfg.Hooks.Era != nil {
		c.cfg.Hooks.Era()
	}
}

// position returns where the mark of an era stands in a partition, before the heart has its say.
func (l *ledger) position(ctx context.Context, p int, last *codec.FeedbackMark) (pos codec.Position, err error) {
	d, _, _, err := l.survivor(ctx, p)
	if err != nil {
		return pos, err
	}
	i := l.core.cfg.Partitions + p
	o, _, _, err := l.survivor(ctx, i)
	if err != nil {
		return pos, err
	}
	pos = position(p, d, o)
	pos.Again = last.Positions[p].Again
	if was := l.ranges[i][len(l.ranges[i])-1].next; o.next < was {
		pos.Again = max(pos.Again, was)
	}
	return pos, nil
}

// marksBefore returns the newest mark that is no newer than the one to which the last mark goes back
// and that hangs on nothing that is lost.
func (c *Core) marksBefore(ctx context.Context, l *ledger, last *codec.FeedbackMark, lost []codec.LostTail) (placed,
	error) {
	if last.FromCut < 0 && last.From < 0 {
		return placed{-1, c.history.beginning()}, nil
	}
	for from := max(l.tail.First, last.From-1024); ; from = max(l.tail.First, from-8*(l.tail.Open-from)) {
		if err := l.read(ctx, from); err != nil {
			return placed{}, err
		}
		for i := len(l.marks) - 1; i >= 0; i-- {
			x := l.marks[i]
			if (last.From < 0 || x.at <= last.From) && !hangsOn(x.m, lost) {
				return x, nil
			}
		}
		if from == l.tail.First {
			return placed{}, &stream.Error{Op: "recover", Topic: c.cfg.Topics.Feedback, Offset: from, Err: ErrLost}
		}
	}
}

// claimed returns the largest era of a claim that the feedback log does not have: of deciders, who
// learned more than there is, or of rejects, whose cut is gone. It is -1 if there is none. era, n and
// cut are those of the feedback log's end, marked is the cut before its last mark.
func (c *Core) claimed(ctx context.Context, era, n, cut, marked int64) (claimed int64, err error) {
	claimed = -1
	beyond := func(x int64) { claimed = max(claimed, x) }
	m, newest := codec.FeedbackMark{Eras: c.eras}, int64(0)
	if refs := c.cfg.Epochs.Refs(); len(refs) > 0 {
		newest = refs[len(refs)-1].Epoch
	}
	if c.cfg.Claims != nil {
		err = c.cfg.Claims(ctx, func(e, learned, epoch int64) {
			if e > era || learned > n && !m.Voids(e, learned) || e == era && epoch > newest {
				beyond(e)
			}
		})
	}
	if err != nil {
		return 0, err
	}
	found := false
	err = stream.ScanBack(ctx, c.cfg.Log, c.cfg.Topics.Rejects, 0, math.MaxInt64, 16, func(r *stream.Record) error {
		x, err := codec.ParseReject(r.Value)
		if r.Type != "" || err != nil || x.Cut == 0 {
			return nil
		}
		if x.Era > era || x.Era == era && x.Cut > cut {
			beyond(x.Era)
		}
		// Not the last alone tells: an earlier joiner that was opening may have stored some again behind it.
		found = found || x.Era <= era && x.Cut <= marked
		return nil
	}, func() bool { return found })
	return claimed, err
}
