// Package oracletest is the contract that every [oracle.Regressor] passes.
package oracletest

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"hindsight/pkg/oracle"
)

// Options say how to test an oracle.
type Options struct {
	// Input makes a round; it must depend on rng only. nil: [Input].
	Input func(rng *rand.Rand) *oracle.Input
	// Rounds is the number of examples fed in each check; 0 means 300.
	Rounds int
	// Reference makes a slow, obvious twin whose predictions must agree within
	// Tolerance; nil: none. Its other methods are not called.
	Reference func() oracle.Regressor
	Tolerance float64 // 0 means 1e-9
	// Part reports whether a snapshot is damaged in the i-th place; nil: all are tried.
	Part func(i int) bool
	// Permuted is how much the predictions of an order-free oracle may differ after
	// a permutation of the examples; 0 means 1e-9.
	Permuted float64
}

// Input returns a round with 2 to 5 of the actions a…e and some of the features
// x0…x3 (numbers), flag (bool), and kind (text).
func Input(rng *rand.Rand) *oracle.Input {
	x := &oracle.Input{}
	for i := range 4 {
		if rng.IntN(8) > 0 {
			x.Features = append(x.Features, oracle.Feature{Name: fmt.Sprintf("x%d", i), Kind: oracle.Number,
				Value: 4*rng.Float64() - 2})
		}
	}
	if rng.IntN(3) > 0 {
		x.Features = append(x.Features, oracle.Feature{Name: "flag", Kind: oracle.Bool, Value: float64(rng.IntN(2))})
	}
	if rng.IntN(3) > 0 {
		x.Features = append(x.Features, oracle.Feature{Name: "kind", Kind: oracle.Text,
			Text: string(rune('A' + rng.IntN(5)))})
	}
	rng.Shuffle(len(x.Features), func(i, j int) { x.Features[i], x.Features[j] = x.Features[j], x.Features[i] })
	for _, a := range rng.Perm(5)[:2+rng.IntN(4)] {
		x.Actions = append(x.Actions, oracle.Action{Name: string(rune('a' + a))})
	}
	return x
}

type example struct {
	x      *oracle.Input
	action int
	loss   float64
}

// Test runs the whole contract against oracles made by fresh, which must be equal each time.
func Test(t *testing.T, fresh func() oracle.Regressor, o Options) {
	if o.Input == nil {
		o.Input = Input
	}
	if o.Rounds == 0 {
		o.Rounds = 300
	}
	if o.Tolerance == 0 {
		o.Tolerance = 1e-9
	}
	if o.Part == nil {
		o.Part = func(int) bool { return true }
	}
	if o.Permuted == 0 {
		o.Permuted = 1e-9
	}
	s := suite{fresh: fresh, Options: o}
	t.Run("predictions lie in [0,1]", s.inRange)
	t.Run("predicting changes nothing", s.pure)
	t.Run("two runs give the same bits", s.deterministic)
	t.Run("a snapshot restores the same bits", s.restores)
	t.Run("damaged snapshots are refused and change nothing", s.refuses)
	t.Run("order-free oracles do not mind the order", s.permuted)
	t.Run("equal to the slow reference", s.reference)
	t.Run("inputs are not retained", s.retains)
	t.Run("no allocation once warm", s.allocates)
}

type suite struct {
	fresh func() oracle.Regressor
	Options
}

func (s suite) examples(seed uint64, n int) []example {
	rng := rand.New(rand.NewPCG(seed, 1))
	out := make([]example, n)
	for i := range out {
		x := s.Input(rng)
		out[i] = example{x, rng.IntN(len(x.Actions)), rng.Float64()}
		if i%3 == 0 {
			out[i].loss = float64(rng.IntN(2))
		}
	}
	return out
}

func predict(r oracle.Regressor, x *oracle.Input) []float64 {
	dst := make([]float64, len(x.Actions))
	for i := range dst {
		dst[i] = math.NaN()
	}
	r.Predict(dst, x)
	return dst
}

