package oracle

import (
	"encoding/binary"
	"math"
	"slices"
)

// The first byte of a snapshot. In version 1 of what is computed, an oracle that forgets adds
// its ρ; one with random features adds its ρ, 0 for none, and what they are drawn from.
// Version 2 always adds both.
const (
	linearVersion    = 1
	forgettingLinear = 2
	randomisedLinear = 3
	secondLinear     = 4
)

// maxM2 is more than running statistics of numbers up to maxNumber can reach.
const maxM2 = 1e300

// AppendBinary implements [Regressor].
func (o *Linear) AppendBinary(b []byte) ([]byte, error) {
	b = slices.Grow(b, o.stateBytes())
	switch {
	case o.version > 1:
		b = appendFloat(append(b, secondLinear), o.forget)
		b = o.fourier.append(b)
	case o.randomised():
		b = appendFloat(append(b, randomisedLinear), o.forget)
		b = o.fourier.append(b)
	case o.forget > 0:
		b = appendFloat(append(b, forgettingLinear), o.forget)
	default:
		b = append(b, linearVersion)
	}
	b = appendFloat(b, o.o.Beta)
	b = appendFloat(b, o.o.Lambda)
	for _, v := range []int64{
		int64(o.o.MaxFeatures), int64(o.maxActions), o.fed, o.resets, o.strange, o.dropped,
		int64(len(o.cols) - 1), int64(len(o.actions)),
	} {
		b = binary.AppendUvarint(b, uint64(v))
	}
	b = appendFloat(b, o.sumLoss)
	b = appendFloat(b, o.regret)
	b = o.appendColumns(b, &o.watches)
	for i := range o.actions {
		a := &o.actions[i]
		b = appendString(b, a.name)
		if o.version > 1 {
			b = a.watch.append(b)
		}
		b = binary.AppendUvarint(b, uint64(len(a.w)))
		b = appendFloats(b, a.w)
		b = appendFloats(b, a.p)
	}
	return b, nil
}

// stateBytes is at least what the state takes, so that room is made for it once: it may be
// most of the memory of a process.
func (o *Linear) stateBytes() int {
	const each = 64 // of lengths, kinds and watches, and of the numbers of a column
	n := (16 + len(o.cols) + len(o.actions) + len(o.watches.changes.Last)) * each
	for i := range o.cols[1:] {
		c := &o.cols[1+i]
		n += len(o.slots[c.slot].name) + len(c.text)
	}
	for i := range o.actions {
		a := &o.actions[i]
		n += len(a.name) + 8*(len(a.w)+len(a.p))
	}
	for _, c := range o.watches.changes.Last {
		n += len(c.Action)
	}
	return n
}

// UnmarshalBinary implements [Regressor].
func (o *Linear) UnmarshalBinary(b []byte) error {
	r := wireReader{b: b}
	if err := o.readVersion(&r); err != nil {
		return err
	}
	if r.float() != o.o.Beta || r.float() != o.o.Lambda || r.int64() != int64(o.o.MaxFeatures) {
		return snapshotError("linear", "other parameters")
	}
	if most := r.int64(); most < 0 || most > int64(o.maxActions) { // room for more actions changes nothing of these
		return snapshotError("linear", "more actions")
	}
	n := &Linear{
		o: o.o, beta: o.o.Beta, lambda: o.o.Lambda, aggregated: o.aggregated, places: o.places, room: o.room,
		forget: o.forget, maxActions: o.maxActions, byAction: map[string]int32{}, fourier: o.fourier.fresh(),
		features: o.features.fresh(), beginning: o.beginning,
	}
	if n.sober {
		n.beta = 0
	}
	n.fed, n.resets, n.strange, n.dropped = r.int64(), r.int64(), r.int64(), r.int64()
	columns, actions := r.count(4), r.count(10)
	n.sumLoss, n.regret = r.float(), r.float()
	if r.bad || columns > n.most || actions > o.maxActions ||
		n.fed < 0 || !(n.sumLoss >= 0 && n.sumLoss <= float64(n.fed)) { // losses are in [0,1]
		return snapshotError("linear", "damaged header")
	}
	if err := n.readColumns(&r, columns, &n.watches, n.fed, "linear"); err != nil {
		return err
	}
	n.fourier.grow(&n.features)
	for range actions {
		if !n.readAction(&r) {
			return snapshotError("linear", "damaged action")
		}
	}
	if len(r.b) != 0 || (actions == o.maxActions && n.fed == 0) {
		return snapshotError("linear", "wrong length")
	}
	n.size()
	*o = *n
	return nil
}

