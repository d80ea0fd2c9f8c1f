package oracle

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// following are the default parameters: all of them follow what comes.
var following = AggregateOptions{Beta: ByWhatComes, Fourier: ByWhatComes, Seed: 1, Version: 2}

// dense returns a round of k actions and d numbers.
func dense(rng *rand.Rand, k, d int) *Input {
	x := &Input{}
	for i := range d {
		x.Features = append(x.Features, num(fmt.Sprint("x", i), rng.Float64()))
	}
	for i := range k {
		x.Actions = append(x.Actions, Action{Name: fmt.Sprint(i)})
	}
	return x
}

// TestFollowsWhatComes: an oracle that is told nothing predicts to the bit as one that is told
// how many actions and columns come, from the first example of each action on: a live system
// learns what a backtest learns.
func TestFollowsWhatComes(t *testing.T) {
	const k, d = 10, 16
	told := following
	told.Columns, told.Beta, told.Fourier, told.MaxFeatures = d+1, AutoBeta(k, d+1), AutoFourier(k, d+1), d
	a, b := newAggregate(following), newAggregate(told)
	rng := rand.New(rand.NewPCG(1, 2))
	f, g := make([]float64, k), make([]float64, k)
	for n := range 200 {
		x := dense(rng, k, d)
		a.Predict(f, x)
		b.Predict(g, x)
		if !slices.Equal(f, g) {
			t.Fatalf("example %d: %v, told what comes %v", n, f, g)
		}
		y := float64(rng.IntN(2))
		a.Update(x, n%k, y)
		b.Update(x, n%k, y)
	}
	if a.members != mostMembers || a.lin.beta != 0.5 {
		t.Errorf("%d members, β = %v: the small world has all of it", a.members, a.lin.beta)
	}
}

// TestAggregateBytes: the memory that is told is that of the regressions once all of them are learned.
func TestAggregateBytes(t *testing.T) {
	const k, d, m, places = 3, 5, 8, 16
	for _, terms := range []int{0, places} {
		o := newAggregate(AggregateOptions{Fourier: m, Places: terms, Version: 2})
		x := dense(rand.New(rand.NewPCG(1, 2)), k, d-1)
		x.Terms = []Term{{3, 1}}
		for n := range 2 * k {
			o.Update(x, n%k, .5)
		}
		got := 0
		for n := range k {
			got += 8 * (len(o.lin.actions[n].w) + len(o.lin.actions[n].p))
			for _, f := range []*fading{&o.fadings[n].plain, &o.fadings[n].random} {
				got += 8 * (len(f.w) + len(f.p) + len(f.s) + len(f.k))
			}
			if terms > 0 {
				got += 16 * (len(o.wide.actions[n].cols) + len(o.wide.actions[n].terms))
			}
		}
		if want := AggregateBytes(k, d, m, terms); float64(got) != want {
			t.Errorf("%d places of terms: %d bytes, told %v", terms, got, want)
		}
	}
}

// TestSizeFollows: β ends where K·d² > 1e5, random features where K·(d+128)² > 1e6, and what
// is restored at any point goes on to the same bits.
func TestSizeFollows(t *testing.T) {
	const d = 30 // random features end with action 41, β with 105
	a := newAggregate(following)
	rng := rand.New(rand.NewPCG(3, 4))
	f, g := make([]float64, 120), make([]float64, 120)
	for n := range 120 {
		x := dense(rng, 120, d)
		a.Update(x, n, rng.Float64())
		members, beta := 2, 0.0
		if (n+1)*(d+129)*(d+129) <= 1e6 {
			members = mostMembers
		}
		if (n+1)*(d+1)*(d+1) <= 1e5 {
			beta = 0.5
		}
		if a.members != members || a.lin.beta != beta {
			t.Fatalf("%d actions: %d members and β = %v, want %d and %v", n+1, a.members, a.lin.beta, members, beta)
		}
		if n%10 > 1 && n != 38 && n != 39 && n != 40 {
			continue
		}
		b := newAggregate(following)
		state, _ := a.AppendBinary(nil)
		if err := b.UnmarshalBinary(state); err != nil {
			t.Fatal(n, err)
		}
		again, _ := b.AppendBinary(nil)
		a.Predict(f, x)
		b.Predict(g, x)
		if !bytes.Equal(state, again) || !slices.Equal(f, g) {
			t.Fatalf("after example %d what is restored differs", n)
		}
		a = b
	}
}

// TestRoom: no more is learned than the memory has room for, what is beyond is counted, and
// what fits goes on.
func TestRoom(t *testing.T) {
	for _, kind := range []string{"auto", "linear"} {
		var l *Linear
		var o Regressor
		if kind == "auto" {
			a := newAggregate(following)
			l, o = &a.lin, a
		} else {
			l = newLinear(LinearOptions{Beta: ByWhatComes, Lambda: ByWhatComes, Version: 2})
			o = l
		}
		l.room = l.bytes(10, 21)
		rng := rand.New(rand.NewPCG(5, 6))
		for n := range 300 {
			x := dense(rng, 60, 4+n/20) // columns leave no room for actions, and these none for columns
			o.Update(x, n%(1+n/5), rng.Float64())
			if used := l.bytes(len(l.actions), len(l.cols)); used > l.room {
				t.Fatalf("%s: example %d: %d actions with %d columns take %v bytes, more than %v", kind, n,
					len(l.actions), len(l.cols), used, l.room)
			}
		}
		c := l.Counts()
		if c.Actions < 10 || c.Actions > 59 || c.Columns < 10 || c.ActionsDropped == 0 || c.FeaturesDropped == 0 ||
			c.Fed != 300 {
			t.Errorf("%s: %+v", kind, c)
		}
	}
}
