package check

import (
	"bytes"
	"fmt"
	"slices"

	"hindsight/pkg/codec"
)

// mark checks a mark against where the twin stands. Where it begins an era, the twin goes back to what the
// logs still hold.
func (h *history) mark(where string, r *record, m *codec.FeedbackMark) {
	c := h.c
	if m.N != h.n || m.Cut != h.cut || m.Limits.Heart != 2 || len(m.Positions) != c.n || m.Era < h.era {
		c.fail("%s: after feedback %d, cut %d, era %d: %+v", where, h.n, h.cut, h.era, *m)
		return
	}
	if last := len(m.Epochs) - 1; h.epoch > 0 && (last < 0 || m.Epochs[last].Epoch != h.epoch) {
		c.fail("%s: a mark of epochs %v in epoch %d", where, m.Epochs, h.epoch)
	}
	c.marks = append(c.marks, placed{m, r.order})
	s := step{n: h.n, mark: m}
	if m.Era > h.era {
		h.beginEra(where, m)
	} else if len(m.LostTails) > 0 {
		c.fail("%s: a mark of era %d that begins none tells of losses: %v", where, m.Era, m.LostTails)
	}
	if h.lost == "" {
		h.compare(where, m)
		h.checkFrom(where, m)
		h.twin.set(m)
	}
	h.origin, h.marks[r.Offset] = true, m
	h.steps = append(h.steps, s)
}

// compare compares a mark with that of the twin.
func (h *history) compare(where string, m *codec.FeedbackMark) {
	own := h.twin.mark()
	own.Limits = m.Limits
	is := codec.FeedbackMark{N: m.N, Cut: m.Cut, Time: m.Time, Era: m.Era, Remembers: m.Remembers, Limits: m.Limits,
		Positions: m.Positions}
	if !bytes.Equal(codec.AppendFeedbackMark(nil, &is), codec.AppendFeedbackMark(nil, &own)) {
		h.c.fail("%s: the mark is %+v\nand the twin stands at %+v", where, is, own)
	}
	for _, rounds := range []bool{false, true} {
		if n, own := len(delaysOf(m)[rounds]), len(h.twin.delays[rounds]); n != own {
			h.c.fail("%s: a mark counts the delays of %d outcomes, and there were %d", where, n, own)
		}
	}
	if len(h.twin.due) > 0 {
		h.c.fail("%s: a mark, and feedback %d of the cut before it is missing", where, h.twin.due[0].N)
	}
}

// checkFrom checks that a restart reads enough: the older mark lies before the cut that took the oldest round
// that waits, and the one behind Memory before all feedback that is remembered there.
func (h *history) checkFrom(where string, m *codec.FeedbackMark) {
	from := m
	if m.From >= 0 {
		if from = h.marks[m.From]; from == nil || from.Cut != m.FromCut {
			h.c.fail("%s: a restart reads from @%d, where no mark of cut %d lies", where, m.From, m.FromCut)
			return
		}
	}
	for _, w := range h.twin.line {
		if w.cut <= from.Cut {
			h.c.fail("%s: a restart reads from behind cut %d, and round %d of partition %d waits since cut %d", where,
				from.Cut, w.N, w.Partition, w.cut)
		}
	}
	for _, x := range h.twin.told {
		if x.cut <= from.Cut {
			h.c.fail("%s: a restart reads from behind cut %d, and cut %d told log time %d", where, from.Cut, x.cut,
				x.time)
		}
	}
	if x := h.marks[m.Memory]; m.Memory >= 0 && (x == nil || x.N > from.N-m.Limits.Dedup) {
		h.c.fail("%s: a restart learns of ids from @%d on, and needs those of feedback %d", where, m.Memory,
			from.N-m.Limits.Dedup)
	}
}

