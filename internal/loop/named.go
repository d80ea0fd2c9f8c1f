package loop

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"hindsight/pkg/codec"
	"hindsight/pkg/learner"
)

// namedFate is what outcomes and time have made of one named outcome of a round.
type namedFate struct {
	outcomeFate
	stage int // whose record tells of it: outcomes of equal windows form a stage, 1, 2, …, of ascending windows
}

var errUnknownName = errors.New("the model names no such outcome")

// compare orders windows of one kind.
func (w Window) compare(x Window) int {
	return cmp.Or(cmp.Compare(w.Rounds, x.Rounds), cmp.Compare(w.Nanos, x.Nanos))
}

// first reports whether no outcome of a round waits for others.
func (r *Rules) first() bool {
	if r.Named == nil {
		return r.Outcomes == First
	}
	return !slices.ContainsFunc(r.Named, func(o OutcomeRule) bool { return o.Take != First })
}

// name returns the place of a named outcome; -1: there is none.
func (r *Rules) name(s string) int {
	k, ok := slices.BinarySearchFunc(r.Named, s, func(o OutcomeRule, s string) int {
		return strings.Compare(o.Name, s)
	})
	if !ok {
		return -1
	}
	return k
}

// worth returns the fate of a round by what became of its named outcomes, of which only those count that the formula
// uses, and its loss if it has one. y is scratch.
func (r *Rules) worth(action string, closed []codec.Closed, y []float64) (fate codec.Fate, loss float64, _ []float64) {
	y, fate = y[:0], codec.Observed
	for k := range closed {
		y = append(y, closed[k].Value)
		switch used := r.Worth.Uses(k); {
		case !used || closed[k].Fate == codec.Observed:
		case closed[k].Fate != codec.Imputed:
			fate = codec.Skipped
		case fate == codec.Observed:
			fate = codec.Imputed
		}
	}
	if fate == codec.Skipped {
		return fate, 0, y
	}
	return fate, clip01(r.Worth.Loss(action, y)), y
}

// outcomes fills in what a learner sees of the named outcomes of a feedback, under the rules at work: a model that goes
// on with the learner of another one may have another formula. A mode that forbids to learn the round shows none.
func (rd *reader) outcomes(round *learner.Round, f *codec.Feedback) {
	r, s := rd.rules, &rd.scratch
	s.closed, s.known = s.closed[:0], s.known[:0]
	learned := round.Fate == learner.Fate(f.Fate) && round.Fate != learner.Withdrawn
	for k := range r.Named {
		rule, c, x := &r.Named[k], codec.Closed{Fate: codec.Skipped}, learner.Outcome{}
		for i := range f.Outcomes {
			if f.Outcomes[i].Name == rule.Name {
				c = f.Outcomes[i]
			}
		}
		if c.Fate == codec.Observed || c.Fate == codec.Imputed {
			c.Value = min(max(c.Value, rule.Range.Min), rule.Range.Max)
			if x.Known = learned && c.Stage == 0; x.Known {
				x.Value = clip01((c.Value - rule.Range.Min) / (rule.Range.Max - rule.Range.Min))
			}
		}
		s.closed, s.known = append(s.closed, c), append(s.known, x)
	}
	round.Outcomes, round.Partial = s.known, f.Stage > 0
	if learned && !round.Partial {
		var fate codec.Fate
		fate, round.Loss, s.y = r.worth(f.Actions[f.Action], s.closed, s.y)
		round.Fate = learner.Fate(fate)
	}
}

// begin makes a fresh round one whose model names its outcomes.
func (f *roundFate) begin(named []OutcomeRule) {
	for k := range named {
		if k == cap(f.named) {
			f.named = append(f.named[:k], namedFate{})
		}
		f.named = f.named[:k+1]
		x := &f.named[k]
		*x = namedFate{outcomeFate: outcomeFate{outPart: -1, outOff: -1, ids: x.ids[:0]}, stage: 1}
		for i := range named {
			if named[i].Window.compare(named[k].Window) < 0 && !slices.ContainsFunc(named[:i],
				func(o OutcomeRule) bool { return o.Window == named[i].Window }) {
				x.stage++
			}
		}
	}
}

