package replay

import (
	"slices"
	"strconv"
	"strings"

	"hindsight/internal/logs"
	"hindsight/pkg/codec"
)

// gridLoader puts the rows of a log of one schema into cells.
type gridLoader struct {
	values []map[string]int32 // of columns: text → index
	cells  column[cell]
	long   column[byte]
	ids    texts
	row    []cell
}

func newGridLoader(files *rowFiles, columns int) *gridLoader {
	g := &gridLoader{cells: column[cell]{of: files}, long: column[byte]{of: files},
		ids: newTexts(files)}
	for range columns {
		g.values = append(g.values, map[string]int32{})
	}
	return g
}

// add adds a row of features, which are in the order of columns.
func (g *gridLoader) add(b *BanditLog, features []codec.Feature) {
	g.row = g.row[:0]
	all := len(features) == len(b.columns)
	for i := range b.columns {
		v := absent
		if all || len(features) > 0 && features[0].Name == b.columns[i].name {
			if v = numberCell(features[0].Value); !b.columns[i].number {
				v = g.text(b, i, features[0].Text)
			}
			features = features[1:]
		}
		g.row = append(g.row, v)
	}
	g.cells.add(g.row...)
}

// text returns the cell of a text of column i.
func (g *gridLoader) text(b *BanditLog, i int, text string) cell {
	if v, ok := g.values[i][text]; ok {
		return cell(v)
	}
	c := &b.columns[i]
	if len(c.values) >= mostValues && !b.labelled {
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
	b.rows, b.cells, b.long = nil, l.grid.cells.s, l.grid.long.s
	if s.IDs {
		b.ids = &l.grid.ids
	}
	if s.OutcomeTimes {
		b.came = l.kept.came.s
	}
	b.kind = s.Kind
	b.d = 1
	for i := range b.columns {
		if c := &b.columns[i]; c.number {
			b.d++
		} else {
			b.d += len(c.values)
			b.texts = true
		}
	}
	b.files.drop()
	l.in.Sets, l.in.Untimed, l.in.Unpropensed = false, 0, 0
	if s.Actions == nil {
		l.sortActions()
	}
	l.in.Actions = len(b.actions)
}

// sortActions puts actions in byte order; of Open Bandit data they are all items up to the largest.
func (l *eventLoader) sortActions() {
	b, was := l.log, l.log.actions
	b.actions = slices.Sorted(slices.Values(was))
	if l.schema.Format == logs.OpenBandit {
		n := 0
		for _, name := range was {
			i, _ := strconv.Atoi(name) // the reader said that it is one
			n = max(n, i+1)
		}
		b.actions = logs.ItemNames(n)
	}
	index := make([]int32, len(was))
	for i, name := range b.actions {
		if a, ok := l.rows.index[name]; ok {
			index[a] = int32(i)
		}
	}
	for t, a := range b.action {
		b.files.pass(t)
		b.action[t] = index[a]
	}
}
