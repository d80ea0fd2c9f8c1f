package oracle

import (
	"math"
	"testing"
)

// TestDiagonalBegins: an action that was never learned is predicted from where its regression would begin.
func TestDiagonalBegins(t *testing.T) {
	d := newDiagonal(DiagonalOptions{})
	d.about = map[string]float64{"b": 0.375}
	x, p := &Input{Actions: []Action{{Name: "a"}, {Name: "b"}}}, [2]float64{}
	if d.Predict(p[:], x); p != [2]float64{0, 0.375} {
		t.Errorf("before anything is learned: %v", p)
	}
	d.Update(x, 1, 0.375)
	if d.Predict(p[:], x); p != [2]float64{0, 0.375} {
		t.Errorf("after what was foretold: %v", p)
	}
}

// TestDiagonalIsFull: weights take 1 GiB at most, and may take all of it.
func TestDiagonalIsFull(t *testing.T) {
	d := newDiagonal(DiagonalOptions{Places: 1<<16 - 1}) // and the constant
	for actions, want := range map[int]bool{1<<10 - 1: false, 1 << 10: true} {
		if d.known.names = make([]string, actions); d.full() != want {
			t.Errorf("full with %d actions: %t", actions, !want)
		}
	}
}

// TestDiagonalChanges: when the losses of all actions change what was learned of them is forgotten, and that is noted.
func TestDiagonalChanges(t *testing.T) {
	d := newDiagonal(DiagonalOptions{Version: Newest})
	x, p := &Input{Actions: []Action{{Name: "a"}, {Name: "b"}}}, [2]float64{}
	for i := range 600 {
		d.Update(x, i%2, 0.125)
	}
	if c, ok := d.Changes(); !ok || c.Count != 0 {
		t.Fatalf("%+v, %t", c, ok)
	}
	for i := range 600 {
		d.Update(x, i%2, 0.875)
		if c, _ := d.Changes(); c.Count > 0 {
			d.Predict(p[:], x)
			// one example of one action was learned since, with u = 1/λ; of the other nothing is known
			if math.Abs(p[i%2]-0.875/(1+DiagonalLambda)) > 1e-12 || p[1-i%2] != 0 || d.all != (watch{}) {
				t.Errorf("after %d examples it predicts %v", i+1, p)
			}
			return
		}
	}
	t.Error("the change was not noticed")
}
