package replay

import (
	"cmp"
	"slices"
)

// eventColumns are what is kept of events while a log is loaded.
type eventColumns struct {
	files                   *rowFiles
	action, slots, baseline column[int32]
	value, props, weights   column[float64]
	decided, came           column[int64]
	flags                   column[uint8]
	places                  column[rowPlace]
	data                    column[byte] // which places are in
}

func newEventColumns(files *rowFiles) *eventColumns {
	numbers, times, indices := column[float64]{of: files}, column[int64]{of: files}, column[int32]{of: files}
	return &eventColumns{files: files, action: indices, slots: indices, baseline: indices, value: numbers,
		props: numbers, weights: numbers,
		decided: times, came: times, flags: column[uint8]{of: files}, places: column[rowPlace]{of: files}, data: column[byte]{of: files}}
}

// dropped reports whether row t is not replayed.
func (c *eventColumns) dropped(t int) bool { return c.flags.s[t]&(rowInactive|rowWithdrawn) != 0 }

// keptRows are the rows that are replayed.
type keptRows struct {
	n     int
	all   bool    // in their order
	order []int32 // if not
}

// pick returns the columns of some rows, in their order.
func (c *eventColumns) pick(rows []int32) *eventColumns {
	out := newEventColumns(c.files)
	for i, t := range rows {
		c.files.pass(i)
		out.action.add(c.action.s[t])
		out.slots.add(c.slots.s[t])
		out.value.add(c.value.s[t])
		out.props.add(c.props.s[t])
		out.weights.add(c.weights.s[t])
		out.decided.add(c.decided.s[t])
		out.came.add(c.came.s[t])
		out.places.add(c.places.s[t])
		if len(c.baseline.s) > 0 {
			out.baseline.add(c.baseline.s[t])
		}
	}
	return out
}

// timedRow is a row with its time.
type timedRow struct {
	at  int64
	row int32
}

// sortRun is how many rows are sorted in memory.
const sortRun = 1 << 16

// byTime returns the rows that are not dropped in the order of time, and of the log: runs
// are sorted in memory and merged in files, two and two.
func (c *eventColumns) byTime() []int32 {
	from, to := column[timedRow]{of: c.files}, column[timedRow]{of: c.files}
	for t, at := range c.decided.s {
		if !c.dropped(t) {
			from.add(timedRow{at, int32(t)})
		}
	}
	for run := range slices.Chunk(from.s, sortRun) {
		slices.SortStableFunc(run, func(a, b timedRow) int { return cmp.Compare(a.at, b.at) })
		c.files.drop()
	}
	for size := sortRun; size < len(from.s); size *= 2 {
		to.cut(0)
		for pair := range slices.Chunk(from.s, 2*size) {
			mid := min(size, len(pair))
			c.merge(&to, pair[:mid], pair[mid:])
		}
		from, to = to, from
	}
	out := column[int32]{of: c.files}
	for i := range from.s {
		out.add(from.s[i].row)
	}
	return out.s
}

// merge appends both runs to dst; of equal times those of a come first.
func (c *eventColumns) merge(dst *column[timedRow], a, b []timedRow) {
	for len(a) > 0 || len(b) > 0 {
		c.files.pass(len(dst.s))
		if len(b) == 0 || len(a) > 0 && a[0].at <= b[0].at {
			dst.add(a[0])
			a = a[1:]
		} else {
			dst.add(b[0])
			b = b[1:]
		}
	}
}