// stages returns how many stages the round has, the last of which is that of its feedback.
func (f *roundFate) stages() (n int) {
	for k := range f.named {
		n = max(n, f.named[k].stage)
	}
	return n
}

// isReady reports whether all outcomes of a stage have their fate.
func (f *roundFate) isReady(stage int) bool {
	for k := range f.named {
		if x := &f.named[k]; x.stage == stage && !x.ready {
			return false
		}
	}
	return true
}

// closeStage ends the wait for the outcomes of a stage: what counts so far, else what the model says of silence.
func (f *roundFate) closeStage(r *Rules, stage int, at int64) {
	for k := range f.named {
		x, rule := &f.named[k], &r.Named[k]
		if x.stage != stage || x.ready {
			continue
		}
		switch {
		case x.count > 0:
			x.settle(codec.Observed, x.value, at)
		case rule.Impute:
			x.settle(codec.Imputed, rule.Default, at)
		default:
			x.settle(codec.Skipped, 0, at)
		}
	}
}

func (f *namedFate) settle(fate codec.Fate, value float64, at int64) {
	f.ready, f.fate, f.value, f.closedAt = true, fate, value, at
}

// appendClosed appends what became of the outcomes of a stage; 0: of all, with the stages that were told before.
func (f *roundFate) appendClosed(dst []codec.Closed, r *Rules, stage int) []codec.Closed {
	for k := range f.named {
		x := &f.named[k]
		if stage > 0 && x.stage != stage {
			continue
		}
		c := codec.Closed{Name: r.Named[k].Name, Fate: x.fate, Value: x.value, Partition: x.outPart, Offset: x.outOff,
			ClosedAt: x.closedAt}
		if !x.ready { // the round has its fate without it
			c.Fate, c.Value, c.Partition, c.Offset, c.ClosedAt = codec.Skipped, 0, -1, -1, f.closedAt
			if f.fate == codec.WithdrawnRound {
				c.Fate = f.fate
			}
		}
		if stage == 0 && x.stage <= f.told {
			c.Stage = x.stage
		}
		dst = append(dst, c)
	}
	return dst
}

// conclude gives a round its fate, all of whose outcomes have theirs.
func (f *roundFate) conclude(r *Rules, action, reason string, s *scratch) {
	s.closed = f.appendClosed(s.closed[:0], r, 0)
	f.ready, f.reason = true, reason
	f.fate, f.loss, s.y = r.worth(action, s.closed, s.y)
	f.closedAt = 0
	for k := range f.named {
		f.closedAt = max(f.closedAt, f.named[k].closedAt)
	}
	f.outPart, f.outOff = -1, -1
	if f.fate != codec.Observed {
		return
	}
	last := -1 // of those that count, closed last; of several that at the greatest place
	for k := range s.closed {
		if r.Worth.Uses(k) && (last < 0 || later(&s.closed[k], &s.closed[last])) {
			last = k
		}
	}
	if last >= 0 {
		f.outPart, f.outOff = s.closed[last].Partition, s.closed[last].Offset
	}
}

func later(a, b *codec.Closed) bool {
	return cmp.Or(cmp.Compare(a.ClosedAt, b.ClosedAt), cmp.Compare(a.Partition, b.Partition),
		cmp.Compare(a.Offset, b.Offset)) > 0
}

// scratch is memory that is reused.
type scratch struct {
	closed []codec.Closed
	known  []learner.Outcome
	y      []float64
	one    [1]codec.Value
}

// valuesOf returns the named outcomes that a record tells of: a loss or a reward may be called so.
func (s *scratch) valuesOf(o *codec.Outcome) []codec.Value {
	if o.Kind == codec.Named {
		return o.Values
	}
	s.one[0] = codec.Value{Name: o.Kind.String(), X: o.Value}
	return s.one[:]
}

