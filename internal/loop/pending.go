package loop

import (
	"slices"
	"unsafe"

	"hindsight/pkg/codec"
)

// pending is a round that waits for its outcome, or for the rounds before it. It
// owns the bytes that its decision aliases.
type pending struct {
	roundFate
	rules *Rules
	raw   []byte
	d     codec.Decision
	time  int64 // log time of the decision, monotone in its partition
	seq   int64 // in the line
	size  int   // bytes that it counts for while it waits
	slot  int32 // in the table of rounds; -1 for a repeated id
	cut   int64 // that took the decision

	guess float64 // the loss that the last provisional record told

	unit    int32      // 1 + slot in the table of rounds of the unit whose draw it is
	first   *pending   // the draw that it repeats, while that is open
	repeats []*pending // of it, that wait

	held bool // it has its fate and waits for its turn
	over bool // no outcome is to come any more
}

// reset makes p a fresh round, keeping its memory.
func (p *pending) reset() {
	*p = pending{raw: p.raw[:0],
		d:         codec.Decision{Actions: p.d.Actions[:0], Propensities: p.d.Propensities[:0], Would: p.d.Would[:0]},
		repeats:   p.repeats[:0],
		roundFate: roundFate{outcomeFate: outcomeFate{outPart: -1, outOff: -1, ids: p.ids[:0]}, named: p.named[:0]}}
}

// copy sets p's decision, as yet empty, to d. What d aliases is copied, but for the names of
// actions if they are listed by the model.
func (p *pending) copy(d *codec.Decision, listed bool) {
	actions, law, would := p.d.Actions, p.d.Propensities, p.d.Would
	p.d, p.d.Prices = *d, nil
	p.d.Propensities, p.d.Would = append(law, d.Propensities...), append(would, d.Would...)
	raw := append(append(slices.Grow(p.raw, textBytes(d, listed)), d.Context...), d.ID...)
	raw = append(raw, d.Unit...)
	if !listed {
		for _, name := range d.Actions {
			raw = append(raw, name...)
		}
	}
	p.raw = raw
	n := len(d.Context)
	p.d.Context, raw = raw[:n:n], raw[n:]
	p.d.ID, raw = cutText(raw, len(d.ID))
	p.d.Unit, raw = cutText(raw, len(d.Unit))
	if listed {
		p.d.Actions = append(actions, p.rules.Actions...)
		return
	}
	for _, name := range d.Actions {
		name, raw = cutText(raw, len(name))
		actions = append(actions, name)
	}
	p.d.Actions = actions
}

// equalTexts reports whether two lists of names are equal.
func equalTexts(a, b []string) bool { return slices.EqualFunc(a, b, equalText) }

// equalText reports whether two texts are equal: of most rounds both are the model's own, which to
// see by their address takes half the time.
func equalText(a, b string) bool {
	return len(a) == len(b) && unsafe.StringData(a) == unsafe.StringData(b) || a == b
}

// cutText returns the first n bytes of b as text that aliases them, and the rest.
func cutText(b []byte, n int) (string, []byte) {
	return unsafe.String(unsafe.SliceData(b), n), b[n:]
}
