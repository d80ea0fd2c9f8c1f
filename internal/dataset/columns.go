package dataset

import (
	"cmp"
	"slices"

	"hindsight/internal/spill"
)

// eventColumns are what is kept of events while a log is loaded.
type eventColumns struct {
	files                 *spill.Files
	action, slots         spill.Column[int32]
	baseline, unit        spill.Column[int32] // from the first row on that has one; -1: none
	value, props, weights spill.Column[float64]
	decided, came         spill.Column[int64]
	flags                 spill.Column[uint8]
	places                spill.Column[rowPlace]
	data                  spill.Column[byte] // which places are in
	outcomes              []*namedColumn
}

func newEventColumns(files *spill.Files) *eventColumns {
	numbers, times, indices := spill.Column[float64]{In: files}, spill.Column[int64]{In: files},
		spill.Column[int32]{In: files}
	return &eventColumns{files: files, action: indices, slots: indices, baseline: indices, unit: indices,
		value: numbers, props: numbers, weights: numbers,
		decided: times, came: times, flags: spill.Column[uint8]{In: files}, places: spill.Column[rowPlace]{In: files},
		data: spill.Column[byte]{In: files}}
}

// sparse notes what row t has in a column that begins with the first row that has something; -1: nothing.
func sparse(c *spill.Column[int32], t int, value int32) {
	if value < 0 && len(c.All) == 0 {
		return
	}
	for len(c.All) < t {
		c.Add(-1)
	}
	c.Add(value)
}

func (c *eventColumns) dropped(t int) bool { return c.flags.All[t]&(rowInactive|rowWithdrawn) != 0 }

// keptRows are the rows that are replayed.
type keptRows struct {
	n     int
	all   bool    // in their order
	order []int32 // if not
}

// pick returns the columns of some rows, in their order.
func (c *eventColumns) pick(rows []int32) *eventColumns {
	out := &eventColumns{files: c.files, action: c.action.Pick(rows), slots: c.slots.Pick(rows),
		value: c.value.Pick(rows),
		props: c.props.Pick(rows), weights: c.weights.Pick(rows), decided: c.decided.Pick(rows),
		came:   c.came.Pick(rows),
		places: c.places.Pick(rows)}
	for _, o := range c.outcomes {
		o.fill(len(c.action.All))
		out.outcomes = append(out.outcomes, &namedColumn{o.name, o.value.Pick(rows), o.came.Pick(rows)})
	}
	if len(c.baseline.All) > 0 {
		out.baseline = c.baseline.Pick(rows)
	}
	if len(c.unit.All) > 0 {
		out.unit = c.unit.Pick(rows)
	}
	return out
}

type timedRow struct {
	at  int64
	row int32
}

// sortRun is how many rows are sorted in memory.
const sortRun = 1 << 16

// byTime returns the rows that are not dropped in the order of time, and of the log: runs
// are sorted in memory and merged in files, two and two.
func (c *eventColumns) byTime() []int32 {
	from, to := spill.Column[timedRow]{In: c.files}, spill.Column[timedRow]{In: c.files}
	for t, at := range c.decided.All {
		if !c.dropped(t) {
			from.Add(timedRow{at, int32(t)})
		}
	}
	for run := range slices.Chunk(from.All, sortRun) {
		slices.SortStableFunc(run, func(a, b timedRow) int { return cmp.Compare(a.at, b.at) })
		c.files.Drop()
	}
	for size := sortRun; size < len(from.All); size *= 2 {
		to.Cut(0)
		for pair := range slices.Chunk(from.All, 2*size) {
			mid := min(size, len(pair))
			c.merge(&to, pair[:mid], pair[mid:])
		}
		from, to = to, from
	}
	out := spill.Column[int32]{In: c.files}
	for i := range from.All {
		out.Add(from.All[i].row)
	}
	return out.All
}

// merge appends both runs to dst; of equal times those of a come first.
func (c *eventColumns) merge(dst *spill.Column[timedRow], a, b []timedRow) {
	for len(a) > 0 || len(b) > 0 {
		c.files.Pass(len(dst.All))
		if len(b) == 0 || len(a) > 0 && a[0].at <= b[0].at {
			dst.Add(a[0])
			a = a[1:]
		} else {
			dst.Add(b[0])
			b = b[1:]
		}
	}
}
