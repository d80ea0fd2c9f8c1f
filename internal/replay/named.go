package replay

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"hindsight/internal/dataset"
	"hindsight/internal/delay"
	"hindsight/internal/latelosses"
	"hindsight/internal/loop"
	"hindsight/internal/model"
	"hindsight/internal/ope"
	"hindsight/internal/words"
	"hindsight/pkg/codec"
	"hindsight/pkg/learner"
)

// named are the outcomes of rounds that a model names.
type named struct {
	rules []loop.OutcomeRule
	worth *learner.Formula
	spend []model.Budget
	of    []*dataset.Outcome // of each rule
}

// UseOutcomes reports whether the data has the outcomes that a model takes, in their ranges.
func UseOutcomes(m *model.Model, r *Rounds) error {
	switch {
	case m.Named == nil && !r.NamesOutcomes():
		return nil
	case m.Named == nil:
		return fmt.Errorf("%s has the outcomes %s, and the model has one loss: a model file names them below "+
			"outcomes:, "+
			"and what they are worth below reward:; or give --reward FORMULA", r.Name, r.table.OutcomeNames())
	case r.table == nil || r.table.Labelled && !r.table.Arms:
		return fmt.Errorf("%s has one loss, and the model has named outcomes", r.Name)
	}
	for i := range m.Named {
		o := &m.Named[i]
		of := r.table.Outcome(o.Name)
		if of == nil {
			return fmt.Errorf("%s has no outcome %q; it has %s", r.Name, o.Name, r.table.OutcomeNames())
		}
		for t, v := range of.Value {
			r.table.Pass(t)
			if (v < o.Range.Min || v > o.Range.Max) && !o.Range.Clip && !math.IsInf(v, 1) {
				return fmt.Errorf("%s: the outcome %s is %v, which is not in [%v, %v], the model's range; write a "+
					"wider one, "+
					"or clip: true", r.Name, o.Name, v, o.Range.Min, o.Range.Max)
			}
		}
	}
	return nil
}

// NamesOutcomes reports whether the data has outcomes with names.
func (r *Rounds) NamesOutcomes() bool { return r.table != nil && len(r.table.Outcomes) > 0 }

// NameOutcomes gives a model without outcomes those of the data, each with its range there and a window, and a
// formula of them.
func NameOutcomes(m *model.Model, r *Rounds, reward string, window loop.Window) error {
	name := func(o *dataset.Outcome) {
		rule := loop.OutcomeRule{Name: o.Name, Range: loop.Range{Min: math.Inf(1), Max: math.Inf(-1)}, Window: window}
		for t, v := range o.Value {
			if r.table.Pass(t); !math.IsNaN(v) && !math.IsInf(v, 1) {
				rule.Range.Min, rule.Range.Max = min(rule.Range.Min, v), max(rule.Range.Max, v)
			}
		}
		if rule.Range.Min < rule.Range.Max {
			m.Named = append(m.Named, rule)
		}
	}
	m.Named = nil
	for i := range r.table.Outcomes {
		name(&r.table.Outcomes[i])
	}
	return m.SetReward(reward)
}

// naming returns the rounds with the outcomes that the model names, which [UseOutcomes] allows.
func (r *Rounds) naming(m *model.Model) *Rounds {
	if m.Named == nil {
		return r
	}
	out := *r
	out.named = &named{rules: m.Named, worth: m.Worth, spend: m.Budgets}
	for i := range m.Named {
		out.named.of = append(out.named.of, r.table.Outcome(m.Named[i].Name))
	}
	return &out
}

// cell returns what the data has of outcome k of action a in round t, or of the recorded one: NaN if none came, +Inf if
// it was withdrawn.
func (r *Rounds) cell(k, t, a int) float64 {
	at := r.Row(t)
	if r.table.Arms {
		at = at*len(r.table.Actions) + a
	}
	return r.named.of[k].Value[at]
}

