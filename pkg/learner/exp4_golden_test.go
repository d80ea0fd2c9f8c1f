package learner_test

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

// TestGoldenEXP4 pins every bit of runs of each form: laws, draws, state, and with rounds of all fates, and of other
// laws, its certificate.
func TestGoldenEXP4(t *testing.T) {
	out := ""
	for _, c := range []struct {
		name string
		o    learner.EXP4Options
	}{{"adaptive", learner.EXP4Options{}}, {"known", learner.EXP4Options{Eta: 0.05}},
		{"plain", learner.EXP4Options{Eta: 0.05, Plain: true}}} {
		w := newGoldenWorld()
		l := must(learner.NewEXP4(learner.NewArgmin(w.class), c.o))
		out += fmt.Sprintf("%s %x\n", c.name, sha256.Sum256(must(l.AppendBinary(ragged(w, l)))))
	}
	for _, o := range []learner.EXP4Options{{}, {Eta: .05}, {Eta: .05, Plain: true}, {Plain: true}} {
		w, with := newGoldenWorld(), o
		for i := range worldSize {
			with.Prior = append(with.Prior, float64(1+i%3))
		}
		l := must(learner.NewEXP4(learner.NewArgmin(w.class), with))
		b := w.mixed(l, 100, true)
		b = fmt.Append(b, l.Eta(), l.Learned(), l.PolicyCertificate())
		out += fmt.Sprintf("%+v %x\n", o, sha256.Sum256(b))
	}
	golden(t, "testdata/exp4.golden", out)
}

// ragged plays 500 rounds, each learned some later rounds after, and returns the bits of
// laws and draws.
func ragged(w *world, l learner.Learner) (b []byte) {
	var waiting []learner.Round
	learned := int64(0)
	for range 500 {
		x := &oracle.Input{Actions: w.actions}
		for range worldD {
			x.Vector = append(x.Vector, 2*w.rng.Float64()-1)
		}
		law, _ := l.Propensities(nil, x)
		r := learner.Round{Input: x, Propensities: law, Action: learner.Draw(law, w.rng.Uint64()>>11),
			LearnedThrough: learned, Fate: learner.Observed, Loss: w.rng.Float64()}
		for _, p := range law {
			b = binary.BigEndian.AppendUint64(b, math.Float64bits(p))
		}
		b = binary.BigEndian.AppendUint64(b, uint64(r.Action))
		for waiting = append(waiting, r); len(waiting) > w.rng.IntN(30); waiting = waiting[1:] {
			learned++
			waiting[0].N = learned
			l.Learn(&waiting[0])
		}
	}
	return b
}

// ExampleEXP4 plays two policies written in Go: the second knows better.
func ExampleEXP4() {
	safe := policy(func(*oracle.Input) int { return 0 })
	wise := policy(func(x *oracle.Input) int { return int(x.Vector[0]) })
	l, err := learner.NewEXP4(policyList{safe, wise}, learner.EXP4Options{})
	if err != nil {
		panic(err)
	}
	actions := []oracle.Action{{Name: "left"}, {Name: "right"}}
	var law []float64
	for n := range int64(200) {
		x := &oracle.Input{Vector: []float64{float64(n % 2)}, Actions: actions}
		law, _ = l.Propensities(law[:0], x)
		action := learner.Draw(law, learner.Uniform([]byte("secret"), "example", 0, n, ""))
		loss := 1.0
		if action == int(n%2) {
			loss = 0
		}
		l.Learn(&learner.Round{Input: x, Action: action, Propensities: law, N: n + 1, LearnedThrough: n,
			Fate: learner.Observed, Loss: loss})
	}
	fmt.Printf("weight of the wise policy %.3f, regret at most %.0f\n", l.AppendWeights(nil)[1],
		l.PolicyCertificate().Measured)
	// Output: weight of the wise policy 0.990, regret at most 17
}
