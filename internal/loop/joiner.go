package loop

import (
	"errors"
	"slices"

	"hindsight/pkg/codec"
)

// Joiner joins decisions with outcomes and emits exactly one feedback for each decision, of each
// partition in the order of N. The order in which it takes its inputs is logged: [Joiner.Take]
// takes what the next cut of the feedback log says. So all that it emits is a function of the logs,
// and replaying the logs makes it again.
//
// A round has its fate by these rules: an outcome is in time if its log time is at most the round's
// deadline; a round is closed once log time is later than its deadline and the rounds before it in
// the line have their fate; an outcome whose round is neither waiting nor remembered is an orphan.
// Across partitions rounds wait in the order in which their decisions were taken.
type Joiner struct {
	limits codec.Limits
	rules  func(epoch int64) *Rules
	parts  []joinPart

	rounds    *table[knownRound]
	memory    ring[forgettable] // released rounds that are remembered, ascending by N
	forgotten int64             // feedback up to this N is not remembered
	over      int               // rounds in memory of which no outcome is to come

	queue   ring[inLine] // in the order of the decisions; entries of rounds that left stay until they are first
	front   int64        // seq of the first in queue
	waiting int          // rounds in queue
	held    int          // those of them that have their fate
	bytes   int          // what those in queue take
	wait    int64        // log time, ns, that rounds with a fate have waited for their turn
	pool    pendingPool

	n    int64 // of the last feedback
	now  int64 // log time reached
	cut  int64 // number of the last cut taken
	era  int64
	eraN int64 // feedback before this era began

	ready   Ready      // since the last call of Ready
	handed  bool       // to the caller
	emitted []*pending // which ready.Feedback aliases
	turns   []turn
	ahead   ring[told] // ascending
	rewards bool       // the last outcome with a value told a reward
	guard   Guard
	judge   Judge
	lines   []ring[stageEntry]  // of stages 1, 2, … but a round's last: see stages.go
	soon    ring[stageEntry]    // of provisional records: see provisional.go
	late    []stageEntry        // rounds whose outcomes came behind one
	delays  delays              // of outcomes of models that have provisional records
	early   []int64             // N of the records of stages, ascending, all behind forgotten
	told    map[Place]toldRound // rounds, by partition and N, that are taken again and of which stages were told
	closed  []codec.Closed      // which ready.Feedback aliases
	scratch scratch
	unit    []byte          // of unitName
	past    *past           // while the joiner is restored: what was released
	counted map[Place]int64 // outcomes that an era takes again → N of the feedback that names them
}

// inLine is the place of a round in the line.
type inLine struct {
	p         *pending // nil: the round has left
	n         int64
	partition int32
}

// joinPart is what the joiner knows of a partition.
type joinPart struct {
	next    int64       // N of the next decision
	time    int64       // log time that decisions have reached
	waiting int         // rounds in line
	times   ring[int64] // log times of rounds first..next-1, which end the windows of those that wait
	first   int64
	done    []codec.Run // rounds from next on that have their feedback: their decisions were lost

	decisions, outcomes cutRange
	again               int64 // outcomes before this offset were taken in an earlier era
}

// cutRange is where a cut has left an input, and the last range that moved it.
type cutRange struct {
	next, since int64
	sum         uint32
}

func (r *cutRange) move(to codec.Range) { *r = cutRange{next: to.Next, since: r.next, sum: to.Sum} }

// NewJoiner returns a joiner at the start of its logs. limits are in force until the first mark
// ([Joiner.SetLimits]). rules returns the rules of an epoch, nil if it does not exist. seed is
// of the hashes of ids ([TableSeed]); it changes nothing that is emitted.
func NewJoiner(partitions int, limits codec.Limits, seed uint64, rules func(epoch int64) *Rules) *Joiner {
	j := &Joiner{limits: limits, rules: rules, rounds: newTable[knownRound](seed), parts: make([]joinPart, partitions)}
	for i := range j.parts {
		j.parts[i].next, j.parts[i].first = 1, 1
	}
	return j
}

// Due returns the log time after which the oldest waiting round is closed, if it is known: when no
// record comes and that time has passed, the caller cuts time alone. Where an era has just begun it may
// have its fate already.
func (j *Joiner) Due() (int64, bool) {
	due, known := int64(End), false
	for h := range j.heads {
		if h.ready {
			return 0, true
		}
		if at, ok := j.endOf(h.p, h.window); ok {
			due, known = min(due, at), true
		}
	}
	return due, known
}

// OldestCut returns the oldest cut that a restart takes again, the next one if it need not take any:
// it reads from the newest mark before the cut. That is the cut which took the oldest waiting round, or
// the oldest decision that log time has not reached.
func (j *Joiner) OldestCut() int64 {
	cut := j.cut + 1
	if p := j.head(); p != nil {
		cut = p.cut
	}
	for i := range j.ahead.len() {
		cut = min(cut, j.ahead.at(i).cut)
	}
	return cut
}

