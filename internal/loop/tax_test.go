package loop

import (
	"fmt"
	"testing"

	"hindsight/pkg/codec"
)

// Rounds 1, 2, 3 are decided at 1, 2, 3; the outcomes of 3 and 2 come at 10 and 14 and
// wait for that of 1, which comes at 20.
func TestFIFOTax(t *testing.T) {
	for _, c := range []struct {
		arrival    bool
		held       [3]int // after each outcome
		wait       int64
		oldest     [3]int64 // 0: none
		outcomesOf [3]int
	}{
		{false, [3]int{1, 2, 0}, (20 - 10) + (20 - 14), [3]int64{1, 1, 0}, [3]int{3, 2, 1}},
		{true, [3]int{0, 0, 0}, 0, [3]int64{1, 1, 0}, [3]int{3, 2, 1}},
		{false, [3]int{0, 0, 0}, 0, [3]int64{2, 3, 0}, [3]int{1, 2, 3}},
	} {
		rules := &Rules{MaxActions: 2, Range: Range{Max: 1}, Window: Window{Nanos: 1000}, Arrival: c.arrival}
		one := newCaller(t, 1, unlimited, func(int64) *Rules { return rules })
		j := one.j
		for n := range int64(3) {
			d := codec.Decision{N: n + 1, ID: fmt.Sprint(n + 1), Epoch: 1, Source: n, ContextsThrough: n + 1,
				Actions: []string{"a", "b"}, Propensities: []float64{.5, .5}, Context: []byte(`{"actions":["a","b"]}`)}
			one.decide(Place{Offset: n}, n+1, d)
		}
		for i, at := range []int64{10, 14, 20} {
			one.outcome(Place{Offset: int64(i)}, at, codec.Outcome{ID: fmt.Sprint(c.outcomesOf[i]), Kind: codec.Loss,
				Value: 0.5})
			if held, _ := j.Held(); held != c.held[i] {
				t.Errorf("arrival %v, after outcome %d: %d rounds are held back, expected %d", c.arrival, i, held,
					c.held[i])
			}
			if oldest, d := j.Head(); oldest != c.oldest[i] || (d != nil) != (oldest != 0) {
				t.Errorf("arrival %v, after outcome %d: the oldest was decided at %d, expected %d", c.arrival,
					i, oldest, c.oldest[i])
			}
		}
		if _, wait := j.Held(); wait != c.wait {
			t.Errorf("arrival %v: rounds waited %d ns, expected %d", c.arrival, wait, c.wait)
		}
		if n := len(one.ready()); n != 3 {
			t.Errorf("%d of 3 rounds released", n)
		}
	}
}
