package loop

import (
	"slices"
	"unsafe"

	"hindsight/pkg/codec"
)

// What rounds that wait hold in memory, which a joiner bounds. It is a function of their
// records alone, so that a joiner after a restart closes the same rounds.

// weigh returns the bytes that a round takes: its decision, and the ids of its outcomes.
func (p *pending) weigh() int {
	n := len(p.raw) + p.idBytes + len(p.d.Actions)*nameBytes + (len(p.d.Propensities)+len(p.d.Would))*numberBytes
	for k := range p.named {
		n += outcomeBytes + p.named[k].idBytes
	}
	return n
}

// weigh counts anew what a round takes.
func (j *Joiner) weigh(p *pending) {
	j.bytes -= p.size
	p.size = p.weigh()
	j.bytes += p.size
}

// room returns the bytes that a round takes with its memory for others.
func (p *pending) room() int {
	return int(unsafe.Sizeof(*p)) + cap(p.raw) + (cap(p.d.Actions)+cap(p.ids))*nameBytes +
		(cap(p.d.Propensities)+cap(p.d.Would))*numberBytes + cap(p.named)*outcomeBytes
}

const (
	nameBytes   = 16 // of a name, beside its text
	numberBytes = 8  // of a number

	outcomeBytes = 160 // of a named outcome, beside the ids of its records
)

// maxSpare is how many bytes of released rounds are kept for those to come. Callers release
// before they have given as much.
const maxSpare = 16 << 20

// pendingPool keeps released rounds for those to come, with their memory.
type pendingPool struct {
	free  []*pending
	spare int // bytes of free
}

// alloc returns a fresh round whose record has n bytes; 0: unknown.
func (l *pendingPool) alloc(n int) *pending {
	var p *pending
	if k := len(l.free) - 1; k < 0 {
		p = new(pending)
	} else {
		p = l.free[k]
		l.free[k], l.free = nil, l.free[:k]
		l.spare -= p.room()
		if n > 0 && wasteful(cap(p.raw), n, 64) {
			p.raw = nil
		}
	}
	p.reset()
	return p
}

// recycle keeps a round that nobody needs any more for another one.
func (l *pendingPool) recycle(p *pending) {
	p.more = nil
	for k := range p.named {
		p.named[k].more = nil
	}
	if n := p.room(); l.spare+n <= maxSpare {
		l.spare += n
		l.free = append(l.free, p)
	}
}

// textBytes returns the bytes of a decision's texts, of its actions' names unless the model lists them.
func textBytes(d *codec.Decision, listed bool) int {
	n := len(d.Context) + len(d.ID) + len(d.Unit)
	if !listed {
		for _, name := range d.Actions {
			n += len(name)
		}
	}
	return n
}

// trim gives back memory of larger rounds that had been at this place.
func (p *pending) trim() {
	p.d.Actions, p.d.Propensities, p.d.Would = trimmed(p.d.Actions), trimmed(p.d.Propensities), trimmed(p.d.Would)
}

// trimmed returns a list in room of its own where it has much more than it needs.
func trimmed[T any](s []T) []T {
	if wasteful(cap(s), len(s), 8) {
		return slices.Clone(s)
	}
	return s
}

// wasteful reports whether room for have is much more than what is needed: rounds of one
// model differ little in size, and what they differ by is kept.
func wasteful(have, need, few int) bool { return have > need+need/4+few }