// beginEra has the twin take again, from the first cut on, what the logs still hold of what cuts took, without
// closing or releasing anything: what had its feedback before the era keeps it.
func (h *history) beginEra(where string, m *codec.FeedbackMark) {
	c := h.c
	c.r.Eras++
	c.eras = append(c.eras, m)
	h.era = m.Era
	if k := len(m.Eras) - 1; k < 0 || m.Eras[k] != (codec.EraStart{Era: m.Era, N: m.N}) {
		c.fail("%s: era %d begins, and the mark says of eras %v", where, m.Era, m.Eras)
	}
	h.told = max(h.told, m.Time)
	for i := range m.Positions {
		h.next[i], h.next[c.n+i] = m.Positions[i].Decisions, m.Positions[i].Outcomes
	}
	if c.o.Rules == nil {
		return
	}
	t := newTwin(c)
	t.delays = delaysOf(m) // of outcomes behind the mark before it none is known
	if h.lost = t.goBack(h.steps, m); h.lost == "" {
		h.twin = t
	}
}

// goBack makes a new twin the one that stands where an era begins. It says what hinders it.
func (t *twin) goBack(steps []step, m *codec.FeedbackMark) string {
	t.past = map[place]bool{}
	for at, f := range t.c.fed {
		t.past[at] = true
		own := &waiting{n: f.N, fate: f}
		if e := t.c.epochs[f.Epoch]; e != nil {
			own.rules = e.rules
		}
		if w := t.rounds[f.ID]; f.Reason != codec.ReasonDuplicateID && (w == nil || w.n < f.N) {
			t.rounds[f.ID] = own
		}
		if w := t.rounds[ofUnit(f.Unit)]; f.Reason != codec.ReasonDuplicateID && f.Unit != "" && f.First.N == 0 &&
			f.Mode != codec.External && (w == nil || w.n < f.N) {
			t.rounds[ofUnit(f.Unit)] = own
		}
		t.finals = append(t.finals, f.N)
	}
	slices.Sort(t.finals)
	for k := range steps {
		s := &steps[k]
		if s.mark != nil {
			t.passMark(s.mark)
			continue
		}
		limits := t.limitsBehind(steps[k+1:], m)
		if lost := missing(s, limits, t.c.n); lost != "" {
			return lost
		}
		t.n = s.n
		t.take(s.cut, cutOff(s.ranges, limits, t.c.n))
	}
	t.n, t.cut, t.era, t.eraN = m.N, m.Cut, m.Era, m.N
	if t.now > m.Time {
		return fmt.Sprintf("era %d begins at log time %d, and the records that are left are of %d", m.Era, m.Time,
			t.now)
	}
	t.now, t.past = m.Time, nil
	t.told = slices.DeleteFunc(t.told, func(x told) bool { return x.time <= t.now })
	for i := range t.parts {
		t.parts[i].stand(&m.Positions[i])
		t.parts[i].done = m.Positions[i].Done
	}
	return ""
}

// passMark passes a mark on the way back.
func (t *twin) passMark(m *codec.FeedbackMark) {
	if m.Era > t.era {
		t.era = m.Era
		for i := range t.parts {
			q := &t.parts[i]
			q.time = min(q.time, m.Positions[i].Time)
			q.done = append(q.done, m.Positions[i].Done...)
		}
	}
	t.now = max(t.now, m.Time)
	t.set(m)
}

// stand puts a partition where a mark stands in the inputs.
func (q *twinPart) stand(p *codec.Position) {
	q.decisions = stretch{p.DecisionsSince, p.Decisions, p.DecisionsSum}
	q.outcomes = stretch{p.OutcomesSince, p.Outcomes, p.OutcomesSum}
	q.again = p.Again
}

// limitsBehind returns, by input, from which offset on marks behind a step say that records are lost.
func (t *twin) limitsBehind(steps []step, m *codec.FeedbackMark) map[int]int64 {
	limits := map[int]int64{}
	add := func(m *codec.FeedbackMark) {
		for _, x := range m.LostTails {
			i := inputOf(x.Partition, x.Topic == "outcomes", t.c.n)
			if at, ok := limits[i]; x.Topic != "rejects" && (!ok || x.Offset < at) {
				limits[i] = x.Offset
			}
		}
	}
	add(m)
	for i := range steps {
		if steps[i].mark != nil {
			add(steps[i].mark)
		}
	}
	return limits
}

// cutOff leaves out the records of ranges that are lost.
func cutOff(ranges []taken, limits map[int]int64, partitions int) (out []taken) {
	for _, x := range ranges {
		if limit, ok := limits[x.input(partitions)]; ok {
			x.records = before(x.records, limit)
		}
		out = append(out, x)
	}
	return out
}
