package service

import (
	"fmt"
	"testing"

	"hindsight/internal/loop"
	"hindsight/pkg/codec"
)

// TestBetweenCalls: a decision that ends the window of a round, and after it an outcome of that round, are
// written between any two calls of a joiner that is at work on another partition, whose log times are ahead.
// The decision counts first.
func TestBetweenCalls(t *testing.T) {
	for n := 1; n <= 16; n++ {
		t.Run(fmt.Sprint("call ", n), func(t *testing.T) {
			k := newTakeover(t, 2, loop.Window{Rounds: 1})
			k.decide(100, 0, "x")
			j := k.joiner()
			k.step(j)
			k.decide(150, 1, "w")
			calls := 0
			k.asked = func(string) {
				if calls++; calls == n {
					k.decide(140, 0, "y")
					k.report(141, 0, "x", .25)
				}
			}
			for calls < n {
				k.step(j)
			}
			k.step(j)
			k.holds(map[string]string{"x": "skipped 0", "outcome 0@0": codec.ReasonLate})
		})
	}
}
