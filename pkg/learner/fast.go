package learner

import (
	"cmp"
	"slices"

	"hindsight/pkg/oracle"
)

// kindEarly is that of snapshots of DA-FA that decides by provisional losses.
const kindEarly byte = 35

// fast is what decides where rounds are learned before their feedback: an oracle that learned all that the slow one
// did, and the rounds that wait with losses that are provisional. The slow one learns feedback alone, in its order, as
// if there was no other; certificates, models and guards see that one.
//
// An oracle that is copied from the slow one with every feedback, and then fed what waits, would cost as many updates a
// round as rounds wait. Instead each round is fed once, when something is first known of it, and amended when more is
// ([oracle.Amender]). Of sums that is the same, but for rounding.
type fast struct {
	reg   oracle.Amender
	lanes []queue[waits] // by partition: rounds that have a provisional loss, in the order of their decisions
	live  int64          // those of them that the learner's own law was drawn for
	told  queue[int64]   // N of provisional records, but for
	gone  int64          // the first so many, which no round that comes still asks for

	final Round // scratch
	fhat  []float64
}

// waits is a round with a provisional loss.
type waits struct {
	decision int64
	fed      oracle.Fed
	loss     float64
	borrowed bool
}

// queue is a list whose first items are dropped.
type queue[T any] struct {
	all  []T
	from int
}

func (q *queue[T]) items() []T { return q.all[q.from:] }

func (q *queue[T]) drop(n int) {
	if q.from += n; 2*q.from > len(q.all) {
		q.all, q.from = slices.Delete(q.all, 0, q.from), 0
	}
}

// Early makes a learner that has learned nothing decide by a second oracle, made with the same parameters, which it
// then owns: that one learns provisional losses, too. Rounds that are [Round.Partial] tell those in their order by
// decisions, each at most once before another one amends it.
func (d *DAFA) Early(reg oracle.Amender) { d.fast = &fast{reg: reg} }

// Provisional returns the number of rounds with a loss that is provisional.
func (d *DAFA) Provisional() (n int) {
	if d.fast != nil {
		for i := range d.fast.lanes {
			n += len(d.fast.lanes[i].items())
		}
	}
	return n
}

// finals returns how many of the feedbacks up to n are no provisional records: at least so many if n is from long ago.
func (f *fast) finals(n int64) int64 {
	k, _ := slices.BinarySearch(f.told.items(), n+1)
	return max(0, n-f.gone-int64(k))
}

// learn takes a provisional record or a feedback. The slow state counts feedback alone, as the certificate does.
func (f *fast) learn(d *DAFA, r *Round) {
	if r.Partial {
		f.told.all = append(f.told.all, r.N)
		f.tell(r)
		return
	}
	f.final = *r
	f.final.N, f.final.LearnedThrough = f.finals(r.N), f.finals(r.LearnedThrough)
	d.learnFinal(&f.final)
	f.settle(r)
	k, _ := slices.BinarySearch(f.told.items(), r.LearnedThrough+1)
	f.told.drop(k)
	f.gone += int64(k)
	f.reg.Follow(d.reg)
}

// find returns the rounds of a partition that have a provisional loss, and where a decision is among them.
func (f *fast) find(r *Round) (q *queue[waits], at int, found bool) {
	for len(f.lanes) <= r.Partition {
		f.lanes = append(f.lanes, queue[waits]{})
	}
	q = &f.lanes[r.Partition]
	at, found = slices.BinarySearchFunc(q.items(), r.Decision, func(w waits, d int64) int {
		return cmp.Compare(w.decision, d)
	})
	return q, at, found
}

// tell learns a provisional loss.
func (f *fast) tell(r *Round) {
	q, i, found := f.find(r)
	if found {
		f.amend(r, &q.items()[i], r.Loss)
		return
	}
	f.reg.Update(r.Input, r.Action, r.Loss)
	w := waits{r.Decision, f.reg.Mark(r.Input, r.Action), r.Loss, r.Borrowed}
	q.all = slices.Insert(q.all, q.from+i, w)
	f.live += counts(w.borrowed)
}

func (f *fast) amend(r *Round, w *waits, loss float64) {
	if loss != w.loss {
		f.reg.Amend(r.Input, r.Action, w.fed, w.loss, loss)
		w.loss = loss
	}
}