// takeNamed gives a round that is not ready the outcomes of a record. late reports whether those of a stage are. A
// record that tells of any outcome which is still open is taken as a whole or refused as a whole, but for what is late
// or a duplicate: then the reason says so, and counted that the rest counts.
func (f *roundFate) takeNamed(r *Rules, played string, o *codec.Outcome, at outPos, late func(stage int) bool,
	s *scratch) (counted bool, reason string, err error) {
	values, open := s.valuesOf(o), false
	for i := range values {
		k := r.name(values[i].Name)
		open = open || k < 0 || f.named[k].over(&r.Named[k], at, late) == ""
	}
	if err := matches(o, played); open && err != nil {
		return false, codec.ReasonMismatch, err
	}
	for i := range values {
		if err := f.check(r, &values[i], o.OutcomeID, at, late); open && err != nil {
			return false, codec.ReasonMalformed, err
		}
	}
	var refused []string
	for i := range values {
		k := r.name(values[i].Name)
		why := f.named[k].over(&r.Named[k], at, late)
		if why == "" {
			why = f.takeValue(r, k, &values[i], o.OutcomeID, at)
		}
		switch {
		case why == "", why == countsAlready:
			counted = true
		default:
			if refused = append(refused, values[i].Name); reason != codec.ReasonDuplicate {
				reason = why
			}
		}
	}
	if counted && reason != "" {
		err = fmt.Errorf("only of %s; the others of the record count", strings.Join(refused, ", "))
	}
	return counted, reason, err
}

// countsAlready says that a record is read again which counts by what an earlier record told of the round.
const countsAlready = "counts already"

// over returns why a record at a place tells of the outcome in vain: it has its fate, or its window has ended. It
// returns nothing while it is open.
func (f *namedFate) over(rule *OutcomeRule, at outPos, late func(stage int) bool) string {
	switch {
	case f.ready && f.outPart == at.partition && f.outOff == at.offset:
		return countsAlready
	case f.ready && (f.fate == codec.WithdrawnRound || f.fate == codec.Observed && rule.Take == First):
		return codec.ReasonDuplicate
	case f.ready || late(f.stage):
		return codec.ReasonLate
	}
	return ""
}

// check returns what is wrong with a value, whether it comes in time or not.
func (f *roundFate) check(r *Rules, v *codec.Value, id string, at outPos, late func(stage int) bool) (err error) {
	k := r.name(v.Name)
	if k < 0 {
		return fmt.Errorf("%w: %q", errUnknownName, v.Name)
	}
	if v.Withdrawn {
		return nil
	}
	rule, x := &r.Named[k], &f.named[k]
	if x.over(rule, at, late) != "" {
		_, err = rule.Range.scale(codec.Named, v.X)
	} else {
		_, _, _, err = x.with(&rule.Range, rule.Take, codec.Named, v.X, id)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", v.Name, err)
	}
	return nil
}

// takeValue takes a value of an outcome that is open, or returns why it does not count.
func (f *roundFate) takeValue(r *Rules, k int, v *codec.Value, id string, at outPos) string {
	x, rule := &f.named[k], &r.Named[k]
	if v.Withdrawn {
		x.settle(codec.WithdrawnRound, 0, at.time)
		x.outPart, x.outOff = at.partition, at.offset
		return ""
	}
	reason, _ := x.take(&rule.Range, rule.Take, codec.Named, v.X, id, at)
	if reason == "" && rule.Take == First {
		x.settle(codec.Observed, x.value, at.time)
	}
	return reason
}

// tell notes that a record told of the next stage, after which the ids of its outcomes are not needed: a restart, which
// reads that record, does not know them.
func (f *roundFate) tell() {
	f.told++
	for k := range f.named {
		if x := &f.named[k]; x.stage == f.told {
			x.ids, x.more, x.idBytes = x.ids[:0], nil, 0
		}
	}
}

// retell sets what records up to a feedback told.
func (f *roundFate) retell(r *Rules, told []toldOutcome, n int64) {
	for i := range told {
		c := &told[i]
		if k := r.name(c.Name); k >= 0 && c.n <= n {
			x := &f.named[k]
			x.settle(c.Fate, c.Value, c.ClosedAt)
			x.outPart, x.outOff = c.Partition, c.Offset
			for f.told < x.stage {
				f.tell()
			}
		}
	}
}
