package loop

import (
	"reflect"
	"testing"

	"hindsight/pkg/codec"
)

// A decision that is given as it is does what its bytes do, and nothing of it is kept.
func TestDecidedIsTheDecision(t *testing.T) {
	rules := &Rules{Range: Range{Min: 0, Max: 1}, Window: Window{Rounds: 2}}
	joiner := func() *Joiner {
		return NewJoiner(JoinerOptions{Partitions: 1, MaxPending: 10, Dedup: 10}, func(int64) *Rules { return rules })
	}
	parsed, given := joiner(), joiner()
	raw := []byte("context of its own")
	names := []byte("onetwo")
	d := codec.Decision{ID: "a", Epoch: 1, Gamma: 2.5, Actions: []string{"x", "", "y"}, Propensities: []float64{.25, .5, .25},
		Action: 2, Mode: codec.Shadow, Would: []float64{.5, 0, .5}, Context: raw}
	for n := int64(1); n <= 6; n++ {
		d.N, d.ID, d.Time, d.Source, d.ContextsThrough = n, "round "+string(rune('a'+n)), 7*n, n-1, n
		d.LearnedThrough, d.Learned = n-1, n-1
		d.Actions[1], _ = cut(names, 3) // an alias
		if err := parsed.AddDecision(Place{Offset: n}, 10*n, codec.AppendDecision(nil, &d)); err != nil {
			t.Fatal(err)
		}
		if err := given.AddDecided(Place{Offset: n}, 10*n, &d); err != nil {
			t.Fatal(err)
		}
		raw[0]++
		names[0]++
		want, got := parsed.AppendReady(nil), given.AppendReady(nil)
		if len(want) != len(got) || len(want) > 0 && !reflect.DeepEqual(got, want) {
			t.Fatalf("round %d: feedback is %+v, not %+v", n, got, want)
		}
		if n > 3 && len(want) == 0 {
			t.Fatalf("round %d: nothing is released", n)
		}
	}
	d.N = 9
	if given.AddDecided(Place{Offset: 9}, 90, &d) == nil {
		t.Error("a gap is taken")
	}
}
