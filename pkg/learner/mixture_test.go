package learner

import (
	"math"
	"testing"

	"hindsight/pkg/oracle"
)

// TestMixtureOfThoseLeft holds that the weights of what is not refuted sum to 1, before functions are
// left out and after.
func TestMixtureOfThoseLeft(t *testing.T) {
	var w [][][]float64
	for i := range 8 {
		w = append(w, [][]float64{{float64(i) / 7}, {0.5}}) // a constant for each action
	}
	class, err := oracle.NewLinearClass(nil, []string{"a", "b"}, w)
	if err != nil {
		t.Fatal(err)
	}
	m, err := NewModels(class, ModelsOptions{Alarm: true})
	if err != nil {
		t.Fatal(err)
	}
	in := oracle.Input{Actions: []oracle.Action{{Name: "a"}, {Name: "b"}}}
	for n := range 200 {
		m.Add(&Round{Input: &in, Action: 0, Propensities: []float64{0.5, 0.5}, Gamma: 20, Fate: Observed, Loss: 1})
		ones := make([]float64, len(m.which))
		for i := range ones {
			ones[i] = 1
		}
		if got := m.mixture(ones); math.Abs(got-1) > 1e-12 {
			t.Fatalf("after round %d %d functions are left, whose weights sum to %v", n+1, len(m.which), got)
		}
	}
	if len(m.which) > 2 {
		t.Errorf("%d functions are left, want the nearest two at most", len(m.which))
	}
}
