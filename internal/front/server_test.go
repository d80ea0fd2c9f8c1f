package front

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"hindsight/internal/trace"
	"hindsight/internal/watch"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/mem"
)

// served is a bus that notes who serves what, and answers requests as answer says. It does not let fail be served.
type served struct {
	by     map[string]func(stream.Message)
	fail   string
	answer func(ctx context.Context, subject string, headers []stream.Header) ([]byte, []stream.Header, error)
}

var errServe = errors.New("cannot be served")

func (b *served) Serve(subject, _ string, h func(stream.Message)) (stop func(), err error) {
	if subject == b.fail {
		return nil, errServe
	}
	b.by[subject] = h
	return func() { delete(b.by, subject) }, nil
}

func (b *served) Request(ctx context.Context, subject string, _ []byte, headers ...stream.Header) ([]byte,
	[]stream.Header, error) {
	return b.answer(ctx, subject, headers)
}

// ServeElse implements [Fallback].
func (b *served) ServeElse(subject string, h func(stream.Message)) { b.by["else "+subject] = h }

func (b *served) subjects() string { return strings.Join(slices.Sorted(maps.Keys(b.by)), " ") }

// replied returns what a request is answered.
func replied(h func(stream.Message), m stream.Message) string {
	got := make(chan string, 1)
	m.Respond = func(b []byte, headers ...stream.Header) error {
		got <- string(b) + fmt.Sprint(headers)
		return nil
	}
	h(m)
	return <-got
}

// TestEnter holds what a process serves as its deciders come and go, and that clients which ask too often are refused,
// but not what another process forwards.
func TestEnter(t *testing.T) {
	b := &served{by: map[string]func(stream.Message){}}
	s := NewServer(Config{Bus: b, Name: "m", Partitions: 2, Seed: []byte("seed"), ClientRate: 1})
	gate := NewGate("decide", s.Metrics, func(m stream.Message, _ time.Time) {
		_ = m.Respond(fmt.Append(nil, "decided", len(m.Headers)))
	})
	defer gate.Close()
	var leave [2]func()
	enter := func(p int, fail string) error {
		b.fail = fail
		l, err := s.Enter(p, gate)
		leave[p] = l
		return err
	}
	check := func(what, subjects string, ours ...int) {
		t.Helper()
		if here := s.here.Load(); b.subjects() != subjects || !slices.Equal(here.ours, ours) {
			t.Errorf("%s: %s is served, partitions %v are ours", what, b.subjects(), here.ours)
		}
	}
	check("at first", "else m.decide")
	for _, fail := range []string{"m.decide.1", "m.decide"} {
		if err := enter(1, fail); !errors.Is(err, errServe) {
			t.Errorf("%s is not served: %v", fail, err)
		}
		check(fail+" is not served", "else m.decide")
	}
	for range 2 { // as often as one likes
		if err := errors.Join(enter(0, ""), enter(1, "m.decide")); err != nil { // which is served already
			t.Fatal(err)
		}
		check("both", "else m.decide m.decide m.decide.0 m.decide.1", 0, 1)
		leave[0]()
		check("one", "else m.decide m.decide m.decide.1", 1)
		for _, subject := range []string{"m.decide", "m.decide.1", "else m.decide"} {
			ask := stream.Message{Data: []byte(`{"actions":["a"]}`), From: subject}
			if got := replied(b.by[subject], ask); got != "decided0[]" {
				t.Errorf("%s: %s", subject, got)
			}
			if got := replied(b.by[subject], ask); !strings.Contains(got, "429") {
				t.Errorf("%s, asked too often: %s", subject, got)
			}
			ask.Headers = []stream.Header{{Key: passHeader, Value: s.pass}}
			want := "429"
			if subject == "m.decide.1" { // where processes forward to
				want = "decided0[]"
			}
			if got := replied(b.by[subject], ask); !strings.Contains(got, want) {
				t.Errorf("%s, forwarded: %s", subject, got)
			}
		}
		leave[1]()
		check("none", "else m.decide")
		s.rates = newRates(1)
	}
	if gate.Close(); gate.Waiting() != 0 {
		t.Errorf("%d requests wait after their answers", gate.Waiting())
	}
}

