package service

import (
	"math"
	"slices"
	"time"
)

// What admission goes by. Requests wait where the work piles up, before the decider or
// in its log; both are seen in how many have no answer yet, and since when.
const (
	// slot is the time over which answers are counted; lookback is how long a wait must
	// last before it counts as overload. A log that syncs its disk stalls for less, and
	// then makes up for it.
	slot     = 25 * time.Millisecond
	lookback = 4 * slot
	// paceSlots is how many of the last slots tell how fast answers come.
	paceSlots = 16
	// burst is how long a wait may be where nothing tells yet whether it lasts. Where
	// answers have stalled it may be stallAllowance times as long as that, for the stall's
	// requests come all at once behind it, up to lookback.
	burst          = 20 * time.Millisecond
	stallAllowance = 2
	// overloadShare is the share of the requests of the last lookback, one in so many, that
	// is refused in overload only.
	overloadShare = 5
	// overloadLasts is how long overload is taken to last after it was seen, ns: a flood has
	// gaps.
	overloadLasts = int64(paceSlots * slot)
	// leastTarget bounds the wait under overload, where an answer does not take that long
	// already while few others wait, and answers do not come in batches that are further
	// apart.
	leastTarget = 5 * time.Millisecond
	// targetOverCalm is how many times as long as such an answer the wait may be.
	targetOverCalm = 3
	// usualGap is how many of the last paceSlots slots have a gap between answers that is no
	// stall: it comes again and again. The wait may be half of it, or the decider would have
	// nothing to do until it is over; with all of it gaps and waits would drive each other up.
	usualGap = 3
	// fewWaiting is so little that it waits, however long.
	fewWaiting = 16
	// maxWaiting and maxWaitingBytes are the most that waits. They bound memory.
	maxWaiting      = 4096
	maxWaitingBytes = 64 << 20
	// givenUp is when a request without an answer no longer counts: its client has given
	// it up long before.
	givenUp = 30 * time.Second
	// calmBlocks blocks of calmBlock answers each say how long one takes while few others
	// wait: the least counts, for any of them may have met a stall.
	calmBlocks, calmBlock = 16, 32
)

// admission says which requests are taken when more come than can be answered: those
// that would wait too long are refused at once, so that the others do not.
//
// It is controlled delay at the entrance (K. Nichols, V. Jacobson, "Controlling Queue
// Delay", ACM Queue 10(5), 2012; with the limits of B. Maurer, "Fail at Scale", ACM Queue
// 13(8), 2015, section "Controlled Delay"): while the wait was short at some moment of the
// last 100 ms it is that of a burst, and may be longer; otherwise it is a standing one,
// and is kept to the target, a few milliseconds. Short is less than half of the target.
//
// That alone does not see an overload of the machine: where the bus, the decider and the
// log share its processors the bus starves while the decider works off a burst, so the wait
// here is short again and again, and yet more comes than can be answered. So it is overload,
// too, while a good part of what comes has to be refused, and a burst is kept to a fifth of
// the lookback, unless it comes of a stall, in which nobody was answered.
//
// Times are ns of a clock that only differences are taken of. Not safe for concurrent
// use. The zero value is ready.
type admission struct {
	ring       [maxWaiting]waitingRequest // by sequence number
	head, tail uint64                     // those between have been taken; the one at head has no answer
	bytes      int                        // of those without an answer

	from     int64             // begin of the slot at work
	slots    [paceSlots]tally  // the last ones, the one at work first
	busy     bool              // in the slot at work more than few waited at every answer
	rates    [paceSlots]int    // answers in the last slots that were busy
	ratesN   int               // how many those were ever
	sum      int               // of rates
	answers  int               // in the slots that are over
	gap      int64             // longest gap of the last slots
	usual    int64             // the gap that usualGap of them reach
	overload int64             // until when there is overload
	answerAt int64             // the last answer, or since when anything waits
	calm     [calmBlocks]int64 // least latency of a block of requests that came while few waited
	calmN    int               // how many such requests there were ever
}

// tally is what was seen in a slot.
type tally struct {
	came, refused, answers int
	least                  int64 // wait met
	gap                    int64 // longest time between answers while something waited
}

// steady reports whether answers came without a stall.
func (t *tally) steady() bool { return t.answers > 0 && t.gap <= int64(burst) }

type waitingRequest struct {
	at       int64
	size     int
	answered bool
	calm     bool // few waited when it was taken
}

// waiting returns how many requests may have no answer: those behind the oldest.
func (a *admission) waiting() int { return int(a.tail - a.head) }

// take decides on a request of so many bytes that comes now. Its number is given back to
// answered.
func (a *admission) take(now int64, size int) (seq uint64, ok bool) {
	for a.age(now) > int64(givenUp) {
		a.ring[a.head%maxWaiting].calm = false
		a.answered(a.head, now)
	}
	a.advance(now)
	n, wait, at := a.waiting(), a.wait(now), &a.slots[0]
	at.came++
	at.least = min(at.least, wait)
	if n >= maxWaiting || n > 0 && a.bytes+size > maxWaitingBytes || n >= fewWaiting && wait > a.limit(now) {
		at.refused++
		return 0, false
	}
	if n == 0 {
		a.answerAt = now
	}
	seq = a.tail
	a.ring[seq%maxWaiting] = waitingRequest{at: now, size: size, calm: n < fewWaiting}
	a.bytes += size
	a.tail++
	return seq, true
}