// settle takes the feedback of a round, the first of its partition. One that teaches nothing after all is amended to
// what is predicted of it, with which it says nothing. Rounds before it have no feedback any more.
func (f *fast) settle(r *Round) {
	q, i, found := f.find(r)
	learned := r.Fate == Observed || r.Fate == Imputed
	switch {
	case found && learned:
		f.amend(r, &q.items()[i], r.Loss)
	case found:
		f.fhat = resize(f.fhat, len(r.Input.Actions))
		f.reg.Predict(f.fhat, r.Input)
		f.amend(r, &q.items()[i], f.fhat[r.Action])
	case learned:
		f.reg.Update(r.Input, r.Action, r.Loss)
	}
	if found {
		i++
	}
	for k := range i {
		f.live -= counts(q.items()[k].borrowed)
	}
	q.drop(i)
}

// code is what stands behind the slow state: that of the fast oracle behind its length, whose bytes it returns, then
// of each partition its rounds, then the records that told. It reads into a fresh one.
func (f *fast) code(c *oracle.Coder) (state []byte) {
	const damaged = "rounds that wait are damaged"
	state = c.Part(f.reg)
	n := c.Length(len(f.lanes), 8)
	if c.Reading() {
		f.lanes = make([]queue[waits], n)
	}
	for i := range f.lanes {
		q := &f.lanes[i]
		if n := c.Length(len(q.items()), 33); c.Reading() {
			q.all = make([]waits, n)
		}
		last := int64(0)
		for k := range q.items() {
			w := &q.items()[k]
			c.Words(&w.decision)
			c.Flag(&w.borrowed)
			c.Float(0, &w.loss)
			c.Words(&w.fed.At)
			if n := c.Length(len(w.fed.Z), 8); c.Reading() && n > 0 {
				w.fed.Z = make([]float64, n)
			}
			c.Floats(w.fed.Z)
			if !c.Must(w.decision > last && w.loss <= 1, damaged) {
				return nil
			}
			if last = w.decision; c.Reading() {
				f.live += counts(w.borrowed)
			}
		}
	}
	c.Words(&f.gone)
	if n := c.Length(len(f.told.items()), 8); c.Reading() {
		f.told.all = make([]int64, n)
	}
	told := f.told.items()
	for k := range told {
		c.Words(&told[k])
	}
	c.Must(slices.IsSorted(told), damaged)
	return state
}

// slow is the state that learns feedback.
type slow struct{ *DAFA }

func (s slow) AppendBinary(b []byte) ([]byte, error) { return s.appendFinal(b) }

// appendEarly is AppendBinary of a learner with a fast state: the slow one's bytes behind their length, and its own.
func (d *DAFA) appendEarly(b []byte) (_ []byte, err error) {
	c := oracle.NewWriter(b)
	codeHeader(&c, kindEarly, &d.learned)
	c.Part(slow{d})
	d.fast.code(&c)
	return c.Bytes(), c.Err()
}

// readSlow is readEarly of a snapshot without a fast state.
func (d *DAFA) readSlow(b []byte) error {
	if err := d.readFinal(b); err != nil {
		return err
	}
	state, err := d.reg.AppendBinary(nil)
	if err == nil {
		err = d.fast.reg.UnmarshalBinary(state)
	}
	if err != nil {
		panic("an oracle does not read what it wrote")
	}
	d.fast = &fast{reg: d.fast.reg}
	return nil
}

// readEarly is UnmarshalBinary of a learner with a fast state. Of a snapshot without one it is a copy of the slow
// state: no round has a provisional loss yet.
func (d *DAFA) readEarly(b []byte) error {
	if len(b) > 1 && b[1] == d.kind() {
		return d.readSlow(b)
	}
	c, g := newReader(b), &fast{reg: d.fast.reg}
	codeHeader(&c, kindEarly, new(int64))
	final := c.Part(nil)
	state := g.code(&c)
	if err := c.Err(); err != nil {
		return err
	}
	before, err := g.reg.AppendBinary(nil)
	if err != nil {
		return err
	}
	if err := g.reg.UnmarshalBinary(state); err != nil {
		return err
	}
	if err := d.readFinal(final); err != nil {
		if again := g.reg.UnmarshalBinary(before); again != nil {
			panic("an oracle does not read what it wrote")
		}
		return err
	}
	d.fast = g
	return nil
}
