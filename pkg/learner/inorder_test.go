package learner

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"hindsight/pkg/oracle"
)

// crowd are rounds of two actions, decided one after the other, with all fates, some of them
// played by another law.
func crowd(rng *rand.Rand, n int) []*Round {
	out := make([]*Round, n)
	for i := range out {
		p := rng.Float64()
		r := &Round{Decision: int64(i + 1), Propensities: []float64{p, 1 - p}, Action: rng.IntN(2), Fate: Observed,
			Loss: float64(rng.IntN(2)), Borrowed: rng.IntN(6) == 0,
			Input: &oracle.Input{Vector: []float64{rng.Float64()}, Actions: []oracle.Action{{Name: "a"},
				{Name: "b", Features: []oracle.Feature{{Name: "size", Kind: oracle.Number, Value: rng.Float64()}}}},
				Features: []oracle.Feature{{Name: "x", Kind: oracle.Number, Value: rng.Float64()},
					{Name: "c", Kind: oracle.Text, Text: fmt.Sprint(rng.IntN(3))}}}}
		if rng.IntN(3) == 0 {
			r.Fate = Imputed + Fate(rng.IntN(3))
		}
		out[i] = r
	}
	return out
}

func newLevels() *Models {
	m, err := NewModels(levels{.1, .3, .5, .7, .9}, ModelsOptions{Alarm: true})
	if err != nil {
		panic(err)
	}
	return m
}

func stateOf(t interface{ Fatal(...any) }, m *Models) []byte {
	c := oracle.NewWriter(nil)
	if m.code(&c); c.Err() != nil {
		t.Fatal(c.Err())
	}
	return c.Bytes()
}

// written returns what waits as bytes.
func (o *inOrder) written() []byte {
	c := oracle.NewWriter(nil)
	o.code(&c)
	return c.Bytes()
}

// TestInOrderIsOrder: whatever the order of arrival, after each feedback the models are those
// of the rounds in the order of decisions up to the first without feedback, and what is there
// beyond it is charged 1 a round; rounds of an older epoch, of which the learner hears nothing,
// are counted by their feedback; a snapshot at any time changes nothing.
func TestInOrderIsOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		n := rapid.IntRange(1, 80).Draw(t, "rounds")
		older := rapid.IntRange(0, n).Draw(t, "of an older epoch")
		reach := rapid.SampledFrom([]int{1, 5, 80}).Draw(t, "reach")
		rounds := crowd(rng, n)
		order := slices.Clone(rounds)
		for i := range order {
			j := min(i+rng.IntN(reach), n-1)
			order[i], order[j] = order[j], order[i]
		}
		begun := 0 // feedback before the epoch: rounds of older ones only
		for begun < n && order[begun].Decision <= int64(older) {
			begun++
		}
		begun = rapid.IntRange(0, begun).Draw(t, "begins after")
		m, o := newLevels(), &inOrder{through: int64(begun)}
		slow, next := newLevels(), older // as it should be
		there := map[int64]bool{}
		stored := rapid.IntRange(0, n).Draw(t, "snapshot")
		for i, r := range order {
			there[r.Decision] = true
			r.N = int64(i + 1)
			if r.Decision <= int64(older) {
				continue
			}
			o.take(m, r)
			if i == stored {
				c := newReader(o.written())
				o = o.fresh()
				if o.code(&c); c.Err() != nil {
					t.Fatal(c.Err())
				}
			}
			ready := true // no round of an older epoch is without feedback
			for d := range older {
				ready = ready && there[int64(d+1)]
			}
			for ready && next < n && there[int64(next+1)] {
				slow.give(rounds[next])
				next++
			}
			waits := int64(0)
			for _, r := range rounds[next:] {
				if there[r.Decision] && r.Decision > int64(older) && !r.Borrowed && r.Fate != Withdrawn {
					waits++
				}
			}
			if m.waiting != waits || o.rounds() != waits {
				t.Fatalf("after %d: %d and %d rounds wait, want %d", i+1, m.waiting, o.rounds(), waits)
			}
			if !bytes.Equal(stateOf(t, m), stateOf(t, slow)) {
				t.Fatalf("after %d: other models than in the order of decisions", i+1)
			}
			if p, q := m.Plausible(), slow.Plausible(); math.Abs(p.Bound-q.Bound-float64(waits)) > 1e-9 ||
				p.Waiting != waits {
				t.Fatalf("after %d: %+v, in order %+v", i+1, p, q)
			}
		}
	})
}

