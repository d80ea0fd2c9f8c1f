package replay

import (
	"slices"

	"hindsight/internal/model"
	"hindsight/pkg/codec"
)

// World is a built-in environment: contexts of numbers, and losses that are certain or drawn, 0 or 1.
type World struct {
	name              string
	rounds            int
	actions, features []string
	value             func(t, i int) float64 // of a feature
	mean              func(t, a int) float64 // expected loss
	losses            *Stream                // nil: losses are their means
}

var _ Environment = (*World)(nil)

// Name implements [Environment].
func (w *World) Name() string { return w.name }

// Len implements [Environment].
func (w *World) Len() int { return w.rounds }

// Actions implements [Environment].
func (w *World) Actions() []string { return w.actions }

// Columns implements [Environment].
func (w *World) Columns() int { return len(w.features) + 1 }

// Context implements [Environment].
func (w *World) Context(dst *codec.Context, t int) {
	*dst = codec.Context{Features: dst.Features[:0], Actions: appendActions(dst.Actions[:0], w.actions)}
	for i, name := range w.features {
		dst.Features = append(dst.Features, codec.Feature{Name: name, Kind: codec.Number, Value: w.value(t, i)})
	}
}

// Truth implements [Environment].
func (w *World) Truth(dst []float64, t int) bool {
	for a := range dst {
		dst[a] = w.mean(t, a)
	}
	return true
}

// Loss implements [Environment].
func (w *World) Loss(t, a int) float64 {
	if w.losses == nil {
		return w.mean(t, a)
	}
	return unless(w.losses.Uniform(uint64(t), uint64(a)) < w.mean(t, a))
}

// drawn lets losses be drawn from the stream of a seed and a name.
func (w *World) drawn(seed uint64, name string) {
	s := NewStream(seed, name)
	w.losses = &s
}

// cube lets d features be uniform in [−1,1], from the stream of a seed and a name.
func (w *World) cube(d int, seed uint64, name string) {
	s := NewStream(seed, name)
	w.features = numbered("x", d)
	w.value = func(t, i int) float64 { return float64(2*s.Uniform(uint64(t), uint64(i))) - 1 }
}

func appendActions(dst []codec.Action, names []string) []codec.Action {
	dst = slices.Grow(dst, len(names))
	for _, name := range names {
		dst = append(dst, codec.Action{Name: name})
	}
	return dst
}

// numbered returns prefix1, prefix2, ….
func numbered(prefix string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = prefix + itoa(i+1)
	}
	return names
}

// Classed is a world that brings a class of functions of which one is true.
type Classed struct {
	World
	class *model.ClassFile
}

// Class returns the file of the class.
func (c *Classed) Class() []byte { return c.class.Append(nil) }
