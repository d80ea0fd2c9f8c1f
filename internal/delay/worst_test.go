package delay

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"
)

// checkBudget reports a sequence that breaks its budget.
func checkBudget(t rapid.TB, b Budget, s Sequence) {
	t.Helper()
	sum := int64(0)
	for i, d := range s {
		if d < 0 || d > b.Max || d > int64(b.Rounds-1-i) {
			t.Fatalf("round %d of %d waits for %d, at most %d", i, b.Rounds, d, b.Max)
		}
		sum += d
	}
	if len(s) != b.Rounds || sum != b.Total {
		t.Fatalf("%d rounds wait for %d, want %d for %d", len(s), sum, b.Rounds, b.Total)
	}
}

// TestSequences: whatever is drawn, planned or changed keeps to its budget, also where
// that leaves no choice.
func TestSequences(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b := Budget{Rounds: rapid.IntRange(2, 60).Draw(rt, "n"), Max: rapid.Int64Range(1, 80).Draw(rt, "max")}
		b.Total = rapid.Int64Range(1, b.Most()).Draw(rt, "total")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
		s := b.random(rng)
		checkBudget(rt, b, s)
		for _, p := range plans() {
			checkBudget(rt, b, p.sequence(b, rng))
		}
		for range 20 {
			was := slices.Clone(s)
			next := b.mutate(s, rng)
			if !slices.Equal(s, was) {
				rt.Fatal("Mutate changed what it was given")
			}
			checkBudget(rt, b, next)
			s = next
		}
	})
}

// planted is a harm whose worst case is known: only waits of five groups of 16 rounds
// count.
func planted(_ context.Context, s Sequence) (float64, error) {
	sum := int64(0)
	for t, d := range s {
		if t%90 >= 40 && t%90 < 56 {
			sum += d
		}
	}
	return float64(sum), nil
}

// TestWorstPlanted: the search finds a worst case that no plan, no random sequence and no
// single change is near to; without its steps it does not.
func TestWorstPlanted(t *testing.T) {
	w := &Worst{Budget: Budget{Rounds: 450, Total: 4400, Max: 50}, Steps: 400, Batch: 12, Random: 20, Seed: 3,
		Harm: planted}
	const most = 5 * 16 * 50.
	f, err := w.Search(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	checkBudget(t, w.Budget, f.Found.Sequence)
	if f.Found.Harm < .9*most || f.Steps != w.Steps || f.Better == 0 {
		t.Errorf("found %v of %v in %d steps", f.Found.Harm, most, f.Steps)
	}
	for _, c := range slices.Concat(f.Random, f.Plans) {
		if c.Harm > .5*most {
			t.Errorf("%s does %v of %v: the plant is too easy", c.Name, c.Harm, most)
		}
		checkBudget(t, w.Budget, c.Sequence)
	}
	again, err := w.Search(t.Context())
	if err != nil || !slices.Equal(again.Found.Sequence, f.Found.Sequence) {
		t.Errorf("the same search found another sequence (%v)", err)
	}
	w.Steps = 1
	w.Batch = 400 // single changes
	if f, err = w.Search(t.Context()); err != nil || f.Found.Harm > .6*most {
		t.Errorf("in one step: %v of %v, %v", f.Found.Harm, most, err)
	}
}

// TestWorstInterrupted: what was found so far comes back.
func TestWorstInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var n atomic.Int64
	w := &Worst{Budget: Budget{Rounds: 60, Total: 50, Max: 9}, Steps: 1 << 30, Batch: 1, Random: 1, Seed: 1}
	w.Harm = func(ctx context.Context, s Sequence) (float64, error) {
		if n.Add(1) == 50 { // one a step by then
			cancel()
		}
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		return planted(ctx, s)
	}
	if f, err := w.Search(ctx); f == nil || err == nil {
		t.Fatal("it ended without a result or without an error")
	} else {
		checkBudget(t, w.Budget, f.Found.Sequence)
	}
}

// TestSequenceFile: what is written is what `recorded:FILE` plays.
func TestSequenceFile(t *testing.T) {
	b := Budget{Rounds: 30, Total: 100, Max: 12}
	s := b.random(rand.New(rand.NewPCG(1, 2)))
	var text bytes.Buffer
	if err := s.Write(&text); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "worst.txt")
	if err := os.WriteFile(file, text.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	d, err := Parse("recorded:"+file, Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if got := BudgetOf(d, 30); got.Rounds != 30 || got.Total != 100 || got.Max != slices.Max(s) {
		t.Errorf("its budget is %+v", got)
	}
	never, err := Parse("never:1", Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if got := BudgetOf(never, 4); got.Total != 3+2+1 || got.Max != 3 {
		t.Errorf("what never comes waits to the end: %+v", got)
	}
	for i := range s {
		if p := (&Play{Round: i}); d.Delay(p) != s.Delays().Delay(p) {
			t.Fatalf("round %d: %d, want %d", i, d.Delay(p), s[i])
		}
	}
}
