// Package learnertest is the contract that every [learner.Learner] passes.
package learnertest

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
	"hindsight/pkg/oracle/oracletest"
)

// Options say how to test a learner.
type Options struct {
	// Input makes a round; it must depend on rng only. nil: [oracletest.Input].
	Input func(rng *rand.Rand) *oracle.Input
	// Rounds is the number of rounds of each check; 0 means 200.
	Rounds int
	// Arrival gives feedback in the order of arrival, and not in that of the decisions.
	Arrival bool
}

// Test runs the whole contract against learners made by fresh, which must be equal each time.
func Test(t *testing.T, fresh func() learner.Learner, o Options) {
	if o.Input == nil {
		o.Input = oracletest.Input
	}
	if o.Rounds == 0 {
		o.Rounds = 200
	}
	s := suite{fresh, o}
	t.Run("the law is exact", s.law)
	t.Run("one action is played", s.single)
	t.Run("deciding changes nothing", s.pure)
	t.Run("two runs give the same bits", s.deterministic)
	t.Run("a snapshot restores the same bits", s.restores)
	t.Run("damaged snapshots are refused and change nothing", s.refuses)
	t.Run("skipped and withdrawn rounds teach nothing", s.fates)
	t.Run("no allocation once warm", s.allocates)
}

type suite struct {
	fresh func() learner.Learner
	Options
}

// play runs rounds with outcomes delayed by a few rounds and all fates, and calls see before each decision.
func (s suite) play(l learner.Learner, seed uint64, rounds int, see func(t int, x *oracle.Input, law []float64,
	gamma float64)) []*learner.Round {
	rng := rand.New(rand.NewPCG(seed, 3))
	var queue, fed []*learner.Round
	for t := range rounds {
		x := s.Input(rng)
		law, gamma := l.Propensities(nil, x)
		if see != nil {
			see(t, x, law, gamma)
		}
		r := &learner.Round{
			Input: x, Propensities: law, Gamma: gamma, N: int64(t + 1), Decision: int64(t + 1),
			LearnedThrough: int64(len(fed)),
			Action:         learner.Draw(law, rng.Uint64()>>11), Fate: learner.Observed, Loss: rng.Float64(),
		}
		switch rng.IntN(12) {
		case 0:
			r.Fate = learner.Imputed
		case 1:
			r.Fate, r.Loss = learner.Skipped, math.NaN()
		case 2:
			r.Fate, r.Loss = learner.Withdrawn, math.NaN()
		}
		queue = append(queue, r)
		for len(fed) < t+1-rng.IntN(4) && len(fed) < len(queue) {
			n := len(fed)
			if s.Arrival {
				other := n + rng.IntN(len(queue)-n)
				queue[n], queue[other] = queue[other], queue[n]
				queue[n].N = int64(n + 1)
			}
			l.Learn(queue[n])
			fed = append(fed, queue[n])
		}
	}
	for n := len(fed); n < len(queue); n++ {
		queue[n].N = int64(n + 1)
	}
	return queue
}

