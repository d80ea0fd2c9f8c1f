package front

import "time"

// What admission goes by.
const (
	// burst is the work beyond what can be done meanwhile that comes in bursts; what is more is overload. Where 64 come
	// at once, at random times and 0.8 of a capacity of 5,000 a second, one in a hundred finds 130 ms of work before
	// it, and one in a thousand 200 ms (M/D/1). A processor or a disk that is away for 100 ms leaves as much behind.
	burst = float64(200 * time.Millisecond)
	// leastTarget bounds the wait under overload, where an answer does not take that long
	// already while few others wait.
	leastTarget = float64(5 * time.Millisecond)
	// targetOverCalm is how many times as long as such an answer the wait may be.
	targetOverCalm = 2.5
	// idleCounts is how much more of the burst is forgotten in time in which nobody waits:
	// such time shows that more could have been taken, whatever the pace of answers says.
	idleCounts = 3
	// fewWaiting is so little that it waits, however long.
	fewWaiting = 16
	// maxWaiting and maxWaitingBytes are the most that waits. They bound memory.
	maxWaiting      = 4096
	maxWaitingBytes = 64 << 20
	// givenUp is when a request without an answer no longer counts: its client has given it up long before.
	givenUp = 30 * time.Second
)

// admission says which requests are taken when more come than can be answered: those
// that would wait too long are refused at once, so that the others do not.
//
// A long wait is no overload. Requests come in bursts, and the log, the processor and the bus stall and make up for it;
// whoever refuses then refuses what could have been answered in time. It is overload when more comes than can be
// answered, for so long that it is no burst: the work that came, taken or refused, less what could be done meanwhile,
// never below 0, passes burst (the cumulative sum of E. S. Page, "Continuous Inspection Schemes", Biometrika 41, 1954,
// for a load that passes 1). It is over when half of that has been forgotten. Until then the wait is kept to a target,
// a few milliseconds, as controlled delay does (K. Nichols, V. Jacobson, "Controlling Queue Delay", ACM Queue 10(5),
// 2012; B. Maurer, "Fail at Scale", ACM Queue 13(8), 2015). What waits is not asked for a sign of overload: where the
// bus, the decider and the log share processors, the bus starves while the decider works off what it has, and nobody
// waits here again and again.
//
// Times are ns of a clock that only differences are taken of. Not safe for concurrent use. The zero value is ready.
type admission struct {
	ring       [maxWaiting]waitingRequest // by sequence number
	head, tail uint64                     // those between have been taken; the one at head has no answer
	bytes      int                        // of those without an answer

	excess   float64 // ns of work that came beyond what could be done, at most burst
	cameAt   int64   // the last request
	overload bool

	pace pace
	calm calm
}

type waitingRequest struct {
	at       int64
	size     int
	answered bool
	calm     bool // few waited when it was taken
}

// waiting returns how many requests may have no answer: those behind the oldest.
func (a *admission) waiting() int { return int(a.tail - a.head) }

// take decides on a request of so many bytes that comes now. Its number is given back to answered.
func (a *admission) take(now int64, size int) (seq uint64, ok bool) {
	for a.age(now) > int64(givenUp) {
		a.ring[a.head%maxWaiting].calm = false
		a.answered(a.head, now)
	}
	a.came(now)
	n := a.waiting()
	wait := float64(n) * a.pace.each() // Little's law
	if n >= maxWaiting || n > 0 && a.bytes+size > maxWaitingBytes || n >= fewWaiting && wait > a.limit() {
		return 0, false
	}
	seq = a.tail
	a.ring[seq%maxWaiting] = waitingRequest{at: now, size: size, calm: n < fewWaiting}
	a.bytes += size
	a.tail++
	return seq, true
}

// came counts a request that comes now, and tells overload from bursts.
func (a *admission) came(now int64) {
	done := now - a.cameAt
	if a.waiting() == 0 {
		done += idleCounts * min(done, now-a.pace.at)
	}
	a.cameAt = now
	a.excess = max(0, a.excess-float64(done)) + a.pace.each()
	switch {
	case a.excess > burst:
		a.excess, a.overload = burst, true
	case a.overload && a.excess < burst/2:
		a.excess, a.overload = 0, false
	}
}

// limit is the wait beyond which no more is taken.
func (a *admission) limit() float64 {
	target := max(leastTarget, targetOverCalm*float64(a.calm.took()))
	if a.overload {
		return target
	}
	return max(burst, target)
}

// answered notes that a request has its answer. A number that was given back before is passed over.
func (a *admission) answered(seq uint64, now int64) {
	if seq < a.head || seq >= a.tail || a.ring[seq%maxWaiting].answered {
		return
	}
	w := &a.ring[seq%maxWaiting]
	w.answered = true
	a.bytes -= w.size
	if w.calm {
		a.calm.note(max(0, now-w.at))
	}
	for a.head < a.tail && a.ring[a.head%maxWaiting].answered {
		a.head++
	}
	a.pace.answered(now, a.waiting() >= fewWaiting)
}

// age returns how long the oldest request waits, 0 if none does.
func (a *admission) age(now int64) int64 {
	if a.head == a.tail {
		return 0
	}
	return max(0, now-a.ring[a.head%maxWaiting].at)
}
