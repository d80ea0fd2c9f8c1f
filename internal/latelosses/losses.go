package latelosses

import (
	"iter"
	"math"
	"strings"

	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/oracle"
)

// A round whose outcome comes after its window is not learned from. That biases what is learned if the delay depends on
// the loss, which shows: the losses that came late are known, though not used.

// Moments are the mean and the spread of numbers, in one pass (Welford, Note on a Method for Calculating Corrected Sums
// of Squares and Products, Technometrics 1962). The mean of equal numbers is that number, with no spread.
type Moments struct {
	N      int64
	mean   float64
	m2     float64 // Σ (x−mean)²
	missed float64 // Σ (x−g)², where g is the mean of those before x, ½ before the first
}

// Add takes a number.
func (m *Moments) Add(x float64) {
	guess := m.mean
	if m.N == 0 {
		guess = 0.5
	}
	m.missed += float64((x - guess) * (x - guess))
	m.N++
	d := x - m.mean
	m.mean += d / float64(m.N)
	m.m2 += float64(d * (x - m.mean))
}

// Mean returns the mean, NaN of nothing.
func (m *Moments) Mean() float64 {
	if m.N == 0 {
		return math.NaN()
	}
	return m.mean
}

// SE returns the standard error of the mean, NaN of fewer than two numbers.
func (m *Moments) SE() float64 {
	if m.N < 2 {
		return math.NaN()
	}
	return math.Sqrt(m.m2 / (float64(m.N) * float64(m.N-1)))
}

// radiusRates is how many rates [Moments.Radius] bets at: λ_j = 2^{-j}, j = 1, 2, ….
const radiusRates = 14

// Radius returns how far the mean of numbers x_i in [0,1] may be from the average of what they were expected to be, m_i
// = E[x_i | those before]: with probability 1−alpha it is never further, however often one looks. It is an
// empirical-Bernstein confidence sequence (Howard, Ramdas, McAuliffe and Sekhon, "Time-uniform, nonparametric,
// nonasymptotic confidence sequences", 2021, theorem 4), by a fixed grid of rates in place of a mixture. For g_i as
// above, e = x_i − g_i ≥ −1 and 0 ≤ λ < 1,
//
//	exp(λe − ψ(λ)e²) ≤ 1 + λe,   ψ(λ) = −log(1−λ) − λ
//
// (Fan, Grama and Liu, "Exponential inequalities for martingales with applications", 2015),
// and E[1 + λe | those before] = 1 + λ(m_i − g_i) ≤ exp(λ(m_i − g_i)). So
//
//	exp(λ Σ(x_i − m_i) − ψ(λ) Σe²)
//
// is a non-negative supermartingale from 1, which by Ville's inequality ever reaches c with probability at most 1/c; so
// is that of 1 − x_i. With c = 2J/alpha for each of J rates and both sides, nowhere is |Σ(x_i − m_i)| ≥ (log c + ψ(λ_j)
// Σe²)/λ_j for any j. It is +Inf of nothing.
func (m *Moments) Radius(alpha float64) float64 {
	least := math.Inf(1)
	if m.N == 0 {
		return least
	}
	c, rate := oracle.Log(2*radiusRates/alpha), 1.0
	for range radiusRates {
		rate /= 2
		psi := -oracle.Log(1-rate) - rate
		least = math.Min(least, (c+float64(psi*m.missed))/float64(rate*float64(m.N)))
	}
	return least
}

// Losses are the losses of rounds that were observed, and those that came for rounds without a loss in time: the first
// of each round. They are of one epoch, the last one met; losses are those of its scale, in [0,1]. Of models that sum
// outcomes none is late: it would be but a part of a loss.
type Losses struct {
	OnTime, Late Moments
	epoch        int64
}

// differLevel bounds the chance that losses which are alike ever differ.
const differLevel = 0.01

// Differ reports whether the means differ by more than chance has it: where late losses are expected to be what those
// in time are, on average, the chance that it ever does so is at most 1 in 100, at any number of looks
// ([Moments.Radius] of both, each at half the level). Means that are as far apart as can be take 35 losses of each.
func (l *Losses) Differ() bool {
	return math.Abs(l.OnTime.mean-l.Late.mean) > l.OnTime.Radius(differLevel/2)+l.Late.Radius(differLevel/2)
}

// AddObserved takes the loss of a round that was observed.
func (l *Losses) AddObserved(epoch int64, loss float64) {
	if l.of(epoch) {
		l.OnTime.Add(loss)
	}
}

// AddLate takes the first outcome after the window of a round that was skipped or
// imputed. It reports false if that has no loss: the next one may.
func (l *Losses) AddLate(epoch int64, rules *loop.Rules, kind codec.OutcomeKind, value float64) bool {
	return rules != nil && l.addLate(epoch, &rules.Range, rules.Outcomes, kind, value)
}

func (l *Losses) addLate(epoch int64, scale *loop.Range, take loop.Aggregate, kind codec.OutcomeKind,
	value float64) bool {
	if kind != codec.Loss && kind != codec.Reward || take == loop.Sum {
		return false
	}
	loss, err := scale.ToLoss(kind, value)
	if err != nil || !l.of(epoch) {
		return false
	}
	l.Late.Add(loss)
	return true
}