// value returns outcome k of action a in round t, clipped as the model has it; NaN: it is not known, or never comes.
func (r *Rounds) value(k, t, a int) float64 {
	v := math.NaN()
	if r.table.Arms || a == r.table.Slot(r.Row(t)) {
		v = r.cell(k, t, a)
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
	return r.named.worth.Loss(r.action(t, a), y)
}

// Worth returns what is known of the recorded action of round t of a log: the reward or loss on its scale, whether that
// is known, and whether any outcome is.
func (r *Rounds) Worth(t int) (value float64, known, any bool) {
	log, row := r.Log, r.Row(t)
	if r.named == nil {
		known = log.Observed(row)
		return min(max(log.Value[row], log.Scale.Min), log.Scale.Max), known, known
	}
	y := make([]float64, len(r.named.rules))
	a := log.Slot(row)
	if known = r.Outcomes(y, t, a); known {
		value = r.named.worth.Value(r.action(t, a), y)
	}
	return value, known, slices.ContainsFunc(y, func(v float64) bool { return !math.IsNaN(v) })
}

// Closed appends what became of the named outcomes of action a in round t, all of them known at once.
func (r *Rounds) Closed(dst []codec.Closed, t, a int) []codec.Closed {
	if r.named == nil {
		return dst
	}
	for k := range r.named.rules {
		c := codec.Closed{Name: r.named.rules[k].Name, Fate: codec.Skipped, Partition: -1, Offset: -1}
		if v := r.value(k, t, a); !math.IsNaN(v) {
			c.Fate, c.Value, c.Partition, c.Offset = codec.Observed, v, 0, 0
		}
		dst = append(dst, c)
	}
	return dst
}

// Scale returns the range of what [Rounds.Worth] returns.
func (r *Rounds) Scale() loop.Range {
	if r.named == nil {
		return r.Log.Scale
	}
	lo, hi := r.named.worth.Range()
	return loop.Range{Min: lo, Max: hi}
}

// Formula returns the reward of named outcomes; "": there is one loss.
func (r *Rounds) Formula() string {
	if r.named == nil {
		return ""
	}
	return r.named.worth.String()
}

// Named returns the names of the outcomes, and behind them of the budgets, that the model names.
func (r *Rounds) Named() (names []string) {
	if r.named == nil {
		return nil
	}
	for k := range r.named.rules {
		names = append(names, r.named.rules[k].Name)
	}
	for i := range r.named.spend {
		names = append(names, "budget "+r.named.spend[i].Name)
	}
	return names
}

// NamedValues sets dst to the values of [Rounds.Named] of action a in round t; NaN: it is not known.
func (r *Rounds) NamedValues(dst []float64, t, a int) {
	n := len(r.named.rules)
	r.Outcomes(dst[:n], t, a)
	for i := range r.named.spend {
		dst[n+i] = r.spent(i, dst[:n], t, a)
	}
}

// spent returns what budget i has of an action whose outcomes are y; NaN: it is not known.
func (r *Rounds) spent(i int, y []float64, t, a int) float64 {
	of := r.named.spend[i].Of
	for k, v := range y {
		if of.Uses(k) && math.IsNaN(v) {
			return v
		}
	}
	return of.Value(r.action(t, a), y)
}

func (r *Rounds) action(t, a int) string {
	if r.table.Sets() {
		a = int(r.table.Eligible(nil, r.Row(t))[a])
	}
	return r.Actions[a]
}

// appendRow appends what the data has of the outcomes of round t, and when it came.
func (n *named) appendRow(dst []int64, r *Rounds, t int) []int64 {
	row, each := r.Row(t), 1
	if r.table.Arms {
		each = len(r.Actions)
	}
	for _, o := range n.of {
		for _, v := range o.Value[row*each : (row+1)*each] {
			dst = append(dst, int64(math.Float64bits(v)))
		}
		if o.Came != nil {
			dst = append(dst, o.Came[r.from+t])
		}
	}
	return dst
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
	for _, k := range p.outcomes {
		name, x := m.rounds.named.rules[k].Name, m.rounds.cell(k, t, a)
		switch {
		case math.IsInf(x, 1):
			dst = append(dst, codec.Value{Name: name, Withdrawn: true})
		case !math.IsNaN(x):
			dst = append(dst, codec.Value{Name: name, X: x})
		}
	}
	return dst
}

// NamedOutcome is how a named outcome of a run went.
type NamedOutcome struct {
	Name string     `json:"name"`
	Mean ope.Figure `json:"mean"` // of the actions played, as mean_loss or weighted as mean_loss is in replay
	SE   ope.Figure `json:"se"`
	OutcomeFates
	// Lateness compares values that came late with those in time, as losses in [0,1] of a reward on their scale.
	Lateness latelosses.Comparison `json:"late_losses"`
	Scale    words.Rewards         `json:"range"`
}

// OutcomeFates counts what became of a named outcome of rounds that ended.
type OutcomeFates struct {
	Observed  int64 `json:"observed"`
	Imputed   int64 `json:"imputed"`
	Skipped   int64 `json:"skipped"`
	Withdrawn int64 `json:"withdrawn"`
	Late      int64 `json:"late"` // outcomes that came after their window
}

// Spend is how a run kept a budget.
type Spend struct {
	Name    string     `json:"name"`
	Of      string     `json:"of"` // the formula
	Limit   float64    `json:"limit"`
	AtLeast bool       `json:"at_least,omitempty"`
	Mean    ope.Figure `json:"mean"` // of the actions played
	SE      ope.Figure `json:"se"`
	Share   ope.Figure `json:"share"` // mean over limit
	Worst   ope.Figure `json:"worst"` // the most that was ever spent beyond the limit so far, in limits of one round
	Price   ope.Figure `json:"price"` // mean of what the learner charged; null: it tells none
}

// debt is what was spent beyond a limit, in limits of one round.
type debt struct{ now, worst float64 }

// count notes the named outcomes of the action played, with its weight, and what was charged.
func (m *Match) count(t, a int, weight float64, d *codec.Decision) {
	r := m.rounds.named
	if r == nil {
		return
	}
	add := func(i int, w, v float64) {
		if m.course.now.named == nil {
			m.course.now.named = make([]ope.Weighted, len(m.tally))
		}
		m.tally[i].Add(w, v)
		m.course.now.named[i].Add(w, v)
	}
	m.rounds.Outcomes(m.y, t, a)
	for k, v := range m.y {
		if !math.IsNaN(v) {
			add(k, weight, v)
		}
	}
	for i := range r.spend {
		b := &r.spend[i]
		if i < len(d.Prices) {
			add(len(m.y)+len(r.spend)+i, 1, d.Prices[i].X)
		}
		spent := m.rounds.spent(i, m.y, t, a)
		if math.IsNaN(spent) {
			continue
		}
		add(len(m.y)+i, weight, spent)
		x := &m.debts[i]
		over := weight * (spent/b.Limit - 1)
		if b.AtLeast {
			over = -over
		}
		x.now += over
		x.worst = max(x.worst, x.now)
	}
}

// scoreNamed fills in what named outcomes and budgets came to.
func (m *Match) scoreNamed(r *Result) {
	of := m.rounds.named
	if of == nil {
		return
	}
	r.Formula = of.worth.String()
	for k := range of.rules {
		r.Outcomes = append(r.Outcomes, NamedOutcome{Name: of.rules[k].Name, Mean: seven(m.tally[k].Mean()),
			SE: seven(m.tally[k].SE()), Scale: words.Rewards{Min: of.rules[k].Range.Min, Max: of.rules[k].Range.Max}})
	}
	for i := range of.spend {
		b, sum := &of.spend[i], &m.tally[len(of.rules)+i]
		r.Budgets = append(r.Budgets, Spend{Name: b.Name, Of: b.Of.String(), Limit: b.Limit, AtLeast: b.AtLeast,
			Mean: seven(sum.Mean()), SE: seven(sum.SE()), Share: seven(sum.Mean() / b.Limit),
			Worst: seven(m.debts[i].worst),
			Price: seven(m.tally[len(of.rules)+len(of.spend)+i].Mean())})
	}
}

// tellNamed adds the lines of named outcomes to a course.
func (m *Match) tellNamed(out *Course) {
	of := m.rounds.named
	if of == nil || len(m.course.done) == 0 {
		return
	}
	out.Outcomes = map[string]*CourseLine{}
	for k := range of.rules {
		out.Outcomes[of.rules[k].Name] = m.course.namedLine(k)
	}
	for i := range of.spend {
		if out.Spent == nil {
			out.Spent, out.Prices = map[string]*CourseLine{}, map[string]*CourseLine{}
		}
		out.Spent[of.spend[i].Name] = m.course.namedLine(len(of.rules) + i)
		out.Prices[of.spend[i].Name] = m.course.namedLine(len(of.rules) + len(of.spend) + i)
	}
}

func (c *course) namedLine(i int) *CourseLine {
	return c.lineOf(func(s *stretch) *ope.Weighted {
		if s.named == nil { // nothing of it is known
			return new(ope.Weighted)
		}
		return &s.named[i]
	})
}

// outcomeCounts counts what becomes of named outcomes, by name.
type outcomeCounts map[string]*OutcomeFates

func (c outcomeCounts) of(name string) *OutcomeFates {
	f := c[name]
	if f == nil {
		f = &OutcomeFates{}
		c[strings.Clone(name)] = f
	}
	return f
}

// add counts the outcomes of a round that ended.
func (c outcomeCounts) add(f *codec.Feedback) {
	for i := range f.Outcomes {
		n := c.of(f.Outcomes[i].Name)
		count(f.Outcomes[i].Fate, [...]*int64{&n.Observed, &n.Imputed, &n.Skipped, &n.Withdrawn})
	}
}

// late counts outcomes that came after their windows.
func (c outcomeCounts) late(o *codec.Outcome) {
	for _, v := range o.Values {
		c.of(v.Name).Late++
	}
}

// setFates gives named outcomes what became of them, and what came late of them.
func (r *Result) setFates(of outcomeCounts, late latelosses.ByOutcome) {
	for i := range r.Outcomes {
		if o := &r.Outcomes[i]; of[o.Name] != nil {
			o.OutcomeFates, o.Lateness = *of[o.Name], latelosses.Compare(late.Of(o.Name))
		}
	}
}

// NamedFates gives the named outcomes of a run what the logs say became of them.
func (r *Result) NamedFates(s *Summary) { r.setFates(s.outcomes, s.late) }

// LateWarnings says of which named outcomes those that came late differ from those in time.
func (r *Result) LateWarnings() (out []string) {
	for i := range r.Outcomes {
		o := &r.Outcomes[i]
		if text := o.Lateness.Warning(&o.Scale); text != "" {
			out = append(out, "the outcome "+o.Name+": "+text)
		}
	}
	return out
}
