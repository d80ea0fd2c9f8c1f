package dataset

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"hindsight/internal/logs"
	"hindsight/internal/spill"
	"hindsight/pkg/codec"
	"hindsight/pkg/oracle"
)

// gridLoader puts the rows of a log of one schema into cells.
type gridLoader struct {
	values []map[string]int32 // of columns: text → index
	cells  spill.Column[cell]
	long   spill.Column[byte]
	ids    spill.Texts
	row    []cell
}

func newGridLoader(files *spill.Files, columns int) *gridLoader {
	g := &gridLoader{cells: spill.Column[cell]{In: files}, long: spill.Column[byte]{In: files},
		ids: spill.NewTexts(files)}
	for range columns {
		g.values = append(g.values, map[string]int32{})
	}
	return g
}

// add adds a row of features, which are in the order of columns.
func (g *gridLoader) add(b *Table, features []codec.Feature) {
	g.row = g.row[:0]
	all := len(features) == len(b.columns)
	for i := range b.columns {
		v := absent
		if all || len(features) > 0 && features[0].Name == b.columns[i].name {
			if v = cell(math.Float64bits(features[0].Value)); !b.columns[i].number {
				v = g.text(b, i, features[0].Text)
			}
			features = features[1:]
		}
		g.row = append(g.row, v)
	}
	g.cells.Add(g.row...)
}

func (g *gridLoader) text(b *Table, i int, text string) cell {
	c := &b.columns[i]
	if c.ngrams {
		return addLong(&g.long, text)
	}
	if v, ok := g.values[i][text]; ok {
		return cell(v)
	}
	if len(c.values) >= mostValues && !b.Labelled {
		return addLong(&g.long, text)
	}
	return cell(g.addValue(c, i, text))
}

func (g *gridLoader) addValue(c *logColumn, i int, text string) int32 {
	v := int32(len(c.values))
	text = strings.Clone(text)
	g.values[i][text] = v
	c.values = append(c.values, text)
	return v
}

// finishGrid gives a log of one schema what its rows have, with its actions in order.
func (l *eventLoader) finishGrid() {
	b, s := l.log, l.schema
	b.rows, b.cells, b.long = nil, l.grid.cells.All, l.grid.long.All
	if s.IDs {
		b.ids = &l.grid.ids
	}
	if s.OutcomeTimes {
		b.Came = l.kept.came.All
	}
	b.Kind = s.Kind
	b.Columns = 1
	for i := range b.columns {
		if c := &b.columns[i]; c.number {
			b.Columns++
		} else if c.ngrams {
			b.Columns += oracle.TextStatistics
			b.texts = true
		} else {
			b.Columns += len(c.values)
			b.texts = true
		}
	}
	b.files.Drop()
	l.in.Sets, l.in.Untimed, l.in.Unpropensed = false, 0, 0
	if s.Actions == nil {
		l.sortActions()
	}
	l.in.Actions = len(b.Actions)
}

// sortActions puts actions in byte order; of Open Bandit data they are all items up to the largest.
func (l *eventLoader) sortActions() {
	b, was := l.log, l.log.Actions
	b.Actions = slices.Sorted(slices.Values(was))
	if l.schema.Format == logs.OpenBandit {
		n := 0
		for _, name := range was {
			i, _ := strconv.Atoi(name) // the reader said that it is one
			n = max(n, i+1)
		}
		b.Actions = logs.ItemNames(n)
	}
	index := make([]int32, len(was))
	for i, name := range b.Actions {
		if a, ok := l.rows.index[name]; ok {
			index[a] = int32(i)
		}
	}
	for t, a := range b.Action {
		b.files.Pass(t)
		b.Action[t] = index[a]
	}
}
