package service

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const ms = int64(time.Millisecond)

// station is a system with one server, as a queue of requests sees it: each takes a time
// to serve, and is answered a time after that.
type station struct {
	a        admission
	now      int64
	serve    func(i int) int64 // ns of service
	lag      int64             // from the end of service to the answer
	free     int64             // when the server is done with all it has
	flying   []flyingRequest
	waits    []int64 // of those answered
	refused  int
	mostWait int
}

type flyingRequest struct {
	seq    uint64
	at     int64
	answer int64
}

// run lets requests come for a time, on average one each gap ns, at random.
func (s *station) run(r *rand.Rand, length, gap int64) {
	s.waits, s.refused = nil, 0
	for end := s.now + length; s.now < end; {
		s.now += int64(r.ExpFloat64() * float64(gap))
		s.answer()
		seq, ok := s.a.take(s.now, 100)
		if !ok {
			s.refused++
			continue
		}
		s.free = max(s.free, s.now) + s.serve(int(seq))
		s.flying = append(s.flying, flyingRequest{seq, s.now, s.free + s.lag})
		s.mostWait = max(s.mostWait, len(s.flying))
	}
}

func (s *station) answer() {
	for len(s.flying) > 0 && s.flying[0].answer <= s.now {
		f := s.flying[0]
		s.flying = s.flying[1:]
		s.a.answered(f.seq, f.answer)
		s.waits = append(s.waits, f.answer-f.at)
	}
}

func p99(waits []int64) int64 {
	slices.Sort(waits)
	return waits[len(waits)*99/100]
}

// TestAdmissionUnderOverload holds that twice what can be served is refused by half, that
// what is served is as much as before, and that it waits at most a few times longer than
// at 0.8 of that load.
func TestAdmissionUnderOverload(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	s := &station{serve: func(int) int64 { return 50_000 + int64(r.ExpFloat64()*20_000) }, lag: 300_000} // 14,000 a second
	s.run(r, 2e9, 70_000*10/8)
	calm, refusedCalm := p99(s.waits), s.refused
	s.run(r, 5e8, 35_000) // until it has seen that it is overloaded
	s.run(r, 5e9, 35_000)
	loaded := p99(s.waits)
	served := float64(len(s.waits)) * 70_000 / 5e9
	t.Logf("p99 at 0.8: %.2f ms, %d refused; at 2: %.2f ms, %d served and %d refused", float64(calm)/1e6, refusedCalm, float64(loaded)/1e6, len(s.waits), s.refused)
	if refusedCalm > 0 {
		t.Errorf("%d refused at 0.8 of the capacity", refusedCalm)
	}
	if served < 0.97 || served > 1.03 {
		t.Errorf("it served %.2f of its capacity", served)
	}
	if loaded > int64(leastTarget)+2*ms {
		t.Errorf("p99 of %.2f ms under overload", float64(loaded)/1e6)
	}
}

// machine has one processor that the bus and the decider share: the bus hands over all that
// has come before the decider goes on, and that works off all it has, or what fits into its
// turn, before the bus goes on. A request waits for the bus, too.
type machine struct {
	a       admission
	now     int64
	pause   func(now int64) int64 // how long the processor is away now
	waits   []int64
	refused int
}

const (
	busCost    = 10_000 // ns for a request
	decideCost = 60_000
	turn       = 10 * ms
)

// run lets requests come for a time, one each gap ns.
func (m *machine) run(length, gap int64) {
	m.waits, m.refused = nil, 0
	type taken struct {
		seq uint64
		at  int64
	}
	var queue []taken
	for next, end := m.now, m.now+length; next < end || len(queue) > 0; {
		m.now += m.pause(m.now)
		for ; next < min(m.now, end); next += gap {
			m.now += busCost
			if seq, ok := m.a.take(m.now, 100); ok {
				queue = append(queue, taken{seq, next})
			} else {
				m.refused++
			}
		}
		m.now += busCost
		for began := m.now; len(queue) > 0 && m.now < began+turn; queue = queue[1:] {
			m.now += decideCost
			m.a.answered(queue[0].seq, m.now)
			m.waits = append(m.waits, m.now-queue[0].at)
		}
	}
}

