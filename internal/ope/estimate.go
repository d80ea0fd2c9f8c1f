package ope

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
)

// Figure is a number whose JSON is null where it is not defined.
type Figure float64

// MarshalJSON writes null for NaN and infinities.
func (f Figure) MarshalJSON() ([]byte, error) {
	if v := float64(f); math.IsNaN(v) || math.IsInf(v, 0) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(f))
}

// UnmarshalJSON reads null as NaN.
func (f *Figure) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*f = Figure(math.NaN())
		return nil
	}
	return json.Unmarshal(b, (*float64)(f))
}

// interval is one in which the true value is with 95 % confidence; null for an estimate that may be biased.
type interval struct {
	Low  Figure `json:"low"`
	High Figure `json:"high"`
}

// Estimate is a value with its standard error and 95 % intervals. A figure that is not defined is NaN.
type Estimate struct {
	Name      string   `json:"-"` // the key of the estimate: ips, cips10, …
	Value     Figure   `json:"value"`
	SE        Figure   `json:"se"`  // null for an estimate that may be biased
	Low       Figure   `json:"low"` // normal: value ∓ 1.96 se; null for an estimate that may be biased
	High      Figure   `json:"high"`
	Bootstrap interval `json:"bootstrap"` // percentiles over samples of rows, or of units, q̂ kept
	// empirical Bernstein, on rewards in their range and no propensity below the smallest of the log; null where rows
	// stand for unequally many events, or are of units
	Bernstein interval `json:"bernstein"`
	Lambda    *Figure  `json:"lambda,omitempty"` // null: ∞
	Bias      *Bias    `json:"bias,omitempty"`   // of an estimate that may be biased
}

// Bias is how far an estimate is above the one that cuts no weight on the same rows, which is
// DR, for clipped IPS IPS: its bias, as far as the log shows it. Null where no row shows any.
type Bias struct {
	Value Figure `json:"value"`
	SE    Figure `json:"se"`
}

// Mark returns what stands behind an estimate that may be biased: * in general, ** if the log
// shows more than three standard errors of a bias.
func (e *Estimate) Mark() string {
	switch {
	case e.Bias == nil:
		return ""
	case math.Abs(float64(e.Bias.Value)) > maxOff*float64(e.Bias.SE):
		return "**"
	}
	return "*"
}

// Normal returns an estimate with its normal interval alone.
func Normal(name string, value, se float64) Estimate {
	none := interval{Figure(math.NaN()), Figure(math.NaN())}
	return Estimate{Name: name, Value: Figure(value), SE: Figure(se), Low: Figure(value - float64(normal95*se)),
		High: Figure(value + float64(normal95*se)), Bootstrap: none, Bernstein: none}
}

// Estimates are those of one policy; their JSON is an object with a key each, in order.
type Estimates []Estimate

// MarshalJSON implements [json.Marshaler].
func (e Estimates) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for i := range e {
		if i > 0 {
			out = append(out, ',')
		}
		out = strconv.AppendQuote(out, e[i].Name)
		value, err := json.Marshal(&e[i])
		if err != nil {
			return nil, err
		}
		out = append(append(out, ':'), value...)
	}
	return append(out, '}'), nil
}

// Get returns the estimate of a name, nil if there is none.
func (e Estimates) Get(name string) *Estimate {
	for i := range e {
		if e[i].Name == name {
			return &e[i]
		}
	}
	return nil
}

// DefaultLambda is λ of clipping, Switch and DRos where nothing else is said.
const DefaultLambda = 10

// Options say how policies are judged. The zero value is not usable; see [Defaults].
type Options struct {
	Model     rewardModel
	Lambda    float64 // of clipping, Switch and DRos, > 0; 0: chosen
	Bootstrap int     // samples; 0: none
	Seed      uint64  // of the samples
	Range     Range   // of rewards; for empirical Bernstein, and regressions
	MinRows   int     // fewer are flagged
}

// Defaults returns λ = 10, a cross-fitted reward model, 1,000 bootstrap samples, rewards in
// [0,1], a flag under 1,000 rows.
func Defaults() Options {
	return Options{Model: defaultRewardModel, Lambda: DefaultLambda, Bootstrap: 1000, Seed: 1, Range: Range{0, 1},
		MinRows: 1000}
}