// readVersion reads what a snapshot begins with, and refuses it if it is not of an oracle
// with these parameters.
func (o *Linear) readVersion(r *wireReader) error {
	switch version := r.byte(); {
	case version < linearVersion || version > secondLinear:
		return versionError("linear", version, secondLinear)
	case (version == secondLinear) != (o.version > 1):
		return snapshotError("linear", "another version of what is computed")
	case version == secondLinear:
		if r.float() != o.forget || !o.fourier.is(r) {
			return snapshotError("linear", "other parameters")
		}
	case (version == randomisedLinear) != o.randomised():
		return snapshotError("linear", "other random features")
	case version == linearVersion && o.forget > 0:
		return snapshotError("linear", "it does not forget")
	case version == forgettingLinear && o.forget == 0, version != linearVersion && r.float() != o.forget:
		return snapshotError("linear", "it forgets otherwise")
	case version == randomisedLinear && !o.fourier.is(r):
		return snapshotError("linear", "other random features")
	}
	return nil
}

// appendColumns appends what an oracle over features watches, and its dictionary of columns.
func (f *features) appendColumns(b []byte, w *watches) []byte {
	if f.version > 1 {
		b = w.append(b)
	}
	for i := range f.cols[1:] {
		c := &f.cols[1+i]
		s := &f.slots[c.slot]
		b = append(b, s.scope, byte(c.kind))
		b = appendString(b, s.name)
		b = appendString(b, c.text)
		if c.counts() {
			b = appendFloats(b, []float64{c.n, c.mean, c.m2})
		}
	}
	return b
}

// readColumns reads what appendColumns wrote of an oracle of a kind that was fed so many examples.
func (f *features) readColumns(r *wireReader, columns int, w *watches, fed int64, kind string) error {
	if f.version > 1 && !w.read(r, fed) {
		return snapshotError(kind, "damaged watch")
	}
	for range columns {
		if !f.readColumn(r) {
			return snapshotError(kind, "damaged column")
		}
	}
	f.begun[ofContext] = fed > 0
	return nil
}

func (f *features) readColumn(r *wireReader) bool {
	scope, kind := r.byte(), FeatureKind(r.byte())
	name, text := r.string(), r.string()
	var v [3]float64
	if (&column{kind: kind}).counts() {
		r.floats(v[:])
	}
	next := int32(len(f.cols))
	switch {
	case r.bad, scope > ofAction, !f.mayHave(kind), kind != Text && text != "":
		return false
	case f.add(scope, kind, name, text) != next:
		return false
	}
	c := &f.cols[next]
	if kind == absent {
		return f.slots[c.slot].number != next
	}
	f.begun[scope] = true
	if !c.counts() || c.bounded {
		return true
	}
	c.n, c.mean, c.m2 = v[0], v[1], v[2]
	c.derive()
	if c.n == 0 {
		return c.mean == 0 && c.m2 == 0
	}
	return c.n >= 1 && c.n <= 1<<53 && c.m2 >= 0 && c.m2 <= maxM2 && math.Abs(c.mean) <= maxNumber
}

func (o *Linear) readAction(r *wireReader) bool {
	name := r.string()
	var w watch
	if o.version > 1 && !w.read(r, o.fed, limitOf(len(o.actions))) {
		return false
	}
	d := r.count(8)
	if r.bad || !o.fits(d) || packedLen(d)+d > len(r.b)/8 {
		return false
	}
	if _, twice := o.byAction[name]; twice {
		return false
	}
	a := &o.actions[o.addAction(name)]
	a.watch = w
	a.w, a.p = make([]float64, d), make([]float64, packedLen(d))
	for i := range a.w { // any bits: rounding may have broken a regression, Update mends it
		a.w[i] = r.float()
	}
	for i := range a.p {
		a.p[i] = r.float()
	}
	return !r.bad
}
