package loop

import (
	"bytes"
	"strings"

	"hindsight/pkg/codec"
)

// parked is an outcome whose round is not known yet. It owns its bytes.
type parked struct {
	arrival
	seq        uint64
	ceID       string
	id         string // of its round
	prev, next int32  // in the order of arrival; -1: none
	same       int32  // the next one of the same round; -1: none
}

// parkedRun are the outcomes of one round, in the order of arrival.
type parkedRun struct{ first, last int32 }

// parkLot holds the outcomes that are parked, in the order of arrival, and finds those of
// a round by its id: most are of no round at all, and there may be as many of them as a
// backlog has while every decision of it asks for its own. Those who report outcomes choose
// their ids: a map is keyed by what nobody knows, and is only ever asked for one id.
type parkLot struct {
	ids         map[string]parkedRun
	all         []parked
	free        []int32
	first, last int32 // -1: none
	n           int
	bytes       int
}

func newParkLot() parkLot { return parkLot{ids: map[string]parkedRun{}, first: -1, last: -1} }

// push parks an outcome of the round id.
func (l *parkLot) push(k parked, id string) {
	var s int32
	if n := len(l.free); n > 0 {
		s, l.free = l.free[n-1], l.free[:n-1]
	} else {
		s = int32(len(l.all))
		l.all = append(l.all, parked{})
	}
	run, there := l.ids[id]
	if there {
		k.id = l.all[run.last].id
		l.all[run.last].same = s
	} else {
		k.id, run.first = strings.Clone(id), s // id's bytes are the caller's
	}
	run.last = s
	l.ids[k.id] = run
	k.prev, k.next, k.same = l.last, -1, -1
	if l.last >= 0 {
		l.all[l.last].next = s
	} else {
		l.first = s
	}
	l.all[s], l.last = k, s
	l.n++
	l.bytes += len(k.raw)
}

// remove takes one out of the line and returns it.
func (l *parkLot) remove(s int32) parked {
	k := l.all[s]
	if k.prev >= 0 {
		l.all[k.prev].next = k.next
	} else {
		l.first = k.next
	}
	if k.next >= 0 {
		l.all[k.next].prev = k.prev
	} else {
		l.last = k.prev
	}
	l.all[s] = parked{}
	l.free = append(l.free, s)
	l.n--
	l.bytes -= len(k.raw)
	return k
}

// pop takes the oldest and returns it with the id of its round.
func (l *parkLot) pop() (k parked, id string) {
	k = l.remove(l.first)
	if k.same >= 0 {
		l.ids[k.id] = parkedRun{first: k.same, last: l.ids[k.id].last} // the oldest of all is the oldest of its round
	} else {
		delete(l.ids, k.id)
	}
	return k, k.id
}

// take takes those of a round, in the order of arrival.
func (l *parkLot) take(id string, each func(*parked)) {
	run, there := l.ids[id]
	if !there {
		return
	}
	delete(l.ids, id)
	for s := run.first; s >= 0; {
		k := l.remove(s)
		s = k.same
		each(&k)
	}
}

// park keeps the outcome in j.outcome until its decision is read. Where too many wait, the
// older half are orphans: a decision is read before its outcome but where clocks differ, or
// where somebody knew its id before, so that whoever has waited longest waits in vain.
func (j *Joiner) park(a *arrival, ceID string) {
	j.nParked++
	a.raw = bytes.Clone(a.raw)
	a.owned = true
	j.parked.push(parked{arrival: *a, seq: j.nParked, ceID: ceID}, j.outcome.ID)
	if !j.crowded(1) {
		return
	}
	for j.parked.n > 0 && j.crowded(2) {
		j.orphan()
	}
}

// crowded reports whether more outcomes are parked than one of so many parts of the limits.
func (j *Joiner) crowded(parts int) bool {
	return j.o.MaxParked > 0 && j.parked.n > j.o.MaxParked/parts ||
		j.o.MaxParkedBytes > 0 && j.parked.bytes > j.o.MaxParkedBytes/parts
}

// unpark gives a new round the outcomes that were read before it, in order.
func (j *Joiner) unpark(p *pending) {
	j.parked.take(p.d.ID, func(k *parked) {
		if j.parse(k.raw, k.ceID) == nil { // as it was before
			k.handled = false // as in AddOutcome
			j.apply(p, &k.arrival)
		}
	})
}

// Parked returns the number of outcomes that wait for their decision, and the
// sequence number of the latest.
func (j *Joiner) Parked() (n int, seq uint64) { return j.parked.n, j.nParked }

// Orphans rejects the outcomes parked up to seq: the decisions were read to an end
// that was fetched after they were.
func (j *Joiner) Orphans(seq uint64) {
	for j.parked.n > 0 && j.parked.all[j.parked.first].seq <= seq {
		j.orphan()
	}
}

// orphan rejects the oldest of the outcomes that are parked.
func (j *Joiner) orphan() {
	k, id := j.parked.pop()
	j.reject(&k.arrival, codec.ReasonOrphan, nil, id)
}
