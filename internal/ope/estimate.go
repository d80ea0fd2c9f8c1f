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

// Interval is one in which the true value is with 95 % confidence.
type Interval struct {
	Low  Figure `json:"low"`
	High Figure `json:"high"`
}

// Estimate is a value with its standard error and 95 % intervals. A figure that is not
// defined is NaN.
type Estimate struct {
	Name      string   `json:"-"` // the key of the estimate: ips, cips10, …
	Value     Figure   `json:"value"`
	SE        Figure   `json:"se"`
	Low       Figure   `json:"low"` // normal: value ∓ 1.96 se
	High      Figure   `json:"high"`
	Bootstrap Interval `json:"bootstrap"`        // percentiles over samples of rows, q̂ kept
	Bernstein Interval `json:"bernstein"`        // empirical Bernstein, on rewards in their range and no propensity below the smallest of the log; null where rows stand for unequally many events
	Lambda    *Figure  `json:"lambda,omitempty"` // null: ∞
}

// Normal returns an estimate with its normal interval alone.
func Normal(name string, value, se float64) Estimate {
	none := Interval{Figure(math.NaN()), Figure(math.NaN())}
	return Estimate{Name: name, Value: Figure(value), SE: Figure(se), Low: Figure(value - normal95*se), High: Figure(value + normal95*se),
		Bootstrap: none, Bernstein: none}
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
	Model     RewardModel
	Lambda    float64 // of clipping, Switch and DRos, > 0; 0: chosen by [Choose]
	Bootstrap int     // samples; 0: none
	Seed      uint64  // of the samples
	Range     Range   // of rewards; for empirical Bernstein
	MinRows   int     // fewer are flagged
}

// Defaults returns the options of the check values: λ = 10, no cross-fitting, 1,000
// bootstrap samples, rewards in [0,1], a flag under 1,000 rows.
func Defaults() Options {
	return Options{Model: DefaultRewardModel, Lambda: DefaultLambda, Bootstrap: 1000, Seed: 1, Range: Range{0, 1}, MinRows: 1000}
}

// Validate reports what cannot be.
func (o *Options) Validate() error {
	switch {
	case !(o.Lambda >= 0):
		return fmt.Errorf("λ is %v: it must be above 0, or 0 to have it chosen", o.Lambda)
	case o.Bootstrap < 0:
		return fmt.Errorf("%d bootstrap samples: there cannot be fewer than 0", o.Bootstrap)
	case !(o.Model.PriorCount > 0):
		return fmt.Errorf("the reward model's prior counts %v rows: it must be above 0", o.Model.PriorCount)
	case !(o.Range.Max > o.Range.Min):
		return fmt.Errorf("rewards in [%v, %v]: the range is empty", o.Range.Min, o.Range.Max)
	}
	return nil
}

// Evaluate judges a policy on a sample; nil is the policy that made it. While it works it
// keeps 16 bytes a row in the sample's memory, and what does not grow with the rows beside
// them: the terms of [blockRows] rows, and 8 numbers a bootstrap sample.
func Evaluate(s *Sample, name string, policy Policy, o Options) (*Evaluation, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if err := s.Validate(); err != nil {
		return nil, err
	}
	q := o.Model.fit(s)
	l, err := s.lookAt(policy, q)
	if err != nil {
		return nil, fmt.Errorf("policy %s: %w", name, err)
	}
	defer l.free()
	lambda := Lambdas{o.Lambda, o.Lambda, o.Lambda}
	if o.Lambda == 0 {
		lambda = l.choose()
	}
	ev := l.diagnose(o)
	ev.Policy, ev.Course = name, l.course()
	ev.Estimates = l.estimate(lambda, o)
	return ev, nil
}

// estimate computes all estimates.
func (l *look) estimate(lambda Lambdas, o Options) Estimates {
	n := float64(l.s.Len())
	row := func(t int) terms { return l.terms(t, &lambda) }
	var sum terms
	for t := range l.s.all() {
		x := row(t)
		sum.add(&x)
	}
	all := estimators()
	variances := l.variances(all, row, &sum)
	resampled := l.bootstrap(row, all, o)
	even := l.s.even()
	out := make(Estimates, len(all))
	for i := range all {
		m := &all[i]
		value, variance := m.value(&sum), variances[i]
		out[i] = Normal(m.name, value, math.Sqrt(variance/n))
		e := &out[i]
		if m.lambda != nil {
			v := Figure(m.lambda(lambda))
			e.Lambda = &v
			if e.Name += strconv.FormatFloat(float64(v), 'f', -1, 64); o.Lambda == 0 {
				e.Name = m.name + "_auto"
			}
		}
		e.Bootstrap = percentiles(resampled[i])
		if m.span != nil && even {
			half := bernstein(variance, n, m.span(l.weightBound(), lambda, o.Range))
			e.Bernstein = Interval{Figure(value - half), Figure(value + half)}
		}
	}
	return out
}

// variances returns that of one term of each estimator: with n−1, as of a mean, but with n
// for ratios of weights.
func (l *look) variances(all []estimator, row func(t int) terms, sum *terms) []float64 {
	n := float64(l.s.Len())
	out := make([]float64, len(all))
	for t := range l.s.all() {
		x := row(t)
		for i := range all {
			d := all[i].term(&x, sum, n)
			out[i] += d * d
		}
	}
	for i := range out {
		if all[i].over != nil {
			out[i] /= n
		} else {
			out[i] = ratio(out[i], n-1)
		}
	}
	return out
}
