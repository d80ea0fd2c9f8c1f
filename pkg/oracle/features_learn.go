package oracle

import (
	"math"
	"strconv"
)

// learn adds columns for what is new in the context and in the played action,
// moves the running statistics, and leaves z filled with both.
func (f *features) learn(x *Input, action int) {
	position := len(x.Features)
	for i := range action {
		position += len(x.Actions[i].Features)
	}
	clear(f.z[1:])
	f.take(0, ofContext, x.Features)
	for i, v := range x.Vector {
		c := f.vector(i)
		if c < 0 && len(f.cols) <= f.most {
			c = f.add(ofContext, Number, strconv.Itoa(i), "")
		}
		f.takeOne(c, Number, v)
	}
	f.take(position, ofAction, x.Actions[action].Features)
}

// take learns features whose names start at a position. Missing columns are
// added first, in byte order of the names.
func (f *features) take(position int, scope byte, xs []Feature) {
	for i := range xs { // numbers that are known, up to the first other
		c := f.number(position+i, scope, &xs[i])
		if c < 0 {
			f.takeAny(position+i, scope, xs[i:])
			return
		}
		col := &f.cols[c]
		col.observe(xs[i].Value)
		f.z[c] = col.value(xs[i].Value)
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
		f.found[i] = f.add(scope, xs[i].Kind, xs[i].Name, xs[i].Text)
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
	col := &f.cols[c]
	if kind == Number {
		col.observe(v)
	}
	f.z[c] = col.value(v)
}

// observe moves the running statistics of a number by one value: Welford's
// update, after outliers are clipped.
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
