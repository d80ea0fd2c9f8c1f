package front

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"hindsight/internal/watch"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// TestGateRoom holds that the queue takes a lone request of any size, no more bytes than its limit with another, and
// that what was handed over takes none.
func TestGateRoom(t *testing.T) {
	for _, c := range []struct {
		bytes, size int
		room        bool
	}{{0, maxWaitingBytes + 1, true}, {1, maxWaitingBytes - 1, true}, {1, maxWaitingBytes, false}} {
		g := Gate{queue: make(chan arrival, 1), bytes: c.bytes}
		if g.room(c.size) != c.room {
			t.Errorf("%+v", c)
		}
		if g.queue <- (arrival{}); g.room(0) {
			t.Error("room in a full queue")
		}
	}
	g := NewGate("decide", watch.NewMetrics(nil, nil), func(stream.Message, time.Time) {})
	for range 3 {
		g.Request(stream.Message{Data: []byte("{}"), Respond: func([]byte, ...stream.Header) error { return nil }})
	}
	if g.Close(); g.bytes != 0 {
		t.Errorf("%d bytes in an empty queue", g.bytes)
	}
}

// TestPlainHeaders holds which headers of an outcome are stored, and how many bytes of them.
func TestPlainHeaders(t *testing.T) {
	own := stream.Header{Key: "Color", Value: "  red "}
	got, err := plainHeaders([]stream.Header{{Key: "Nats-Expected-Last-Sequence", Value: "1"}, own,
		{Key: "Hindsight-Forwarded", Value: "x"}})
	if err != nil || !slices.Equal(got, []stream.Header{{Key: "Color", Value: "red"}}) {
		t.Errorf("%v, %v", got, err)
	}
	for more, large := range map[int]bool{0: false, 1: true} {
		half := stream.Header{Key: "k", Value: strings.Repeat("v", maxHeaderBytes/2-1-4)}
		other := half
		other.Value += strings.Repeat("v", more)
		if _, err := plainHeaders([]stream.Header{half, other}); errors.Is(err, codec.ErrTooLarge) != large {
			t.Errorf("%d bytes too much: %v", more, err)
		}
	}
}

// TestRetryAfter holds which refusals say when to ask again.
func TestRetryAfter(t *testing.T) {
	for code, want := range map[int]bool{400: false, 409: false, 413: false, 429: true, 500: false, 503: true} {
		Refuser(&stream.Message{Data: []byte("{}"), Respond: func(_ []byte, headers ...stream.Header) error {
			if slices.Contains(headers, stream.Header{Key: "Retry-After", Value: "1"}) != want {
				t.Errorf("%d: %v", code, headers)
			}
			return nil
		}}, watch.NewMetrics(nil, nil), "decide")(code, "no", "")
	}
}

