package streamtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"hindsight/pkg/stream"
)

// BusHarness is a fresh bus. Server and Client may be one or on two connections.
type BusHarness struct {
	Server, Client stream.Bus
	Close          func(t testing.TB)
	TooLarge       int // size of a message that is too large
}

type busSuite struct {
	*testing.T
	*BusHarness
	ctx context.Context
}

// TestBus runs the suite of a bus; open is called for each test.
func TestBus(t *testing.T, open func(t testing.TB) *BusHarness) {
	tests := []struct {
		name string
		run  func(s *busSuite)
	}{
		{"Echo", testEcho},
		{"NoResponder", testNoResponder},
		{"LateReplies", testLateReplies},
		{"RespondOnce", testRespondOnce},
		{"Large", testLarge},
		{"Timeout", testTimeout},
		{"Serial", testSerial},
		{"Queue", testQueue},
		{"StopWaits", testStopWaits},
		{"StopDrains", testStopDrains},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before := goleak.IgnoreCurrent()
			ctx, cancel := context.WithTimeout(context.Background(), timeout)
			defer goleak.VerifyNone(t, before)
			defer cancel()
			h := open(t)
			defer func() { h.Close(t) }()
			tt.run(&busSuite{t, h, ctx})
		})
	}
}

const subject = "shop.decide"

func (s *busSuite) serve(queue string, h func(stream.Message)) func() {
	s.Helper()
	stop, err := s.Server.Serve(subject, queue, h)
	if err != nil {
		s.Fatal(err)
	}
	return stop
}

// Data and headers travel both ways.
func testEcho(s *busSuite) {
	stop := s.serve("q", func(m stream.Message) {
		headers := append([]stream.Header{{Key: "x-reply", Value: "yes"}}, m.Headers...)
		if err := m.Respond(append([]byte("re: "), m.Data...), headers...); err != nil {
			s.Error(err)
		}
	})
	defer stop()
	for i := range 100 {
		data := []byte(fmt.Sprint("request ", i))
		reply, headers, err := s.Client.Request(s.ctx, subject, data, stream.Header{Key: "ce_id", Value: "a b"})
		if err != nil || string(reply) != "re: "+string(data) {
			s.Fatalf("request %d: %q, %v", i, reply, err)
		}
		want := []stream.Header{{Key: "ce_id", Value: "a b"}, {Key: "x-reply", Value: "yes"}}
		found := 0
		for _, h := range headers {
			if h == want[0] || h == want[1] {
				found++
			}
		}
		if found != 2 || len(headers) != 2 {
			s.Fatalf("headers %v", headers)
		}
	}
	reply, headers, err := s.Client.Request(s.ctx, subject, nil)
	if err != nil || string(reply) != "re: " || len(headers) != 1 {
		s.Errorf("empty request: %q, %v, %v", reply, headers, err)
	}
}

// A request that nobody serves fails at once.
func testNoResponder(s *busSuite) {
	start := time.Now()
	_, _, err := s.Client.Request(s.ctx, subject, []byte("x"))
	if !errors.Is(err, stream.ErrNoResponder) {
		s.Errorf("before serving: %v", err)
	}
	s.serve("q", func(m stream.Message) { _ = m.Respond(nil) })()
	if _, _, err = s.Client.Request(s.ctx, subject, []byte("x")); !errors.Is(err, stream.ErrNoResponder) {
		s.Errorf("after stop: %v", err)
	}
	if d := time.Since(start); d > timeout/4 {
		s.Errorf("took %v", d)
	}
}

// Replies may come from other goroutines, in any order, after the handler has returned, and reuse their bytes.
func testLateReplies(s *busSuite) {
	const n = 64
	ch := make(chan stream.Message, n)
	defer s.serve("q", func(m stream.Message) { ch <- m })()
	var wg sync.WaitGroup
	errs := make(chan error, n)
	for i := range n {
		wg.Go(func() {
			reply, _, err := s.Client.Request(s.ctx, subject, fmt.Append(nil, i))
			if err == nil && string(reply) != fmt.Sprint(i) {
				err = fmt.Errorf("request %d was answered %q", i, reply)
			}
			errs <- err
		})
	}
	var held []stream.Message
	for range n {
		held = append(held, <-ch)
	}
	buf := make([]byte, 8)
	for i := n - 1; i >= 0; i-- {
		k := copy(buf, held[i].Data)
		if err := held[i].Respond(buf[:k]); err != nil {
			s.Error(err)
		}
	}
	wg.Wait()
	for range n {
		if err := <-errs; err != nil {
			s.Error(err)
		}
	}
}

