package verify

import (
	"context"
	"slices"
	"sort"

	"hindsight/internal/loop"
	"hindsight/pkg/codec"
)

// repeats reports whether the joiner must have known a round's id from an earlier
// round. An earlier round that it may have forgotten is forgotten here too.
func (f *fateCheck) repeats(id *heldID, h *heldRound) bool {
	for len(id.rounds) > 0 {
		first := id.owner()
		if f.tied(id, first, h) {
			continue
		}
		if first == h {
			return false
		}
		if f.got.Reason == codec.ReasonDuplicateID || !first.judged || f.got.N-first.feedback <= int64(f.v.Dedup)/2 {
			return true
		}
		id.rounds = slices.DeleteFunc(id.rounds, func(o *heldRound) bool { return o == first })
	}
	return false
}

// tied reports whether of two rounds of an id and a log time another one was read first
// than was thought, which the feedback of the one to be released next tells. Which it
// was is a matter of timing, but it was one of them.
func (f *fateCheck) tied(id *heldID, first, h *heldRound) bool {
	repeat := f.got.Reason == codec.ReasonDuplicateID
	for _, o := range id.rounds {
		switch {
		case o == h || o.judged || o.second || o.time != h.time || o.partition == h.partition:
		case repeat && first == h:
			h.second = true
			return true
		case !repeat && first == o:
			o.second = true
			return true
		}
	}
	return false
}

// owner returns the round that had the id first, nil if there is none.
func (id *heldID) owner() (first *heldRound) {
	for _, o := range id.rounds {
		if first == nil || o.time < first.time || o.time == first.time && o.before(first) {
			first = o
		}
	}
	return first
}

// before is the order of rounds of one id and log time.
func (h *heldRound) before(o *heldRound) bool {
	if h.second != o.second {
		return o.second
	}
	return h.partition < o.partition
}

// anyCut reports whether decisions may be gone.
func (f *fateCheck) anyCut() bool { return f.v.losses.any() || f.aged() }

// aged reports whether decisions are gone for their age, or forgotten here.
func (f *fateCheck) aged() bool {
	return f.forgot || slices.ContainsFunc(f.lanes, func(l *roundLane) bool { return l.c.cut() })
}

// unsure reports whether outcomes of a round may be gone, its decision being older
// than the first one kept; or may have been given to an earlier round of the same
// context, which was lost.
func (f *fateCheck) unsure(h *heldRound, id *heldID) bool {
	return slices.ContainsFunc(f.outs, func(l *outcomeLane) bool { return l.c.cut() && (!l.any || h.time <= l.since) }) ||
		slices.ContainsFunc(id.outcomes, func(o *heldOutcome) bool { return o.time < h.time && f.v.losses.parts(o.time, h.time) })
}

// decidedAt reports whether some decision has a log time.
func (f *fateCheck) decidedAt(ctx context.Context, at int64) (bool, error) {
	for p, l := range f.lanes {
		if err := f.readRounds(ctx, p, func(_ *roundLane, t int64) bool { return t <= at }); err != nil {
			return false, err
		}
		if _, ok := sort.Find(len(l.held), func(i int) int {
			switch t := l.held[i].time; {
			case at < t:
				return -1
			case at > t:
				return 1
			}
			return 0
		}); ok {
			return true, nil
		}
	}
	return f.aged() || at <= f.v.losses.last, nil
}

// keep remembers a judged round, and forgets the oldest.
func (f *fateCheck) keep(h *heldRound, n int64) {
	h.judged, h.feedback, h.raw = true, n, nil
	f.memory = append(f.memory, h)
	if len(f.memory) <= 2*f.v.Dedup {
		return
	}
	old := f.memory[0]
	f.memory[0], f.memory = nil, f.memory[1:] // what it knew is garbage now, not when the slice moves
	f.forgot = true
	id := f.id(old.id)
	id.rounds = slices.DeleteFunc(id.rounds, func(o *heldRound) bool { return o == old })
	if len(id.rounds) == 0 {
		f.afterwards(id)
		delete(f.ids, old.id)
	}
	old.id = ""
	l := f.lanes[old.partition]
	for len(l.held) > 1 && (l.held[0].judged && l.held[0].id == "" || l.held[0].lost) {
		l.held[0], l.held = nil, l.held[1:]
		l.base++
	}
}

// afterwards settles the outcomes that came after their round had its fate.
func (f *fateCheck) afterwards(id *heldID) {
	for _, o := range id.outcomes {
		want := late
		switch v := id.verdict; {
		case o.info == nil && (id.unsure || v == nil && f.aged()): // it may have counted in a round that is gone
			if f.outs[o.partition].has(o.offset) {
				f.v.count(&f.v.report.Outcomes, Tally{TooOld: 1})
			}
			continue
		case id.unsure || v == nil && (f.aged() || o.info != nil && o.info.time <= f.v.losses.last):
			want = again | mismatch | malformed
		case v == nil:
			want = orphan
		case o.orphaned() && o.time <= id.time:
			want = orphan
		case v.outcome:
			want = duplicate
		}
		f.settle(o, want)
	}
	id.outcomes = nil
}

// finish looks at what is left when the feedback ends: rounds that wait, and
// outcomes that were not asked for.
func (f *fateCheck) finish(ctx context.Context) error {
	for p, l := range f.lanes {
		if err := f.readRounds(ctx, p, func(*roundLane, int64) bool { return true }); err != nil {
			return err
		}
		for _, h := range l.held {
			if !h.judged && !h.lost && h.n > l.judged {
				f.v.report.Pending++
			}
		}
	}
	if err := f.readOutcomes(ctx, loop.End); err != nil {
		return err
	}
	for _, id := range f.ids {
		if err := f.waiting(ctx, id); err != nil {
			return err
		}
		f.afterwards(id)
	}
	return f.finishOutcomes()
}

// waiting settles the outcomes of a round that has no feedback yet.
func (f *fateCheck) waiting(ctx context.Context, id *heldID) error {
	h := id.owner()
	if h == nil || h.judged || h.raw == nil || id.verdict != nil {
		return nil
	}
	if id.unsure || h.n <= f.lanes[h.partition].judged || f.unsure(h, id) { // its feedback, or its like, is gone
		id.unsure = true
		return nil
	}
	rules := f.v.rules(h.epoch)
	if rules == nil || codec.ParseDecision(&f.dec, h.raw) != nil {
		id.outcomes = nil
		return nil
	}
	t := trial{rules: rules, action: f.dec.Actions[f.dec.Action], time: h.time, overflow: -1, named: place{-1, -1}}
	var err error
	if t.deadline, t.known, err = f.window(ctx, h, rules); err != nil {
		return err
	}
	verdict := t.judge(id.outcomes)
	for i, o := range id.outcomes {
		f.settle(o, verdict.outcomes[i])
	}
	id.outcomes = nil
	return nil
}
