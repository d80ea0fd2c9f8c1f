package oracle

import (
	"math"
	"slices"
)

// The first byte of a snapshot says whether the share is steered, and the version of what is
// computed: 2 more for each after the first.
const (
	aggregateVersion = 1
	steeredAggregate = 2
	wideAggregate    = 64 // added where there are terms
)

// layout returns the first byte of its snapshots.
func (o *Aggregate) layout() byte {
	v := byte(2 * (o.lin.version - 1))
	if o.o.Places > 0 {
		v += wideAggregate
	}
	if o.o.Steered {
		return v + steeredAggregate
	}
	return v + aggregateVersion
}

// AppendBinary implements [Regressor].
func (o *Aggregate) AppendBinary(b []byte) ([]byte, error) {
	n := o.lin.stateBytes() + 256 + 16*(len(o.wide.own)+8*len(o.wide.actions))
	for i := range o.fadings {
		for _, f := range [...]*fading{&o.fadings[i].plain, &o.fadings[i].random} {
			n += 8 * (1 + 2*len(f.w) + packedLen(len(f.w)))
		}
	}
	for i := range o.wide.actions {
		n += 16 * (len(o.wide.actions[i].cols) + len(o.wide.actions[i].terms))
	}
	return appendState(slices.Grow(b, n), o)
}

// UnmarshalBinary implements [Regressor].
func (o *Aggregate) UnmarshalBinary(b []byte) error {
	n := &Aggregate{o: o.o, lambda: o.lambda, members: o.members, lin: *o.lin.fresh(),
		wide: diagonals{places: o.o.Places, lambda: DiagonalLambda}}
	return readState(b, "auto", o, n)
}

func (o *Aggregate) code(c *Coder) {
	newest := byte(2 * Newest)
	if c.Reading() && len(c.b) > 0 && c.b[0] > wideAggregate {
		newest += wideAggregate
	}
	c.Version(o.layout(), newest, "its share or version, or whether it has terms, is another")
	c.Same("other parameters", o.o.Columns, o.random(), o.o.Seed)
	actions := c.Count(len(o.fadings), 2)
	o.codeMembers(c)
	if o.o.Places > 0 {
		c.Same("other places of terms", o.o.Places)
	}
	for _, part := range []*[wideMember + 1]float64{&o.q, &o.lost} {
		c.Floats(part[:o.members])
		if o.o.Places > 0 {
			c.Floats(part[wideMember:])
		}
	}
	c.Float(math.Inf(-1), &o.lostMean, &o.duel)
	if !c.Must(actions <= o.lin.maxActions, "damaged header") {
		return
	}
	if c.Reading() {
		o.fadings = make([]fadingPair, actions)
	}
	for i := range o.fadings {
		if f := &o.fadings[i]; !f.plain.code(c) || !f.random.code(c) {
			return
		}
	}
	if o.o.Places > 0 {
		o.wide.code(c, o.lin.o.MaxFeatures+1)
	}
	o.lin.code(c)
	if !c.Must(o.consistent(), "damaged state") || !c.Reading() {
		return
	}
	o.fourier.grow(&o.lin.features)
	for i := range o.fadings {
		o.begin(int32(i))
	}
	o.size()
}

// codeMembers is how many cores there are, which in version 1 the parameters say.
func (o *Aggregate) codeMembers(c *Coder) {
	members := byte(o.members)
	if o.lin.version > 1 {
		c.Byte(&members)
	}
	if !c.Reading() {
		return
	}
	if o.lin.version > 1 && o.o.Fourier == ByWhatComes {
		o.members = mostMembers - 1 + int(members&1)
	}
	if o.members == mostMembers {
		m := o.o.Fourier
		if m == ByWhatComes {
			m = DefaultFourier
		}
		o.fourier = newFourier(m, o.o.Seed)
	}
}

// random returns what a snapshot says of the number of random features.
func (o *Aggregate) random() int {
	if o.o.Fourier == ByWhatComes {
		return MaxFourier + 1
	}
	return o.o.Fourier
}

// code is w, S and the P without S, the last step taken; any bits, as in Linear.
func (f *fading) code(c *Coder) bool {
	d := c.Count(len(f.w), 8)
	if c.Reading() {
		if !c.Must(packedLen(d)+2*d <= len(c.b)/8, "damaged regression") {
			return false
		}
		f.w, f.s, f.p, f.k = make([]float64, d), make([]float64, d), make([]float64, packedLen(d)), make([]float64, d)
	}
	c.Bits(f.w)
	c.Bits(f.s)
	if c.Reading() {
		c.Bits(f.p)
		return true
	}
	row := make([]float64, d)
	for i := range d {
		for j := range i + 1 {
			row[j] = f.at(i, j)
		}
		c.Bits(row[:i+1])
	}
	return true
}

// consistent reports whether the parts of a state go together.
func (o *Aggregate) consistent() bool {
	if len(o.fadings) != len(o.lin.actions) || o.wide.places > 0 && len(o.wide.actions) != len(o.fadings) {
		return false
	}
	for i := range o.fadings {
		d, random := len(o.lin.actions[i].w), 0
		if o.members == mostMembers && d > 1 {
			random = len(o.fourier.phase) + d
		}
		if len(o.fadings[i].plain.w) != d || len(o.fadings[i].random.w) != random {
			return false
		}
	}
	sum, most := 0.0, float64(o.lin.fed)
	for i := range o.q {
		if !o.has(i) {
			continue
		}
		if !(o.q[i] > 0 && o.q[i] <= 1 && o.lost[i] >= 0 && o.lost[i] <= most) {
			return false
		}
		sum += o.q[i]
	}
	return math.Abs(sum-1) <= 1e-9 && o.duel > 0 && o.duel < 1 && o.lostMean >= 0 && o.lostMean <= most
}
