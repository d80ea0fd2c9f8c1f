package oracle

import (
	"fmt"
	"math/bits"
	"slices"
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
// With x̃ = (1, the context's columns) and ã the action's own columns, all made as by
// [Linear], its columns are x̃, and every product of one of x̃ with one of ã; if hybrid also
// x̃ for each action's name, which is a weight vector of the action's own beside the
// shared one. They are hashed with signs into D (Weinberger et al. 2009): nothing grows
// with the number of actions, collisions add noise instead. Prediction and update are
// those of [Linear] with that z. Without features of actions and not hybrid, all actions are
// alike.
type Shared struct {
	fitted
	o     SharedOptions
	ridge ridge
	keys  []uint64 // by column

	base []float64 // scratch: what all actions have, hashed
	h    []float64 // scratch: z of an action
	k    []float64 // scratch
	xs   []int32   // scratch: the context's columns that are not 0, the constant first
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
	o.base, o.h, o.k = make([]float64, o.o.Hashed), make([]float64, o.o.Hashed), make([]float64, o.o.Hashed)
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

// addHashed adds v to the hashed column of a key.
func addHashed(h []float64, key uint64, v float64) {
	key = mix64(key + 0x9e3779b97f4a7c15)
	i, _ := bits.Mul64(key<<1, uint64(len(h)))
	if key>>63 == 1 {
		v = -v
	}
	h[i] += v
}

// product is the key of a product.
func product(context, action uint64) uint64 { return context + mix64(action) }

// context sets base and xs from z, which is filled with the context.
func (o *Shared) context() {
	clear(o.base)
	o.xs = append(o.xs[:0], 0)
	addHashed(o.base, o.keys[0], 1)
	for c := 1; c < len(o.z); c++ {
		if v := o.z[c]; v != 0 && o.slots[o.cols[c].slot].scope == ofContext {
			o.xs = append(o.xs, int32(c))
			addHashed(o.base, o.keys[c], v)
		}
	}
}

// action sets h from base and an action, whose features are filled into z.
func (o *Shared) action(a *Action) {
	copy(o.h, o.base)
	if len(a.Features) > 0 {
		for c := 1; c < len(o.z); c++ {
			v := o.z[c]
			if v == 0 || o.slots[o.cols[c].slot].scope != ofAction {
				continue
			}
			for _, x := range o.xs {
				addHashed(o.h, product(o.keys[x], o.keys[c]), o.z[x]*v)
			}
		}
	}
	if o.o.Hybrid {
		name := hashText(1<<16, a.Name)
		for _, x := range o.xs {
			addHashed(o.h, product(o.keys[x], name), o.z[x])
		}
	}
}

// Predict implements [Regressor].
func (o *Shared) Predict(dst []float64, x *Input) {
	o.fill(x)
	o.context()
	position := len(x.Features)
	for i := range dst[:len(x.Actions)] {
		a := &x.Actions[i]
		o.fillAction(position, a)
		o.action(a)
		o.unfillAction(position, a)
		position += len(a.Features)
		m := dot(o.ridge.w, o.h)
		if o.o.Beta > 0 && m > 0 {
			m /= 1 + float64(o.o.Beta*max(packedForm(o.ridge.p, o.h), 0))
		}
		dst[i] = clip01(m)
	}
}

// Update implements [Regressor].
func (o *Shared) Update(x *Input, action int, loss float64) {
	o.fed++
	o.sumLoss += loss
	o.learn(x, action)
	o.grow()
	o.context()
	o.action(&x.Actions[action])
	if o.version > 1 && o.all.add(clip01(dot(o.ridge.w, o.h)), loss, changeFrom, 1/changeAlpha) {
		o.ridge.reset(o.o.Lambda)
		o.all = watch{}
		o.changes.add(Change{Example: o.fed})
	}
	packedMul(o.k, o.ridge.p, o.h)
	u, e := dot(o.k, o.h), loss-dot(o.ridge.w, o.h)
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
