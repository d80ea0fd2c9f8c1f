package engine_test

import (
	"fmt"
	"math/rand/v2"
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
	random  *rand.Rand

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
	f := &flood{conn: conn, subject: name + ".decide", sent: map[int]time.Time{}, other: map[string]int{},
		random: rand.New(rand.NewPCG(1, 2)), answers: make(chan struct{}, 1)}
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
	return fmt.Sprintf("%.0f/s asked, %.0f/s decided in p50 %.2f ms, p99 %.2f ms, %.0f/s refused in p99 %.2f ms, "+
		"%.0f/s other",
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

// open asks at a rate whether or not it is answered: so many at once, at times of a Poisson
// process. What has no answer in the end counts in the next run, unless it is waited for.
func (f *flood) open(b testing.TB, rate float64, batch int, length time.Duration) floodFigures {
	gap := float64(batch) / rate * float64(time.Second)
	began, due := time.Now(), time.Duration(0)
	for due < length {
		if wait := due - time.Since(began); wait > 0 {
			time.Sleep(wait)
		}
		for range batch {
			f.send(b)
		}
		due += time.Duration(f.random.ExpFloat64() * gap)
	}
	took := time.Since(began)
	return f.figures(took)
}

// overloadLoads are what the benchmark asks for, as multiples of the capacity.
var overloadLoads = []struct {
	name  string
	load  float64
	batch int // requests at once
}{{"0.8", 0.8, 1}, {"0.8x64", 0.8, 64}, {"1.2", 1.2, 1}, {"2", 2, 1}}

const (
	// overloadTurns is how often a run asks at each rate: the machine may do other things for
	// a part of a turn, of which the medians tell nothing.
	overloadTurns = 3
	// overloadBegins is how long a load goes on before it is measured: an overload is known as
	// one when 200 ms of work too much have come, which takes a second at 1.2.
	overloadBegins = time.Second
)

// overloadTurn is what was seen of each of overloadLoads.
type overloadTurn []floodFigures

// BenchmarkOverload asks for decisions at 0.8 (one by one, and 64 at once), 1.2 and 2 times
// what the system can decide, at random times, turn by turn in one run, and reports which
// share is refused, the 99th percentile of the time to a decision, and how that at 2 is to
// that at 0.8, as medians of the turns. Load and system share the machine: what the load
// costs is missing to the system.
func BenchmarkOverload(b *testing.B) {
	s := start(b, "100 rounds")
	defer s.stop()
	f := newFlood(b, s.URL, s.name)
	f.closed(b, 32, time.Second)
	capacity := f.closed(b, 64, 2*time.Second)
	b.Logf("capacity: %v", capacity)
	var turns []overloadTurn
	for b.Loop() {
		for range overloadTurns {
			var turn overloadTurn
			for _, l := range overloadLoads {
				begun := f.open(b, l.load*capacity.served, l.batch, overloadBegins)
				r := f.open(b, l.load*capacity.served, l.batch, 2*time.Second)
				b.Logf("%-6s %v; before: %.0f/s refused, p99 %.2f ms", l.name, r, begun.refused,
					begun.p99.Seconds()*1e3)
				f.settle()
				f.figures(1) // of what came late
				turn = append(turn, r)
			}
			turns = append(turns, turn)
		}
	}
	report := func(name string, of func(overloadTurn) float64) {
		var all []float64
		for _, t := range turns {
			all = append(all, of(t))
		}
		b.ReportMetric(median(all), name)
	}
	for i, l := range overloadLoads {
		report("refused-at-"+l.name+"-%", func(t overloadTurn) float64 { return 100 * t[i].refused / t[i].asked })
		report("p99-at-"+l.name+"-ms", func(t overloadTurn) float64 { return t[i].p99.Seconds() * 1e3 })
	}
	last := len(overloadLoads) - 1
	report("p99-2/0.8", func(t overloadTurn) float64 { return t[last].p99.Seconds() / t[0].p99.Seconds() })
	report("p99-of-503-ms", func(t overloadTurn) float64 { return t[last].p99refused.Seconds() * 1e3 })
	report("decided-at-2/capacity", func(t overloadTurn) float64 { return t[last].served / capacity.served })
	b.ReportMetric(capacity.served, "capacity/s")
	b.ReportMetric(0, "ns/op")
}