// TestWatchArrivals: a learner that is fed as outcomes arrive keeps, once all rounds are there, the models of one that
// is fed in the order of decisions; an oracle of no class keeps none.
func TestWatchArrivals(t *testing.T) {
	class := levels{.1, .3, .5, .7, .9}
	fed := func(watch func(*DAFA, *Models) error) *DAFA {
		reg, err := oracle.NewHedge(class, oracle.HedgeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		d := NewDAFA(reg, Fixed{G: 10})
		if err := watch(d, newLevels()); err != nil {
			t.Fatal(err)
		}
		return d
	}
	rounds := crowd(rand.New(rand.NewPCG(3, 1)), 60)
	order := slices.Clone(rounds)
	for i := range order {
		order[i].N = order[i].Decision
	}
	want := fed((*DAFA).Watch)
	for _, r := range rounds {
		want.Learn(r)
	}
	got := fed((*DAFA).WatchArrivals)
	got.BeginAfter(0)
	for i := 0; i < len(order); i += 6 {
		slices.Reverse(order[i : i+6])
	}
	for i, r := range order {
		again := *r
		again.N = int64(i + 1)
		if got.Learn(&again); i%6 == 5 && got.Turn() != int64(i+2) {
			t.Fatalf("after %d rounds it is the turn of %d", i+1, got.Turn())
		}
	}
	if !bytes.Equal(stateOf(t, got.Models()), stateOf(t, want.Models())) {
		t.Error("other models than in the order of decisions")
	}
	began := fed((*DAFA).WatchArrivals)
	began.BeginAfter(60)
	for _, r := range rounds { // known before its epoch
		began.Learn(r)
	}
	if p := began.Models().Plausible(); p.Charged != int64(countOwn(rounds)) || want.Turn() != 0 {
		t.Errorf("%+v of rounds before the epoch", p)
	}
	linear, err := oracle.NewLinear(oracle.LinearOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if NewDAFA(linear, Fixed{G: 10}).WatchArrivals(newLevels()) == nil {
		t.Error("models are kept beside a regression")
	}
}

// countOwn counts rounds that were the learner's own and were not withdrawn.
func countOwn(rounds []*Round) (n int) {
	for _, r := range rounds {
		if !r.Borrowed && r.Fate != Withdrawn {
			n++
		}
	}
	return n
}

// TestInOrderLost: a decision that never has feedback, which only the loss of a log's tail can
// cause, holds up those behind it until they take too much memory; if it comes then, it is
// charged and is no evidence. What an epoch's learner learned again before it is charged.
func TestInOrderLost(t *testing.T) {
	m, o := newLevels(), &inOrder{through: 2}
	x := &oracle.Input{Actions: []oracle.Action{{Name: "a"}, {Name: "b"}}, Vector: make([]float64, 1<<17)}
	r := Round{Input: x, Propensities: []float64{.5, .5}, Fate: Observed}
	give := func(decision int64) {
		r.N++
		r.Decision = decision
		o.take(m, &r)
	}
	give(1)
	give(2)
	if p := m.Plausible(); p.Charged != 2 || m.unknown != 2 || p.Random != 2 {
		t.Fatalf("%+v", p)
	}
	for d := range int64(15) { // 1 MiB each; 3 is missing
		give(4 + d)
	}
	if m.waiting != 15 || m.evidence != 0 {
		t.Fatalf("%d wait, %d are evidence", m.waiting, m.evidence)
	}
	give(19)
	if m.waiting != 0 || m.evidence != 16 || o.bytes != 0 || o.next != 20 {
		t.Fatalf("%d wait, %d are evidence, %d bytes, next %d", m.waiting, m.evidence, o.bytes, o.next)
	}
	give(3)
	if m.evidence != 16 || m.charged != 3 {
		t.Errorf("a round after its turn: %d are evidence, %d are charged", m.evidence, m.charged)
	}
	give(20)
	if m.evidence != 17 {
		t.Error("the order does not go on")
	}
}

// TestInOrderDamaged: what waits is read only if each of it is a round, at its place.
func TestInOrderDamaged(t *testing.T) {
	for name, damage := range map[string]func(w []waiting){
		"none": func([]waiting) {}, "fate": func(w []waiting) { w[0].round[0] = 0x40 },
		"cut off":        func(w []waiting) { w[1].round = w[1].round[:9] },
		"order":          func(w []waiting) { w[1].decision = w[0].decision },
		"place":          func(w []waiting) { w[0].n = 0 },
		"nothing to say": func(w []waiting) { w[0].round, w[1].round = nil, nil },
	} {
		m, o := newLevels(), &inOrder{}
		for i, d := range []int64{5, 7} {
			o.take(m, &Round{Input: ab(), Propensities: []float64{.5, .5}, Fate: Observed, Decision: d,
				N: int64(i + 1)})
		}
		damage(o.wait)
		c := newReader(o.written())
		if o.fresh().code(&c); (c.Err() == nil) != (name[0] == 'n') {
			t.Errorf("%s: %v", name, c.Err())
		}
	}
	skipped, w, held := Round{Input: ab(), Propensities: []float64{.5, .5}, Fate: Skipped, Loss: math.NaN()},
		oracle.NewWriter(nil), heldRound{}
	if codeHeld(&w, &skipped, nil); !held.parse(w.Bytes()) || held.round.Loss != 0 {
		t.Errorf("a round without a loss is read back with %v", held.round.Loss)
	}
}

// TestHeldByHand: of a round that waits all is read back that models see of it; what is no such round is refused.
func TestHeldByHand(t *testing.T) {
	rich := func() Round {
		return Round{Action: 1, Propensities: []float64{.25, .75}, Fate: Observed, Loss: 1,
			Input: &oracle.Input{Vector: []float64{-1, 2}, Features: []oracle.Feature{
				{Name: "x", Kind: oracle.Number, Value: -3}, {Name: "c", Kind: oracle.Text, Text: "red"}},
				Actions: []oracle.Action{{Name: "a", Features: []oracle.Feature{{Name: "f", Kind: oracle.Bool,
					Value: 1}}}, {Name: "b"}}}}
	}
	for name, c := range map[string]struct {
		change func(r *Round)
		fine   bool
	}{
		"as it is": {func(*Round) {}, true}, "of another law": {func(r *Round) { r.Borrowed = true }, true},
		"imputed":   {func(r *Round) { r.Fate, r.Loss = Imputed, 0 }, true},
		"skipped":   {func(r *Round) { r.Fate, r.Loss = Skipped, 0 }, true},
		"withdrawn": {func(r *Round) { r.Fate, r.Loss = Withdrawn, 0 }, false},
		"no fate":   {func(r *Round) { r.Fate, r.Loss = 0, 0 }, false},
		"a vector":  {func(r *Round) { r.Input.Vector = make([]float64, 64) }, true},
		"action":    {func(r *Round) { r.Action = 2 }, false}, "loss": {func(r *Round) { r.Loss = 1.5 }, false},
		"below":    {func(r *Round) { r.Loss = -.5 }, false},
		"a chance": {func(r *Round) { r.Propensities[0] = -.25 }, false},
	} {
		r, o := rich(), &inOrder{}
		c.change(&r)
		w := oracle.NewWriter(nil)
		codeHeld(&w, &r, nil)
		if fine := o.held.parse(w.Bytes()); fine != c.fine {
			t.Errorf("%s: %t", name, fine)
		} else if !fine {
			continue
		}
		if o.held.parse(append(w.Bytes(), 0)) {
			t.Errorf("%s: it is read with something behind it", name)
		}
		got := *o.held.of(&waiting{decision: 8, n: 9, round: w.Bytes()})
		r.N, r.Decision = 9, 8
		if fmt.Sprintf("%+v", *got.Input) != fmt.Sprintf("%+v", *r.Input) {
			t.Errorf("%s: %+v is read back as %+v", name, *r.Input, *got.Input)
		}
		if got.Input, r.Input = nil, nil; fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", r) {
			t.Errorf("%s: %+v is read back as %+v", name, r, got)
		}
	}
}

// TestInOrderFull: rounds wait as long as they take 16 MiB at most, 64 bytes each beside their content.
func TestInOrderFull(t *testing.T) {
	for over := range 2 {
		m, o := newLevels(), &inOrder{next: 5}
		r := Round{Input: ab(), Propensities: []float64{.5, .5}, Fate: Observed, Decision: 7, N: 1}
		o.hold(m, &r)
		if size := o.bytes; size != 64+len(o.wait[0].round) || len(o.written()) != 8+8+16+1+len(o.wait[0].round) {
			t.Fatalf("a round of %d bytes takes %d", len(o.wait[0].round), size)
		}
		o.bytes = 16<<20 + over
		if o.settle(m, 1); len(o.wait) != 1-over || o.next != int64(5+3*over) || m.waiting != int64(1-over) {
			t.Errorf("%d bytes over: %d wait, it is the turn of %d", over, len(o.wait), o.next)
		}
	}
}

// TestInOrderAllocates: nothing is allocated while as many rounds wait as did before.
func TestInOrderAllocates(t *testing.T) {
	m, o := newLevels(), &inOrder{}
	rounds := crowd(rand.New(rand.NewPCG(1, 1)), 400)
	turn := int64(0)
	four := func() { // decisions 3, 2, 4, 1 of four
		for i, d := range []int64{3, 2, 4, 1} {
			r := rounds[(turn+d)%400]
			r.N, r.Decision = turn+int64(i)+1, turn+d
			o.take(m, r)
		}
		turn += 4
	}
	for range 200 {
		four()
	}
	if n := testing.AllocsPerRun(100, four); n != 0 {
		t.Errorf("%v allocations for four rounds", n)
	}
}

// FuzzInOrder reads arbitrary bytes as rounds that wait.
func FuzzInOrder(f *testing.F) {
	m, o := newLevels(), &inOrder{}
	for i, r := range crowd(rand.New(rand.NewPCG(2, 2)), 12) {
		r.N, r.Decision = int64(i+1), int64(i+2)
		o.take(m, r)
		f.Add(o.written())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, o := newLevels(), &inOrder{}
		c := newReader(b)
		if o.code(&c); c.Err() != nil {
			return
		}
		again, c := &inOrder{}, newReader(o.written())
		if again.code(&c); c.Err() != nil || !bytes.Equal(again.written(), o.written()) {
			t.Fatalf("what was read and written is not read again: %v", c.Err())
		}
		o.settle(m, 1)
		o.bytes = math.MaxInt
		o.settle(m, 2)
		if len(o.wait) > 0 {
			t.Fatalf("%d still wait", len(o.wait))
		}
	})
}
