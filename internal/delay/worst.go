package delay

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"hindsight/internal/cores"
)

// Worst searches, among the delay sequences of a budget, for one that does the most harm: from the worst of some known
// plans and random sequences on, it changes blocks of the sequence at random and keeps what is no better for the
// victim. It is a local search: what it finds is a lower bound on the worst case. It is a function of its fields alone.
type Worst struct {
	Budget
	Steps  int    // rounds of the search
	Batch  int    // changed sequences a step, tried in parallel
	Random int    // random sequences, to start from and to compare with
	Seed   uint64 // of the search
	// Harm returns what a sequence costs the victim. It is called concurrently.
	Harm func(ctx context.Context, s Sequence) (float64, error)
}

// Tried is a sequence with what it costs.
type Tried struct {
	Name     string
	Sequence Sequence
	Harm     float64
}

// WorstFound is what a search came to.
type WorstFound struct {
	Found  Tried   // by the search: at least as bad as the others
	Random []Tried // random sequences
	Plans  []Tried // of the book
	Steps  int     // that were made
	Better int     // steps that found worse
}

// Validate reports what cannot be.
func (w *Worst) Validate() error {
	switch most := w.Most(); {
	case w.Rounds < 2:
		return fmt.Errorf("%d rounds: delays take at least 2", w.Rounds)
	case w.Max < 1:
		return fmt.Errorf("a longest delay of %d: it must be at least 1", w.Max)
	case w.Total < 1 || w.Total > most:
		return fmt.Errorf("a total delay of %d: %d rounds that wait for at most %d have between 1 and %d",
			w.Total, w.Rounds, w.Max, most)
	case w.Steps < 0 || w.Batch < 1 || w.Random < 1:
		return errors.New("steps, sequences a step and random ones must be positive")
	}
	return nil
}

// Candidates returns how many sequences the search tries.
func (w *Worst) Candidates() int { return w.Random + len(plans()) + w.Steps*w.Batch }

// Search runs the search. Interrupted, it returns the worst so far, nil if there is none yet, and the context's error.
func (w *Worst) Search(ctx context.Context) (*WorstFound, error) {
	if err := w.Validate(); err != nil {
		return nil, err
	}
	out := &WorstFound{}
	for i := range w.Random {
		out.Random = append(out.Random, Tried{Name: "random", Sequence: w.Budget.random(w.rng(0, i))})
	}
	for i, p := range plans() {
		out.Plans = append(out.Plans, Tried{Name: p.name, Sequence: p.sequence(w.Budget, w.rng(1, i))})
	}
	for _, tried := range [][]Tried{out.Random, out.Plans} {
		if err := w.try(ctx, tried); err != nil {
			return nil, err
		}
		out.take(tried)
	}
	batch := make([]Tried, w.Batch)
	for step := range w.Steps {
		for i := range batch {
			batch[i] = Tried{Name: "found", Sequence: w.mutate(out.Found.Sequence, w.rng(2+step, i))}
		}
		if err := w.try(ctx, batch); err != nil {
			return out, err
		}
		before := out.Found.Harm
		out.take(batch)
		out.Steps++
		if out.Found.Harm > before {
			out.Better++
		}
	}
	return out, nil
}

// take makes the worst of some the one found, if it is no less harmful.
func (f *WorstFound) take(tried []Tried) {
	for _, c := range tried {
		if f.Found.Sequence == nil || c.Harm >= f.Found.Harm {
			f.Found = c
		}
	}
}

// rng returns the random numbers of candidate i of a step.
func (w *Worst) rng(step, i int) *rand.Rand {
	return rand.New(rand.NewPCG(w.Seed, uint64(step)<<32|uint64(i)))
}

// try measures sequences in parallel over the cores.
func (w *Worst) try(ctx context.Context, tried []Tried) error {
	return cores.Each(ctx, len(tried), func(ctx context.Context, i int) (err error) {
		tried[i].Harm, err = w.Harm(ctx, tried[i].Sequence)
		return err
	})
}
