package service

import (
	"sync"
	"time"

	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// gate stands between a bus and a handler of requests. It takes a request from the bus
// at once, refuses it if it would wait too long, and hands it to the handler otherwise:
// one after the other, in their order.
type gate struct {
	subject string // for metrics
	metrics *Metrics
	handle  func(m stream.Message, at time.Time)

	mu     sync.Mutex
	admit  admission
	closed bool
	queue  chan arrival
	idle   chan struct{} // closed when the worker has ended
}

type arrival struct {
	m  stream.Message
	at time.Time
}

// newGate starts a gate. close ends it.
func newGate(subject string, metrics *Metrics, handle func(stream.Message, time.Time)) *gate {
	g := &gate{subject: subject, metrics: metrics, handle: handle, queue: make(chan arrival, maxWaiting), idle: make(chan struct{})}
	go func() {
		defer close(g.idle)
		for a := range g.queue {
			g.handle(a.m, a.at)
		}
	}()
	return g
}

// close ends the gate when what it has taken is handed over. Requests that come later
// are refused.
func (g *gate) close() {
	g.mu.Lock()
	if !g.closed {
		g.closed = true
		close(g.queue)
	}
	g.mu.Unlock()
	<-g.idle
}

// request takes one request. It does not block.
func (g *gate) request(m stream.Message) {
	now := time.Now()
	respond := m.Respond
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		g.refuse(&m, "not ready: retry with the same id")
		return
	}
	seq, ok := g.admit.take(now.UnixNano(), len(m.Data))
	if !ok {
		g.refuse(&m, "overloaded: retry with the same id")
		return
	}
	m.Respond = func(data []byte, headers ...stream.Header) error {
		err := respond(data, headers...)
		g.mu.Lock()
		g.admit.answered(seq, time.Now().UnixNano())
		g.mu.Unlock()
		return err
	}
	g.queue <- arrival{m, now} // there is room: all that wait fit
}

// waiting returns how many requests have no answer yet.
func (g *gate) waiting() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.admit.waiting()
}

func (g *gate) refuse(m *stream.Message, message string) {
	refuse(m, g.metrics, g.subject, 503, message)
}

// refuse answers a request with an error.
func refuse(m *stream.Message, metrics *Metrics, subject string, code int, message string) {
	metrics.refuse(subject, code)
	data, headers := errorReply(code, message, "", codec.IsJSON(m.Data))
	m.Respond(data, headers...)
}
