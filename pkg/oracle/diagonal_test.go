package oracle

import (
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
)

func newDiagonal(o DiagonalOptions) *Diagonal {
	d, err := NewDiagonal(o)
	if err != nil {
		panic(err)
	}
	return d
}

// prompt returns a round of two actions whose context has terms.
func prompt(rng *rand.Rand) *Input {
	x := &Input{Features: []Feature{num("x", rng.Float64())}, Actions: named("a", "b")}
	for _, at := range rng.Perm(8)[:rng.IntN(4)] {
		x.Terms = append(x.Terms, Term{int32(at), rng.Float64()})
	}
	return x
}

// TestAggregateHasDiagonal: the member of an aggregate is the oracle of its own, to the bit, and the
// mixture goes over to it where terms tell what the columns do not.
func TestAggregateHasDiagonal(t *testing.T) {
	a := newAggregate(AggregateOptions{Beta: 0.5, Places: 8, Version: 2})
	d := newDiagonal(DiagonalOptions{Beta: 0.5, Places: 8, Version: 2})
	rng := rand.New(rand.NewPCG(1, 2))
	for n := range 2000 {
		x, y := prompt(rng), 0.5
		for _, term := range x.Terms {
			y += term.Value * (float64(term.Place) - 3.5) / 16
		}
		a.Update(x, n%2, min(1, max(0, y)))
		d.Update(x, n%2, min(1, max(0, y)))
	}
	if a.lin.changes.Count+d.changes.Count > 0 {
		t.Fatal("the world stands still, and a change was noticed")
	}
	if !reflect.DeepEqual(a.wide.actions, d.wide.actions) {
		t.Error("the member differs from the oracle")
	}
	if q := a.AppendWeights(nil); len(q) != 3 || q[2] < .7 {
		t.Errorf("the weights are %v: only the last member sees what matters", q)
	}
	if l := a.AppendLosses(nil); len(l) != 4 || l[2] > .7*l[0] || l[3] > l[0] {
		t.Errorf("the losses are %v", l)
	}
}

// TestOwnTermsAreShared: what one action taught of its terms says something of another, which was never learned.
func TestOwnTermsAreShared(t *testing.T) {
	d := newDiagonal(DiagonalOptions{Places: 8, Version: 2})
	x := &Input{Actions: named("a", "new"), ActionTerms: [][]Term{{{3, 1}}, {{3, 1}}}}
	for range 200 {
		d.Update(x, 0, 0.8)
	}
	f := make([]float64, 2)
	if d.Predict(f, x); !(f[1] > 0.2) {
		t.Errorf("an action with the terms of one that loses .8 is predicted %v", f[1])
	}
	x.ActionTerms[1] = []Term{{4, 1}}
	if d.Predict(f, x); f[1] != 0 {
		t.Errorf("an action with other terms is predicted %v", f[1])
	}
}

// TestTermsTurnOff: models without places ignore terms and have the snapshots that they always had.
func TestTermsTurnOff(t *testing.T) {
	a, b := newAggregate(AggregateOptions{Beta: 0.5, Version: 2}), newAggregate(AggregateOptions{Beta: 0.5, Version: 2})
	rng := rand.New(rand.NewPCG(1, 2))
	for n := range 50 {
		x := prompt(rng)
		a.Update(x, n%2, 0.25)
		x.Terms = nil
		b.Update(x, n%2, 0.25)
	}
	x, _ := a.AppendBinary(nil)
	y, _ := b.AppendBinary(nil)
	if !reflect.DeepEqual(x, y) || x[0] != 3 {
		t.Errorf("terms left a trace, or the layout is %d", x[0])
	}
	wide := newAggregate(AggregateOptions{Beta: 0.5, Version: 2, Places: 8})
	if err := wide.UnmarshalBinary(x); !errors.Is(err, ErrSnapshot) {
		t.Errorf("a snapshot without terms in an oracle with them: %v", err)
	}
	y, _ = wide.AppendBinary(nil)
	for _, c := range []struct {
		b     []byte
		newer bool
	}{{y, false}, {y[:1], false}, {[]byte{wideAggregate, wideAggregate + 1}, true},
		{[]byte{wideAggregate + 2*Newest + 1}, true}} {
		if err := a.UnmarshalBinary(c.b); !errors.Is(err, ErrSnapshot) || errors.Is(err, ErrNewer) != c.newer {
			t.Errorf("layout %d in an oracle without terms: %v", c.b[0], err)
		}
	}
}

// TestOwnTermsAlone: a state in which only what actions say of themselves was learned is written and read.
func TestOwnTermsAlone(t *testing.T) {
	fresh := func() *Aggregate { return newAggregate(AggregateOptions{Places: 1 << 12, Version: 2}) }
	o, again := fresh(), fresh()
	o.Update(&Input{Actions: named("a"), ActionTerms: [][]Term{{{7, 1}}}}, 0, .5)
	b, err := o.AppendBinary(nil)
	if err := errors.Join(err, again.UnmarshalBinary(b)); err != nil {
		t.Fatal(err)
	}
	if c, _ := again.AppendBinary(nil); !reflect.DeepEqual(b, c) {
		t.Error("it is another state")
	}
}

// TestDamagedDiagonal: weights that no run can leave are refused.
func TestDamagedDiagonal(t *testing.T) {
	o, good := fed(t, newDiagonal(DiagonalOptions{Places: 2, Version: 2}))
	last := len(good) - 1 - 8 // before it: v of a column of the last action; there are no terms of actions
	last -= 1                 // nor of contexts
	for _, v := range []float64{math.NaN(), 0, -1, .2, math.Inf(1)} {
		if err := o.UnmarshalBinary(patched(good, last, v)); !errors.Is(err, ErrSnapshot) {
			t.Errorf("a variance of %v: %v", v, err)
		}
	}
	if err := o.UnmarshalBinary(good); err != nil {
		t.Error(err)
	}
}

func TestDiagonalOptions(t *testing.T) {
	for _, o := range []DiagonalOptions{{Beta: 2}, {Lambda: -1}, {MaxFeatures: -1}, {MaxFeatures: 1<<16 + 1},
		{Places: -1}, {Places: MaxPlaces + 1}, {MaxActions: -1}, {Version: Newest + 1}} {
		if _, err := NewDiagonal(o); err == nil {
			t.Errorf("%+v was accepted", o)
		}
	}
}
