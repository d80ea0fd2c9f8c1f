package learner_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

// given is a class whose predictions are given: one row an action.
type given [][]float64

func (g given) Size() int                                       { return len(g[0]) }
func (g given) Eval(dst []float64, x *oracle.Input, action int) { copy(dst, g[action]) }

// idle is an oracle that does nothing: what is left of Learn is the certificate.
type idle struct{ oracle.Regressor }

func (idle) Predict(dst []float64, x *oracle.Input)           {}
func (idle) Update(x *oracle.Input, action int, loss float64) {}
func (idle) Regret() float64                                  { return 1 }

// least returns the seconds of one call of Learn with that delay.
func least(l learner.Learner, r learner.Round, delay int64) float64 {
	r.LearnedThrough = r.N - 1 - delay
	return measure(func() { l.Learn(&r) })
}

// BenchmarkLearnHedge times Learn over 10,000 functions with predictions given and 10
// actions: the whole, without delay and with; and apart from it what the certificate
// takes: its own sums, and the prediction that a delayed round needs for them. The
// pass over the log-weights and the normalising are in package oracle, beside the
// plain sum.
func BenchmarkLearnHedge(b *testing.B) {
	const size, k = 10_000, 10
	rng := rand.New(rand.NewPCG(1, 1))
	class := make(given, k)
	x := &oracle.Input{}
	for a := range class {
		x.Actions = append(x.Actions, oracle.Action{Name: fmt.Sprint("a", a)})
		for range size {
			class[a] = append(class[a], rng.Float64())
		}
	}
	h, err := oracle.NewHedge(class, oracle.HedgeOptions{})
	if err != nil {
		b.Fatal(err)
	}
	l := learner.NewDAFA(h, learner.Root{C: learner.RootBalanced})
	law, gamma := l.Propensities(nil, x)
	r := learner.Round{Input: x, Propensities: law, Gamma: gamma, N: 5000, Fate: learner.Observed, Loss: 0.5,
		LearnedThrough: 4999}
	b.ReportAllocs()
	for b.Loop() {
		l.Learn(&r)
	}
	none := learner.NewDAFA(idle{}, learner.Root{C: learner.RootBalanced})
	fhat := make([]float64, k)
	b.ReportMetric(least(l, r, 0)*1e9, "least-ns")
	b.ReportMetric(least(l, r, 1)*1e9, "delayed-ns")
	b.ReportMetric(least(none, r, 1)*1e9, "certificate-ns")
	b.ReportMetric(measure(func() { h.Predict(fhat, x) })*1e9, "certificate-predict-ns")
}
