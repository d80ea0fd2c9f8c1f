package oracle_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"hindsight/pkg/oracle"
	"hindsight/pkg/oracle/oracletest"
)

// headKinds are oracles that a head may be.
var headKinds = map[string]func() oracle.Regressor{
	"linear": func() oracle.Regressor { return must(oracle.NewLinear(oracle.LinearOptions{Beta: .5})) },
	"linear 2": func() oracle.Regressor {
		return must(oracle.NewLinear(oracle.LinearOptions{Beta: oracle.ByWhatComes, Fourier: 4, Version: 2}))
	},
	"auto": func() oracle.Regressor {
		return must(oracle.NewAggregate(oracle.AggregateOptions{Beta: .5, Fourier: 4, MaxFeatures: 32, Places: places,
			Version: 2}))
	},
	"diagonal": func() oracle.Regressor {
		return must(oracle.NewDiagonal(oracle.DiagonalOptions{Beta: .5, Places: places}))
	},
}

// linearly is an oracle whose Update feeds each head: with the loss, and with half of it.
type linearly struct{ *oracle.Heads }

func (l linearly) Update(x *oracle.Input, action int, loss float64) {
	l.HeadUpdate(0, x, action, 1-loss)
	l.HeadUpdate(1, x, action, loss/2)
	l.Heads.Update(x, action, loss)
}

// byName are weights by the action's name.
func byName(action string) (c float64, w []float64) {
	if action == "b" {
		return .75, weightsOfB
	}
	return 1, weights
}

var weights, weightsOfB, one = []float64{-1, .5}, []float64{-.75, .125}, []float64{1}

// newHeads makes a head of quality, that is good, and of a cost.
func newHeads(kind func() oracle.Regressor) *oracle.Heads {
	h := must(oracle.NewHeads([]oracle.Head{{Name: "quality", Regressor: kind(), Good: true},
		{Name: "usd", Regressor: kind()}}, byName))
	if err := h.Expect(1, false, map[string]float64{"a": .25, "b": .5}, 0); err != nil {
		panic(err)
	}
	return h
}

func TestHeadsContract(t *testing.T) {
	for name, kind := range headKinds {
		t.Run(name, func(t *testing.T) {
			oracletest.Test(t, func() oracle.Regressor { return linearly{newHeads(kind)} },
				oracletest.Options{Input: withTerms, Rounds: 120, Part: turns(t)})
		})
	}
	t.Run("loss", func(t *testing.T) {
		oracletest.Test(t, func() oracle.Regressor {
			return must(oracle.NewHeads([]oracle.Head{{Name: oracle.LossHead, Regressor: headKinds["linear"]()}},
				func(string) (float64, []float64) { return 0, one }))
		}, oracletest.Options{Rounds: 120, Reference: headKinds["linear"], Tolerance: 1e-300})
	})
}

// TestHeadsSum: the prediction is the clipped sum of what regressions of the outcomes alone predict, to the bit.
func TestHeadsSum(t *testing.T) {
	for name, kind := range headKinds {
		t.Run(name, func(t *testing.T) {
			h, quality := linearly{newHeads(kind)}, kind()
			rng := rand.New(rand.NewPCG(1, 1))
			for range 200 {
				x, loss := withTerms(rng), rng.Float64()
				got, bad, usd := make([]float64, len(x.Actions)), make([]float64, len(x.Actions)), make([]float64,
					len(x.Actions))
				h.Predict(got, x)
				quality.Predict(bad, x)
				h.HeadPredict(1, usd, x)
				for a := range x.Actions {
					c, w := byName(x.Actions[a].Name)
					want := (c + w[0]) - w[0]*bad[a] // the regression is of 1 − y
					want += w[1] * usd[a]
					if want = max(0, min(want, 1)); got[a] != want {
						t.Fatalf("%s is predicted %v, want %v", x.Actions[a].Name, got[a], want)
					}
				}
				a := rng.IntN(len(x.Actions))
				h.Update(x, a, loss)
				quality.Update(x, a, loss)
			}
		})
	}
}