// of reports whether losses of an epoch count, and begins anew with a later epoch.
func (l *Losses) of(epoch int64) bool {
	if epoch > l.epoch {
		*l = Losses{epoch: epoch}
	}
	return epoch == l.epoch
}

// ByOutcome are losses by the name of the outcome; "" is the round's own loss. A named outcome counts as if it were a
// reward on its range.
type ByOutcome map[string]*Losses

// Of returns the losses of an outcome.
func (b ByOutcome) Of(name string) *Losses {
	l := b[name]
	if l == nil {
		l = new(Losses)
		b[strings.Clone(name)] = l
	}
	return l
}

// AddInTime adds what the feedback that ends a round tells of losses in time.
func (b ByOutcome) AddInTime(f *codec.Feedback, rules *loop.Rules) {
	if f.Fate == codec.Observed {
		b.Of("").AddObserved(f.Epoch, f.Loss)
	}
	for i := range f.Outcomes {
		o := &f.Outcomes[i]
		if rule := ruleOf(rules, o.Name); o.Fate == codec.Observed && rule != nil {
			if loss, err := rule.Range.ToLoss(codec.Reward, o.Value); err == nil {
				b.Of(o.Name).AddObserved(f.Epoch, loss)
			}
		}
	}
}

// addLate is [Losses.AddLate] of an outcome.
func (b ByOutcome) addLate(epoch int64, rules *loop.Rules, v *value) bool {
	if v.name == "" {
		return rules != nil && rules.Named == nil && b.Of("").AddLate(epoch, rules, v.kind, v.value)
	}
	rule := ruleOf(rules, v.name)
	return rule != nil && b.Of(v.name).addLate(epoch, &rule.Range, rule.Take, v.kind, v.value)
}

// AddLate adds what a record tells that came after the windows of all that it tells.
func (b ByOutcome) AddLate(epoch int64, rules *loop.Rules, o *codec.Outcome) {
	for _, v := range valuesOf(o) {
		b.addLate(epoch, rules, &v)
	}
}

// Named returns the comparisons of named outcomes of which one came late; nil: there is none.
func (b ByOutcome) Named() (out map[string]Comparison) {
	for name, l := range b {
		if name == "" || l.Late.N == 0 {
			continue
		}
		if out == nil {
			out = map[string]Comparison{}
		}
		out[name] = Compare(l)
	}
	return out
}

// Worst returns the outcome whose late losses differ, else the one of which most are late.
func (b ByOutcome) Worst() (name string, l *Losses) {
	l = b.Of("")
	for n, x := range b { // of equals the first by name
		d, e := x.Differ(), l.Differ()
		if d && !e || d == e && (x.Late.N > l.Late.N || x.Late.N == l.Late.N && n < name) {
			name, l = n, x
		}
	}
	return name, l
}

// ruleOf returns what the model says of an outcome; nil: it names no such outcome.
func ruleOf(rules *loop.Rules, name string) *loop.OutcomeRule {
	if rules == nil {
		return nil
	}
	for k := range rules.Named {
		if rules.Named[k].Name == name {
			return &rules.Named[k]
		}
	}
	return nil
}

// value is what a record tells of an outcome.
type value struct {
	name  string // "": the round's own
	kind  codec.OutcomeKind
	value float64
}

// valuesOf returns what a record tells.
func valuesOf(o *codec.Outcome) (all []value) {
	if o.Kind == codec.Loss || o.Kind == codec.Reward {
		all = append(all, value{"", o.Kind, o.Value})
	}
	for _, v := range o.Values {
		if !v.Withdrawn {
			all = append(all, value{strings.Clone(v.Name), codec.Reward, v.X})
		}
	}
	return all
}

// lateValues returns what a reject says came late, and for which round, or for the last draw of which unit.
func lateValues(r *codec.Reject) (of string, all []value) {
	var o codec.Outcome
	if r.Reason != codec.ReasonLate || codec.ParseOutcome(&o, r.Bytes) != nil {
		return "", nil // or its bytes were cut
	}
	if of = r.ID; of == "" {
		of = unitMark + o.Unit
	}
	return of, valuesOf(&o)
}

// unitMark is before a unit: no id begins with it.
const unitMark = "\x00"

// silences returns the outcomes of a round for which nothing came in time; "" is the round's own loss.
func silences(f *codec.Feedback) iter.Seq[string] {
	silent := func(fate codec.Fate) bool { return fate == codec.Skipped || fate == codec.Imputed }
	return func(yield func(name string) bool) {
		if f.Reason == codec.ReasonDuplicateID || f.First.N > 0 || silent(f.Fate) && !yield("") {
			return
		}
		for i := range f.Outcomes {
			if silent(f.Outcomes[i].Fate) && !yield(f.Outcomes[i].Name) {
				return
			}
		}
	}
}

// keyOf is that of an outcome of a round: no id has a zero byte.
func keyOf(id, name string) string {
	if name == "" {
		return id
	}
	return id + "\x00" + name
}