func feed(r oracle.Regressor, es []example) {
	for _, e := range es {
		r.Update(e.x, e.action, e.loss)
	}
}

func snapshot(t *testing.T, r oracle.Regressor) []byte {
	t.Helper()
	b, err := r.AppendBinary([]byte("prefix"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(b, []byte("prefix")) {
		t.Fatal("AppendBinary does not append")
	}
	return b[len("prefix"):]
}

// same reports whether a and b have the same bits.
func same(a, b []float64) bool {
	for i := range a {
		if math.Float64bits(a[i]) != math.Float64bits(b[i]) {
			return false
		}
	}
	return len(a) == len(b)
}

func (s suite) inRange(t *testing.T) {
	r := s.fresh()
	for i, e := range s.examples(1, s.Rounds) {
		for a, v := range predict(r, e.x) {
			if !(v >= 0 && v <= 1) {
				t.Fatalf("round %d: prediction of action %d is %v", i, a, v)
			}
		}
		r.Update(e.x, e.action, e.loss)
	}
	if g := r.Regret(); !(g >= 0) || math.IsInf(g, 0) {
		t.Errorf("Regret() = %v", g)
	}
}

func (s suite) pure(t *testing.T) {
	quiet, asked := s.fresh(), s.fresh()
	for i, e := range s.examples(2, s.Rounds) {
		for range 3 {
			predict(asked, e.x)
		}
		predict(asked, s.examples(uint64(1000+i), 1)[0].x)
		quiet.Update(e.x, e.action, e.loss)
		asked.Update(e.x, e.action, e.loss)
	}
	if !bytes.Equal(snapshot(t, quiet), snapshot(t, asked)) {
		t.Error("an oracle that predicted has another state than one that did not")
	}
	for _, e := range s.examples(3, 50) {
		if !same(predict(quiet, e.x), predict(asked, e.x)) {
			t.Fatal("an oracle that predicted predicts otherwise than one that did not")
		}
	}
}

func (s suite) deterministic(t *testing.T) {
	a, b := s.fresh(), s.fresh()
	for i, e := range s.examples(4, s.Rounds) {
		if !same(predict(a, e.x), predict(b, e.x)) {
			t.Fatalf("round %d: two equal runs predict differently", i)
		}
		a.Update(e.x, e.action, e.loss)
		b.Update(e.x, e.action, e.loss)
	}
	if !bytes.Equal(snapshot(t, a), snapshot(t, b)) {
		t.Error("two equal runs end in different states")
	}
}

func (s suite) restores(t *testing.T) {
	es := s.examples(5, s.Rounds)
	for _, at := range []int{0, 1, s.Rounds / 3, s.Rounds - 1} {
		r := s.fresh()
		feed(r, es[:at])
		// The restored one has a past of its own, which must not matter.
		restored := s.fresh()
		feed(restored, s.examples(6, 20))
		b := snapshot(t, r)
		if err := restored.UnmarshalBinary(b); err != nil {
			t.Fatalf("after %d examples: %v", at, err)
		}
		clear(b) // not retained
		for i, e := range es[at:] {
			if !same(predict(r, e.x), predict(restored, e.x)) {
				t.Fatalf("restored after %d examples: other predictions %d examples later", at, i)
			}
			r.Update(e.x, e.action, e.loss)
			restored.Update(e.x, e.action, e.loss)
		}
		if !bytes.Equal(snapshot(t, r), snapshot(t, restored)) {
			t.Fatalf("restored after %d examples: another state in the end", at)
		}
		if math.Float64bits(r.Regret()) != math.Float64bits(restored.Regret()) {
			t.Fatal("Regret differs")
		}
	}
}

func (s suite) refuses(t *testing.T) {
	r := s.fresh()
	feed(r, s.examples(7, 60))
	good := snapshot(t, r)
	r = s.fresh()
	feed(r, s.examples(8, 30))
	before := snapshot(t, r)
	unchanged := func(what string) {
		t.Helper()
		if !bytes.Equal(snapshot(t, r), before) {
			t.Fatalf("%s: refused, but the state changed", what)
		}
	}
	fails := func(what string, b []byte) {
		t.Helper()
		if r.UnmarshalBinary(b) == nil {
			t.Fatalf("%s: accepted", what)
		}
		unchanged(what)
	}
	for n, tried := 0, 0; n < min(len(good), 4098); n++ {
		if !s.Part(n) {
			continue
		}
		if r.UnmarshalBinary(good[:n]) == nil {
			t.Fatalf("the first %d of %d bytes: accepted", n, len(good))
		}
		if tried++; tried%100 == 1 { // a change stays
			unchanged("the first bytes")
		}
	}
	fails("all but a byte", good[:len(good)-1])
	fails("a byte more", append(bytes.Clone(good), 0))
	fails("another version", append([]byte{good[0] + 1}, good[1:]...))
	fails("nothing", nil)
	rng := rand.New(rand.NewPCG(9, 9))
	later := s.examples(10, 3)
	for i := range 500 {
		at, bit := rng.IntN(len(good)), rng.IntN(8)
		if !s.Part(i) {
			continue
		}
		b := bytes.Clone(good)
		b[at] ^= 1 << bit
		if r.UnmarshalBinary(b) != nil {
			unchanged("a bit flipped")
			continue
		}
		for _, e := range later { // may be a valid state: must not panic, then or later
			predict(r, e.x)
			r.Update(e.x, e.action, e.loss)
		}
		if err := r.UnmarshalBinary(before); err != nil {
			t.Fatal(err)
		}
	}
}

func (s suite) permuted(t *testing.T) {
	a, b := s.fresh(), s.fresh()
	if !a.OrderFree() {
		t.Skip("not order-free")
	}
	es := s.examples(11, s.Rounds)
	feed(a, es)
	rand.New(rand.NewPCG(12, 12)).Shuffle(len(es), func(i, j int) { es[i], es[j] = es[j], es[i] })
	feed(b, es)
	for _, e := range s.examples(13, 50) {
		compare(t, "permuted examples", predict(a, e.x), predict(b, e.x), s.Permuted)
	}
}

func (s suite) reference(t *testing.T) {
	if s.Reference == nil {
		t.Skip("no reference given")
	}
	r, slow := s.fresh(), s.Reference()
	for i, e := range s.examples(14, s.Rounds) {
		compare(t, fmt.Sprintf("round %d", i), predict(r, e.x), predict(slow, e.x), s.Tolerance)
		r.Update(e.x, e.action, e.loss)
		slow.Update(e.x, e.action, e.loss)
	}
}

func compare(t *testing.T, what string, got, want []float64, tolerance float64) {
	t.Helper()
	for i := range got {
		if !(math.Abs(got[i]-want[i]) <= tolerance) {
			t.Fatalf("%s: action %d: %v, want %v", what, i, got[i], want[i])
		}
	}
}

// retains feeds inputs that are overwritten after each call.
func (s suite) retains(t *testing.T) {
	a, b := s.fresh(), s.fresh()
	for i, e := range s.examples(15, s.Rounds) {
		a.Update(e.x, e.action, e.loss)
		x := clobbered(e.x)
		if !same(predict(a, e.x), predict(a, x.input)) {
			t.Fatalf("round %d: equal inputs, other predictions", i)
		}
		b.Update(x.input, e.action, e.loss)
		predict(b, x.input)
		x.clobber()
	}
	if !bytes.Equal(snapshot(t, a), snapshot(t, b)) {
		t.Error("the oracle kept memory of its inputs")
	}
}

func (s suite) allocates(t *testing.T) {
	r := s.fresh()
	es := s.examples(16, s.Rounds)
	feed(r, es)
	dst := make([]float64, 64)
	i := 0
	round := func() {
		e := es[i%len(es)]
		r.Predict(dst[:len(e.x.Actions)], e.x)
		r.Update(e.x, e.action, e.loss)
		i++
	}
	for range es {
		round()
	}
	if n := testing.AllocsPerRun(100, round); n != 0 {
		t.Errorf("%v allocations a round", n)
	}
}