// TestPatienceOf holds how long a request waits by its header.
func TestPatienceOf(t *testing.T) {
	for text, want := range map[string]time.Duration{"250ms": 250 * time.Millisecond, "1h": MaxPatience, "1ns": 1,
		"0s": 0, "-1s": 0, "7": 0, "": 0} {
		got, err := PatienceOf(&stream.Message{Headers: []stream.Header{{Key: "Other", Value: "x"},
			{Key: "Hindsight-Timeout", Value: text}}})
		if got != want || (err == nil) != (want > 0) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	if got, err := PatienceOf(&stream.Message{}); got != MaxPatience || err != nil {
		t.Errorf("without a header: %v, %v", got, err)
	}
}

// TestForwardedHeader holds that only a request that bears the pass is taken for forwarded, however its header is
// written, and that the sign is taken away.
func TestForwardedHeader(t *testing.T) {
	s := &Server{pass: passOf([]byte("seed"), "m")}
	for _, c := range []struct {
		header stream.Header
		want   bool
	}{{stream.Header{Key: "Hindsight-Forwarded", Value: s.pass}, true},
		{stream.Header{Key: passHeader, Value: passOf([]byte("seed"), "n")}, false},
		{stream.Header{Key: passHeader}, false}, {stream.Header{Key: "other", Value: s.pass}, false}} {
		m := stream.Message{Headers: []stream.Header{{Key: "a"}, c.header, {Key: "b"}}}
		if got := s.isForwarded(&m); got != c.want || len(m.Headers) == 2 != c.want {
			t.Errorf("%v: %v, left %v", c.header, got, m.Headers)
		}
	}
}

// failing is an appender whose Append fails, when its context is over if err is nil.
type failing struct {
	stream.Appender
	err error
}

func (f failing) Append(ctx context.Context, _ *stream.Record) (uint64, error) {
	if f.err != nil {
		return 0, f.err
	}
	<-ctx.Done()
	return 0, ctx.Err()
}

func (failing) Close() error { return nil }

// TestFailedSends holds who is told of a record that was not sent: itself alone where the appender lives on, all that
// are on their way where it is dead, and then who waits for room is woken.
func TestFailedSends(t *testing.T) { synctest.Test(t, testFailedSends) }

func testFailedSends(t *testing.T) {
	dead := errors.New("dead")
	for _, c := range []struct {
		err, want error
		left      int
	}{{stream.ErrUnfit, stream.ErrUnfit, 1}, {stream.ErrTooLarge, stream.ErrTooLarge, 1}, {nil, errNoRoom, 1},
		{dead, dead, 0}} {
		w := newOutcomeWriter(nil, "m.outcomes", 0)
		w.out = failing{err: c.err}
		told := []error{nil, nil}
		w.waiting.tickets = append(w.waiting.tickets, func(_ int64, err error) { told[0] = err })
		w.send(&stream.Record{}, func(_ int64, err error) { told[1] = err })
		if !errors.Is(told[1], c.want) || len(w.waiting.tickets) != c.left || (told[0] == nil) != (c.left == 1) ||
			(w.out == nil) != (c.left == 0) || len(w.freed) != 1-c.left {
			t.Errorf("%v: told %v, %d on their way, appender %v, woken %d", c.err, told, len(w.waiting.tickets), w.out,
				len(w.freed))
		}
	}
}

// closed notes in which order an appender is flushed and closed.
type closed struct {
	stream.Appender
	calls string
}

func (c *closed) Flush(context.Context) error { c.calls += "flush "; return nil }
func (c *closed) Close() error                { c.calls += "close "; return nil }

// TestStoreFails holds with which code a client is told that its outcome is not stored, and that the end of a service
// waits for what is on its way.
func TestStoreFails(t *testing.T) {
	for err, want := range map[error]string{stream.ErrTooLarge: `"code":413`, stream.ErrUnfit: `"code":400`,
		errors.New("away"): "the outcome log failed (away)"} {
		w := newOutcomeWriter(nil, "m.outcomes", 0)
		w.out, w.waiting.most = failing{err: err}, 1
		o := &Outcomes{metrics: watch.NewMetrics(nil, nil), writers: []*outcomeWriter{w}}
		got := replied(o.Store, stream.Message{Data: []byte(`{"id":"a","loss":1}`)})
		if !strings.Contains(got, want) || !strings.Contains(got, `"id":"a"`) {
			t.Errorf("%v: %s, want %s", err, got, want)
		}
		out := &closed{}
		w.out = out
		for range 2 {
			w.close()
		}
		if out.calls != "flush close " {
			t.Errorf("at the end: %s", out.calls)
		}
	}
}

// TestStore holds that an outcome counts against the quota with its headers, and that the time it waits is counted from
// when it came.
func TestStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newOutcomeWriter(nil, "m.outcomes", 0)
		w.out = failing{} // of which none is on its way, and no more may be
		o := &Outcomes{metrics: watch.NewMetrics(nil, nil), quota: &quota{}, writers: []*outcomeWriter{w}}
		o.quota.left.Store(1000)
		start := time.Now()
		o.store(stream.Message{Data: []byte(`{"id":"a","loss":1}`),
			Headers: []stream.Header{{Key: "color", Value: "red"}},
			Respond: func([]byte, ...stream.Header) error {
				if took := time.Since(start); took != MaxPatience-time.Second {
					t.Errorf("refused after %v", took)
				}
				return nil
			}}, start.Add(-time.Second))
		w.later.Wait()
		if left := o.quota.left.Load(); left != 1000-19-8-storedBytes {
			t.Errorf("%d bytes left", left)
		}
	})
}
