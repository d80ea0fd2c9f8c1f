package latelosses

import "testing"

// TestWorstOfEquals: of outcomes with as many late losses the first by name is shown, whatever the order of a map.
func TestWorstOfEquals(t *testing.T) {
	for range 20 {
		b := ByOutcome{}
		for _, name := range []string{"c", "a", "b"} {
			b.Of(name).Late.N = 3
		}
		if name, _ := b.Worst(); name != "a" {
			t.Fatalf("the worst is %q", name)
		}
	}
}
