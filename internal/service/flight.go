package service

import (
	"errors"
	"sync"
	"time"

	"hindsight/internal/front"
	"hindsight/internal/trace"
	"hindsight/internal/watch"
	"hindsight/pkg/stream"
)

// flight holds the decisions that wait for their acknowledgement, in order, and what is to be done when it comes.
type flight struct {
	d  *Decider
	mu sync.Mutex
	// waiting[head:] are the tickets in the order of their appends.
	waiting []ticket
	head    int
	topic   int  // of those, decisions of contexts that came by the topic
	most    int  // decisions that may wait
	starved bool // contexts of the topic wait for room

	freed chan struct{} // signalled when one of them is done, or the decider has failed
}

// ticket is one record of decisions on its way.
type ticket struct {
	n        int64     // round; 0: no decision
	external bool      // another system decided
	at       time.Time // when the context was taken up
	id       string
	reply    []byte // to be sent at the acknowledgement
	send     func(data []byte, headers ...stream.Header) error
	refuse   func(code int, message, id string) // nil, as send: it came by the topic
	parent   string                             // of its span
	span     trace.Span                         // nil: there is no tracer
	more     []func(stored bool)                // repeats of the request; called from goroutines of their own
}

// ofTopic reports whether it is the decision of a context that came by the topic.
func (t *ticket) ofTopic() bool { return t.n > 0 && t.send == nil }

func newFlight(d *Decider) *flight {
	return &flight{d: d, most: d.cfg.MaxInFlight, freed: make(chan struct{}, 1)}
}

// fit lowers how many decisions may wait to what the log takes at once.
func (f *flight) fit(out stream.Appender) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.most = front.MostInFlight(out, f.most)
}

// room reports whether another decision may be sent.
func (f *flight) room() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.waiting)-f.head < f.most
}

// awaitRoom waits until another decision may be sent, the decider has failed, or the time is over.
func (f *flight) awaitRoom(most time.Duration) {
	for over := time.After(most); !f.room() && f.d.Err() == nil; {
		select {
		case <-f.freed:
		case <-over:
			return
		}
	}
}

// topicRoom reports whether another decision of a context of the topic may be sent. The topic leaves room for requests,
// and most of it while some wait: they shall not queue behind a batch, which itself can wait in the log.
func (f *flight) topicRoom() bool {
	requests := 0
	if f.d.gate != nil {
		requests = f.d.gate.Waiting()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	most := f.most
	if f.d.gate != nil {
		if most = most * 3 / 4; requests > 0 {
			most /= 12
		}
		most = max(most, 1)
	}
	f.starved = f.topic >= most || len(f.waiting)-f.head >= f.most
	return !f.starved
}

func (f *flight) add(t ticket) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waiting = append(f.waiting, t)
	if t.ofTopic() {
		f.topic++
	}
}

// has reports whether the decision of a round waits for its acknowledgement.
func (f *flight) has(n int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := f.head; i < len(f.waiting); i++ {
		if f.waiting[i].n == n {
			return true
		}
	}
	return false
}

// join adds a repeat of a request to a round whose decision is on its way. It
// reports false if that is acknowledged already.
func (f *flight) join(n int64, answer func(stored bool)) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := f.head; i < len(f.waiting); i++ {
		if t := &f.waiting[i]; t.n == n {
			t.more = append(t.more, answer)
			return true
		}
	}
	return false
}

func (f *flight) pop() (ticket, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.head == len(f.waiting) {
		return ticket{}, false
	}
	t := f.waiting[f.head]
	front.Signal(f.freed)
	if f.starved { // what made it so is on its way: it is popped later, or now
		f.starved = false
		f.d.wake()
	}
	f.waiting[f.head] = ticket{}
	if t.ofTopic() {
		f.topic--
	}
	if f.head++; f.head == len(f.waiting) {
		f.waiting, f.head = f.waiting[:0], 0
	} else if f.head >= 4096 && 2*f.head >= len(f.waiting) {
		f.waiting, f.head = append(f.waiting[:0], f.waiting[f.head:]...), 0
	}
	return t, true
}

// ack is the AckFunc of decisions.
func (f *flight) ack(_ uint64, offset int64, err error) {
	f.d.fail(err) // before it no longer waits
	t, ok := f.pop()
	if err != nil {
		f.d.cfg.Metrics.AppendError(watch.DecisionsKind, err)
		if ok {
			f.refuse(&t)
		}
		return
	}
	f.d.fail(f.d.cfg.wrote.note(t.n, offset))
	if !ok || t.n == 0 {
		return
	}
	f.d.recent.stored(t.n, offset)
	f.d.m.Decision(t.send != nil, t.external, t.at)
	if t.span != nil {
		t.span.Stored(nil)
	}
	if t.send != nil {
		t.send(t.reply)
	}
	if t.span != nil {
		t.span.End(t.send != nil)
	}
	for _, answer := range t.more {
		f.d.spawn(func() { answer(true) })
	}
}

// refuse tells those who wait that their decision's fate is unknown.
func (f *flight) refuse(t *ticket) {
	if t.span != nil {
		t.span.Stored(errors.New(unknownFate))
		defer t.span.End(t.refuse != nil)
	}
	if t.refuse != nil {
		t.refuse(503, unknownFate, t.id)
	}
	for _, answer := range t.more {
		f.d.spawn(func() { answer(false) })
	}
}

const unknownFate = "the decision log failed; whether the decision exists is unknown: retry with the same id"

// abandon refuses everything that still waits.
func (f *flight) abandon() {
	for {
		t, ok := f.pop()
		if !ok {
			return
		}
		f.refuse(&t)
	}
}
