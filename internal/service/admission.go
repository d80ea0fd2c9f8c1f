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
	// leastTarget bounds the wait under overload, where an answer does not take that long
	// already while few others wait.
	leastTarget = 5 * time.Millisecond
	// targetOverCalm is how many times as long as such an answer the wait may be.
	targetOverCalm = 3
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
// last 100 ms it is that of a burst, and may last as long; otherwise it is a standing one,
// and is kept to the target, a few milliseconds. Short is less than half of the target,
// which the wait never is while more comes than can be answered.
//
// Times are ns of a clock that only differences are taken of. Not safe for concurrent
// use. The zero value is ready.
type admission struct {
	ring       [maxWaiting]waitingRequest // by sequence number
	head, tail uint64                     // those between have been taken; the one at head has no answer
	bytes      int                        // of those without an answer

	from   int64                  // begin of the slot at work
	busy   bool                   // in that slot more than few waited at every answer
	count  int                    // answers in it
	rates  [paceSlots]int         // answers in the last slots that were busy
	ratesN int                    // how many those were ever
	sum    int                    // of rates
	least  [lookback / slot]int64 // least wait met in the last slots, the one at work first
	calm   [calmBlocks]int64      // least latency of a block of requests that came while few waited
	calmN  int                    // how many such requests there were ever
}

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
	n, wait := a.waiting(), a.wait(now)
	a.least[0] = min(a.least[0], wait)
	if n >= maxWaiting || n > 0 && a.bytes+size > maxWaitingBytes || n >= fewWaiting && wait > a.limit() {
		return 0, false
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
	a.count++
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
// take at the pace of the last slots in which there was always work (Little's law). Where
// nothing is known of that, or nothing was answered in them, as long as the oldest has
// waited: that alone would do no good, for those behind a long wait are as old until the
// last of them is answered, and then nothing is left to do.
func (a *admission) wait(now int64) int64 {
	if a.sum > 0 {
		return int64(a.waiting()) * int64(slot) * int64(min(a.ratesN, paceSlots)) / int64(a.sum)
	}
	return a.age(now)
}

// advance begins new slots when it is time.
func (a *admission) advance(now int64) {
	past := (now - a.from) / int64(slot)
	if past <= 0 {
		return
	}
	if a.busy && past == 1 {
		last := &a.rates[a.ratesN%paceSlots]
		a.sum += a.count - *last
		*last = a.count
		a.ratesN++
	}
	for range min(past, int64(len(a.least))) {
		copy(a.least[1:], a.least[:])
		a.least[0] = math.MaxInt64
	}
	a.from += past * int64(slot)
	a.count, a.busy = 0, a.waiting() >= fewWaiting
}

// limit is the wait beyond which no more is taken.
func (a *admission) limit() int64 {
	if a.overloaded() {
		return a.target()
	}
	return max(int64(lookback), a.target())
}

// overloaded reports whether there is a standing wait.
func (a *admission) overloaded() bool { return slices.Min(a.least[:]) > a.target()/2 }

// target is the wait that overload may cause.
func (a *admission) target() int64 {
	blocks := min((a.calmN+calmBlock-1)/calmBlock, calmBlocks)
	if blocks == 0 {
		return int64(leastTarget)
	}
	return max(int64(leastTarget), targetOverCalm*slices.Min(a.calm[:blocks]))
}
