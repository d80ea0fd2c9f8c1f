package oracle

import (
	"encoding/binary"
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
	n := o.lin.stateBytes() + 256
	for i := range o.fadings {
		n += o.fadings[i].plain.stateBytes() + o.fadings[i].random.stateBytes()
	}
	b = slices.Grow(b, n)
	b = append(b, o.layout())
	for _, v := range []uint64{uint64(o.o.Columns), o.random(), o.o.Seed, uint64(len(o.fadings))} {
		b = binary.AppendUvarint(b, v)
	}
	if o.lin.version > 1 {
		b = append(b, byte(o.members))
	}
	if o.o.Places > 0 {
		b = binary.AppendUvarint(b, uint64(o.o.Places))
	}
	var parts [wideMember + 1]float64
	b = appendFloats(b, o.each(parts[:0], &o.q))
	b = appendFloats(b, o.each(parts[:0], &o.lost))
	b = appendFloats(b, []float64{o.lostMean, o.duel})
	for i := range o.fadings {
		b = o.fadings[i].plain.append(b)
		b = o.fadings[i].random.append(b)
	}
	if o.o.Places > 0 {
		b = o.wide.append(b)
	}
	return o.lin.AppendBinary(b)
}

func (f *fading) stateBytes() int { return 8 * (1 + 2*len(f.w) + packedLen(len(f.w))) }

// append appends w, S and the P without S, the last step taken.
func (f *fading) append(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(f.w)))
	b = appendFloats(b, f.w)
	b = appendFloats(b, f.s)
	for i := range f.w {
		for j := range i + 1 {
			b = appendFloat(b, f.at(i, j))
		}
	}
	return b
}

// UnmarshalBinary implements [Regressor].
func (o *Aggregate) UnmarshalBinary(b []byte) error {
	r := wireReader{b: b}
	switch v := r.byte(); {
	case v < aggregateVersion || v > 2*Newest && (v <= wideAggregate || v > wideAggregate+2*Newest):
		return versionError("auto", v, 2*Newest)
	case v != o.layout():
		return snapshotError("auto", "its share or version, or whether it has terms, is another")
	}
	if r.int64() != int64(o.o.Columns) || r.uvarint() != o.random() || r.uvarint() != o.o.Seed {
		return snapshotError("auto", "other parameters")
	}
	n := &Aggregate{o: o.o, lambda: o.lambda, members: o.members,
		wide: diagonals{places: o.o.Places, lambda: DiagonalLambda}}
	actions := r.count(2)
	switch {
	case o.lin.version == 1:
	case o.o.Fourier == ByWhatComes:
		n.members = mostMembers - 1 + int(r.byte()&1)
	default:
		r.byte()
	}
	if n.members == mostMembers {
		m := o.o.Fourier
		if m == ByWhatComes {
			m = DefaultFourier
		}
		n.fourier = newFourier(m, o.o.Seed)
	}
	if n.o.Places > 0 && r.int64() != int64(n.o.Places) {
		return snapshotError("auto", "other places of terms")
	}
	for _, part := range []*[wideMember + 1]float64{&n.q, &n.lost} {
		r.floats(part[:n.members])
		if n.o.Places > 0 {
			r.floats(part[wideMember:])
		}
	}
	var rest [2]float64
	r.floats(rest[:])
	n.lostMean, n.duel = rest[0], rest[1]
	if r.bad || actions > o.lin.maxActions {
		return snapshotError("auto", "damaged header")
	}
	n.fadings = make([]fadingPair, actions)
	for i := range n.fadings {
		if !n.fadings[i].plain.read(&r) || !n.fadings[i].random.read(&r) {
			return snapshotError("auto", "damaged regression")
		}
	}
	if n.o.Places > 0 {
		var ok bool
		if n.wide, ok = o.wide.read(&r, o.lin.o.MaxFeatures+1); !ok {
			return snapshotError("auto", "damaged diagonal regression")
		}
	}
	l := &o.lin
	n.lin = Linear{features: l.features.fresh(), o: l.o, aggregated: true, places: l.places,
		room: l.room, forget: l.forget, fourier: l.fourier, maxActions: l.maxActions, beginning: l.beginning}
	if err := n.lin.UnmarshalBinary(r.b); err != nil {
		return err
	}
	if !n.consistent() {
		return snapshotError("auto", "damaged state")
	}
	n.fourier.grow(&n.lin.features)
	for i := range n.fadings {
		n.begin(int32(i))
	}
	n.size()
	*o = *n
	return nil
}

// random returns what a snapshot says of the number of random features.
func (o *Aggregate) random() uint64 {
	if o.o.Fourier == ByWhatComes {
		return MaxFourier + 1
	}
	return uint64(o.o.Fourier)
}

func (f *fading) read(r *wireReader) bool {
	d := r.count(8)
	if r.bad || packedLen(d)+2*d > len(r.b)/8 {
		return false
	}
	f.w, f.s, f.p, f.k = make([]float64, d), make([]float64, d), make([]float64, packedLen(d)), make([]float64, d)
	for _, dst := range [][]float64{f.w, f.s, f.p} {
		for i := range dst { // any bits, as in Linear
			dst[i] = r.float()
		}
	}
	return !r.bad
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