// TestAdmissionSharedProcessor holds the ratio of waits under overload on a machine whose
// bus starves while the decider is at work, from the first request of the flood on: there
// the queue at the decider is empty again and again.
func TestAdmissionSharedProcessor(t *testing.T) {
	for _, c := range []struct {
		name        string
		every, away int64 // the processor is away for so long in each so long
	}{{"calm", 0, 0}, {"pauses", 100 * ms, 20 * ms}, {"turns", 20 * ms, 12 * ms}} {
		m := &machine{pause: func(now int64) int64 {
			if c.every > 0 && now%c.every < c.away {
				return c.away - now%c.every
			}
			return 0
		}}
		cost := float64(busCost + decideCost)
		if c.every > 0 {
			cost /= 1 - float64(c.away)/float64(c.every)
		}
		m.run(2e9, int64(cost/0.8))
		calm, refusedCalm := p99(m.waits), m.refused
		m.run(2e9, int64(cost/2))
		loaded, served := p99(m.waits), float64(len(m.waits))*cost/2e9
		t.Logf("%s: p99 at 0.8: %.2f ms, %d refused; at 2: %.2f ms, %.2f served", c.name, float64(calm)/1e6, refusedCalm, float64(loaded)/1e6, served)
		if refusedCalm > 0 {
			t.Errorf("%s: %d refused at 0.8 of the capacity", c.name, refusedCalm)
		}
		if most := max(3*calm, 30*ms); loaded > most {
			t.Errorf("%s: p99 of %.2f ms under overload, %.2f before", c.name, float64(loaded)/1e6, float64(calm)/1e6)
		}
		if served < 0.6 {
			t.Errorf("%s: it served %.2f of its capacity", c.name, served)
		}
		m.run(2e9, int64(cost/0.8))
		m.run(2e9, int64(cost/0.8))
		if m.refused > 0 {
			t.Errorf("%s: %d refused at 0.8 of the capacity after the overload", c.name, m.refused)
		}
	}
}

// TestAdmissionTarget holds what the wait may be under overload: it follows answers that
// come in batches, but no single stall.
func TestAdmissionTarget(t *testing.T) {
	for _, c := range []struct {
		name         string
		batch, stall int64
		want         int64
	}{{"steady", ms, 0, 5 * ms}, {"stall", ms, 80 * ms, 5 * ms}, {"batches", 12 * ms, 0, 6 * ms}} {
		var a admission
		var now int64
		for range 400 * ms / c.batch {
			var seqs []uint64
			for range 2 * fewWaiting {
				if seq, ok := a.take(now, 1); ok {
					seqs = append(seqs, seq)
				}
			}
			now += c.batch
			if c.stall > 0 && now == 300*ms {
				now += c.stall
			}
			for _, seq := range seqs {
				a.answered(seq, now)
			}
		}
		a.calmN = 0 // those that came while few waited
		if got := a.target(); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, time.Duration(got), time.Duration(c.want))
		}
	}
}

// TestAdmissionStall holds that a stall of the log that is shorter than its age limit
// refuses nobody, and that few requests wait out a long one.
func TestAdmissionStall(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	s := &station{serve: func(int) int64 { return 20_000 }, lag: 200_000}
	s.run(r, 1e9, 200_000)
	s.free = s.now + 80*ms // nothing is served for so long
	s.run(r, 1e9, 200_000)
	if s.refused > 0 {
		t.Errorf("a stall of 80 ms: %d refused", s.refused)
	}
	s.free = s.now + 2000*ms
	s.run(r, 1e9, 100*ms)
	if s.refused > 0 {
		t.Errorf("ten requests a second and a stall of 2 s: %d refused", s.refused)
	}
}

// TestAdmissionSlowLog holds that a log that takes 40 ms for an answer is no overload.
func TestAdmissionSlowLog(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	s := &station{serve: func(int) int64 { return 10_000 }, lag: 300_000}
	s.run(r, 1e9, 1*ms)
	s.lag = 40 * ms // from now on
	s.run(r, 3e9, 200_000)
	s.run(r, 3e9, 200_000)
	if share := float64(s.refused) / float64(s.refused+len(s.waits)); share > 0.001 {
		t.Errorf("%.3f were refused", share)
	}
}

