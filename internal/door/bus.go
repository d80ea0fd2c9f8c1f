package door

import (
	"cmp"
	"context"
	"sync"
	"time"

	"hindsight/pkg/stream"
)

// bus is the bus of a process that HTTP requests come by as well. Whoever serves a subject of it gets both: there is
// one function that answers requests, one admission, and one count of them.
type bus struct {
	stream.Bus // nil: requests come by HTTP only

	mu      sync.RWMutex
	servers map[string]*server // by subject
	others  map[string]*server // while there is none of these
}

// server is the handler of one subject.
type server struct {
	mu      sync.Mutex // held while handle runs: calls are serial
	handle  func(stream.Message)
	stopped bool // for HTTP: another bus drains first
}

func newBus(next stream.Bus) *bus {
	return &bus{Bus: next, servers: map[string]*server{}, others: map[string]*server{}}
}

// Serve implements [stream.Bus].
func (b *bus) Serve(subject, queue string, h func(stream.Message)) (stop func(), err error) {
	s := &server{handle: h}
	drain := func() {}
	if b.Bus != nil {
		if drain, err = b.Bus.Serve(subject, queue, s.call); err != nil {
			return nil, err
		}
	}
	b.mu.Lock()
	b.servers[subject] = s
	b.mu.Unlock()
	return func() {
		b.mu.Lock()
		if b.servers[subject] == s {
			delete(b.servers, subject)
		}
		b.mu.Unlock()
		s.mu.Lock() // waits for a call of HTTP
		s.stopped = true
		s.mu.Unlock()
		drain()
	}, nil
}

func (s *server) call(m stream.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handle(m)
}

// Request implements [stream.Bus].
func (b *bus) Request(ctx context.Context, subject string, data []byte, headers ...stream.Header) ([]byte,
	[]stream.Header, error) {
	if b.Bus == nil {
		return nil, nil, stream.ErrNoResponder
	}
	return b.Bus.Request(ctx, subject, data, headers...)
}

// OnRefused implements [stream.Refuser].
func (b *bus) OnRefused(f func(subject string)) {
	if r, ok := b.Bus.(stream.Refuser); ok {
		r.OnRefused(f)
	}
}

// ServeElse implements [front.Fallback].
func (b *bus) ServeElse(subject string, h func(stream.Message)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.others[subject] = &server{handle: h}
}

// hand gives an exchange to the server of its subject, and reports false if there is none.
func (b *bus) hand(subject string, e *exchange) bool {
	b.mu.RLock()
	s := cmp.Or(b.servers[subject], b.others[subject])
	b.mu.RUnlock()
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return false
	}
	s.handle(e.message)
	return true
}

// exchange is one request and its reply.
type exchange struct {
	message stream.Message
	reply   []byte
	headers []stream.Header // of the reply
	done    chan struct{}   // receives once the reply is there
	limit   *time.Timer
}

var exchanges = sync.Pool{New: func() any {
	e := &exchange{done: make(chan struct{}, 1), limit: time.NewTimer(time.Hour)}
	e.limit.Stop()
	e.message.Respond = e.respond
	return e
}}

// respond keeps a copy of the reply, whose bytes may be reused when it returns.
func (e *exchange) respond(data []byte, headers ...stream.Header) error {
	e.reply = append(e.reply[:0], data...)
	e.headers = append(e.headers[:0], headers...)
	e.done <- struct{}{}
	return nil
}

// await waits for the reply, and reports false if it does not come in time. The exchange is then not used again, since
// a late reply still writes to it.
func (e *exchange) await(ctx context.Context, limit time.Duration) bool {
	e.limit.Reset(limit)
	defer e.limit.Stop()
	select {
	case <-e.done:
		return true
	case <-ctx.Done():
	case <-e.limit.C:
	}
	return false
}

// release gives an exchange back whose reply has come.
func (e *exchange) release() {
	e.message.Data, e.message.Headers, e.message.From = nil, nil, ""
	if cap(e.reply) <= maxPooled {
		exchanges.Put(e)
	}
}
