// Package world holds the built-in environments, which say what every action would have been worth. They are
// pure functions of a seed and of indices (round, action).
package world

import (
	"slices"
	"strconv"

	"hindsight/internal/grammar"
	"hindsight/internal/model"
	"hindsight/internal/random"
	"hindsight/pkg/codec"
	"hindsight/pkg/oracle"
)

// World is a built-in environment: contexts of numbers, and losses that are certain or drawn, 0 or 1.
// Its methods are pure functions of the round.
type World struct {
	Name              string
	Rounds            int
	Actions, Features []string
	value             func(t, i int) float64 // of a feature
	mean              func(t, a int) float64 // expected loss
	losses            *random.Stream         // nil: losses are their means
	Facts
}

// Facts are what a world brings with its rounds.
type Facts struct {
	Class *model.ClassFile // functions of which one is true; nil: none
	// regret is against the best of these; nil: against the best action of each round
	Policies  *model.PolicyFile
	Delays    string                           // under which it is meant to be played; "": any
	Oracle    func() (oracle.Regressor, error) // makes a fresh oracle in Go code; nil: it brings none
	OrderFree bool                             // of Oracle
	Advice    func(i, t int) int               // of policy i, an action
}

// newWorld returns a world of k actions that is called by a word and its numbers.
func newWorld(rounds, k int, name string, args ...float64) *World {
	return &World{Name: grammar.Write(name, args...), Rounds: rounds, Actions: numbered("a", k)}
}

// Context sets dst to the context of round t, without an id, reusing its memory.
func (w *World) Context(dst *codec.Context, t int) {
	*dst = codec.Context{Features: dst.Features[:0], Actions: slices.Grow(dst.Actions[:0], len(w.Actions))}
	for _, name := range w.Actions {
		dst.Actions = append(dst.Actions, codec.Action{Name: name})
	}
	for i, name := range w.Features {
		dst.Features = append(dst.Features, codec.Feature{Name: name, Kind: codec.Number, Value: w.value(t, i)})
	}
}

// Truth sets dst[a] to the expected loss of action a in round t.
func (w *World) Truth(dst []float64, t int) {
	for a := range dst {
		dst[a] = w.mean(t, a)
	}
}

// Loss returns the loss of action a in round t.
func (w *World) Loss(t, a int) float64 {
	if w.losses == nil {
		return w.mean(t, a)
	}
	return unless(w.losses.Uniform(uint64(t), uint64(a)) < w.mean(t, a))
}

// drawn lets losses be drawn from the stream of a seed and a name.
func (w *World) drawn(seed uint64, name string) {
	s := random.New(seed, name)
	w.losses = &s
}

// cube lets d features be uniform in [−1,1], from the stream of a seed and a name.
func (w *World) cube(d int, seed uint64, name string) {
	s := random.New(seed, name)
	w.Features = numbered("x", d)
	w.value = func(t, i int) float64 { return float64(2*s.Uniform(uint64(t), uint64(i))) - 1 }
}

// constants lets regret be against the policies that play one action always.
func (w *World) constants() {
	f := &model.PolicyFile{Actions: w.Actions}
	for _, a := range w.Actions {
		f.Policies = append(f.Policies, model.PolicyLine{Prior: 1, Rules: always(a)})
	}
	w.Policies, w.Advice = f, func(i, _ int) int { return i }
}

// numbered returns prefix1, prefix2, ….
func numbered(prefix string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = prefix + strconv.Itoa(i+1)
	}
	return names
}

func unless(wrong bool) float64 {
	if wrong {
		return 1
	}
	return 0
}
