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
