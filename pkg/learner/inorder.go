package learner

import (
	"cmp"
	"slices"

	"hindsight/pkg/oracle"
)

// mostWaiting is the most memory that rounds ahead of their turn take: about 50,000 of 300 bytes.
const mostWaiting = 16 << 20

// waitingBytes is what a waiting round takes beside its content.
const waitingBytes = 64

// inOrder gives models the rounds of one partition in the order of their decisions, as the
// proofs ask (package comment), where feedback is in the order of arrival: a round that is
// there before its turn waits, and is charged 1 until then.
//
// Every decision has one feedback, and r.N of them are there. Those that wait are all of decision d = that of the first
// of them and later, for what else there is was here before, or is of an older epoch. So it is d's turn when r.N −
// (those that wait) = d − 1: nothing but this tells where an epoch begins.
//
// If decisions are lost with their log's tail, the turn of one behind them comes when those that wait take more than
// mostWaiting. A round that comes after its turn is charged 1 and is no evidence.
type inOrder struct {
	through int64 // feedback up to this was learned before the epoch began
	next    int64 // decision whose turn it is; 0: not known yet
	wait    []waiting
	bytes   int
	free    [][]byte

	held heldRound // scratch
}

// waiting is a round ahead of its turn.
type waiting struct {
	decision int64
	n        int64  // its place in the feedback log
	round    []byte // as codeHeld has it; nil: it has nothing to say
}

// take takes the next round in the order of arrival.
func (o *inOrder) take(m *Models, r *Round) {
	switch {
	case r.N <= o.through: // learned again before its epoch began: where the order begins is not known
		if r.Fate != Withdrawn && !r.Borrowed {
			m.unknown++
			m.charged++
		}
		return
	case r.Decision < o.next:
		if late := *r; !r.Borrowed {
			if late.Fate == Observed {
				late.Fate = Skipped
			}
			m.Add(&late)
		}
	case len(o.wait) == 0 && (r.Decision == o.next || r.Decision == r.N):
		m.give(r)
		o.next = r.Decision + 1
		return
	default:
		o.hold(m, r)
	}
	o.settle(m, r.N)
}

// hold puts a round in its place among those that wait.
func (o *inOrder) hold(m *Models, r *Round) {
	w := waiting{decision: r.Decision, n: r.N}
	if r.Fate == Observed || r.Fate != Withdrawn && !r.Borrowed {
		if n := len(o.free); n > 0 {
			w.round, o.free = o.free[n-1][:0], o.free[:n-1]
		}
		c := oracle.NewWriter(w.round)
		codeHeld(&c, r, nil)
		w.round = c.Bytes()
		m.waiting += counts(r.Borrowed)
	}
	at, _ := o.find(w.decision)
	o.wait = slices.Insert(o.wait, at, w)
	o.bytes += waitingBytes + len(w.round)
}

// settle gives the models the rounds whose turn it is, n feedbacks being there.
func (o *inOrder) settle(m *Models, n int64) {
	done := 0
	for i := range o.wait {
		w := &o.wait[i]
		left := int64(len(o.wait) - i)
		if w.decision != o.next && n-left != w.decision-1 && o.bytes <= mostWaiting {
			break
		}
		if w.round != nil {
			r := o.held.of(w)
			m.waiting -= counts(r.Borrowed)
			m.give(r)
			o.free = append(o.free, w.round)
		}
		o.bytes -= waitingBytes + len(w.round)
		o.next = w.decision + 1
		done++
	}
	o.wait = slices.Delete(o.wait, 0, done)
}

// give takes the next round in the order of decisions, whoever's law played it.
func (m *Models) give(r *Round) {
	switch {
	case !r.Borrowed:
		m.Add(r)
	case r.Fate == Observed:
		m.borrow(r)
	}
}

// counts is 1 for a round whose regret counts.
func counts(borrowed bool) int64 {
	if borrowed {
		return 0
	}
	return 1
}

// rounds counts those that wait and whose regret counts.
func (o *inOrder) rounds() (n int64) {
	for i := range o.wait {
		if w := &o.wait[i]; w.round != nil {
			n += counts(o.held.of(w).Borrowed)
		}
	}
	return n
}

// observed returns the decision of the last round that waits with a loss, 0 if none does.
func (o *inOrder) observed() int64 {
	for i := len(o.wait) - 1; i >= 0; i-- {
		if w := &o.wait[i]; w.round != nil && o.held.of(w).Fate == Observed {
			return w.decision
		}
	}
	return 0
}

// find returns how many rounds that wait were decided before a decision, and whether that waits.
func (o *inOrder) find(decision int64) (before int, waits bool) {
	return slices.BinarySearchFunc(o.wait, decision, func(w waiting, d int64) int { return cmp.Compare(w.decision, d) })
}

// fresh returns one of the same epoch in which nothing waits; nil of nil.
func (o *inOrder) fresh() *inOrder {
	if o == nil {
		return nil
	}
	return &inOrder{through: o.through}
}

// code is whose turn it is, and of each round that waits its decision, its place in the log,
// and its content behind its length. It reads into a fresh one.
func (o *inOrder) code(c *oracle.Coder) {
	c.Words(&o.next)
	n, last := c.Length(len(o.wait), 17), o.next-1
	if c.Reading() {
		o.wait = make([]waiting, n)
	}
	for i := range o.wait {
		w := &o.wait[i]
		c.Words(&w.decision, &w.n)
		round := c.Blob(w.round)
		if !c.Reading() {
			continue
		}
		ok := true
		if len(round) > 0 {
			w.round = slices.Clone(round)
			ok = o.held.parse(w.round)
		}
		if !c.Must(ok && w.decision > last && w.n >= 1, "rounds that wait are damaged") {
			return
		}
		last = w.decision
		o.bytes += waitingBytes + len(w.round)
	}
	c.Must(true, "rounds that wait are damaged")
}
