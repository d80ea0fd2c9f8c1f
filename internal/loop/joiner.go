package loop

import (
	"bytes"
	"fmt"
	"math"
	"strings"

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
}

// Joiner joins decisions with outcomes and emits exactly one feedback for each
// decision, for each partition in the order of N. It takes records in the order of
// log time, merged over all partitions: when a record of time t is given, every
// decision and outcome with an earlier time has been given, or was not yet in the
// log when this one was read. That makes every fate a function of the logs:
//
//   - an outcome is in time if its log time is at most its round's deadline;
//   - a round is closed when a record with a time after its deadline is given;
//   - an outcome whose round is unknown is parked until the caller has read the
//     decisions to an end that was fetched after the outcome was ([Joiner.Orphans]).
//
// Across partitions rounds are released in the order of the AddDecision calls,
// whatever their outcomes.
type Joiner struct {
	o      JoinerOptions
	rules  func(epoch int64) *Rules
	parts  []joinPart
	queue  ring[*pending] // in the order of AddDecision
	nReady ring[*pending] // ready rounds of models with order: arrival
	rounds *table[roundMemo]
	old    ring[int32] // slots of released rounds, oldest first
	free   []*pending
	limbo  []*pending // emitted by the last AppendReady: the caller may still read them

	parked  ring[parked]
	nParked uint64
	outs    []outPart
	rejects []codec.Reject
	outcome codec.Outcome
	n       int64 // of the last feedback
	now     int64 // largest log time seen
}

// joinPart is what the joiner knows of a partition of decisions.
type joinPart struct {
	released int64              // rounds 1..released have their feedback
	ahead    map[int64]struct{} // and these, with order: arrival
	next     int64              // N of the next decision
	offset   int64              // next unread
	time     int64              // running maximum of log times
	times    ring[int64]        // log times of rounds first..next-1
	first    int64
}

// outPart is what the joiner knows of a partition of outcomes.
type outPart struct {
	through  int64 // next unread
	time     int64 // running maximum of log times
	rejected int64 // rejects of earlier offsets are stored
}

type roundMemo struct {
	partition int32
	fate      codec.Fate // 0: waits
	n         int64
	p         *pending // nil once released
	outPart   int32
	outOff    int64
}

type parked struct {
	seq   uint64
	raw   []byte
	ceID  string
	place Place
	time  int64
}

// NewJoiner returns a joiner at the start of its logs. rules returns the rules of
// an epoch, nil if it does not exist.
func NewJoiner(o JoinerOptions, rules func(epoch int64) *Rules) *Joiner {
	j := &Joiner{o: o, rules: rules, rounds: newTable[roundMemo](0)}
	j.parts = make([]joinPart, o.Partitions)
	for i := range j.parts {
		j.parts[i] = joinPart{ahead: map[int64]struct{}{}, next: 1, first: 1}
	}
	j.outs = make([]outPart, o.Partitions)
	return j
}

// Pending returns the number of rounds that are not released.
func (j *Joiner) Pending() int { return j.queue.len() }

// LastN returns the N of the last feedback emitted.
func (j *Joiner) LastN() int64 { return j.n }

// Now returns the largest log time seen.
func (j *Joiner) Now() int64 { return j.now }

// AddDecision takes the next record of a decisions partition. raw is copied. A
// round that has its feedback is passed over; one that leaves a gap is an
// [ErrGap].
func (j *Joiner) AddDecision(at Place, logTime int64, raw []byte) error {
	part := &j.parts[at.Partition]
	p := j.alloc()
	p.raw = append(p.raw, raw...)
	if err := codec.ParseDecision(&p.d, p.raw); err != nil {
		j.free = append(j.free, p)
		return err
	}
	if p.d.N > part.next {
		j.free = append(j.free, p)
		return fmt.Errorf("decision %d of partition %d where %d was due: %w", p.d.N, at.Partition, part.next, ErrGap)
	}
	logTime = part.read(at.Offset, logTime)
	j.now = max(j.now, logTime)
	if p.d.N < part.next {
		j.free = append(j.free, p)
		return nil
	}
	part.add(logTime)
	if part.has(p.d.N) {
		j.free = append(j.free, p)
		part.trim()
		return nil
	}
	if p.rules = j.rules(p.d.Epoch); p.rules == nil {
		j.free = append(j.free, p)
		return fmt.Errorf("decision %d of partition %d is of epoch %d: %w", p.d.N, at.Partition, p.d.Epoch, ErrNoEpoch)
	}
	p.offset, p.time = at.Offset, logTime
	j.admit(p)
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
	for part.next <= to {
		n := part.next
		part.add(logTime)
		part.release(n)
	}
	part.trim()
	return nil
}

// PassDecision notes a record of a decisions partition that is not a decision.
func (j *Joiner) PassDecision(at Place, logTime int64) {
	part := &j.parts[at.Partition]
	j.now = max(j.now, part.read(at.Offset, logTime))
}

// admit puts a new round in line.
func (j *Joiner) admit(p *pending) {
	s := j.rounds.get(p.d.ID)
	if s >= 0 {
		p.slot = -1
		p.set(codec.Skipped, codec.ReasonDuplicateID, 0, outPos{partition: -1, offset: -1, time: p.time})
		if p.rules.Arrival {
			j.nReady.push(p)
		}
	} else {
		p.slot = j.rounds.put(p.d.ID, roundMemo{partition: int32(p.d.Partition), n: p.d.N, p: p})
	}
	j.queue.push(p)
	if s < 0 && j.parked.len() > 0 {
		j.unpark(p)
	}
}