func (j *Joiner) head() *pending {
	if j.queue.len() == 0 {
		return nil
	}
	return j.queue.at(0).p
}

// maxSpan is how many rounds the line may hold since the oldest that waits: those that left ahead
// of their turn take memory there, and a restart reads all of them again.
const maxSpan = 4_000_000

// full reports whether more waits than the limits allow.
func (j *Joiner) full() bool {
	l := &j.limits
	return int64(j.waiting) > l.Pending || l.Bytes > 0 && int64(j.bytes) > l.Bytes || j.queue.len() > maxSpan
}

// takeDecision takes a decision or a gap of a partition at its lifted log time.
func (j *Joiner) takeDecision(partition int, e *DecisionEvent, time int64) {
	part := &j.parts[partition]
	part.time = time
	j.tell(time)
	switch {
	case e.through() < part.next:
	case e.GapTo > 0:
		for part.next <= e.GapTo {
			part.add(time)
		}
	default:
		n := part.next
		part.add(time)
		switch {
		case part.isDone(n):
		case j.past.has(partition, n):
			if j.queue.len() > 0 { // it has left the line, which is as long as it was
				j.queue.push(inLine{n: n, partition: int32(partition)})
			}
		default:
			j.admit(&e.D, time)
		}
	}
}

// has reports whether a decision is of a round that has its feedback.
func (j *Joiner) has(partition int, n int64) bool {
	return j.parts[partition].isDone(n) || j.past.has(partition, n)
}

// admit puts a new round in line.
func (j *Joiner) admit(d *codec.Decision, time int64) {
	rules := j.rules(d.Epoch)
	listed := rules != nil && equalTexts(rules.Actions, d.Actions)
	p := j.pool.alloc(textBytes(d, listed))
	p.rules = rules
	p.copy(d, listed)
	p.trim()
	p.time, p.cut = time, j.cut
	p.seq = j.front + int64(j.queue.len())
	if rules != nil && len(rules.Named) > 0 {
		p.begin(rules.Named)
	}
	j.weigh(p)
	j.queue.push(inLine{p: p, n: d.N, partition: int32(d.Partition)})
	j.waiting++
	j.parts[d.Partition].waiting++
	slot, repeated := j.rounds.add(d.ID, knownRound{p: p})
	reason := ""
	switch p.slot = slot; {
	case repeated:
		p.slot, reason = -1, codec.ReasonDuplicateID
	case p.rules == nil:
		reason = codec.ReasonLost
	case d.First.N > 0:
		reason = codec.ReasonRepeat
	}
	if reason != "" {
		p.set(codec.Skipped, reason, 0, outPos{partition: -1, offset: -1, time: time})
	}
	if !repeated {
		j.admitUnit(p)
	} else if len(p.named) > 0 { // in an earlier era it may have been the first of its id
		p.retell(rules, j.told[Place{d.Partition, d.N}], j.n)
	}
	if reason != "" {
		j.finish(p)
	} else {
		j.line(p)
	}
}

// endOf returns when a window of p ends, the last log time at which an outcome is in time, if it is known yet: for a
// window in rounds it is the log time of a later decision.
func (j *Joiner) endOf(p *pending, w Window) (int64, bool) {
	if w.Rounds > 0 {
		return j.parts[p.d.Partition].timeOf(addTime(p.d.N, w.Rounds))
	}
	return addTime(p.time, w.Nanos), true
}

// takeOutcome gives an outcome to its round, or rejects it. Its log time is now.
func (j *Joiner) takeOutcome(partition int, e *OutcomeEvent) {
	if e.Err != nil {
		j.reject(partition, e, codec.ReasonMalformed, e.Err, "")
		return
	}
	if k := e.O.Kind; k == codec.Loss || k == codec.Reward {
		j.rewards = k == codec.Reward
	}
	name := e.O.ID
	if name == "" {
		name = j.unitName(e.O.Unit)
	}
	slot := j.rounds.get(name)
	if slot < 0 {
		j.reject(partition, e, codec.ReasonOrphan, nil, e.O.ID)
		return
	}
	known := j.rounds.value(slot)
	if p := known.p; p != nil {
		if p.first != nil {
			p = p.first
		}
		p.over = p.over || e.Last
		j.apply(p, partition, e)
		return
	}
	switch {
	case known.reason == codec.ReasonRepeat && j.counted[Place{partition, e.Offset}] > 0: // for the draw
	case !j.tookBefore(known, partition, e):
		j.reject(partition, e, reasonAfter(known.fate, known.reason, j.rules(known.epoch)), nil, e.O.ID)
	case j.limits.Heart > 1 && j.counted[Place{partition, e.Offset}] != known.n:
		j.reject(partition, e, codec.ReasonDuplicate, errTakenBefore, e.O.ID)
	}
	if e.Last {
		j.Over(e.O.ID)
	}
}

