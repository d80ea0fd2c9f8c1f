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

// take learns features whose names start at a position. Missing columns are
// added first, in byte order of the names.
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
