package oracle

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"unsafe"
)

// SharedOptions are the parameters of [NewShared].
type SharedOptions struct {
	Hybrid      bool    // actions' names count too
	Hashed      int     // D: hashed columns; 0 means 256
	Beta        float64 // optimism in [0,1]; see AutoBeta with d = D
	Lambda      float64 // regularisation > 0; 0 means 1
	MaxFeatures int     // columns beside the constant, before they are multiplied; 0 means 256
	Schema      []FeatureSpec
	Version     int // of what is computed; 0 means 1; see Newest
}

// DefaultHashed is D where none is given.
const DefaultHashed = 256

// Shared is an optimistic recursive least-squares oracle with one weight vector for all
// actions, so that what is learned of one says something of others, and of those that
// were never seen: for action sets that change with every round, and for cold starts.
//
// With x̃ = (1, the context's columns) and ã the action's own columns, all made as by [Linear], its columns are x̃, and
// every product of one of x̃ with one of ã; if hybrid also x̃ for each action's name, which is a weight vector of the
// action's own beside the shared one. They are hashed with signs into D (Weinberger et al. 2009): nothing grows with
// the number of actions, collisions add noise instead. Prediction and update are those of [Linear] with that z. Without
// features of actions and not hybrid, all actions are alike.
type Shared struct {
	fitted
	o     SharedOptions
	ridge ridge
	keys  []uint64 // by column

	one, k []float64 // scratch of an example, hashed

	// Scratch of a round, all hashed.
	base     []float64     // what all actions have
	h        [][8]float64  // z of eight actions
	common   []uint64      // a bit for each column where base may not be 0
	moved    []uint64      // and for those where h may not be
	some     hashedColumns // these, once they are listed
	owns     []int32       // columns of the features of eight actions
	values   [][8]float64  // and their values, by column; 0 between rounds
	xs       []int32       // columns of the context that are not 0, the constant first
	products []hashedTerm  // of xs and columns of actions
	ends     []int32       // where those of a column of actions end; 0: they are not there
}

// hashedTerm is what is added to a hashed column.
type hashedTerm struct {
	at int32
	v  float64
}

var _ Regressor = (*Shared)(nil)

// NewShared returns an oracle that knows nothing.
func NewShared(o SharedOptions) (*Shared, error) {
	if o.Hashed == 0 {
		o.Hashed = DefaultHashed
	}
	if o.Lambda == 0 {
		o.Lambda = 1
	}
	f, err := newFitted(&o.MaxFeatures, o.Beta, o.Lambda, false, o.Schema, o.Version)
	switch {
	case err != nil:
		return nil, fmt.Errorf("shared: %w", err)
	case o.Hashed < 2 || o.Hashed > 1<<13:
		return nil, fmt.Errorf("shared: %d hashed columns: it must be in [2, 8192]", o.Hashed)
	}
	s := &Shared{fitted: f, o: o, keys: []uint64{0}}
	s.ridge.grow(o.Hashed, o.Lambda)
	s.scratch()
	return s, nil
}

func (o *Shared) scratch() {
	d := o.o.Hashed
	o.one, o.k, o.base, o.h = make([]float64, d), make([]float64, d), make([]float64, d), make([][8]float64, d)
	o.common, o.moved = make([]uint64, (d+63)/64), make([]uint64, (d+63)/64)
}

// hashText is FNV-1a, its bits mixed.
func hashText(h uint64, s string) uint64 {
	h ^= 0xcbf29ce484222325
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 0x100000001b3
	}
	return mix64(h)
}