func snapshot(t *testing.T, l learner.Learner) []byte {
	t.Helper()
	b, err := l.AppendBinary([]byte("prefix"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(b, []byte("prefix")) {
		t.Fatal("AppendBinary does not append")
	}
	return b[len("prefix"):]
}

// same fails unless both learners decide with the same bits.
func (s suite) same(t *testing.T, what string, a, b learner.Learner) {
	t.Helper()
	rng := rand.New(rand.NewPCG(99, 3))
	for range 20 {
		x := s.Input(rng)
		p, g := a.Propensities(nil, x)
		q, h := b.Propensities(nil, x)
		if fmt.Sprint(p, g) != fmt.Sprint(q, h) {
			t.Fatalf("%s: %v γ=%v and %v γ=%v", what, p, g, q, h)
		}
	}
}

func (s suite) law(t *testing.T) {
	l := s.fresh()
	s.play(l, 1, s.Rounds, func(n int, x *oracle.Input, law []float64, gamma float64) {
		if len(law) != len(x.Actions) || !(gamma >= 0) || math.IsInf(gamma, 0) {
			t.Fatalf("round %d: %d propensities for %d actions, γ = %v", n, len(law), len(x.Actions), gamma)
		}
		total := uint64(0)
		for _, p := range law {
			u := p * 0x1p53
			if !(u >= 0) || u != math.Trunc(u) {
				t.Fatalf("round %d: propensity %v is no multiple of 2^-53", n, p)
			}
			total += uint64(u)
		}
		if total != 1<<53 {
			t.Fatalf("round %d: law %v sums to %d/2^53", n, law, total)
		}
		ahead, _ := l.Propensities([]float64{7}, x)
		if ahead[0] != 7 || fmt.Sprint(ahead[1:]) != fmt.Sprint(law) {
			t.Fatalf("round %d: Propensities does not append", n)
		}
	})
}

func (s suite) single(t *testing.T) {
	l := s.fresh()
	s.play(l, 2, 30, nil)
	x := s.Input(rand.New(rand.NewPCG(1, 1)))
	x.Actions = x.Actions[:1]
	law, gamma := l.Propensities(nil, x)
	if len(law) != 1 || law[0] != 1 {
		t.Fatalf("law of one action: %v", law)
	}
	l.Learn(&learner.Round{Input: x, Propensities: law, Gamma: gamma, N: 31, LearnedThrough: 29,
		Fate: learner.Observed, Loss: 1})
	if c, ok := l.(learner.Certified); ok {
		if c := c.Certificate(); c.MeasuredDrift()-c.MeasuredDrift() != 0 {
			t.Errorf("certificate is %v after a round of one action", c.MeasuredDrift())
		}
	}
}

func (s suite) pure(t *testing.T) {
	quiet, asked := s.fresh(), s.fresh()
	rng := rand.New(rand.NewPCG(5, 5))
	fed := s.play(quiet, 3, s.Rounds, nil)
	quiet = s.fresh()
	for _, r := range fed {
		for range rng.IntN(3) {
			asked.Propensities(nil, s.Input(rng))
		}
		quiet.Learn(r)
		asked.Learn(r)
	}
	if !bytes.Equal(snapshot(t, quiet), snapshot(t, asked)) {
		t.Error("a learner that decided has another state than one that did not")
	}
	s.same(t, "decided or not", quiet, asked)
}

func (s suite) deterministic(t *testing.T) {
	a, b := s.fresh(), s.fresh()
	s.play(a, 4, s.Rounds, nil)
	s.play(b, 4, s.Rounds, nil)
	if !bytes.Equal(snapshot(t, a), snapshot(t, b)) {
		t.Error("two equal runs end in different states")
	}
	s.same(t, "two equal runs", a, b)
}

func (s suite) restores(t *testing.T) {
	fed := s.play(s.fresh(), 5, s.Rounds, nil)
	for _, at := range []int{0, 1, s.Rounds / 2, s.Rounds - 1} {
		l, restored := s.fresh(), s.fresh()
		for _, r := range fed[:at] {
			l.Learn(r)
		}
		s.play(restored, 6, 10, nil) // a past of its own, which must not matter
		b := snapshot(t, l)
		if err := restored.UnmarshalBinary(b); err != nil {
			t.Fatalf("after %d rounds: %v", at, err)
		}
		clear(b)
		s.same(t, "restored", l, restored)
		for _, r := range fed[at:] {
			l.Learn(r)
			restored.Learn(r)
		}
		if !bytes.Equal(snapshot(t, l), snapshot(t, restored)) || l.Learned() != restored.Learned() {
			t.Fatalf("restored after %d rounds: another state in the end", at)
		}
		s.same(t, "restored, in the end", l, restored)
		if a, ok := l.(learner.Certified); ok && a.Certificate() != restored.(learner.Certified).Certificate() {
			t.Fatal("another certificate")
		}
	}
}

func (s suite) refuses(t *testing.T) {
	l := s.fresh()
	s.play(l, 7, 40, nil)
	good := snapshot(t, l)
	l = s.fresh()
	s.play(l, 8, 20, nil)
	before := snapshot(t, l)
	check := func(what string, b []byte) {
		t.Helper()
		if l.UnmarshalBinary(b) == nil {
			t.Fatalf("%s: accepted", what)
		}
		if !bytes.Equal(snapshot(t, l), before) {
			t.Fatalf("%s: refused, but the state changed", what)
		}
	}
	for n := range min(len(good), 2048) {
		check(fmt.Sprintf("first %d of %d bytes", n, len(good)), good[:n])
	}
	check("a byte more", append(bytes.Clone(good), 0))
	for i := range 2 {
		b := bytes.Clone(good)
		b[i] ^= 0x40
		check(fmt.Sprintf("byte %d changed", i), b)
	}
	rng := rand.New(rand.NewPCG(9, 9))
	for range 300 {
		b := bytes.Clone(good)
		b[rng.IntN(len(b))] ^= 1 << rng.IntN(8)
		if l.UnmarshalBinary(b) != nil { // else a valid state: must not panic
			continue
		}
		s.play(l, 10, 5, nil)
		if err := l.UnmarshalBinary(before); err != nil {
			t.Fatal(err)
		}
	}
}

func (s suite) fates(t *testing.T) {
	a, b := s.fresh(), s.fresh()
	fed := s.play(s.fresh(), 11, s.Rounds, nil)
	learned := int64(0)
	for _, r := range fed {
		a.Learn(r)
		if r.Fate == learner.Observed || r.Fate == learner.Imputed {
			learned++
			b.Learn(r)
		}
	}
	if a.Learned() != learned || b.Learned() != learned {
		t.Errorf("Learned() = %d and %d, want %d", a.Learned(), b.Learned(), learned)
	}
	s.same(t, "with and without rounds that are not learned", a, b)
}

func (s suite) allocates(t *testing.T) {
	l := s.fresh()
	fed := s.play(l, 12, s.Rounds, nil)
	law := make([]float64, 0, 64)
	i := 0
	round := func() {
		r := fed[i%len(fed)]
		law, _ = l.Propensities(law[:0], r.Input)
		l.Learn(r)
		i++
	}
	for range fed {
		round()
	}
	if n := testing.AllocsPerRun(100, round); n != 0 {
		t.Errorf("%v allocations a round", n)
	}
}
