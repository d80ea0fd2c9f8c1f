package check

import (
	"math"
	"slices"

	"hindsight/pkg/codec"
)

// out is a named outcome of a round that was taken.
type out struct {
	rule  *Named
	stage int           // 1, 2, …: how many windows are no longer than its own
	last  *codec.Closed // what counts so far
	end   *codec.Closed // what became of it
}

// name gives a round the outcomes that its model names, and what records of its stages told of them.
func (t *twin) name(w *waiting) {
	if told := t.c.stages[roundAt(w.Partition, w.N)]; len(told) > 0 && w.rules != nil && w.rules.Soon != nil {
		w.told, w.guess = len(told), told[len(told)-1].Outcomes[0].Value
	}
	if w.rules == nil || w.rules.Named == nil {
		return
	}
	w.ends = func(o *Named) int64 {
		if o.WindowNanos > 0 {
			return w.time + o.WindowNanos
		}
		if end, ok := t.parts[w.Partition].times[w.N+o.WindowRounds]; ok {
			return end
		}
		return math.MaxInt64
	}
	for k := range w.rules.Named {
		o := &w.rules.Named[k]
		shorter := map[int64]bool{}
		for i := range w.rules.Named {
			if x := &w.rules.Named[i]; x.WindowRounds+x.WindowNanos <= o.WindowRounds+o.WindowNanos {
				shorter[x.WindowRounds+x.WindowNanos] = true
			}
		}
		w.outs = append(w.outs, out{rule: o, stage: len(shorter)})
	}
	for _, f := range t.c.stages[roundAt(w.Partition, w.N)] { // in an earlier era, or none yet
		w.told = f.Stage
		for i := range f.Outcomes {
			c := f.Outcomes[i]
			w.outs[slices.IndexFunc(w.outs, func(x out) bool { return x.rule.Name == c.Name })].end = &c
		}
	}
}

// forget forgets what lies behind as many feedbacks of rounds as the limits say.
func (t *twin) forget() {
	finals := t.finals[:firstBehind(t.finals, t.n)]
	low := t.n
	if d := t.limits.Dedup; d > int64(len(finals)) {
		return
	} else if d > 0 {
		low = finals[int64(len(finals))-d] - 1
	}
	t.forgotten = max(t.forgotten, low)
}

func firstBehind(all []int64, n int64) int {
	k, _ := slices.BinarySearch(all, n+1)
	return k
}

// counted reports whether a round's feedback names a record among those that counted.
func (w *waiting) counted(m *moment) bool {
	f := w.fate
	return f.OutcomePartition == m.partition && f.OutcomeOffset == m.record.Offset ||
		slices.ContainsFunc(f.Outcomes, func(c codec.Closed) bool {
			return c.Partition == m.partition && c.Offset == m.record.Offset
		})
}

// takeNamed gives a round the outcomes of a record, and returns why some do not count.
func (t *twin) takeNamed(w *waiting, s *said, m *moment) (reason string) {
	values := s.Values
	if s.Kind != codec.Named {
		values = []codec.Value{{Name: s.Kind.String(), X: s.Value}}
	}
	open, wrong := false, false
	var outs []*out
	for _, v := range values {
		k := slices.IndexFunc(w.outs, func(x out) bool { return x.rule.Name == v.Name })
		if k < 0 {
			open, wrong, outs = true, true, append(outs, nil)
			continue
		}
		x := &w.outs[k]
		wrong = wrong || !v.Withdrawn && (v.X < 0 || v.X > x.rule.Max)
		open = open || x.end == nil && t.now <= w.ends(x.rule)
		outs = append(outs, x)
	}
	switch {
	case open && s.Action != "" && s.Action != w.Actions[w.Action]:
		return codec.ReasonMismatch
	case open && wrong:
		return codec.ReasonMalformed
	}
	for i, v := range values {
		x := outs[i]
		here := &codec.Closed{Name: v.Name, Fate: codec.Observed, Value: v.X, Partition: m.partition,
			Offset: m.record.Offset}
		switch {
		case x.end != nil && x.end.Partition == here.Partition && x.end.Offset == here.Offset:
		case x.end != nil && (x.end.Fate == codec.WithdrawnRound || x.end.Fate == codec.Observed && !x.rule.Last):
			reason = codec.ReasonDuplicate
		case x.end != nil || t.now > w.ends(x.rule):
			if reason == "" {
				reason = codec.ReasonLate
			}
		case v.Withdrawn:
			here.Fate, here.ClosedAt, x.end = codec.WithdrawnRound, t.now, here
		case s.OutcomeID != "" && slices.Contains(w.ids(x), s.OutcomeID):
			reason = codec.ReasonDuplicate
		default:
			if x.last = here; !x.rule.Last {
				here.ClosedAt, x.end = t.now, here
			}
			w.note(x, s.OutcomeID)
		}
	}
	w.conclude("")
	return reason
}