// answered notes that a request has its answer. A number that was given back before is
// passed over.
func (a *admission) answered(seq uint64, now int64) {
	if seq < a.head || seq >= a.tail || a.ring[seq%maxWaiting].answered {
		return
	}
	a.advance(now)
	w := &a.ring[seq%maxWaiting]
	w.answered = true
	a.bytes -= w.size
	if w.calm {
		took, block := max(0, now-w.at), &a.calm[a.calmN/calmBlock%calmBlocks]
		if a.calmN%calmBlock == 0 || took < *block {
			*block = took
		}
		a.calmN++
	}
	for a.head < a.tail && a.ring[a.head%maxWaiting].answered {
		a.head++
	}
	at := &a.slots[0]
	at.answers++
	at.gap = max(at.gap, now-a.answerAt)
	a.answerAt = now
	a.busy = a.busy && a.waiting() >= fewWaiting
}

// age returns how long the oldest request waits, 0 if none does.
func (a *admission) age(now int64) int64 {
	if a.head == a.tail {
		return 0
	}
	return max(0, now-a.ring[a.head%maxWaiting].at)
}

// wait returns how long a request that comes now will wait: as long as those before it
// take at the pace of answers (Little's law). Where nothing is known of that, as long as the
// oldest has waited: that alone would do no good, for those behind a long wait are as old
// until the last of them is answered, and then nothing is left to do.
func (a *admission) wait(now int64) int64 {
	if n, t := a.pace(now); n > 0 {
		return int64(float64(a.waiting()) * float64(t) / float64(n))
	}
	return a.age(now)
}

// pace returns a number of answers and the time that they took, 0 where it is not known:
// those of the last slots in which there was always work, or of all the last ones if that
// is faster, for the former may be long ago.
func (a *admission) pace(now int64) (n, t int64) {
	n, t = int64(a.sum), int64(slot)*int64(min(a.ratesN, paceSlots))
	if at := &a.slots[0]; a.busy && at.steady() && at.answers >= fewWaiting {
		n, t = n+int64(at.answers), t+now-a.from
	}
	const all = (paceSlots - 1) * int64(slot)
	if n > 0 && int64(a.answers)*t > n*all {
		return int64(a.answers), all
	}
	return n, t
}

// advance begins new slots when it is time.
func (a *admission) advance(now int64) {
	past := (now - a.from) / int64(slot)
	if past <= 0 {
		return
	}
	if at := &a.slots[0]; a.busy && past == 1 && at.steady() {
		last := &a.rates[a.ratesN%paceSlots]
		a.sum += at.answers - *last
		*last = at.answers
		a.ratesN++
	}
	for range min(past, paceSlots) {
		copy(a.slots[1:], a.slots[:])
		a.slots[0] = tally{least: math.MaxInt64}
	}
	a.answers = 0
	var gaps [paceSlots]int64
	for i := range a.slots {
		a.answers += a.slots[i].answers
		gaps[i] = a.slots[i].gap
	}
	slices.Sort(gaps[:])
	a.gap, a.usual = gaps[paceSlots-1], gaps[paceSlots-usualGap]
	a.from += past * int64(slot)
	a.busy = a.waiting() >= fewWaiting
}

// limit is the wait beyond which no more is taken.
func (a *admission) limit(now int64) int64 {
	target := a.target()
	if a.overloaded(now, target) {
		a.overload = now + overloadLasts
	}
	if now < a.overload {
		return target
	}
	most := max(int64(lookback), target)
	if n, _ := a.pace(now); n == 0 {
		return most
	}
	stall := a.gap
	if a.head < a.tail {
		stall = max(stall, now-a.answerAt)
	}
	return min(max(int64(burst), stallAllowance*stall, target), most)
}

// overloaded reports whether there is a standing wait, or much is refused and more comes
// than the pace of answers allows: bursts may be refused in overload that are none by
// themselves, and must not keep it up.
func (a *admission) overloaded(now, target int64) bool {
	least, came, refused := int64(math.MaxInt64), 0, 0
	for i := range a.slots[:lookback/slot] {
		t := &a.slots[i]
		least, came, refused = min(least, t.least), came+t.came, refused+t.refused
	}
	if least > target/2 {
		return true
	}
	n, t := a.pace(now)
	return refused*overloadShare > came && int64(came)*t > n*int64(lookback)
}

// target is the wait that overload may cause.
func (a *admission) target() int64 {
	target := max(int64(leastTarget), min(a.usual/2, int64(lookback)))
	if blocks := min((a.calmN+calmBlock-1)/calmBlock, calmBlocks); blocks > 0 {
		target = max(target, targetOverCalm*slices.Min(a.calm[:blocks]))
	}
	return target
}
