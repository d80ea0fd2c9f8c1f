package oracle

import "strconv"

// Kinds of columns that tell whether a number is there, since version 2. A standardised
// number reads 0 at its mean, and so would an absent one: a second column tells them apart.
//
//   - A number of the first example is a column. Once an example lacks it, absent, a column
//     that is 1 where the number is absent, joins it: it was 0 in all examples before.
//   - A number that comes later is first of all present, a column that is 1 where the number
//     is there: it was 0 in all examples before. Once its value differs from that of the
//     examples so far, the number itself joins it.
//
// So each column reads in earlier examples as if it had always been there, numbers that are
// always there cost one column, and so do those that are there or not, as {"Tom": 1}.
const (
	present FeatureKind = Bool + 1 + iota
	absent
)

// absence is what [features] knows of numbers that may be absent, by scope.
type absence struct {
	begun  [2]bool    // an example was learned; of actions, one with features of its action
	always [2]int     // numbers without a second column: they were in every example
	absent [2][]int32 // columns of kind absent
	hits   int        // scratch: how many of always are in the example
}

// numberKind returns the kind of the first column of a new number.
func (f *features) numberKind(scope byte) FeatureKind {
	if f.version > 1 && f.begun[scope] {
		return present
	}
	return Number
}

// pairs reports whether a column of a kind joins the number whose first column is c.
func (f *features) pairs(c int32, kind FeatureKind) bool {
	col := &f.cols[c]
	return col.other == 0 && (col.kind == present && kind == Number || col.kind == Number && kind == absent)
}

// enlist notes a new column of a number: its first, or the one that joins it.
func (f *features) enlist(s *slot, scope byte, kind FeatureKind, c int32) {
	switch {
	case s.number >= 0:
		f.cols[s.number].other = c
		if kind == absent {
			f.always[scope]--
			f.absent[scope] = append(f.absent[scope], c)
		}
		return
	case kind == Number:
		f.always[scope]++
	}
	s.number = c
}

// markAbsent sets the columns of kind absent: to 1, until the number is put.
func (f *features) markAbsent(scope byte, to float64) {
	for _, c := range f.absent[scope] {
		f.z[c] = to
	}
}

// putOther sets the second column of a number that is there.
func (f *features) putOther(first *column, v float64) {
	if first.kind == present {
		f.z[first.other] = f.cols[first.other].value(v)
	} else {
		f.z[first.other] = 0
	}
}

// observe learns the value of the number whose first column is c. The column present counts
// the examples with the value, its mean, until another comes.
func (f *features) observe(c int32, v float64) {
	col := &f.cols[c]
	switch {
	case col.kind == Number:
		if col.other == 0 {
			f.hits++
		}
		col.observe(v)
	case col.other != 0:
		f.cols[col.other].observe(v)
	case v != v:
	case col.n == 0 || v == col.mean:
		col.n++
		col.mean = max(-maxNumber, min(v, maxNumber))
	case len(f.cols) > f.most:
		f.dropped++
	default:
		s := &f.slots[col.slot]
		number := f.add(s.scope, Number, s.name, "")
		col = &f.cols[c]
		if to := &f.cols[number]; !to.bounded {
			to.n, to.mean = col.n, col.mean
			to.observe(v)
		}
	}
}

// noticeAbsent adds a column for each number of the scope that was in every example and is
// not in this one, which has features xs and a vector of n elements.
func (f *features) noticeAbsent(scope byte, xs []Feature, n int) {
	if f.version == 1 {
		return
	}
	f.begun[scope] = true
	hits := f.hits
	f.hits = 0
	if hits >= f.always[scope] {
		return
	}
	for i := range f.slots {
		s := &f.slots[i]
		if s.scope != scope || s.number < 0 || !f.pairs(s.number, absent) || has(xs, n, s.name) {
			continue
		}
		if c := f.add(scope, absent, s.name, ""); c >= 0 {
			f.z[c] = 1
		}
	}
}

// has reports whether a number is in an example.
func has(xs []Feature, n int, name string) bool {
	for i := range xs {
		if xs[i].Kind == Number && xs[i].Name == name {
			return true
		}
	}
	i, err := strconv.Atoi(name)
	return err == nil && i >= 0 && i < n && strconv.Itoa(i) == name
}

// counts reports whether a column has statistics.
func (c *column) counts() bool { return c.kind == Number || c.kind == present }

// mayHave reports whether there are columns of a kind.
func (f *features) mayHave(kind FeatureKind) bool {
	if f.version == 1 {
		return kind >= Number && kind <= Bool
	}
	return kind >= Number && kind <= absent && kind != Bool
}
