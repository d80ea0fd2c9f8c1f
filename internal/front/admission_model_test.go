package front

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

const (
	us = int64(time.Microsecond)
	ms = int64(time.Millisecond)
)

// station is a system with one server, in virtual time, ns.
type station struct {
	cost   int64 // of a request at the server; 0.3 of it is random
	bus    int64 // of a request at the bus, on the processor of the server; 0: the bus has its own
	lag    int64 // from the end of service to the answer
	commit int64 // answers come at multiples of it; 0: at once
	every  int64 // the server is away about so often; 0: never
	pause  int64 // for so long
}

// queue is a station with requests. A bus that shares the processor hands over all that has
// come before the server goes on, and that works off all it has, or what fits into its turn,
// before the bus goes on: a request waits for the bus, too.
type queue struct {
	station
	a       admission
	random  *rand.Rand
	now     int64 // of the server
	away    int64 // when it is away next
	batch   int   // requests at once
	next    int64 // when the next ones come
	taken   []queued
	flying  []queued
	waits   []int64 // of those answered
	came    int
	refused int
}

type queued struct {
	seq        uint64
	at, answer int64
}

func newQueue(m station, batch int) *queue {
	q := &queue{station: m, batch: batch, random: rand.New(rand.NewPCG(1, 2))}
	q.sayAway()
	return q
}

// figures are of one run.
type figures struct {
	served    float64 // of the capacity
	refused   float64 // of those that came
	p99, most time.Duration
}

func (f figures) String() string {
	return fmt.Sprintf("%.2f of the capacity served in p99 %v, at most %v; %.2f %% refused",
		f.served, f.p99, f.most, 100*f.refused)
}

// run lets requests come for a time, at a multiple of the capacity.
func (q *queue) run(length time.Duration, load float64) figures {
	q.waits, q.came, q.refused = q.waits[:0], 0, 0
	each := float64(q.cost + q.bus)
	if q.every > 0 {
		each /= 1 - float64(q.pause)/float64(q.every)
	}
	gap := each / load * float64(q.batch)
	for end := q.next + int64(length); q.next < end; {
		if len(q.taken) == 0 {
			q.now = max(q.now, q.next)
		}
		q.spend(0)
		for q.next < end && q.next <= q.now {
			for range q.batch {
				q.spend(q.bus)
				q.arrive()
			}
			q.next += int64(q.random.ExpFloat64() * gap)
		}
		for began := q.now; len(q.taken) > 0; {
			q.serve()
			if q.bus == 0 || q.now > began+10*ms {
				break
			}
		}
	}
	slices.Sort(q.waits)
	n := len(q.waits)
	return figures{float64(n) * each / float64(length), float64(q.refused) / float64(q.came),
		time.Duration(q.waits[n*99/100]), time.Duration(q.waits[n-1])}
}

// spend moves the server's time on.
func (q *queue) spend(cost int64) {
	for q.now += cost; q.every > 0 && q.away <= q.now; q.sayAway() {
		q.now += q.pause
	}
}

// sayAway says when the server is away next.
func (q *queue) sayAway() {
	q.away += q.pause + int64(q.random.ExpFloat64()*float64(q.every-q.pause))
}

// arrive lets one request come.
func (q *queue) arrive() {
	at := q.next
	if q.bus > 0 {
		at = q.now
	}
	q.answer(at)
	q.came++
	if seq, ok := q.a.take(at, 100); ok {
		q.taken = append(q.taken, queued{seq: seq, at: q.next})
	} else {
		q.refused++
	}
}

// serve serves the first request.
func (q *queue) serve() {
	q.spend(q.cost*7/10 + int64(q.random.ExpFloat64()*float64(q.cost)*0.3))
	r := q.taken[0]
	q.taken = q.taken[1:]
	r.answer = q.now + q.lag
	if q.commit > 0 {
		r.answer = (r.answer/q.commit + 1) * q.commit
	}
	q.flying = append(q.flying, r)
}

// answer gives the answers that have come by now.
func (q *queue) answer(now int64) {
	for len(q.flying) > 0 && q.flying[0].answer <= now {
		r := q.flying[0]
		q.flying = q.flying[1:]
		q.a.answered(r.seq, r.answer)
		q.waits = append(q.waits, r.answer-r.at)
	}
}