// TestHeadsExpect: a head that is told of values predicts them before it has learned, holds a prediction near them
// where examples agree, and learns what they are not.
func TestHeadsExpect(t *testing.T) {
	about := map[string]float64{"a": .25, "b": .5}
	for name, kind := range headKinds {
		t.Run(name, func(t *testing.T) {
			h := newHeads(kind)
			rng := rand.New(rand.NewPCG(2, 1))
			off := 0.0
			for i := range 600 {
				x := oracletest.Input(rng)
				p := make([]float64, len(x.Actions))
				h.HeadPredict(1, p, x)
				for a := range x.Actions {
					name := x.Actions[a].Name
					want := about[name]
					if i >= 300 {
						want = .375
					}
					if e := math.Abs(p[a] - want); i < 300 && e > 1e-12 && want > 0 || i == 599 && e > .1 {
						t.Fatalf("after %d examples %s is predicted %v, want %v", i, name, p[a], want)
					} else if i >= 580 {
						off = max(off, e)
					}
					if i < 300 && want > 0 || i >= 300 {
						h.HeadUpdate(1, x, a, want)
					}
				}
			}
			t.Logf("off by %.3f in the end", off)
		})
	}
	hashed := must(oracle.NewShared(oracle.SharedOptions{Hashed: 8}))
	h := must(oracle.NewHeads([]oracle.Head{{Name: "usd", Regressor: hashed}}, byName))
	if err := h.Expect(0, false, nil, 0); err == nil {
		t.Error("a head that cannot begin at a value is asked to")
	}
}

// TestHeadsChanges: a change is told with its outcome, also after a restart.
func TestHeadsChanges(t *testing.T) {
	kind := func() oracle.Regressor {
		return must(oracle.NewLinear(oracle.LinearOptions{Version: oracle.Newest, Beta: .5}))
	}
	h := newHeads(kind)
	x := &oracle.Input{Actions: []oracle.Action{{Name: "a"}}}
	for i := range 600 {
		usd := .2
		if i >= 300 {
			usd = .9
		}
		h.HeadUpdate(1, x, 0, usd)
		h.HeadUpdate(0, x, 0, .7)
	}
	restored := newHeads(kind)
	if err := restored.UnmarshalBinary(must(h.AppendBinary(nil))); err != nil {
		t.Fatal(err)
	}
	for _, h := range []*oracle.Heads{h, restored} {
		c, ok := h.Changes()
		if n := h.Counts(); n != (oracle.LinearCounts{Fed: 600, Columns: 1, Actions: 1}) {
			t.Errorf("%+v", n)
		}
		if !ok || c.Count != 1 || len(c.Last) != 1 || c.Last[0].Outcome != "usd" || c.Last[0].Example < 300 {
			t.Errorf("%+v, %v", c, ok)
		}
	}
}

// TestHeadsByName: a state is read by the names of outcomes, so that an epoch with other outcomes and other
// weights keeps what was learned; what does not read leaves all heads as they were.
func TestHeadsByName(t *testing.T) {
	kind := headKinds["auto"]
	h, rng := linearly{newHeads(kind)}, rand.New(rand.NewPCG(3, 1))
	for range 50 {
		x := withTerms(rng)
		h.Update(x, rng.IntN(len(x.Actions)), rng.Float64())
	}
	state := must(h.AppendBinary(nil))
	other := must(oracle.NewHeads([]oracle.Head{{Name: "latency", Regressor: kind()}, {Name: "usd", Regressor: kind()},
		{Name: "quality", Regressor: kind()}}, func(string) (float64, []float64) { return 0, []float64{1, 1, 1} }))
	if err := errors.Join(other.Expect(1, false, nil, 0), other.UnmarshalBinary(state)); err != nil {
		t.Fatal(err)
	}
	predict := func(h *oracle.Heads, name string) string {
		p, x := make([]float64, 5), &oracle.Input{}
		for _, a := range "abcde" {
			x.Actions = append(x.Actions, oracle.Action{Name: string(a)})
		}
		h.HeadPredict(h.Head(name), p, x)
		return fmt.Sprint(p)
	}
	for _, name := range []string{"quality", "usd"} {
		if predict(other, name) != predict(h.Heads, name) {
			t.Errorf("%s: it predicts %v, and did %v", name, predict(other, name), predict(h.Heads, name))
		}
	}
	if got := predict(other, "latency"); got != fmt.Sprint(make([]float64, 5)) {
		t.Errorf("an outcome that was not there is predicted %v", got)
	}
	before := must(other.AppendBinary(nil))
	lost := slices.Clone(state)
	binary.LittleEndian.PutUint64(lost[1:], math.Float64bits(51))
	for name, damaged := range map[string][]byte{"cut off": state[:len(state)-1], "51 lost in 50 rounds": lost} {
		if err := other.UnmarshalBinary(damaged); err == nil {
			t.Errorf("%s: it is read", name)
		}
		if string(must(other.AppendBinary(nil))) != string(before) {
			t.Errorf("%s: a refused state changed a head", name)
		}
	}
}