func testRespondOnce(s *busSuite) {
	second := make(chan error, 1)
	defer s.serve("q", func(m stream.Message) {
		_ = m.Respond([]byte("first"))
		second <- m.Respond([]byte("second"))
	})()
	reply, _, err := s.Client.Request(s.ctx, subject, nil)
	if err != nil || string(reply) != "first" {
		s.Errorf("%q, %v", reply, err)
	}
	if err := <-second; err == nil {
		s.Error("a second reply was accepted")
	}
}

// What is too large is told to who sends it, and a smaller reply may follow.
func testLarge(s *busSuite) {
	large := make([]byte, s.TooLarge)
	defer s.serve("q", func(m stream.Message) {
		if err := m.Respond(large); !errors.Is(err, stream.ErrTooLarge) {
			s.Errorf("respond: %v", err)
		}
		if err := m.Respond([]byte("too large")); err != nil {
			s.Errorf("respond again: %v", err)
		}
	})()
	if reply, _, err := s.Client.Request(s.ctx, subject, nil); err != nil || string(reply) != "too large" {
		s.Errorf("%q, %v", reply, err)
	}
	if _, _, err := s.Client.Request(s.ctx, subject, large); !errors.Is(err, stream.ErrTooLarge) {
		s.Errorf("request: %v", err)
	}
}

func testTimeout(s *busSuite) {
	defer s.serve("q", func(stream.Message) {})()
	ctx, cancel := context.WithTimeout(s.ctx, 20*time.Millisecond)
	defer cancel()
	if _, _, err := s.Client.Request(ctx, subject, nil); !errors.Is(err, context.DeadlineExceeded) {
		s.Errorf("no reply: %v", err)
	}
}

// Calls of one handler do not overlap.
func testSerial(s *busSuite) {
	var running atomic.Int32
	defer s.serve("q", func(m stream.Message) {
		if running.Add(1) != 1 {
			s.Error("two calls at once")
		}
		defer running.Add(-1)
		_ = m.Respond(nil)
	})()
	s.load(4, 100)
}

// load sends requests from several goroutines, each of which must be answered, and returns when all are.
func (s *busSuite) load(clients, each int) {
	s.Helper()
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			for range each {
				if _, _, err := s.Client.Request(s.ctx, subject, []byte("x")); err != nil {
					s.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// One server of a queue gets a request, all of them get some.
func testQueue(s *busSuite) {
	var calls [3]atomic.Int32
	for i := range calls {
		defer s.serve("q", func(m stream.Message) {
			calls[i].Add(1)
			_ = m.Respond(nil)
		})()
	}
	const n = 300
	s.load(3, n/3)
	total := 0
	for i := range calls {
		c := int(calls[i].Load())
		if c == 0 {
			s.Errorf("server %d got nothing", i)
		}
		total += c
	}
	if total != n {
		s.Errorf("%d calls for %d requests", total, n)
	}
}

// stop returns after the call of the handler that runs.
func testStopWaits(s *busSuite) {
	entered := make(chan struct{})
	var inside atomic.Bool
	stop := s.serve("q", func(m stream.Message) {
		inside.Store(true)
		close(entered)
		<-time.After(20 * time.Millisecond) // work, long enough for a stop that does not wait
		inside.Store(false)
		_ = m.Respond(nil)
	})
	done := make(chan error)
	go func() {
		_, _, err := s.Client.Request(s.ctx, subject, nil)
		done <- err
	}()
	<-entered
	stop()
	if inside.Load() {
		s.Error("stop returned while the handler was running")
	}
	if err := <-done; err != nil {
		s.Error(err)
	}
}

// Servers that stop under load lose no request.
func testStopDrains(s *busSuite) {
	h := func(m stream.Message) { _ = m.Respond(m.Data) }
	defer s.serve("q", h)()
	var enough atomic.Bool
	var clients sync.WaitGroup
	for range 8 {
		clients.Go(func() {
			for !enough.Load() {
				if _, _, err := s.Client.Request(s.ctx, subject, []byte("x")); err != nil {
					s.Error(err)
					return
				}
			}
		})
	}
	for range 20 {
		var after atomic.Bool
		called := make(chan struct{}, 1)
		stop := s.serve("q", func(m stream.Message) {
			if after.Load() {
				s.Error("a call after stop returned")
			}
			select {
			case called <- struct{}{}:
			default:
			}
			h(m)
		})
		select {
		case <-called:
		case <-s.ctx.Done():
			s.Error("a server was never called")
		}
		stop()
		after.Store(true)
	}
	enough.Store(true)
	clients.Wait()
}
