package learner_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

// benchInputs returns n rounds of k actions and d numbers, by name or as
// vectors.
func benchInputs(n, k, d int, vector bool) []oracle.Input {
	rng := rand.New(rand.NewPCG(1, 2))
	var actions []oracle.Action
	for a := range k {
		actions = append(actions, oracle.Action{Name: fmt.Sprintf("action-%d", a)})
	}
	inputs := make([]oracle.Input, n)
	for i := range inputs {
		inputs[i].Actions = actions
		for j := range d {
			v := rng.Float64()*10 - 3
			if vector {
				inputs[i].Vector = append(inputs[i].Vector, v)
			} else {
				inputs[i].Features = append(inputs[i].Features, oracle.Feature{Name: fmt.Sprintf("n_input%d", j+1),
					Kind: oracle.Number, Value: v})
			}
		}
	}
	return inputs
}

// trained returns DA-FA over a linear oracle that learned rounds of inputs.
func trained(t testing.TB, inputs []oracle.Input, rounds int, beta float64) *learner.DAFA {
	reg, err := oracle.NewLinear(oracle.LinearOptions{Beta: beta})
	if err != nil {
		t.Fatal(err)
	}
	d := learner.NewDAFA(reg, learner.Root{C: learner.RootBalanced})
	rng := rand.New(rand.NewPCG(3, 4))
	var law []float64
	var gamma float64
	for i := range rounds {
		x := &inputs[i%len(inputs)]
		law, gamma = d.Propensities(law[:0], x)
		a := learner.Draw(law, rng.Uint64()>>11)
		n := int64(i + 1)
		d.Learn(&learner.Round{Input: x, Action: a, Propensities: law, Gamma: gamma, N: n, LearnedThrough: n - 1,
			Fate: learner.Observed, Loss: rng.Float64()})
	}
	return d
}

// measure returns the seconds of one call of f, the least of several samples.
func measure(f func()) float64 {
	best := time.Hour
	for range 15 {
		const calls = 2000
		start := time.Now()
		for range calls {
			f()
		}
		best = min(best, time.Since(start)/calls)
	}
	return best.Seconds()
}

// BenchmarkDecide times Propensities and the draw, and their parts: least-ns and
// all other figures are the least of several samples, which a busy machine does
// not move much. floor is what no linear decision can do without: K plain dot
// products of d and K divisions.
func BenchmarkDecide(b *testing.B) {
	const k, d = 10, 16
	for _, vector := range []bool{false, true} {
		for _, beta := range []float64{0, 0.5} {
			b.Run(fmt.Sprintf("vector=%v/beta=%v", vector, beta), func(b *testing.B) {
				inputs := benchInputs(256, k, d, vector)
				l := trained(b, inputs, 5000, beta)
				seed := make([]byte, 32)
				var law, p, fhat []float64
				var gamma float64
				i := 0
				b.ReportAllocs()
				for b.Loop() {
					law, gamma = l.Propensities(law[:0], &inputs[i&255])
					learner.Draw(law, learner.Uniform(seed, "bench", 0, int64(i), "0123456789abcdef"))
					i++
				}
				fhat, p = make([]float64, k), make([]float64, k)
				l.Oracle().Predict(fhat, &inputs[0])
				i = 0
				predict := measure(func() { l.Oracle().Predict(fhat, &inputs[i&255]); i++ })
				solve := measure(func() { learner.Solve(p, fhat, gamma); learner.Law(p, p) })
				draw := measure(func() { learner.Uniform(seed, "bench", 0, int64(i), "0123456789abcdef") })
				whole := measure(func() {
					law, gamma = l.Propensities(law[:0], &inputs[i&255])
					learner.Draw(law, learner.Uniform(seed, "bench", 0, int64(i), "0123456789abcdef"))
					i++
				})
				b.ReportMetric(whole/floor(k, d), "×floor")
				b.ReportMetric(whole*1e9, "least-ns")
				b.ReportMetric(predict*1e9, "predict-ns")
				b.ReportMetric(solve*1e9, "sampler-ns")
				b.ReportMetric(draw*1e9, "hash-ns")
				b.ReportMetric(solve/(predict+solve+draw), "sampler-share")
			})
		}
	}
}

var sink float64

// floor returns the seconds of k dot products of length d and k divisions.
func floor(k, d int) float64 {
	x, w := make([]float64, d), make([]float64, k*d)
	for i := range x {
		x[i] = float64(i)
	}
	return measure(func() {
		t := 0.0
		for a := range k {
			row, s := w[a*d:(a+1)*d], 0.0
			for j, v := range x {
				s += float64(v * row[j])
			}
			t += 1 / (1 + s)
		}
		sink = t
	})
}

// BenchmarkLearn times Learn: without delay, and with, where the certificate
// needs a prediction.
func BenchmarkLearn(b *testing.B) {
	const k, d = 10, 16
	for _, beta := range []float64{0, 0.5} {
		for _, delay := range []int64{0, 1} {
			b.Run(fmt.Sprintf("beta=%v/delay=%d", beta, delay), func(b *testing.B) {
				inputs := benchInputs(256, k, d, false)
				l := trained(b, inputs, 5000, beta)
				law, gamma := l.Propensities(nil, &inputs[0])
				r := learner.Round{Propensities: law, Gamma: gamma, N: 5000, LearnedThrough: 4999 - delay,
					Fate: learner.Observed}
				i := 0
				b.ReportAllocs()
				for b.Loop() {
					r.Input, r.Action, r.Loss = &inputs[i&255], i%k, float64(i&1)
					l.Learn(&r)
					i++
				}
				whole := measure(func() {
					r.Input, r.Action, r.Loss = &inputs[i&255], i%k, float64(i&1)
					l.Learn(&r)
					i++
				})
				b.ReportMetric(whole/floor(k, d), "×floor")
				b.ReportMetric(whole*1e9, "least-ns")
			})
		}
	}
}
