package learner_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
	"hindsight/pkg/oracle/oracletest"
)

func newAggregate() *oracle.Aggregate {
	return must(oracle.NewAggregate(oracle.AggregateOptions{Version: oracle.Newest, Beta: .5,
		Fourier: oracle.ByWhatComes}))
}

// playEarly has a learner learn rounds, of which, if early, most have a provisional loss before, and some another one
// then, or no loss in the end. It calls between before each.
func playEarly(l *learner.DAFA, early bool, rounds int, between func(t int, x *oracle.Input)) {
	rng := rand.New(rand.NewPCG(7, 8))
	var waits []*learner.Round
	n := int64(0)
	learn := func(r *learner.Round, partial bool, loss float64) {
		if partial && !early {
			return
		}
		n++
		own := *r
		own.N, own.Partial, own.Loss = n, partial, loss
		l.Learn(&own)
	}
	for t := range rounds {
		x := oracletest.Input(rng)
		between(t, x)
		law, gamma := l.Propensities(nil, x)
		r := &learner.Round{Input: x, Propensities: law, Gamma: gamma, LearnedThrough: n, Decision: int64(t + 1),
			Action: learner.Draw(law, rng.Uint64()>>11), Fate: learner.Fate(1 + rng.IntN(4)), Loss: rng.Float64(),
			Borrowed: t%6 == 5}
		waits = append(waits, r)
		if k := len(waits) - 4; k >= 0 && rng.IntN(4) > 0 {
			learn(waits[k], true, 1)
			if rng.IntN(2) == 0 {
				learn(waits[k], true, waits[k].Loss)
			}
		}
		if len(waits) > 9 {
			learn(waits[0], false, waits[0].Loss)
			waits = waits[1:]
		}
	}
}

// TestEarlySnapshot: a snapshot taken anywhere holds what waits, too; also when statistics of columns are settled.
func TestEarlySnapshot(t *testing.T) {
	fresh := func() *learner.DAFA {
		d := learner.NewDAFA(newAggregate(), learner.Root{C: learner.RootBalanced})
		d.Early(newAggregate())
		return d
	}
	one, two := fresh(), fresh()
	restored := 0
	const rounds, settled = 9000, 8800
	playEarly(one, true, rounds, func(int, *oracle.Input) {})
	playEarly(two, true, rounds, func(at int, _ *oracle.Input) {
		if at%7 != 0 || at > 200 && at < settled {
			return
		}
		if two.Provisional() > 0 {
			restored++
		}
		state := must(two.AppendBinary(nil))
		*two = *fresh()
		if err := two.UnmarshalBinary(state); err != nil {
			t.Fatal(err)
		}
	})
	if !bytes.Equal(must(one.AppendBinary(nil)), must(two.AppendBinary(nil))) || restored < 20 {
		t.Errorf("after %d restarts with provisional rounds the state is another", restored)
	}
}

// TestEarlyBegins: a learner that was without provisional losses goes on as it was until it has the first.
func TestEarlyBegins(t *testing.T) {
	plain := learner.NewDAFA(newAggregate(), learner.Root{C: learner.RootBalanced})
	playEarly(plain, false, 200, func(int, *oracle.Input) {})
	early := learner.NewDAFA(newAggregate(), learner.Root{C: learner.RootBalanced})
	early.Early(newAggregate())
	playEarly(early, true, 50, func(int, *oracle.Input) {}) // which it forgets
	if err := early.UnmarshalBinary(must(plain.AppendBinary(nil))); err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(2, 2))
	for n := range int64(50) {
		x := oracletest.Input(rng)
		a, gamma := plain.Propensities(nil, x)
		b, of := early.Propensities(nil, x)
		if gamma != of || !slices.Equal(a, b) || early.Provisional() != 0 {
			t.Fatalf("round %d: %v at γ %v, was %v at %v", n, b, of, a, gamma)
		}
		loss := rng.Float64()
		for _, l := range []*learner.DAFA{plain, early} {
			l.Learn(&learner.Round{Input: x, Propensities: a, Gamma: gamma, N: 1000 + n, LearnedThrough: 999 + n,
				Decision: 1000 + n, Fate: learner.Observed, Loss: loss})
		}
	}
}

// TestEarlyAmended: of two provisional losses of a round the second counts.
func TestEarlyAmended(t *testing.T) {
	x := oracletest.Input(rand.New(rand.NewPCG(2, 2)))
	var laws [3][]float64
	for i, losses := range [][]float64{{0}, {1, 0}, {1}} {
		d := learner.NewDAFA(newLinear(), learner.Root{C: 20})
		d.Early(newLinear())
		law, gamma := d.Propensities(nil, x)
		for n, loss := range losses {
			d.Learn(&learner.Round{Input: x, Propensities: law, Gamma: gamma, N: int64(n + 1), Decision: 1,
				Fate: learner.Observed, Partial: true, Loss: loss})
		}
		laws[i], _ = d.Propensities(nil, x)
	}
	if math.Abs(laws[1][0]-laws[0][0]) > 1e-9 || math.Abs(laws[2][0]-laws[0][0]) < 1e-3 {
		t.Errorf("laws after 0, after 1 and 0, and after 1: %v", laws)
	}
}

// BenchmarkEarly prints how long a decision and the learning of a round take with provisional losses, as a ratio to
// those without.
func BenchmarkEarly(b *testing.B) {
	for name, kind := range map[string]func() oracle.Amender{
		"linear": func() oracle.Amender { return newLinear() }, "auto": func() oracle.Amender { return newAggregate() },
	} {
		b.Run(name, func(b *testing.B) {
			plain, early := learner.NewDAFA(kind(), learner.Root{C: 20}), learner.NewDAFA(kind(), learner.Root{C: 20})
			early.Early(kind())
			for _, l := range []*learner.DAFA{plain, early} {
				playEarly(l, l == early, 500, func(int, *oracle.Input) {})
			}
			rng := rand.New(rand.NewPCG(1, 1))
			var inputs []*oracle.Input
			for range 50 {
				inputs = append(inputs, oracletest.Input(rng))
			}
			var law []float64
			var took [2]time.Duration
			for b.Loop() {
				for i, l := range []*learner.DAFA{plain, early} {
					from := time.Now()
					for _, x := range inputs {
						law, _ = l.Propensities(law[:0], x)
					}
					took[i] += time.Since(from)
				}
			}
			b.ReportMetric(float64(took[1])/float64(took[0]), "decide/plain")
		})
	}
}
