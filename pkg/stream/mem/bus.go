package mem

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"hindsight/pkg/stream"
)

// bus hands requests to handlers in the goroutine of the requester.
type bus struct {
	maxBytes int

	mu       sync.Mutex
	subjects map[string][]*group // one for each queue name
}

type group struct {
	queue   string
	servers []*server
	turn    int // whose turn it is; requests go round
}

type server struct {
	mu      sync.Mutex // held while h runs: calls are serial
	h       func(stream.Message)
	stopped bool
}

// Serve implements [stream.Bus]. Handlers run in the goroutine of the requester,
// one at a time; stop must not be called from one. Subjects are taken literally.
func (l *Log) Serve(name, queue string, h func(stream.Message)) (stop func(), err error) {
	if l.isClosed() {
		return nil, fmt.Errorf("serve %s: %w", name, stream.ErrClosed)
	}
	b := &l.bus
	s := &server{h: h}
	b.mu.Lock()
	defer b.mu.Unlock()
	groups := b.subjects[name]
	i := slices.IndexFunc(groups, func(g *group) bool { return queue != "" && g.queue == queue })
	if i < 0 {
		b.subjects[name] = append(groups, &group{queue: queue, servers: []*server{s}})
	} else {
		groups[i].servers = append(groups[i].servers, s)
	}
	return func() { b.remove(name, s) }, nil
}

// remove takes a server out and waits for its handler.
func (b *bus) remove(name string, s *server) {
	b.mu.Lock()
	b.subjects[name] = slices.DeleteFunc(b.subjects[name], func(g *group) bool {
		g.servers = slices.DeleteFunc(g.servers, func(o *server) bool { return o == s })
		return len(g.servers) == 0
	})
	b.mu.Unlock()
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
}

// groups returns the groups that serve a subject.
func (b *bus) groups(name string) []*group {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.subjects[name])
}

// call hands m to the next server of g, passing over those that stop just now. It reports whether one was left.
func (b *bus) call(g *group, m stream.Message) bool {
	for {
		b.mu.Lock()
		if len(g.servers) == 0 {
			b.mu.Unlock()
			return false
		}
		s := g.servers[g.turn%len(g.servers)]
		g.turn++
		b.mu.Unlock()
		if s.call(m) {
			return true
		}
	}
}

type reply struct {
	data    []byte
	headers []stream.Header
}

// Request implements [stream.Bus].
func (l *Log) Request(ctx context.Context, name string, data []byte, headers ...stream.Header) ([]byte,
	[]stream.Header, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	if l.isClosed() {
		return nil, nil, fmt.Errorf("request %s: %w", name, stream.ErrClosed)
	}
	if len(data) > l.o.MaxBytes {
		return nil, nil, fmt.Errorf("request %s: %w", name, stream.ErrTooLarge)
	}
	answer := make(chan reply, 1)
	served := false
	for _, g := range l.bus.groups(name) {
		m := stream.Message{Data: bytes.Clone(data), Headers: slices.Clone(headers), Respond: l.bus.responder(answer)}
		served = l.bus.call(g, m) || served
	}
	if !served {
		return nil, nil, fmt.Errorf("request %s: %w", name, stream.ErrNoResponder)
	}
	select {
	case r := <-answer:
		return r.data, r.headers, nil
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	case <-l.ctx.Done():
		return nil, nil, fmt.Errorf("request %s: %w", name, stream.ErrClosed)
	}
}

// call runs the handler unless the server has stopped.
func (s *server) call(m stream.Message) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return false
	}
	s.h(m)
	return true
}

var errResponded = errors.New("respond: this request has its reply already")

// responder returns the Respond of one message; the first reply counts.
func (b *bus) responder(answer chan<- reply) func([]byte, ...stream.Header) error {
	var mu sync.Mutex
	used := false
	return func(data []byte, headers ...stream.Header) error {
		if len(data) > b.maxBytes {
			return fmt.Errorf("respond: %w", stream.ErrTooLarge)
		}
		mu.Lock()
		defer mu.Unlock()
		if used {
			return errResponded
		}
		used = true
		select {
		case answer <- reply{bytes.Clone(data), slices.Clone(headers)}:
		default: // another group was faster
		}
		return nil
	}
}
