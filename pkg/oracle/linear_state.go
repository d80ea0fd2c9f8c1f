package oracle

import (
	"math"
	"slices"
	"unsafe"
)

// The first byte of a snapshot. In version 1 of what is computed, an oracle that forgets adds its ρ; one with random
// features adds its ρ, 0 for none, and what they are drawn from. Version 2 always adds both.
const (
	linearVersion    = 1
	forgettingLinear = 2
	randomisedLinear = 3
	secondLinear     = 4
)

// layout returns the first byte of its snapshots.
func (o *Linear) layout() byte {
	switch {
	case o.version > 1:
		return secondLinear
	case o.randomised():
		return randomisedLinear
	case o.forget > 0:
		return forgettingLinear
	}
	return linearVersion
}

// maxM2 is more than running statistics of numbers up to maxNumber can reach.
const maxM2 = 1e300

// AppendBinary implements [Regressor].
func (o *Linear) AppendBinary(b []byte) ([]byte, error) {
	return appendState(slices.Grow(b, o.stateBytes()), o)
}

// UnmarshalBinary implements [Regressor].
func (o *Linear) UnmarshalBinary(b []byte) error { return readState(b, "linear", o, o.fresh()) }

// fresh returns an oracle with the same parameters that knows nothing.
func (o *Linear) fresh() *Linear {
	n := &Linear{
		o: o.o, beta: o.o.Beta, lambda: o.o.Lambda, aggregated: o.aggregated, places: o.places, room: o.room,
		forget: o.forget, maxActions: o.maxActions, fourier: o.fourier.fresh(),
		fitted: fitted{features: o.features.fresh()}, beginning: o.beginning,
	}
	if n.sober {
		n.beta = 0
	}
	return n
}

func (o *Linear) code(c *Coder) {
	layout := o.layout()
	c.Version(layout, secondLinear,
		"another version of what is computed, or it forgets or has random features otherwise")
	if layout > linearVersion {
		c.Same("it forgets otherwise", o.forget)
	}
	if layout >= randomisedLinear {
		f := &o.fourier
		c.Same("other random features", len(f.phase), f.seed, f.expected, f.wide)
	}
	c.Same("other parameters", o.o.Beta, o.o.Lambda, o.o.MaxFeatures)
	most := int64(o.maxActions) // room for more actions changes nothing of these
	c.Ints(&most)
	c.Must(most <= int64(o.maxActions), "more actions")
	c.Ints(&o.fed, &o.resets, &o.strange, &o.dropped)
	columns, actions := c.Count(len(o.cols)-1, 4), c.Count(len(o.actions), 10)
	if !c.Must(actions <= o.maxActions, "damaged header") || !o.fitted.code(c, columns) {
		return
	}
	if c.Reading() {
		o.fourier.grow(&o.features)
	}
	for i := 0; i < actions && o.codeAction(c, i); i++ {
	}
	if c.Must(actions < o.maxActions || o.fed > 0, "wrong length") && c.Reading() {
		o.size()
	}
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
		n += len(o.known.names[i]) + 8*(len(a.w)+len(a.p))
	}
	for _, c := range o.watches.changes.Last {
		n += len(c.Action)
	}
	return n
}

// code is what an oracle over features lost, watches, and its dictionary of so many columns.
func (o *fitted) code(c *Coder, columns int) bool {
	c.Float(0, &o.sumLoss)
	c.Bits(unsafe.Slice(&o.regret, 1)) // any bits: rounding may have broken a regression
	if !c.Must(columns <= o.most && o.sumLoss <= float64(o.fed), "damaged header") {
		return false
	}
	if o.version > 1 {
		o.watches.code(c, o.fed)
	}
	for i := 0; i < columns && o.codeColumn(c, 1+i); i++ {
	}
	if c.Reading() {
		o.begun[ofContext] = o.fed > 0
	}
	return c.Must(true, "damaged column")
}

func (f *features) codeColumn(c *Coder, i int) bool {
	var col column
	var s slot
	if !c.Reading() {
		col = f.cols[i]
		s.scope, s.name = f.slots[col.slot].scope, f.slots[col.slot].name
	}
	kind := byte(col.kind)
	c.Byte(&s.scope)
	c.Byte(&kind)
	col.kind = FeatureKind(kind)
	c.String(&s.name)
	c.String(&col.text)
	if col.counts() {
		c.Float(math.Inf(-1), &col.n, &col.mean, &col.m2)
	}
	return c.Must(true, "damaged column") && (!c.Reading() || c.Must(f.enter(s.scope, s.name, &col), "damaged column"))
}

// enter adds a column of a snapshot; it reports whether it can be.
func (f *features) enter(scope byte, name string, v *column) bool {
	next := int32(len(f.cols))
	if scope > ofAction || !f.mayHave(v.kind) || v.kind != Text && v.text != "" ||
		f.add(scope, v.kind, name, v.text) != next {
		return false
	}
	c := &f.cols[next]
	if v.kind == absent {
		return f.slots[c.slot].number != next
	}
	f.begun[scope] = true
	if !c.counts() || c.bounded {
		return true
	}
	c.n, c.mean, c.m2 = v.n, v.mean, v.m2
	c.derive()
	if c.n == 0 {
		return c.mean == 0 && c.m2 == 0
	}
	return c.n >= 1 && c.n <= 1<<53 && c.m2 >= 0 && c.m2 <= maxM2 && math.Abs(c.mean) <= maxNumber
}

func (o *Linear) codeAction(c *Coder, i int) bool {
	a, name := &linearAction{}, ""
	if !c.Reading() {
		a, name = &o.actions[i], o.known.names[i]
	}
	c.Text(&name)
	if o.version > 1 {
		a.watch.code(c, o.fed, limitOf(i))
	}
	d := c.Count(len(a.w), 8)
	if c.Reading() {
		_, twice := o.known.of[name]
		if !c.Must(!twice && o.fits(d) && packedLen(d)+d <= len(c.b)/8, "damaged action") {
			return false
		}
		w := a.watch
		a = &o.actions[o.addAction(name)]
		a.watch, a.w, a.p = w, make([]float64, d), make([]float64, packedLen(d))
	}
	c.Bits(a.w) // any bits: rounding may have broken a regression, Update mends it
	c.Bits(a.p)
	return c.Must(true, "damaged action")
}