// ids are those of records that count for an outcome of which the last counts.
func (w *waiting) ids(x *out) []string { return w.counts[x.rule.Name] }

func (w *waiting) note(x *out, id string) {
	if w.counts == nil {
		w.counts = map[string][]string{}
	}
	w.counts[x.rule.Name] = append(w.counts[x.rule.Name], id)
}

// closeStage ends the wait for the outcomes of a stage, 0: of all, at the end of their windows or earlier.
func (w *waiting) closeStage(stage int, at int64) {
	for i := range w.outs {
		x := &w.outs[i]
		if x.end != nil || stage > 0 && x.stage != stage {
			continue
		}
		c := codec.Closed{Name: x.rule.Name, Fate: codec.Skipped, Partition: -1, Offset: -1}
		switch {
		case x.last != nil:
			c = *x.last
		case x.rule.Impute:
			c.Fate, c.Value = codec.Imputed, x.rule.Default
		}
		c.ClosedAt = min(at, w.ends(x.rule))
		x.end = &c
	}
}

func (w *waiting) closeNamed(at int64, reason string) {
	w.closeStage(0, at)
	w.conclude(reason)
}

// conclude gives a round its fate once all outcomes have theirs.
func (w *waiting) conclude(reason string) {
	if w.fate != nil || slices.ContainsFunc(w.outs, func(x out) bool { return x.end == nil }) {
		return
	}
	fate, reward, least, most, closed := codec.Observed, 0.0, 0.0, 0.0, int64(0)
	var by *codec.Closed
	for i := range w.outs {
		x := &w.outs[i]
		if closed = max(closed, x.end.ClosedAt); x.rule.Weight == 0 {
			continue
		}
		fate = max(fate, min(x.end.Fate, codec.Skipped))
		reward += x.rule.Weight * x.end.Value
		least, most = least+min(0, x.rule.Weight*x.rule.Max), most+max(0, x.rule.Weight*x.rule.Max)
		if by == nil || compare(x.end.ClosedAt, by.ClosedAt, int64(x.end.Partition), int64(by.Partition), x.end.Offset,
			by.Offset) > 0 {
			by = x.end
		}
	}
	loss := 0.0
	if fate != codec.Skipped {
		loss = (most - reward) / (most - least)
	}
	if w.end(fate, reason, loss, closed); fate == codec.Observed {
		w.fate.OutcomePartition, w.fate.OutcomeOffset = by.Partition, by.Offset
	}
}

// closed is what records say of the outcomes of a stage; 0: of all.
func (w *waiting) closed(stage int) (all []codec.Closed) {
	for i := range w.outs {
		x := &w.outs[i]
		if stage > 0 && x.stage != stage {
			continue
		}
		c := codec.Closed{Name: x.rule.Name, Fate: codec.Skipped, Partition: -1, Offset: -1}
		switch {
		case x.end != nil:
			c = *x.end
		case w.fate.Fate == codec.WithdrawnRound:
			c.Fate, c.ClosedAt = codec.WithdrawnRound, w.fate.ClosedAt
		default:
			c.ClosedAt = w.fate.ClosedAt
		}
		if c.Stage = 0; stage == 0 && x.stage <= w.told {
			c.Stage = x.stage
		}
		all = append(all, c)
	}
	return all
}

// stages is how many stages the round has.
func (w *waiting) stages() (n int) {
	for i := range w.outs {
		n = max(n, w.outs[i].stage)
	}
	return n
}

// settleStages tells of the stages of rounds, each in the order of the line.
func (t *twin) settleStages() {
	for s, more := 1, t.past == nil; more; s++ {
		more = false
		for _, w := range t.line {
			if w.stages() <= s || w.fate != nil && (w.fate.Fate == codec.WithdrawnRound || w.fate.Reason != "" &&
				w.fate.Reason != codec.ReasonOverflow) {
				continue
			}
			if more = true; w.told >= s {
				continue
			}
			for i := range w.outs {
				if x := &w.outs[i]; x.stage == s && t.now > w.ends(x.rule) {
					w.closeStage(s, t.now)
				}
			}
			if w.told < s-1 || slices.ContainsFunc(w.outs, func(x out) bool { return x.stage == s && x.end == nil }) {
				break
			}
			t.tellStage(w, s)
		}
	}
}

func (t *twin) tellStage(w *waiting, s int) {
	w.told = s
	t.n++
	f := codec.Feedback{N: t.n, Time: w.time, Stage: s, OutcomePartition: -1, OutcomeOffset: -1, Outcomes: w.closed(s)}
	w.fill(&f)
	for i := range f.Outcomes {
		f.ClosedAt = max(f.ClosedAt, f.Outcomes[i].ClosedAt)
	}
	t.due = append(t.due, f)
	w.conclude("")
}
