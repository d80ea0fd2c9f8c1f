package replay

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"hindsight/internal/dataset"
	classes "hindsight/internal/fit"
	"hindsight/pkg/codec"
)

// shared makes data of functions that all actions share: a row for each loss that is known,
// with the columns of its action behind those of the context.
func (b *fitBuilder) shared(d *classes.Data, n int) (*classes.Data, error) {
	if d.ActionFeatures = b.actionColumns(n); len(d.ActionFeatures) == 0 {
		return nil, fmt.Errorf("%s has no actions that differ in a feature: fit functions of named actions", b.env.Name)
	}
	d.Actions = nil
	at := map[string]int{}
	for j, name := range d.ActionFeatures {
		at[name] = j
	}
	for t := range n {
		losses, weight := b.losses(t)
		if losses == nil {
			continue
		}
		x := b.row(t)
		for i := range b.ctx.Actions {
			loss := losses[b.index(t, i)]
			if math.IsNaN(loss) {
				continue
			}
			row := append(slices.Clone(x), make([]float64, len(at))...)
			b.actionValues(i, func(name string, v float64) {
				if j, ok := at[name]; ok {
					row[len(x)+j] = v
				}
			})
			d.X, d.Loss, d.Weight = append(d.X, row), append(d.Loss, []float64{loss}), append(d.Weight, weight)
		}
	}
	return d, nil
}

// index returns the index among all actions of action i of round t.
func (b *fitBuilder) index(t, i int) int {
	if b.env.Log == nil {
		return i
	}
	b.eligible = b.env.Log.Eligible(b.eligible[:0], b.env.Row(t))
	return int(b.eligible[i])
}

// actionValues calls f with the columns of action i of the context. Where the actions are always the same its name is
// one, too: = and the name, which is 1. Names that come and go say nothing of those to come.
func (b *fitBuilder) actionValues(i int, f func(name string, v float64)) {
	a := &b.ctx.Actions[i]
	if log := b.env.Log; log == nil || !log.Sets() {
		f("="+a.Name, 1)
	}
	for i := range a.Features {
		x := &a.Features[i]
		v := x.Value
		if x.Kind == codec.Text {
			v = 1
		}
		f(columnName(x), v)
	}
}

// actionColumn is what was seen of a column.
type actionColumn struct {
	seen   int
	value  float64 // the first
	varies bool
}

// actionColumns chooses the columns of actions that occur most among all that could be played in the first n rows and
// that differ between them, and returns their names in byte order.
func (b *fitBuilder) actionColumns(n int) []string {
	columns, actions := map[string]*actionColumn{}, 0
	for t := range n {
		b.env.Context(&b.ctx, t)
		for i := range b.ctx.Actions {
			actions++
			b.actionValues(i, func(name string, v float64) {
				c := columns[name]
				if c == nil && len(columns) == dataset.MostColumns {
					return
				}
				if c == nil {
					c = &actionColumn{value: v}
					columns[name] = c
				}
				c.seen++
				c.varies = c.varies || v != c.value
			})
		}
	}
	maps.DeleteFunc(columns, func(name string, c *actionColumn) bool {
		return c.seen == actions && !c.varies || len(name) > codec.MaxNameBytes
	})
	return frequent(columns, func(c *actionColumn) int { return c.seen }, b.o.Shared)
}
