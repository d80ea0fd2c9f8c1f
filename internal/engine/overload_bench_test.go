package engine_test

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"
)

// flood asks for decisions at a rate, whether or not they are answered.
type flood struct {
	conn    *natsgo.Conn
	subject string
	next    int // of the context

	mu      sync.Mutex
	sent    map[int]time.Time
	took    []time.Duration // of decisions
	refused []time.Duration // of 503
	other   map[string]int
	answers chan struct{}
}

func newFlood(b testing.TB, url, name string) *flood {
	b.Helper()
	conn, err := natsgo.Connect(url)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(conn.Close)
	f := &flood{conn: conn, subject: name + ".decide", sent: map[int]time.Time{}, other: map[string]int{}, answers: make(chan struct{}, 1)}
	sub, err := conn.Subscribe(f.inbox("*"), f.answered)
	if err != nil {
		b.Fatal(err)
	}
	if err := sub.SetPendingLimits(-1, -1); err != nil {
		b.Fatal(err)
	}
	return f
}

func (f *flood) inbox(last string) string { return fmt.Sprintf("_INBOX.flood%p.%s", f, last) }

func (f *flood) answered(m *natsgo.Msg) {
	now := time.Now()
	n, _ := strconv.Atoi(m.Subject[strings.LastIndexByte(m.Subject, '.')+1:])
	f.mu.Lock()
	defer f.mu.Unlock()
	took := now.Sub(f.sent[n])
	delete(f.sent, n)
	switch code := m.Header.Get("Nats-Service-Error-Code"); code {
	case "":
		f.took = append(f.took, took)
	case "503":
		f.refused = append(f.refused, took)
	default:
		f.other[code]++
	}
	select {
	case f.answers <- struct{}{}:
	default:
	}
}

// send asks once, without waiting.
func (f *flood) send(b testing.TB) {
	f.next++
	f.mu.Lock()
	f.sent[f.next] = time.Now()
	f.mu.Unlock()
	if err := f.conn.PublishRequest(f.subject, f.inbox(strconv.Itoa(f.next)), contextRecord(nil, f.next)); err != nil {
		b.Fatal(err)
	}
}

func (f *flood) waiting() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.sent)
}

// settle waits until everything is answered.
func (f *flood) settle() {
	for f.waiting() > 0 {
		<-f.answers
	}
}

// floodFigures are of one run.
type floodFigures struct {
	asked, served, refused, others float64 // a second
	p50, p99, p99refused           time.Duration
}

// figures returns what a run of a length saw, and forgets it.
func (f *flood) figures(length time.Duration) (r floodFigures) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := length.Seconds()
	r.served, r.refused = float64(len(f.took))/s, float64(len(f.refused))/s
	for _, n := range f.other {
		r.others += float64(n) / s
	}
	if r.asked = r.served + r.refused + r.others; len(f.took) > 0 {
		r.p50, r.p99 = percentile(f.took, 50), percentile(f.took, 99)
	}
	if len(f.refused) > 0 {
		r.p99refused = percentile(f.refused, 99)
	}
	f.took, f.refused = nil, nil
	clear(f.other)
	return r
}

func (r floodFigures) String() string {
	return fmt.Sprintf("%.0f/s asked, %.0f/s decided in p50 %.2f ms, p99 %.2f ms, %.0f/s refused in p99 %.2f ms, %.0f/s other",
		r.asked, r.served, r.p50.Seconds()*1e3, r.p99.Seconds()*1e3, r.refused, r.p99refused.Seconds()*1e3, r.others)
}

// closed keeps so many requests waiting for a time: what is answered is what can be.
func (f *flood) closed(b testing.TB, waiting int, length time.Duration) floodFigures {
	began := time.Now()
	for time.Since(began) < length {
		for f.waiting() < waiting {
			f.send(b)
		}
		<-f.answers
	}
	took := time.Since(began)
	f.settle()
	return f.figures(took)
}

// open asks at a rate, in ticks of a millisecond.
func (f *flood) open(b testing.TB, rate float64, length time.Duration) floodFigures {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	began, n := time.Now(), 0
	for past := time.Duration(0); past < length; past = time.Since(began) {
		for ; float64(n) < rate*past.Seconds(); n++ {
			f.send(b)
		}
		<-tick.C
	}
	took := time.Since(began)
	f.settle()
	return f.figures(took)
}

// overloadTurns is how often a run asks at either rate: the machine may do other things for
// a part of a turn, of which the medians tell nothing.
const overloadTurns = 3

// BenchmarkOverload asks for decisions at 0.8 and at 2 times what the system can decide,
// turn by turn in one run, and reports the 99th percentile of the time to a decision, and
// how one is to the other, as medians of the turns. Load and system share the machine: what
// the load costs is missing to the system.
func BenchmarkOverload(b *testing.B) {
	s := start(b, "100 rounds")
	defer s.stop()
	f := newFlood(b, s.URL, s.name)
	f.closed(b, 32, time.Second)
	capacity := f.closed(b, 64, 2*time.Second)
	b.Logf("capacity: %v", capacity)
	var calm, loaded, ratio, served, refused []float64
	for b.Loop() {
		for range overloadTurns {
			c := f.open(b, 0.8*capacity.served, 2*time.Second)
			l := f.open(b, 2*capacity.served, 2*time.Second)
			b.Logf("0.8: %v\n2:   %v", c, l)
			calm, loaded, ratio = append(calm, c.p99.Seconds()), append(loaded, l.p99.Seconds()), append(ratio, l.p99.Seconds()/c.p99.Seconds())
			served, refused = append(served, l.served/capacity.served), append(refused, l.p99refused.Seconds())
		}
	}
	b.ReportMetric(capacity.served, "capacity/s")
	b.ReportMetric(median(calm)*1e3, "p99-at-0.8-ms")
	b.ReportMetric(median(loaded)*1e3, "p99-at-2-ms")
	b.ReportMetric(median(ratio), "p99-2/0.8")
	b.ReportMetric(median(refused)*1e3, "p99-of-503-ms")
	b.ReportMetric(median(served), "decided-at-2/capacity")
}
