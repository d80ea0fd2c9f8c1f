package front

import (
	"strings"
	"testing"
	"time"

	"hindsight/internal/watch"
	"hindsight/pkg/stream"
)

// TestGateStandsStill: while a handler stands still for so long that what waits is given up,
// and more comes, the gate refuses it at once; when the handler goes on it answers all that
// it took.
func TestGateStandsStill(t *testing.T) {
	for _, c := range []struct {
		name        string
		size, least int // bytes of a request; how many are taken, from least to most
		most        int
		headers     []stream.Header
	}{
		{"small", 1, maxWaiting, maxWaiting + 1, nil},
		{"large", 1 << 20, maxWaitingBytes >> 20, maxWaitingBytes>>20 + 1, nil},
		{"of a large header", 1, maxWaitingBytes >> 20, maxWaitingBytes>>20 + 1,
			[]stream.Header{{Key: "k", Value: strings.Repeat("v", 1<<20-2-headerBytes)}}},
		{"of many headers", 1, maxWaitingBytes >> 20, maxWaitingBytes>>20 + 1, make([]stream.Header,
			1<<20/headerBytes-1)},
	} {
		t.Run(c.name, func(t *testing.T) {
			release, entered, done := make(chan struct{}), make(chan struct{}, 1), make(chan struct{})
			g := NewGate("decide", watch.NewMetrics(nil, nil), func(m stream.Message, _ time.Time) {
				select {
				case entered <- struct{}{}:
				default:
				}
				<-release
				m.Respond([]byte("handled"))
			})
			data := make([]byte, c.size)
			handled, refused := 0, 0 // by the worker; by this test's goroutine before it goes on
			ask := func() {
				g.Request(stream.Message{Data: data, Headers: c.headers,
					Respond: func(b []byte, _ ...stream.Header) error {
						if string(b) == "handled" {
							handled++
						} else {
							refused++
						}
						return nil
					}})
			}
			asked := 3 * c.most
			go func() {
				defer close(done)
				ask()
				<-entered
				for range asked - 1 {
					ask()
					g.mu.Lock() // as after 30 s
					for g.admit.waiting() > 0 {
						g.admit.answered(g.admit.head, time.Now().UnixNano())
					}
					g.mu.Unlock()
				}
			}()
			select {
			case <-done:
			case <-time.After(20 * time.Second):
				t.Fatal("a request blocks")
			}
			close(release)
			g.Close()
			if handled < c.least || handled > c.most || handled+refused != asked {
				t.Errorf("%d handled, %d refused of %d", handled, refused, asked)
			}
		})
	}
}

// A byte order mark, as some tools write it before JSON, is taken away before anybody looks.
func TestByteOrderMark(t *testing.T) {
	var seen stream.Message
	got := make(chan struct{})
	g := NewGate("decide", watch.NewMetrics(nil, nil), func(m stream.Message, _ time.Time) { seen = m; close(got) })
	defer g.Close()
	g.Request(stream.Message{Data: []byte("\xef\xbb\xbf{}"), Respond: func([]byte, ...stream.Header) error {
		return nil
	}})
	<-got
	if string(seen.Data) != "{}" {
		t.Errorf("%q", seen.Data)
	}
}