// Validate reports what cannot be.
func (o *Options) validate() error {
	switch {
	case !(o.Lambda >= 0):
		return fmt.Errorf("λ is %v: it must be above 0, or 0 to have it chosen", o.Lambda)
	case o.Bootstrap < 0:
		return fmt.Errorf("%d bootstrap samples: there cannot be fewer than 0", o.Bootstrap)
	case !(o.Model.Count > 0):
		return fmt.Errorf("the reward model shrinks means by %v events: it must be above 0", o.Model.Count)
	case !(o.Range.Max > o.Range.Min):
		return fmt.Errorf("rewards in [%v, %v]: the range is empty", o.Range.Min, o.Range.Max)
	}
	return nil
}

// Evaluate judges a policy on a sample; nil is the policy that made it. While it works it
// keeps 24 bytes a row in the sample's memory, and what does not grow with the rows beside
// them: the terms of [blockRows] rows, 8 numbers a bootstrap sample, and the reward model.
func Evaluate(s *Sample, name string, policy Policy, o Options) (*Evaluation, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	if err := s.validate(); err != nil {
		return nil, err
	}
	q, err := o.Model.fit(s, o.Range)
	if err != nil {
		return nil, err
	}
	l, err := s.lookAt(policy, q)
	if err != nil {
		return nil, fmt.Errorf("policy %s: %w", name, err)
	}
	defer l.free()
	lambda := lambdas{o.Lambda, o.Lambda, o.Lambda}
	if o.Lambda == 0 {
		lambda = l.choose()
	}
	ev := l.diagnose(o)
	ev.Policy, ev.RewardModel, ev.AnyTime = name, q.name(), l.anyTime(o)
	if ev.Course, err = l.course(); err == nil {
		ev.Estimates, err = l.estimate(ev, lambda, o)
	}
	if err == nil {
		err = ev.flagModel(l, lambda)
	}
	return ev, err
}

// estimate computes all estimates. Those that may be biased have no standard error and no interval: the error of q̂,
// and the bias itself, are in none. Nor has any where no row matches: then the terms show nothing of what varies.
func (l *look) estimate(ev *Evaluation, lambda lambdas, o Options) (Estimates, error) {
	n := float64(l.s.Len())
	row := func(t int) terms { return l.terms(t, &lambda) }
	sum := l.sum(row)
	all := estimators()
	u, err := l.byUnit(row)
	if err != nil {
		return nil, err
	}
	defer u.free()
	spreads := l.spreads(all, u, &sum)
	resampled := l.bootstrap(u, all, o)
	bounded := l.s.even() && l.s.Unit == nil // else terms are no independent ones in an interval
	out := make(Estimates, len(all))
	for i := range all {
		m, e := &all[i], &out[i]
		value, se := m.value(&sum), spreads[i]
		if m.cuts(float64(ev.MaxWeight), lambda) || ev.Matched == 0 {
			*e = Normal(m.name, value, math.NaN())
			e.Bias = l.bias(m, u, &sum)
		} else {
			*e = Normal(m.name, value, se)
			e.Bootstrap = percentiles(resampled[i])
			if m.span != nil && bounded {
				half := bernstein(se*se*n, n, m.span(l.weightBound(), lambda, o.Range, l.model))
				e.Bernstein = interval{Figure(value - half), Figure(value + half)}
			}
		}
		if m.lambda != nil {
			v := Figure(m.lambda(lambda))
			e.Lambda = &v
			if e.Name += strconv.FormatFloat(float64(v), 'f', -1, 64); o.Lambda == 0 {
				e.Name = m.name + "_auto"
			}
		}
	}
	return out, nil
}

// bias measures that of an estimate.
func (l *look) bias(m *estimator, u *units, sum *terms) *Bias {
	if m.whole != nil {
		off := m.less(m.whole)
		if value, se := off.value(sum), l.spreads([]estimator{off}, u, sum)[0]; value != 0 || se > 0 {
			return &Bias{Figure(value), Figure(se)}
		}
	}
	return &Bias{Figure(math.NaN()), Figure(math.NaN())}
}

func (l *look) sum(row func(t int) terms) terms {
	var sum terms
	for t := range l.s.all() {
		x := row(t)
		sum.add(&x)
	}
	return sum
}

// spreads returns the standard error of each estimator given q̂: the deviation of its terms
// over √n, with n−1, as of a mean, but with n for ratios of weights; n are units.
func (l *look) spreads(all []estimator, u *units, sum *terms) []float64 {
	n := float64(u.n)
	out := make([]float64, len(all))
	for t := range l.s.upTo(u.n) {
		x := u.of(t)
		for i := range all {
			d := all[i].term(&x, sum, n)
			out[i] += float64(d * d)
		}
	}
	for i := range out {
		if all[i].over != nil {
			out[i] = math.Sqrt(out[i]) / n
		} else {
			out[i] = math.Sqrt(ratio(out[i], n-1) / n)
		}
	}
	return out
}
