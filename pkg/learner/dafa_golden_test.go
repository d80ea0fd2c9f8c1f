package learner_test

import (
	"crypto/sha256"
	"encoding/binary"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

var update = flag.Bool("update", false, "rewrite golden files")

// TestGoldenDAFA pins every bit of a run: laws, γ, draws, state.
func TestGoldenDAFA(t *testing.T) {
	out := ""
	for _, name := range []string{"hedge", "linear"} {
		w := newGoldenWorld()
		var l *learner.DAFA
		if name == "hedge" {
			l = dafaOver(w, oracle.HedgeOptions{}, learner.Anytime{C: learner.Balanced})
		} else {
			l = learner.NewDAFA(newLinear(), learner.Root{C: learner.RootBalanced})
		}
		var b []byte
		for _, r := range w.run(l, 500, waits["ragged"], nil) {
			for _, p := range append(r.Propensities, r.Gamma) {
				b = binary.BigEndian.AppendUint64(b, math.Float64bits(p))
			}
			b = binary.BigEndian.AppendUint64(b, uint64(r.Action))
		}
		b = must(l.AppendBinary(b))
		out += fmt.Sprintf("%s %x\n", name, sha256.Sum256(b))
	}
	golden(t, "testdata/dafa.golden", out)
}

// mixed plays rounds with 1 to 5 actions, of all fates, some of them played by another law, that are learned some
// rounds later, in the order of decisions or, with arrival, in any. It returns the bits of laws, and of the state.
func (w *world) mixed(l learner.Learner, rounds int, arrival bool) (b []byte) {
	var waiting []learner.Round
	n := int64(0)
	for t := range rounds {
		x := w.input()
		x.Actions = x.Actions[:min(1+w.rng.IntN(8), worldK)]
		r := learner.Round{Input: x, LearnedThrough: n, Decision: int64(t + 1), Fate: learner.Observed,
			Borrowed: w.rng.IntN(6) == 0}
		if w.rng.IntN(4) == 0 {
			r.Fate = learner.Fate(1 + w.rng.IntN(4))
		}
		r.Propensities, r.Gamma = l.Propensities(nil, x)
		for _, p := range append(r.Propensities, r.Gamma) {
			b = binary.BigEndian.AppendUint64(b, math.Float64bits(p))
		}
		if r.Borrowed {
			r.Propensities, _ = learner.NewUniform().Propensities(nil, x)
		}
		r.Action = learner.Draw(r.Propensities, w.rng.Uint64()>>11)
		if w.rng.Float64() < w.truth(x)[r.Action] {
			r.Loss = 1
		}
		for waiting = append(waiting, r); len(waiting) > w.rng.IntN(20); {
			next := 0
			if arrival {
				next = w.rng.IntN(len(waiting))
			}
			n++
			waiting[next].N = n
			l.Learn(&waiting[next])
			waiting = append(waiting[:next], waiting[next+1:]...)
		}
	}
	return must(l.AppendBinary(b))
}

// TestGoldenForms pins every bit of runs of the other forms of DA-FA, and what they say of themselves.
func TestGoldenForms(t *testing.T) {
	costs := func() *costing {
		return &costing{DAFA: costed(func() oracle.Regressor { return newLinear() }, ofCosts("cost", .4), ofQuality(.6),
			ofProduct(.1))}
	}
	over := func(w *world, arrival bool, o oracle.HedgeOptions) *learner.DAFA {
		d := dafaOver(w, o, learner.Anytime{C: learner.Balanced})
		watch := d.Watch
		if arrival {
			watch = d.WatchArrivals
		}
		if err := watch(must(learner.NewModels(w.class, learner.ModelsOptions{Alarm: true}))); err != nil {
			t.Fatal(err)
		}
		return d
	}
	out := ""
	for _, name := range []string{"costs", "early", "certified", "watched", "arrivals", "eliminating", "outstanding"} {
		w := newGoldenWorld()
		var d *learner.DAFA
		var b []byte
		switch name {
		case "costs":
			c := costs()
			b, d = w.mixed(c, 300, false), c.DAFA
			for _, s := range d.Spending(nil) {
				b = fmt.Appendln(b, s.Price, s.Costs, s.Mean, s.Expected, s.Strange)
			}
		case "early":
			d = learner.NewDAFA(newLinear(), learner.Root{C: learner.RootBalanced})
			d.Early(newLinear())
			playEarly(d, true, 200, func(_ int, x *oracle.Input) {
				law, gamma := d.Propensities(nil, x)
				b = fmt.Appendln(b, law, gamma, d.Provisional())
			})
			b = must(d.AppendBinary(b))
		case "certified":
			var o oracle.FrozenOptions
			for i, a := range w.actions {
				o.Actions = append(o.Actions, a.Name)
				o.Features = append(o.Features, oracle.FeatureSpec{Name: fmt.Sprint("x", i), Lo: -1, Hi: 1})
			}
			d = learner.NewDAFA(must(oracle.NewFrozen(o)), learner.Anytime{C: learner.Cautious})
			b = w.mixed(d, 200, false)
		default:
			d = over(w, name == "arrivals", oracle.HedgeOptions{Outstanding: name == "outstanding"})
			if name == "eliminating" {
				_ = d.Eliminate()
			}
			b = w.mixed(d, 400, name == "arrivals")
			b = fmt.Appendln(b, must(d.Models().Append(nil, .01)), d.Models().Evidence())
			b = fmt.Appendln(b, d.Decided(func(yield func(*learner.Round) bool) {
				for n := range int64(9) {
					yield(&learner.Round{Input: w.input(), Propensities: []float64{.5, .125, .125, .125, .125},
						Action: int(n % 5), Decision: 392 + n, Fate: learner.Observed, Borrowed: n%3 == 0})
				}
			}))
		}
		c := d.Certificate()
		bound, at := c.Additive()
		b = fmt.Appendln(b, c, bound, at, c.AnyDelay(), c.MeasuredDrift(), c.APriori(), c.Realised(.05))
		out += fmt.Sprintf("%s %x, %d rounds, %d learned, %d and %d of others, %d functions survive\n", name,
			sha256.Sum256(b), c.Rounds, c.Learned, c.Skipped, d.Learned()-c.Learned, c.Plausible.Surviving)
	}
	golden(t, "testdata/forms.golden", out)
}

// golden compares a text with a file, or with -update writes it.
func golden(t *testing.T, path, out string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(out), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if out != string(want) {
		t.Errorf("got\n%swant\n%s", out, want)
	}
}

// newGoldenWorld is a world whose coefficients come from uniform draws: those of
// NormFloat64 are not the same bits on every machine.
func newGoldenWorld() *world {
	w := &world{rng: rand.New(rand.NewPCG(4, 17)), f: make([]float64, worldSize)}
	var features, names []string
	for j := range worldD {
		features = append(features, fmt.Sprint("x", j))
	}
	for a := range worldK {
		names = append(names, string(rune('a'+a)))
		w.actions = append(w.actions, oracle.Action{Name: names[a]})
	}
	c := make([][][]float64, worldSize)
	for i := range c {
		for range worldK {
			row := make([]float64, worldD+1)
			for j := range row {
				row[j] = 4*w.rng.Float64() - 2
			}
			c[i] = append(c[i], row)
		}
	}
	w.class = must(oracle.NewLogisticClass(features, names, c))
	return w
}