// mix64 is the finaliser of SplitMix64 (Steele, Lea, Flood 2014).
func mix64(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// grow hashes the columns that are new.
func (o *Shared) grow() {
	for c := len(o.keys); c < len(o.cols); c++ {
		col := &o.cols[c]
		s := &o.slots[col.slot]
		o.keys = append(o.keys, hashText(hashText(uint64(s.scope)<<8|uint64(col.kind), s.name), col.text))
	}
}

// hash returns what v adds under a key.
func (o *Shared) hash(key uint64, v float64) hashedTerm {
	key = mix64(key + 0x9e3779b97f4a7c15)
	i, _ := bits.Mul64(key<<1, uint64(len(o.h)))
	if key>>63 == 1 {
		v = -v
	}
	return hashedTerm{int32(i), v}
}

// product is the key of a product.
func product(context, action uint64) uint64 { return context + mix64(action) }

// context begins a round with a context, which z is filled with.
func (o *Shared) context() {
	clear(o.h)
	clear(o.base)
	clear(o.common)
	o.xs, o.products = o.xs[:0], o.products[:0]
	o.ends = slices.Grow(o.ends[:0], len(o.cols))[:len(o.cols)]
	clear(o.ends)
	for len(o.values) < len(o.cols) {
		o.values = append(o.values, [8]float64{})
	}
	for c, v := range o.z {
		if v == 0 || c > 0 && o.slots[o.cols[c].slot].scope != ofContext {
			continue
		}
		o.xs = append(o.xs, int32(c))
		t := o.hash(o.keys[c], v)
		o.base[t.at] += t.v
		o.common[t.at>>6] |= 1 << (t.at & 63)
	}
	copy(o.moved, o.common)
	o.some.list(o.moved)
	o.next()
}

// next begins the next eight actions.
func (o *Shared) next() {
	copy(o.moved, o.common)
	for _, i := range o.some.at {
		v, h := o.base[i], &o.h[i]
		for q := range h {
			h[q] = v
		}
	}
}

// hashedColumns are those that may not be 0: all, and by the partial sum to which they go ([dot]).
type hashedColumns struct {
	at  []int32
	by  [4][]int32 // times 8; noColumn ends each
	set []uint64   // their bits
}

// noColumn is more than any column times 8.
const noColumn = math.MaxInt32

// list sets the columns to those whose bits are set, which mostly are those of before.
func (h *hashedColumns) list(set []uint64) {
	if slices.Equal(h.set, set) {
		return
	}
	h.at, h.set = h.at[:0], append(h.set[:0], set...)
	for s := range h.by {
		h.by[s] = h.by[s][:0]
	}
	for w, b := range set {
		for ; b != 0; b &= b - 1 {
			i := int32(w<<6 + bits.TrailingZeros64(b))
			h.at = append(h.at, i)
			h.by[i&3] = append(h.by[i&3], 8*i)
		}
	}
	for s := range h.by {
		h.by[s] = append(h.by[s], noColumn)
	}
}

// with returns the products of xs and a column of actions whose value is 1.
func (o *Shared) with(c int32) []hashedTerm {
	if o.ends[c] == 0 {
		o.products = o.multiply(o.products, o.keys[c])
		o.ends[c] = int32(len(o.products))
	}
	return o.products[int(o.ends[c])-len(o.xs) : o.ends[c]]
}

// multiply appends the products of xs and what has a key.
func (o *Shared) multiply(dst []hashedTerm, key uint64) []hashedTerm {
	for _, x := range o.xs {
		dst = append(dst, o.hash(product(o.keys[x], key), o.z[x]))
	}
	return dst
}

// take keeps the columns of the features of the q-th of eight actions, which are own and in z.
func (o *Shared) take(q int) {
	switch {
	case q == 0:
		o.owns = append(o.owns[:0], o.own...)
	case !slices.Equal(o.owns, o.own):
		o.owns = append(o.owns, o.own...)
		slices.Sort(o.owns)
		o.owns = slices.Compact(o.owns)
	}
	for _, c := range o.own {
		o.values[c][q&7] = o.z[c]
	}
}

func sameName(a, b string) bool {
	return len(a) == len(b) && unsafe.StringData(a) == unsafe.StringData(b) || a == b
}

// takeAlike is take for eight actions whose features, which start at a position, are numbers of the same names, as they
// mostly are: each column is looked for once. It reports false where they are not, and then has taken nothing.
func (o *Shared) takeAlike(position int, actions []Action) bool {
	first := actions[0].Features
	if len(o.absent[ofAction]) > 0 {
		return false
	}
	for q := range actions {
		own := actions[q].Features
		if len(own) != len(first) {
			return false
		}
		for i := range own {
			if x := &own[i]; x.Kind != Number || !sameName(x.Name, first[i].Name) {
				return false
			}
		}
	}
	o.owns = o.owns[:0]
	for i := range first {
		c, n := o.number(position+i, ofAction, &first[i]), len(o.owns)
		if c < 0 || o.cols[c].other != 0 || n > 0 && o.owns[n-1] >= c {
			return false
		}
		o.owns = append(o.owns, c)
	}
	for i, c := range o.owns {
		col, v := &o.cols[c], &o.values[c]
		for q := range actions {
			v[q&7] = col.value(actions[q].Features[i].Value)
		}
	}
	return true
}

// multiplyOwn adds what eight actions have to h.
func (o *Shared) multiplyOwn(actions []Action) {
	for _, c := range o.owns {
		v := &o.values[c]
		for _, t := range o.with(c) {
			h := &o.h[t.at]
			for q, x := range v {
				h[q] += float64(t.v * x)
			}
			o.moved[t.at>>6] |= 1 << (t.at & 63)
		}
		*v = [8]float64{}
	}
	if !o.o.Hybrid {
		return
	}
	n := len(o.products)
	for q := range actions {
		o.products = o.multiply(o.products[:n], hashText(1<<16, actions[q].Name))
		for _, t := range o.products[n:] {
			o.h[t.at][q&7] += t.v
			o.moved[t.at>>6] |= 1 << (t.at & 63)
		}
	}
	o.products = o.products[:n]
}

// Predict implements [Regressor]. Actions mostly have features of the same names: each is looked for where the action
// before had it.
func (o *Shared) Predict(dst []float64, x *Input) {
	o.fill(x)
	o.context()
	for dst, actions := dst, x.Actions; len(actions) > 0; {
		eight := actions[:min(8, len(actions))]
		if !o.takeAlike(len(x.Features), eight) {
			for q := range eight {
				o.fillAction(len(x.Features), &eight[q])
				o.take(q)
				o.unfillAction()
			}
		}
		o.multiplyOwn(eight)
		o.predictEight(dst[:len(eight)])
		o.next()
		dst, actions = dst[len(eight):], actions[len(eight):]
	}
}

// predictEight sets dst to f̂ of the first actions of eight.
func (o *Shared) predictEight(dst []float64) {
	var m, u [8]float64
	o.some.list(o.moved)
	dotEight(&m, o.ridge.w, o.h, &o.some)
	if o.o.Beta > 0 {
		formEight(&u, o.ridge.p, o.h, &o.some)
	}
	for q := range dst {
		if dst[q] = clip01(m[q]); o.o.Beta > 0 && m[q] > 0 {
			dst[q] = clip01(m[q] / (1 + float64(o.o.Beta*max(u[q], 0))))
		}
	}
}

// Update implements [Regressor].
func (o *Shared) Update(x *Input, action int, loss float64) {
	o.fed++
	o.sumLoss += loss
	o.learn(x, action)
	o.grow()
	o.context()
	o.own = o.own[:0]
	for c, v := range o.z {
		if v != 0 && c > 0 && o.slots[o.cols[c].slot].scope == ofAction {
			o.own = append(o.own, int32(c))
		}
	}
	o.take(0)
	o.multiplyOwn(x.Actions[action : action+1])
	z := o.one
	for i := range o.h {
		z[i] = o.h[i][0]
	}
	if o.version > 1 && o.all.add(clip01(dot(o.ridge.w, z)), loss, changeFrom, 1/changeAlpha) {
		o.ridge.reset(o.o.Lambda)
		o.all = watch{}
		o.changes.add(Change{Example: o.fed})
	}
	packedMul(o.k, o.ridge.p, z)
	u, e := dot(o.k, z), loss-dot(o.ridge.w, z)
	if !(u >= 0) || u-u != 0 || e-e != 0 {
		o.resets++
		o.ridge.reset(o.o.Lambda)
		return
	}
	c := 1 / (1 + u)
	o.regret += float64(float64(float64(e*e)*u) * c)
	axpy(o.ridge.w, float64(e*c), o.k)
	packedRankOne(o.ridge.p, c, o.k)
}

// Counts returns the current counts; no action is ever dropped, and none is counted.
func (o *Shared) Counts() LinearCounts { return o.counts(0) }

// AppendBinary implements [Regressor].
func (o *Shared) AppendBinary(b []byte) ([]byte, error) {
	return appendState(slices.Grow(b, 8*(len(o.ridge.w)+len(o.ridge.p))), o)
}

// UnmarshalBinary implements [Regressor].
func (o *Shared) UnmarshalBinary(b []byte) error {
	return readState(b, "shared", o, &Shared{fitted: fitted{features: o.features.fresh()}, o: o.o, keys: []uint64{0}})
}

// code begins with the version of what is computed.
func (o *Shared) code(c *Coder) {
	c.Version(byte(o.version), Newest, "another version of what is computed")
	c.Same("other parameters", o.o.Hybrid, o.o.Beta, o.o.Lambda, o.o.Hashed, o.most)
	c.Ints(&o.fed, &o.resets, &o.dropped)
	columns := c.Count(len(o.cols)-1, 4)
	if !o.fitted.code(c, columns) {
		return
	}
	if c.Reading() {
		if !c.Must(len(c.b) == 8*(o.o.Hashed+packedLen(o.o.Hashed)), "wrong length") {
			return
		}
		o.ridge.grow(o.o.Hashed, o.o.Lambda)
		o.scratch()
		o.grow()
	}
	c.Bits(o.ridge.w) // any bits, as in Linear
	c.Bits(o.ridge.p)
}
