package front

import (
	"sync"
	"time"

	"hindsight/internal/watch"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// Gate stands between a bus and a handler of requests. It takes a request from the bus at once, refuses it if it would
// wait too long, and hands it to the handler otherwise: one after the other, in their order.
type Gate struct {
	subject string // for metrics
	metrics *watch.Metrics
	handle  func(m stream.Message, at time.Time)

	mu     sync.Mutex
	admit  admission
	closed bool
	queue  chan arrival
	bytes  int           // of requests in the queue
	atHand uint64        // sequence number of the request that the handler has
	idle   chan struct{} // closed when the worker has ended
}

type arrival struct {
	m    stream.Message
	at   time.Time
	size int    // bytes that it holds
	seq  uint64 // of admission
}

// NewGate starts a gate. Close ends it.
func NewGate(subject string, metrics *watch.Metrics, handle func(m stream.Message, came time.Time)) *Gate {
	g := &Gate{subject: subject, metrics: metrics, handle: handle, queue: make(chan arrival, maxWaiting),
		idle: make(chan struct{})}
	go func() {
		defer close(g.idle)
		for a := range g.queue {
			g.mu.Lock()
			g.bytes -= a.size
			g.atHand = a.seq
			g.mu.Unlock()
			g.handle(a.m, a.at)
		}
	}()
	return g
}

// Close ends the gate when what it has taken is handed over. Requests that come later are refused.
func (g *Gate) Close() {
	g.mu.Lock()
	if !g.closed {
		g.closed = true
		close(g.queue)
	}
	g.mu.Unlock()
	<-g.idle
}

// Request takes one request. It does not block.
func (g *Gate) Request(m stream.Message) {
	m.Data = codec.TrimMark(m.Data)
	if refusal := g.enqueue(m, time.Now()); refusal != "" { // not under mu, which every answer takes
		Refuser(&m, g.metrics, g.subject)(503, refusal, "")
	}
}

// enqueue puts a request into the queue, or returns why it is refused.
func (g *Gate) enqueue(m stream.Message, now time.Time) (refusal string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return "not ready: retry with the same id"
	}
	size := HeldBytes(&m)
	seq, ok := uint64(0), g.room(size)
	if ok {
		seq, ok = g.admit.take(now.UnixNano(), size)
	}
	if !ok {
		return "overloaded: retry with the same id"
	}
	respond := m.Respond
	m.Respond = func(data []byte, headers ...stream.Header) error {
		err := respond(data, headers...)
		g.mu.Lock()
		g.admit.answered(seq, time.Now().UnixNano())
		g.mu.Unlock()
		return err
	}
	g.bytes += size
	g.queue <- arrival{m, now, size, seq} // there is room, and nobody else takes it while mu is held
	return ""
}

// room reports whether the queue has room for a request of so many bytes. While a handler stands still, as it may for
// as long as the log is away, the queue also holds those that admission has given up. mu is held.
func (g *Gate) room(size int) bool {
	return len(g.queue) < cap(g.queue) && (g.bytes == 0 || g.bytes+size <= maxWaitingBytes)
}

// Release takes the request that the handler has out of admission before it is answered, because
// it waits for something else than the requests behind it. The handler calls it.
func (g *Gate) Release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.admit.answered(g.atHand, time.Now().UnixNano())
}

// Waiting returns how many requests have no answer yet.
func (g *Gate) Waiting() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.admit.waiting()
}