// Knows reports whether no decision behind those that were taken matters to an outcome: it is of a round that waits
// or is remembered, or no outcome.
func (j *Joiner) Knows(e *OutcomeEvent) bool {
	return e.Pass || e.Err != nil || e.O.ID != "" && j.rounds.get(e.O.ID) >= 0
}

// errTakenBefore tells of an outcome that may have been rejected in an earlier era, and its reject lost, or may be
// one of several that counted: feedback names only the last.
var errTakenBefore = errors.New("it was taken before, in an earlier era, and its round was closed there")

// tookBefore reports whether an outcome may have had its part in a round that was closed in an earlier era:
// its partition lost the tail that this outcome lay in, or may have lain in.
func (j *Joiner) tookBefore(k *knownRound, partition int, e *OutcomeEvent) bool {
	return k.n <= j.eraN && e.Offset < j.parts[partition].again && e.Time <= k.closedAt
}

// apply gives a round in line an outcome.
func (j *Joiner) apply(p *pending, partition int, e *OutcomeEvent) {
	if p.ready {
		j.reject(partition, e, reasonAfter(p.fate, p.reason, p.rules), nil, e.O.ID)
		return
	}
	if k := e.O.Kind; len(p.named) > 0 && k != codec.Withdrawn && k != codec.Activated {
		j.applyNamed(p, partition, e)
		return
	}
	if j.allOver(p) {
		j.reject(partition, e, codec.ReasonLate, nil, e.O.ID)
		return
	}
	reason, err := p.roundFate.take(p.rules, p.d.Actions[p.d.Action], &e.O, outPos{partition, e.Offset, j.now})
	j.weigh(p)
	if reason != "" {
		j.reject(partition, e, reason, err, e.O.ID)
		return
	}
	if p.ready {
		j.arrived(p)
		j.finish(p)
	}
}

// finish releases a round that is ready, or holds it until it is its turn. While a joiner is
// restored nothing is released: what had been was passed over.
func (j *Joiner) finish(p *pending) {
	if j.past != nil || p.rules == nil || p.rules.Waits(p.d.N, p.d.LearnedThrough) {
		p.held = true
		j.held++
		return
	}
	j.leave(p)
}

// settle does what is due at the log time reached.
func (j *Joiner) settle() {
	if j.past != nil {
		return
	}
	j.settleStages()
	j.release()
	j.settleSoon()
}

// release closes the rounds at the head of the line that waited too long, and takes those that have
// a fate out of it.
func (j *Joiner) release() {
	for j.queue.len() > 0 {
		if p := j.queue.at(0).p; p != nil {
			if !p.ready {
				j.expire(p)
			}
			if !p.ready {
				return
			}
			j.leave(p)
		}
		first := j.queue.pop()
		j.front++
		j.parts[first.partition].trim(first.n)
	}
}

// expire closes a round if its window has ended.
func (j *Joiner) expire(p *pending) {
	if at, over := j.ended(p, p.rules.Window); over {
		j.close(p, at, "")
	}
}

// ended returns when a window of p ended, if it did: the end of all time ends each.
func (j *Joiner) ended(p *pending, w Window) (at int64, over bool) {
	if at, known := j.endOf(p, w); known && j.now > at {
		return at, true
	}
	return End, j.now == End
}

// close ends the wait of a round at a log time, and that for outcomes whose windows ended before.
func (j *Joiner) close(p *pending, at int64, reason string) {
	if len(p.named) == 0 {
		p.close(p.rules, at, reason)
		return
	}
	for s := range p.stages() {
		end := at
		if deadline, known := j.endOf(p, p.window(s+1)); known {
			end = min(at, deadline)
		}
		p.closeStage(p.rules, s+1, end)
	}
	p.conclude(p.rules, p.d.Actions[p.d.Action], reason, &j.scratch)
}

// add notes the log time of the next decision if a round waits that may ask for it.
func (q *joinPart) add(time int64) {
	switch {
	case q.waiting == 0:
		q.times.n, q.first = 0, q.next+1
	default:
		q.times.push(time)
	}
	q.next++
	for len(q.done) > 0 && q.done[0].To < q.next-1 {
		q.done = q.done[1:]
	}
}

// isDone reports whether a round, from the last that was taken on, has its feedback though its
// decision was lost.
func (q *joinPart) isDone(n int64) bool {
	return slices.ContainsFunc(q.done, func(r codec.Run) bool { return r.From <= n && n <= r.To })
}

// timeOf returns the log time of a decision behind one that waits, if it was taken.
func (q *joinPart) timeOf(n int64) (int64, bool) {
	i := n - q.first
	if i < 0 || i >= int64(q.times.len()) {
		return 0, false
	}
	return *q.times.at(int(i)), true
}

// trim drops the times up to that of a round that has left: those that wait are behind it.
func (q *joinPart) trim(n int64) {
	for q.times.len() > 0 && q.first <= n {
		q.times.pop()
		q.first++
	}
}