// TestForward holds with what another process is asked, and what a client is told of its answer or of none.
func TestForward(t *testing.T) {
	for _, c := range []struct {
		err   error
		apart bool
		want  string
	}{{nil, false, "decided[{r 2}]"}, {stream.ErrNoResponder, false, "no responders: no decider owns partition 1 now"},
		{stream.ErrNoResponder, true, "this decider does not own partition 1, and cannot ask the one that does"},
		{fmt.Errorf("asked: %w", context.DeadlineExceeded), true, "does not answer; whether the decision exists is"},
		{errServe, true, "the decider of partition 1 cannot be asked (cannot be served)"}} {
		var s *Server
		answer := func(ctx context.Context, subject string, headers []stream.Header) ([]byte, []stream.Header, error) {
			end, ok := ctx.Deadline()
			if left := time.Until(end); subject != "m.decide.1" || !ok || left > MaxPatience || left < MaxPatience/2 ||
				!slices.Equal(headers, []stream.Header{{Key: "h", Value: "1"}, {Key: passHeader, Value: s.pass}}) {
				t.Errorf("%s is asked with %v, for %v", subject, headers, left)
			}
			return []byte("decided"), []stream.Header{{Key: "r", Value: "2"}}, c.err
		}
		b := &served{answer: answer, by: map[string]func(stream.Message){}}
		s = NewServer(Config{Bus: b, Name: "m", Partitions: 2, Apart: c.apart})
		got := replied(s.Decide, stream.Message{Data: []byte(`{"id":"r-1-7","actions":["a"]}`),
			Headers: []stream.Header{{Key: "h", Value: "1"}}})
		if !strings.Contains(got, c.want) || (c.err != nil) != strings.Contains(got, "503") {
			t.Errorf("%v: %s, want %s", c.err, got, c.want)
		}
	}
}

// TestRelease holds that a request which waits for something else is none of those that wait for the handler.
func TestRelease(t *testing.T) {
	waits, g := make(chan [2]int), (*Gate)(nil)
	ready := make(chan struct{})
	g = NewGate("decide", watch.NewMetrics(nil, nil), func(m stream.Message, _ time.Time) {
		<-ready
		before := g.Waiting()
		g.Release()
		waits <- [2]int{before, g.Waiting()}
		_ = m.Respond(nil)
	})
	for range 2 {
		g.Request(stream.Message{Respond: func([]byte, ...stream.Header) error { return nil }})
	}
	close(ready)
	if first, second := <-waits, <-waits; first != [2]int{2, 1} || second != [2]int{1, 0} {
		t.Errorf("before and after release wait %v, then %v", first, second)
	}
	g.Close()
	if got := replied(g.Request, stream.Message{}); !strings.Contains(got, "not ready: retry with the same id") {
		t.Errorf("a closed gate: %s", got)
	}
}

// tracing notes what a span of an outcome is told.
type tracing struct {
	trace.Tracer
	trace.Span
	notes chan string
}

func (x *tracing) Outcome(parent string, start time.Time, id string) trace.Span {
	x.notes <- fmt.Sprintf("outcome of %s in %s, now: %t", id, parent, time.Since(start) < time.Minute)
	return x
}
func (x *tracing) Stored(err error) { x.notes <- fmt.Sprint("stored: ", err == nil) }
func (x *tracing) End(replied bool) { x.notes <- fmt.Sprint("ended: ", replied) }

// TestServeOutcomes holds that outcomes are served while they can be stored, and what is told of one that is, and of
// one that is not.
func TestServeOutcomes(t *testing.T) {
	fault := mem.None
	log := mem.New(mem.Options{OnAppend: func(string, int, *stream.Record) mem.Fault { return fault }})
	defer log.Close()
	b, x := &served{by: map[string]func(stream.Message){}}, &tracing{notes: make(chan string, 9)}
	s := NewServer(Config{Bus: b, Name: "m", Partitions: 2, Trace: x})
	if _, err := s.ServeOutcomes(t.Context(), log); !errors.Is(err, stream.ErrNotFound) {
		t.Errorf("without a topic: %v", err)
	}
	if err := log.Create(t.Context(), "m.outcomes", 2, stream.TopicOptions{}); err != nil {
		t.Fatal(err)
	}
	b.fail = "m.outcome"
	if _, err := s.ServeOutcomes(t.Context(), log); !errors.Is(err, errServe) {
		t.Errorf("not served: %v", err)
	}
	b.fail = ""
	o, err := s.ServeOutcomes(t.Context(), log)
	if err != nil {
		t.Fatal(err)
	}
	const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	for _, c := range []struct {
		body  string
		fault mem.Fault
		want  string
		spans bool
	}{
		{`{"id":"a","loss":1}`, mem.None, `"stored":true`, true},
		{`{"id":"a","loss":1}`, mem.Full, "the outcome log failed (", true},
		{`{"id":"a","loss":"x"}`, mem.None, "400", false},
		{`{"id":"a","loss":1,"x":"` + strings.Repeat("x", codec.MaxOutcomeBytes) + `"}`, mem.None, "413", false},
	} {
		fault = c.fault
		got := replied(b.by["m.outcome"], stream.Message{Data: []byte(c.body),
			Headers: []stream.Header{{Key: trace.Header, Value: parent}}})
		if !strings.Contains(got, c.want) {
			t.Errorf("%.40s: %s", c.body, got)
		}
		if !c.spans {
			continue
		}
		for _, want := range []string{"outcome of a in " + parent + ", now: true",
			fmt.Sprint("stored: ", c.fault == mem.None), "ended: true"} {
			if note := <-x.notes; note != want {
				t.Errorf("%.40s: %s, want %s", c.body, note, want)
			}
		}
	}
	if o.Close(); len(b.by) != 1 {
		t.Errorf("%s is served", b.subjects())
	}
}