// unpark gives a new round the outcomes that were read before it, in order.
func (j *Joiner) unpark(p *pending) {
	for range j.parked.len() {
		k := j.parked.pop()
		if j.parse(k.raw, k.ceID) == nil && j.outcome.ID == p.d.ID {
			j.apply(p, k.place, k.time, k.raw)
			continue
		}
		j.parked.push(k)
	}
}

// AddOutcome takes the next record of an outcomes partition. raw is copied where it
// is kept. ceID is the id of a CloudEvents header, or empty.
func (j *Joiner) AddOutcome(at Place, logTime int64, raw []byte, ceID string) {
	part := &j.outs[at.Partition]
	part.time = max(part.time, logTime)
	part.through = at.Offset + 1
	logTime = part.time
	j.now = max(j.now, logTime)
	if err := j.parse(raw, ceID); err != nil {
		j.reject(at, logTime, codec.ReasonMalformed, err, "", raw)
		return
	}
	s := j.rounds.get(j.outcome.ID)
	if s < 0 {
		j.nParked++
		j.parked.push(parked{seq: j.nParked, raw: bytes.Clone(raw), ceID: ceID, place: at, time: logTime})
		return
	}
	if memo := j.rounds.value(s); memo.p != nil {
		j.apply(memo.p, at, logTime, raw)
	} else if memo.outPart != int32(at.Partition) || memo.outOff != at.Offset {
		j.reject(at, logTime, afterwards(memo.fate), nil, j.outcome.ID, raw)
	}
}

// PassOutcome notes a record of an outcomes partition that is not an outcome.
func (j *Joiner) PassOutcome(at Place, logTime int64) {
	part := &j.outs[at.Partition]
	part.time = max(part.time, logTime)
	part.through = at.Offset + 1
	j.now = max(j.now, part.time)
}

func (j *Joiner) parse(raw []byte, ceID string) error {
	if err := codec.ParseOutcome(&j.outcome, raw); err != nil {
		return err
	}
	if j.outcome.OutcomeID == "" {
		j.outcome.OutcomeID = ceID
	}
	return j.outcome.Validate()
}

// afterwards is the reason for which an outcome of a released round is rejected.
func afterwards(f codec.Fate) string {
	if f == codec.Observed || f == codec.WithdrawnRound {
		return codec.ReasonDuplicate
	}
	return codec.ReasonLate
}

// apply gives a waiting round the outcome in j.outcome.
func (j *Joiner) apply(p *pending, at Place, logTime int64, raw []byte) {
	pos := outPos{at.Partition, at.Offset, logTime}
	if p.ready {
		if p.outPart != at.Partition || p.outOff != at.Offset {
			j.reject(at, logTime, afterwards(p.fate), nil, j.outcome.ID, raw)
		}
		return
	}
	if deadline, known := j.deadline(p); known && logTime > deadline {
		j.reject(at, logTime, codec.ReasonLate, nil, j.outcome.ID, raw)
		return
	}
	reason, err := p.take(&j.outcome, pos)
	if reason != "" {
		j.reject(at, logTime, reason, err, j.outcome.ID, raw)
		return
	}
	if p.ready && p.rules.Arrival {
		j.nReady.push(p)
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
	p := *j.queue.at(0)
	if p.ready {
		return 0, false
	}
	return j.deadline(p)
}

// Advance says that log time has reached t, and that every record with an earlier
// time was given. AppendReady then closes what waited too long.
func (j *Joiner) Advance(t int64) { j.now = max(j.now, t) }

// Parked returns the number of outcomes that wait for their decision, and the
// sequence number of the latest.
func (j *Joiner) Parked() (n int, seq uint64) { return j.parked.len(), j.nParked }

// Orphans rejects the outcomes parked up to seq: the decisions were read to an end
// that was fetched after they were.
func (j *Joiner) Orphans(seq uint64) {
	for j.parked.len() > 0 && j.parked.at(0).seq <= seq {
		k := j.parked.pop()
		id := ""
		if j.parse(k.raw, k.ceID) == nil {
			id = j.outcome.ID
		}
		j.reject(k.place, k.time, codec.ReasonOrphan, nil, id, k.raw)
	}
}

func (j *Joiner) reject(at Place, logTime int64, reason string, err error, id string, raw []byte) {
	if at.Offset < j.outs[at.Partition].rejected {
		return // stored before a restart
	}
	r := codec.Reject{V: codec.Version, Topic: "outcomes", Partition: at.Partition, Offset: at.Offset,
		Time: logTime, Reason: reason, ID: strings.Clone(id), Bytes: bytes.Clone(raw)}
	if err != nil {
		r.Detail = err.Error()
	}
	j.rejects = append(j.rejects, r)
}

// AppendRejects appends the outcomes rejected since the last call. They must be
// stored before a mark that passes them.
func (j *Joiner) AppendRejects(dst []codec.Reject) []codec.Reject {
	dst = append(dst, j.rejects...)
	clear(j.rejects)
	j.rejects = j.rejects[:0]
	return dst
}

func (j *Joiner) alloc() *pending {
	n := len(j.free)
	if n == 0 {
		p := new(pending)
		p.reset()
		return p
	}
	p := j.free[n-1]
	j.free = j.free[:n-1]
	p.reset()
	return p
}
