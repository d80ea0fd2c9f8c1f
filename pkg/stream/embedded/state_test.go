package embedded

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"hindsight/pkg/stream"
)

// TestStates: what is told is never of before the call, however many ask at once.
func TestStates(t *testing.T) {
	var stored, asked atomic.Uint64
	s := &states{all: func() []server.StreamDetail {
		asked.Add(1)
		last := stored.Load()
		return []server.StreamDetail{{Name: "a"}, {Name: "b", State: server.StreamState{FirstSeq: 3, LastSeq: last}}}
	}}
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			for range 2000 {
				before := stored.Add(1)
				if first, last, ok := s.of("b"); !ok || first != 3 || last < before {
					t.Errorf("records %d to %d, %v, when %d were stored", first, last, ok, before)
				}
			}
		})
	}
	callers.Wait()
	if n := asked.Load(); n > 16_000 {
		t.Errorf("asked %d times by 16,000 calls", n)
	}
	if _, _, ok := s.of("c"); ok {
		t.Error("a stream that is not there was told of")
	}
}

// TestStatesMany: of many streams the server is not asked again.
func TestStatesMany(t *testing.T) {
	asked, streams := 0, make([]server.StreamDetail, manyStreams)
	streams[0].Name = "a"
	s := &states{all: func() []server.StreamDetail { asked++; return streams }}
	for i, want := range []struct {
		asked int
		ok    bool
	}{{1, true}, {2, true}, {3, true}, {3, false}, {3, false}} {
		if i == 2 {
			streams = append(streams, server.StreamDetail{})
		}
		if _, _, ok := s.of("a"); asked != want.asked || ok != want.ok {
			t.Errorf("call %d: asked %d times, told %v; want %d, %v", i+1, asked, ok, want.asked, want.ok)
		}
	}
}

// TestStateOfServer: the server tells of its streams, and nothing once it has ended; a log in its process does not send
// it a message to learn where a topic ends.
func TestStateOfServer(t *testing.T) {
	e, err := Open(t.Context(), Options{Dir: t.TempDir(), DontListen: true})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	log := e.Log()
	if err := log.Create(t.Context(), "a", 1, stream.TopicOptions{}); err != nil {
		t.Fatal(err)
	}
	a, err := log.Writer(t.Context(), "a", 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := a.Append(t.Context(), &stream.Record{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	messages := func() int64 {
		v, err := e.server.Varz(nil)
		if err != nil {
			t.Fatal(err)
		}
		return v.InMsgs
	}
	before := messages()
	if first, next, err := log.Bounds(t.Context(), "a", 0); first != 1 || next != 4 || err != nil {
		t.Errorf("offsets %d to %d, %v", first, next, err)
	}
	if n := messages() - before; n != 0 {
		t.Errorf("%d messages", n)
	}
	s := newStates(e.server)
	if first, last, ok := s.of("a_0"); first != 1 || last != 3 || !ok {
		t.Errorf("records %d to %d, %v", first, last, ok)
	}
	if err := e.server.ShutdownJetStream(); err != nil {
		t.Fatal(err)
	}
	if first, last, ok := s.of("a_0"); ok {
		t.Errorf("a store that is closed has records %d to %d", first, last)
	}
}

// TestClosedLogHasNoBounds: the server in this process would tell them still.
func TestClosedLogHasNoBounds(t *testing.T) {
	e, err := Open(t.Context(), Options{Dir: t.TempDir(), DontListen: true})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	log := e.Log()
	if err := log.Create(t.Context(), "a", 1, stream.TopicOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, next, err := log.Bounds(t.Context(), "a", 0); next != 1 || err != nil {
		t.Errorf("the next offset is %d, %v; want 1", next, err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := log.Bounds(t.Context(), "a", 0); err == nil {
		t.Error("a closed log has bounds")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := log.Bounds(ctx, "a", 0); err == nil {
		t.Error("a context that has ended has bounds")
	}
}