// always is a class of constants.
type always []float64

func (c always) Size() int                                  { return len(c) }
func (c always) Eval(dst []float64, _ *oracle.Input, _ int) { copy(dst, c) }

// TestHeadsOfKinds: heads may be oracles that count nothing and notice no changes; one begins where it is told, of a
// good as of a cost, and an oracle that cannot says so.
func TestHeadsOfKinds(t *testing.T) {
	hedge := func() oracle.Regressor { return must(oracle.NewHedge(always{0, 1}, oracle.HedgeOptions{})) }
	linear := func() oracle.Regressor { return must(oracle.NewLinear(oracle.LinearOptions{})) }
	if _, err := oracle.NewHeads([]oracle.Head{{Name: "q", Regressor: linear()}, {Name: "q", Regressor: linear()}},
		byName); err == nil {
		t.Error("two heads of one outcome are taken")
	}
	h := must(oracle.NewHeads([]oracle.Head{{Name: "h", Regressor: hedge()},
		{Name: "q", Regressor: linear(), Good: true}, {Name: "c", Regressor: linear()},
		{Name: oracle.LossHead, Regressor: hedge()}}, byName))
	if err := h.Expect(0, false, nil, 0); err == nil {
		t.Error("hedge begins at a value")
	}
	for k, good := range map[int]bool{1: true, 2: false} {
		if err := h.Expect(k, good, map[string]float64{"a": .25, "b": 7}, 0); err != nil {
			t.Fatal(err)
		}
		x, got := &oracle.Input{Actions: []oracle.Action{{Name: "a"}, {Name: "b"}}}, make([]float64, 2)
		w := make([]float64, 4)
		w[k] = 1
		h.Begin(x)
		if h.Sum(got, func(string) (float64, []float64) { return 0, w }); math.Abs(got[0]-.25) > 1e-12 || got[1] != 1 {
			t.Errorf("head %d begins at %v, want 0.25 and the most there is", k, got)
		}
	}
	x := &oracle.Input{Actions: []oracle.Action{{Name: "a"}}}
	h.HeadUpdate(1, x, 0, .5)
	h.Update(x, 0, 1)
	n := h.Counts()
	if _, ok := h.Changes(); ok || h.OrderFree() || h.Lost() != 1 || len(h.Heads()) != 4 || n.Fed != 1 ||
		n.Actions != 1 {
		t.Errorf("changes %t, order free %t, lost %v, %+v", ok, h.OrderFree(), h.Lost(), n)
	}
	if p := h.Heads()[3].Regressor.(*oracle.Hedge).AppendLosses(nil); p[0] != 1 || p[1] != 0 {
		t.Errorf("the head of the loss was fed %v", p)
	}
	free := must(oracle.NewHeads([]oracle.Head{{Name: "h", Regressor: hedge()}}, byName))
	if !free.OrderFree() {
		t.Error("one head, of hedge, depends on the order")
	}
}
