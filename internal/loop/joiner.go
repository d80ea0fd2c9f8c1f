package loop

import (
	"fmt"
	"math"

	"hindsight/pkg/codec"
)

// End is the log time after everything: Advance(End) closes every round.
const End = math.MaxInt64

// Place is where a record lies.
type Place struct {
	Partition int
	Offset    int64
}

// JoinerOptions bound a joiner's memory.
type JoinerOptions struct {
	Partitions int // P of decisions
	MaxPending int // rounds that may wait; beyond it the oldest is closed
	Dedup      int // released rounds that are remembered, to tell duplicate and late from orphan

	Seed uint64 // of hashes of ids, from [TableSeed]; whatever it is, what is emitted is the same

	// Of these 0 is no limit.
	MaxPendingBytes int // what rounds that wait may hold; beyond it the oldest is closed
	MaxSpan         int // rounds of all partitions since each one's oldest that waits; beyond it the oldest is closed
	MaxParked       int // outcomes that may wait for their decision; beyond it the older half are orphans
	MaxParkedBytes  int // likewise
}

// Joiner joins decisions with outcomes and emits exactly one feedback for each
// decision, for each partition in the order of N. It takes records in the order of
// log time, merged over all partitions: when a record of time t is given, every
// decision and outcome with an earlier time has been given, or was not yet in the
// log when this one was read; of equal times decisions come first. That makes every
// fate a function of the logs:
//
//   - an outcome is in time if its log time is at most its round's deadline;
//   - a round is closed when a record with a time after its deadline is given;
//   - an outcome whose round is unknown is parked until the caller has read the
//     decisions to an end that was fetched after the outcome was ([Joiner.Orphans]), or
//     more are parked than may be.
//
// Of equal times the lower partition comes first among the records that can be read; one
// that appears later comes later, which happens where log times are whole milliseconds.
// That order, and what is an orphan of outcomes older than their decision, is a matter of
// timing; the logs record it: what was rejected stays rejected (see [Joiner.NeedsMark]).
//
// Across partitions rounds are released in the order of the AddDecision calls,
// whatever their outcomes. Every call settles all that it can at once: what is
// emitted does not depend on when AppendReady, AppendRejects or Mark are called.
type Joiner struct {
	o      JoinerOptions
	rules  func(epoch int64) *Rules
	parts  []joinPart
	outs   []outPart
	rounds *table[roundMemo]
	old    ring[int32] // slots of rounds with a fate, oldest first

	queue   ring[*pending] // in the order of AddDecision; nil: left ahead of its turn
	front   int64          // seq of the first in queue
	waiting int            // those in queue that are not nil
	held    int            // those of them that have their fate
	bytes   int            // what those in queue hold
	span    int            // of all partitions, the rounds since the oldest that waits
	wait    int64          // log time, ns, that rounds with a fate have waited for their turn
	done    ring[*pending] // have their fate, in the order of release
	limbo   []*pending     // emitted by the last AppendReady: the caller may still read them
	pool    pendingPool

	parked  parkLot
	nParked uint64
	rejects []codec.Reject
	needed  []start       // by the last Mark; nil: there was none
	outcome codec.Outcome // the last one parsed
	rewards bool          // the last one with a value told a reward
	losses  LateLosses
	guard   Guard

	admitted *codec.Decision // by the last AddDecision; nil: none was

	n       int64 // of the last feedback emitted
	now     int64 // largest log time given
	reached int64 // largest log time of the mark that it was restored from
	told    int64 // largest ClosedAt of the feedbacks of Recall and Resume; -1: none
}

// joinPart is what the joiner knows of a partition of decisions.
type joinPart struct {
	released int64       // rounds 1..released have their fate
	ahead    aheadSet    // and these
	span     int         // rounds behind released that were read
	next     int64       // N of the next decision
	offset   int64       // next unread
	before   int64       // before a restart, offsets below this had been read
	time     int64       // running maximum of log times
	times    ring[int64] // log times of rounds first..next-1
	first    int64
}

// NewJoiner returns a joiner at the start of its logs. rules returns the rules of
// an epoch, nil if it does not exist.
func NewJoiner(o JoinerOptions, rules func(epoch int64) *Rules) *Joiner {
	j := &Joiner{o: o, rules: rules, rounds: newTable[roundMemo](o.Seed), parked: newParkLot(), told: -1}
	j.parts = make([]joinPart, o.Partitions)
	for i := range j.parts {
		j.parts[i] = joinPart{next: 1, first: 1}
	}
	j.outs = make([]outPart, o.Partitions)
	return j
}

// Guard returns the guard, which has seen all feedback that was emitted. Its owner tells it
// of epochs.
func (j *Joiner) Guard() *Guard { return &j.guard }

// Pending returns the number of rounds that wait for their fate or their turn.
func (j *Joiner) Pending() int { return j.waiting }

// PendingBytes returns what these hold.
func (j *Joiner) PendingBytes() int { return j.bytes }

// LastN returns the N of the last feedback emitted.
func (j *Joiner) LastN() int64 { return j.n }

