package oracle

import (
	"math"
	"strconv"
)

// learn adds columns for what is new in the context and in the played action,
// moves the running statistics, and leaves z filled with both.
func (f *features) learn(x *Input, action int) {
	position := before(x, action)
	clear(f.z[1:])
	f.markAbsent(ofContext, 1)
	f.take(0, ofContext, x.Features)
	for i, v := range x.Vector {
		c := f.vector(i)
		if c < 0 && len(f.cols) <= f.most {
			c = f.add(ofContext, f.numberKind(ofContext), strconv.Itoa(i), "")
		}
		f.takeOne(c, Number, v)
	}
	f.noticeAbsent(ofContext, x.Features, len(x.Vector))
	if own := x.Actions[action].Features; len(own) > 0 {
		f.markAbsent(ofAction, 1)
		f.take(position, ofAction, own)
		f.noticeAbsent(ofAction, own, 0)
	}
}

// take learns features whose names start at a position. Missing columns are added first, in byte order of the names.
func (f *features) take(position int, scope byte, xs []Feature) {
	for i := range xs { // numbers that are known, up to the first other
		c := f.number(position+i, scope, &xs[i])
		if c < 0 {
			f.takeAny(position+i, scope, xs[i:])
			return
		}
		f.takeOne(c, Number, xs[i].Value)
	}
}

// takeAny is take for features of any kind.
func (f *features) takeAny(position int, scope byte, xs []Feature) {
	f.found, f.missing = f.found[:0], f.missing[:0]
	for i := range xs {
		c := f.column(position+i, scope, &xs[i])
		f.found = append(f.found, c)
		if c >= 0 {
			continue
		}
		f.missing = append(f.missing, int32(i))
		for j := len(f.missing) - 1; j > 0 && xs[f.missing[j]].Name < xs[f.missing[j-1]].Name; j-- {
			f.missing[j], f.missing[j-1] = f.missing[j-1], f.missing[j]
		}
	}
	for _, i := range f.missing {
		if len(f.cols) > f.most {
			break
		}
		f.found[i] = f.addFeature(scope, &xs[i])
	}
	for i, c := range f.found {
		f.takeOne(c, xs[i].Kind, xs[i].Value)
	}
}

// takeOne learns the value of column c, -1 if it has none.
func (f *features) takeOne(c int32, kind FeatureKind, v float64) {
	if c < 0 {
		f.dropped++
		return
	}
	if kind == Number {
		f.observe(c, v)
	}
	f.put(c, v)
}

// addFeature adds the first column of a feature, if there is room.
func (f *features) addFeature(scope byte, x *Feature) int32 {
	switch {
	case x.Kind == Number:
		return f.add(scope, f.numberKind(scope), x.Name, "")
	case f.version == 1:
		return f.add(scope, x.Kind, x.Name, x.Text)
	}
	return f.add(scope, Text, x.Name, x.category())
}

// observe moves the running statistics of a number by one value: Welford's update, after outliers are clipped.
func (c *column) observe(v float64) {
	if c.bounded || v != v {
		return
	}
	v = max(-maxNumber, min(v, maxNumber))
	if c.n > trustAfter && c.m2 > 0 && !(math.Abs(v-c.mean)*c.inv <= zLimit && c.inv > 0) {
		reach := float64(zLimit * math.Sqrt(c.m2/c.n))
		v = max(c.mean-reach, min(v, c.mean+reach))
	}
	c.n++
	d := v - c.mean
	c.mean += d / c.n
	c.m2 += float64(d * (v - c.mean))
	c.derive()
}

// derive sets inv = 1/sd from the statistics; 0 where there is no variation.
func (c *column) derive() {
	c.inv = 0
	if c.n >= 2 && c.m2 > minSD*minSD*c.n {
		c.inv = math.Sqrt(c.n / c.m2)
	}
}

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
