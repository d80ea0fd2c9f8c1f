package replay

import (
	"fmt"
	"math"
	"slices"

	"hindsight/internal/dataset"
	"hindsight/internal/delay"
	"hindsight/internal/loop"
	"hindsight/internal/model"
	"hindsight/pkg/codec"
	"hindsight/pkg/learner"
)

// named are the outcomes of rounds that a model names.
type named struct {
	rules []loop.OutcomeRule
	worth *learner.Formula
	of    []*dataset.Outcome // of each rule
}

// UseOutcomes reports whether the data has the outcomes that a model takes, in their ranges.
func UseOutcomes(m *model.Model, r *Rounds) error {
	rules := m.Rules()
	switch {
	case len(rules.Named) == 0 && (r.table == nil || len(r.table.Outcomes) == 0):
		return nil
	case len(rules.Named) == 0:
		return fmt.Errorf("%s has the outcomes %s, and the model has one loss: a model file names them below outcomes:, "+
			"and what they are worth below reward:; or give --reward FORMULA", r.Name, r.table.OutcomeNames())
	case r.table == nil || r.table.Labelled && !r.table.Arms:
		return fmt.Errorf("%s has one loss, and the model has named outcomes", r.Name)
	}
	for i := range rules.Named {
		o := &rules.Named[i]
		of := r.table.Outcome(o.Name)
		if of == nil {
			return fmt.Errorf("%s has no outcome %q; it has %s", r.Name, o.Name, r.table.OutcomeNames())
		}
		for t, v := range of.Value {
			r.table.Pass(t)
			if (v < o.Range.Min || v > o.Range.Max) && !o.Range.Clip && !math.IsInf(v, 1) {
				return fmt.Errorf("%s: the outcome %s is %v, which is not in [%v, %v], the model's range; write a wider one, "+
					"or clip: true", r.Name, o.Name, v, o.Range.Min, o.Range.Max)
			}
		}
	}
	return nil
}

// naming returns the rounds with the outcomes that the rules name, which [UseOutcomes] allows.
func (r *Rounds) naming(rules *loop.Rules) *Rounds {
	if len(rules.Named) == 0 {
		return r
	}
	out := *r
	out.named = &named{rules: rules.Named, worth: rules.Worth}
	for i := range rules.Named {
		out.named.of = append(out.named.of, r.table.Outcome(rules.Named[i].Name))
	}
	return &out
}

// value returns outcome k of action a in round t, clipped as the model has it; NaN: it is not known, or never comes.
func (r *Rounds) value(k, t, a int) float64 {
	v, row := math.NaN(), r.Row(t)
	switch b := r.table; {
	case b.Arms:
		v = r.named.of[k].Value[row*len(b.Actions)+a]
	case a == b.Slot(row):
		v = r.named.of[k].Value[row]
	}
	if math.IsInf(v, 1) {
		return math.NaN()
	}
	if o := &r.named.rules[k]; o.Range.Clip {
		v = min(max(v, o.Range.Min), o.Range.Max)
	}
	return v
}

// Outcomes sets dst to the named outcomes of action a in round t, NaN where they are not known, and reports whether
// all that the reward needs are.
func (r *Rounds) Outcomes(dst []float64, t, a int) (known bool) {
	known = true
	for k := range dst {
		dst[k] = r.value(k, t, a)
		known = known && (!math.IsNaN(dst[k]) || !r.named.worth.Uses(k))
	}
	return known
}

// worth returns the loss of action a in round t by its outcomes; NaN: it is not known.
func (r *Rounds) worth(t, a int) float64 {
	var room [maxOutcomes]float64
	y := room[:len(r.named.rules)]
	if !r.Outcomes(y, t, a) {
		return math.NaN()
	}
	if r.table.Sets() {
		a = int(r.table.Eligible(nil, r.Row(t))[a])
	}
	return r.named.worth.Loss(r.Actions[a], y)
}

// maxOutcomes is how many outcomes a model may name.
const maxOutcomes = 32

// part are outcomes of a round that come together.
type part struct {
	delays   *delay.Delays
	outcomes []int // indices into the rules
}

// partsOf returns which outcomes come together: those without delays of their own do.
func (r *Rounds) partsOf(d *delay.Delays) []part {
	if r.named == nil {
		return nil
	}
	shared, own := part{delays: d}, []part(nil)
	for k := range r.named.rules {
		if of := d.Of[r.named.rules[k].Name]; of != nil {
			own = append(own, part{of, []int{k}})
		} else {
			shared.outcomes = append(shared.outcomes, k)
		}
	}
	if len(shared.outcomes) > 0 {
		own = append(own, shared)
	}
	return own
}

// Finals tells final feedbacks from those of earlier stages by their numbers.
type Finals struct{ stages []int64 }

// Note notes a feedback, in order.
func (f *Finals) Note(x *codec.Feedback) {
	if x.Stage > 0 {
		f.stages = append(f.stages, x.N)
	}
}

// Among returns how many of feedbacks 1 to n are final.
func (f *Finals) Among(n int64) int64 {
	stages, _ := slices.BinarySearch(f.stages, n+1)
	return n - int64(stages)
}

// lay lays out the outcomes of round t, in which action a was played.
func (m *Match) lay(t, a int) {
	if m.parts == nil {
		m.Schedule.Add(m.delays.Delay(&m.play), a)
		return
	}
	m.when = m.when[:0]
	for _, p := range m.parts {
		w := delay.Part{Delay: delay.Never}
		if m.said = m.values(m.said[:0], p, t, a); len(m.said) > 0 {
			w.Delay = p.delays.Delay(&m.play)
		}
		if p.delays.Times != nil {
			w.Time = p.delays.Times[t]
		}
		m.when = append(m.when, w)
	}
	m.Schedule.AddParts(m.when, a)
}

// values appends what is reported of a part of a round.
func (m *Match) values(dst []codec.Value, p part, t, a int) []codec.Value {
	r := m.rounds
	for _, k := range p.outcomes {
		v := codec.Value{Name: r.named.rules[k].Name}
		switch row := r.Row(t); {
		case !r.table.Arms && math.IsInf(r.named.of[k].Value[row], 1):
			v.Withdrawn = true
		case r.table.Arms:
			v.X = r.named.of[k].Value[row*len(r.Actions)+a]
		default:
			v.X = r.named.of[k].Value[row]
		}
		if !math.IsNaN(v.X) {
			dst = append(dst, v)
		}
	}
	return dst
}