// Now returns the largest log time seen.
func (j *Joiner) Now() int64 { return max(j.now, j.reached) }

// AddDecision takes the next record of a decisions partition. raw is copied. A
// round that has its feedback is passed over; one that leaves a gap is an
// [ErrGap]. An error changes nothing.
func (j *Joiner) AddDecision(at Place, logTime int64, raw []byte) error {
	p := j.pool.alloc(len(raw))
	p.raw = append(p.raw, raw...)
	if err := codec.ParseDecision(&p.d, p.raw); err != nil {
		j.admitted = nil
		j.pool.recycle(p)
		return err
	}
	p.trim()
	j.admitted = nil
	if err := j.check(p, at); err != nil {
		j.pool.recycle(p)
		return err
	}
	part := &j.parts[at.Partition]
	logTime = part.read(at.Offset, logTime)
	j.now = max(j.now, logTime)
	fresh := p.d.N == part.next
	if fresh {
		part.add(logTime)
		j.spread(part)
		fresh = !part.has(p.d.N)
	}
	if fresh {
		p.offset, p.time = at.Offset, logTime
		j.admitted = &p.d
		j.admit(p)
	} else {
		j.pool.recycle(p)
		part.trim()
	}
	j.settle()
	for j.waiting > 0 && j.full() {
		(*j.queue.at(0)).close(logTime, codec.ReasonOverflow)
		j.settle()
	}
	return nil
}

// Admitted returns the decision that the last AddDecision put in line, nil if that was none
// or had its feedback. It is valid until the next call of AddDecision or AppendReady.
func (j *Joiner) Admitted() *codec.Decision { return j.admitted }

// check checks the place of a decision and looks up its rules.
func (j *Joiner) check(p *pending, at Place) error {
	part := &j.parts[at.Partition]
	if p.d.Partition != at.Partition {
		return &codec.Error{Event: "decision", Field: "partition",
			Err: fmt.Errorf("%w: %d, in partition %d of the log", codec.ErrCorrupt, p.d.Partition, at.Partition)}
	}
	if p.d.N > part.next {
		return fmt.Errorf("decision %d of partition %d where %d was due: %w", p.d.N, at.Partition, part.next, ErrGap)
	}
	if p.rules = j.rules(p.d.Epoch); p.rules == nil && p.d.N == part.next && !part.has(p.d.N) {
		return fmt.Errorf("decision %d of partition %d is of epoch %d: %w", p.d.N, at.Partition, p.d.Epoch, ErrNoEpoch)
	}
	return nil
}

// AddGap notes that rounds from..to of a partition were lost with the log's tail
// and will never come; a mark in the decisions says so.
func (j *Joiner) AddGap(at Place, logTime, from, to int64) error {
	part := &j.parts[at.Partition]
	if from > part.next {
		return fmt.Errorf("gap from %d of partition %d where %d was due: %w", from, at.Partition, part.next, ErrGap)
	}
	logTime = part.read(at.Offset, logTime)
	j.now = max(j.now, logTime)
	for part.next <= to {
		n := part.next
		part.add(logTime)
		part.release(n)
	}
	j.spread(part)
	part.trim()
	j.settle()
	return nil
}

// PassDecision notes a record of a decisions partition that is not a decision.
func (j *Joiner) PassDecision(at Place, logTime int64) {
	part := &j.parts[at.Partition]
	j.now = max(j.now, part.read(at.Offset, logTime))
	j.settle()
}

// admit puts a new round in line.
func (j *Joiner) admit(p *pending) {
	p.seq = j.front + int64(j.queue.len())
	j.queue.push(p)
	j.waiting++
	p.size = p.weigh()
	j.bytes += p.size
	slot, repeated := j.rounds.add(p.d.ID, roundMemo{p: p})
	if repeated {
		p.slot = -1
		p.set(codec.Skipped, codec.ReasonDuplicateID, 0, outPos{partition: -1, offset: -1, time: p.time})
		j.finish(p)
		return
	}
	p.slot = slot
	if j.parked.n > 0 {
		j.unpark(p)
	}
}

// deadline returns the last log time at which an outcome of p is in time, if it is
// known yet: for a window in rounds it is the log time of a later decision.
func (j *Joiner) deadline(p *pending) (int64, bool) {
	if w := p.rules.Window; w.Rounds > 0 {
		return j.parts[p.d.Partition].timeOf(addTime(p.d.N, w.Rounds))
	}
	return addTime(p.time, p.rules.Window.Nanos), true
}

// Due returns the log time after which the oldest waiting round is closed, if it is
// known: when nothing arrives and it has passed, the caller appends a mark and
// advances to the mark's log time.
func (j *Joiner) Due() (int64, bool) {
	if j.queue.len() == 0 {
		return 0, false
	}
	return j.deadline(*j.queue.at(0))
}

// Advance says that log time has reached t, and that every record with an earlier
// time was given. It closes what waited too long.
func (j *Joiner) Advance(t int64) {
	j.now = max(j.now, t)
	j.settle()
}