// TestAdmissionProperty holds for any course of requests and answers: what waits is
// bounded in number and bytes, a lone request is taken, and what was answered counts no
// more.
func TestAdmissionProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var a admission
		var now int64
		var open []uint64
		size := map[uint64]int{}
		bytes := 0
		for range rapid.IntRange(1, 400).Draw(t, "steps") {
			now += rapid.Int64Range(0, 50*ms).Draw(t, "later")
			if len(open) > 0 && rapid.Bool().Draw(t, "answer") {
				i := rapid.IntRange(0, len(open)-1).Draw(t, "which")
				a.answered(open[i], now)
				a.answered(open[i], now) // a second time is passed over
				bytes -= size[open[i]]
				open = slices.Delete(open, i, i+1)
			} else {
				n := rapid.IntRange(0, maxWaitingBytes/4).Draw(t, "size")
				seq, ok := a.take(now, n)
				if !ok && len(open) == 0 {
					t.Fatal("a lone request was refused")
				}
				if ok {
					open, size[seq] = append(open, seq), n
					bytes += n
				}
			}
			if now < int64(givenUp) && (a.bytes != bytes || a.waiting() < len(open)) {
				t.Fatalf("%d bytes of %d, %d waiting of %d", a.bytes, bytes, a.waiting(), len(open))
			}
			if a.bytes > maxWaitingBytes || a.waiting() > maxWaiting {
				t.Fatalf("%d bytes, %d requests wait", a.bytes, a.waiting())
			}
		}
	})
}

// TestAdmissionLimits takes what is just within the limits and refuses what is over.
func TestAdmissionLimits(t *testing.T) {
	var a admission
	for i := range maxWaiting {
		if _, ok := a.take(0, 1); !ok {
			t.Fatalf("request %d of %d at once was refused", i+1, maxWaiting)
		}
	}
	if _, ok := a.take(0, 1); ok {
		t.Errorf("%d at once", maxWaiting+1)
	}
	a.answered(0, 1)
	if _, ok := a.take(1, 1); !ok {
		t.Error("no room after one was answered")
	}
	for _, c := range []struct {
		size int
		ok   bool
	}{{maxWaitingBytes - 10, true}, {maxWaitingBytes - 9, false}, {2 * maxWaitingBytes, false}} {
		var a admission
		a.take(0, 10)
		if _, ok := a.take(0, c.size); ok != c.ok {
			t.Errorf("10 bytes and %d: %v", c.size, ok)
		}
	}
}

// TestAdmissionForgets holds that a request that never gets its answer does not close the
// gate for good.
func TestAdmissionForgets(t *testing.T) {
	var a admission
	a.take(0, 1)
	now := int64(0)
	last := int64(0)
	for i := range 2000 {
		now = int64(i) * 50 * ms
		if seq, ok := a.take(now, 1); ok {
			a.answered(seq, now+ms)
			last = now
		}
	}
	if last != now || a.waiting() != 0 {
		t.Errorf("the last was taken at %v of %v; %d wait", time.Duration(last), time.Duration(now), a.waiting())
	}
}

// TestAdmissionDoesNotAllocate holds it for a request and its answer.
func TestAdmissionDoesNotAllocate(t *testing.T) {
	var a admission
	now := int64(0)
	if n := testing.AllocsPerRun(1000, func() {
		now += ms
		seq, _ := a.take(now, 100)
		a.answered(seq, now)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestRates holds the rate of a client at, under and over its limit, and that clients do
// not share theirs.
func TestRates(t *testing.T) {
	start := time.Unix(1000, 0)
	r := newRates(100)
	count := func(client string, n int, at time.Duration) (taken int) {
		for range n {
			if r.allow(client, start.Add(at)) {
				taken++
			}
		}
		return taken
	}
	for _, c := range []struct {
		client string
		n      int
		at     time.Duration
		want   int
	}{
		{"a", 99, 0, 99},
		{"a", 2, 0, 1}, // at the limit and over it
		{"b", 101, 0, 100},
		{"a", 1, 5 * time.Millisecond, 0},
		{"a", 2, 10 * time.Millisecond, 1},
		{"a", 1000, time.Hour, 100},
		{"", 1000, 0, 1000}, // who cannot be told apart
		{"a", 1, 0, 0},      // a clock that goes back gives nothing
	} {
		if got := count(c.client, c.n, c.at); got != c.want {
			t.Errorf("%q asks %d times at %v: %d, want %d", c.client, c.n, c.at, got, c.want)
		}
	}
	for i := range 3 * rateClients {
		r.allow(string(rune('a'+i%26))+time.Duration(i).String(), start.Add(time.Duration(i)))
		if len(r.clients) > rateClients {
			t.Fatalf("%d clients are remembered", len(r.clients))
		}
	}
	if newRates(0) != nil {
		t.Error("no limit is one")
	}
}
