package front

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestAdmission holds, of systems in virtual time whose requests come at random, one by one
// or 64 at once: below capacity fewer than one in a hundred is refused, from a second after
// an overload on, too; at twice the capacity, from a second on, what is taken keeps its
// latency, and is nearly all that could be. Where 64 come at once an overload that has gaps
// may pass for bursts: they wait as long as those may.
func TestAdmission(t *testing.T) {
	length := 2 * time.Second
	if os.Getenv("HINDSIGHT_LONG") != "" {
		length = time.Minute
	}
	for _, c := range []struct {
		name string
		station
	}{
		{"plain", station{cost: 70 * us, lag: 300 * us}},
		{"slow", station{cost: 200 * us, lag: 300 * us}},
		{"far log", station{cost: 70 * us, lag: 40 * ms}},
		{"commits", station{cost: 70 * us, lag: 300 * us, commit: 12 * ms}},
		{"rare long pauses", station{cost: 70 * us, lag: 300 * us, every: 2000 * ms, pause: 80 * ms}},
		{"frequent pauses", station{cost: 70 * us, lag: 300 * us, every: 20 * ms, pause: 5 * ms}},
		{"shared processor", station{cost: 60 * us, bus: 10 * us, lag: 100 * us}},
		{"shared processor, busy", station{cost: 60 * us, bus: 10 * us, lag: 100 * us, every: 100 * ms,
			pause: 20 * ms}},
	} {
		if testing.Short() && c.name != "plain" { // under the race detector, which sees nothing here
			continue
		}
		for _, batch := range []int{1, 64} {
			t.Run(fmt.Sprintf("%s, %d at once", c.name, batch), func(t *testing.T) {
				q := newQueue(c.station, batch)
				calm := q.run(2*length, 0.8)
				q.run(time.Second, 2)
				loaded := q.run(length, 2)
				q.run(time.Second, 0.8)
				after := q.run(length, 0.8)
				t.Logf("at 0.8: %v\nat 2:   %v\nat 0.8: %v", calm, loaded, after)
				if calm.refused > 0.01 || after.refused > 0.01 {
					t.Error("too many are refused below capacity")
				}
				target := time.Duration(leastTarget)
				most, least := max(3*calm.p99, 3*target), 0.9
				if c.bus > 0 { // requests wait for the bus, too, which takes its part of the processor
					most, least = max(3*calm.p99, 6*target), 0.8*float64(c.cost)/float64(c.cost+c.bus)
				}
				if batch > 1 {
					most, least = max(most, time.Duration(burst)*3/2), least*3/4
				}
				if loaded.p99 > most {
					t.Error("those that are taken wait too long")
				}
				if loaded.served < least {
					t.Error("too few are taken")
				}
			})
		}
	}
}

// TestAdmissionUnderOverload holds that twice what can be served is refused by half, that
// what is served is as much as before, and that it waits no longer than the target.
func TestAdmissionUnderOverload(t *testing.T) {
	q := newQueue(station{cost: 70 * us, lag: 300 * us}, 1) // 14,000 a second
	calm := q.run(2*time.Second, 0.8)
	q.run(time.Second/2, 2) // until it has seen that it is overloaded
	loaded := q.run(5*time.Second, 2)
	t.Logf("at 0.8: %v; at 2: %v", calm, loaded)
	if calm.refused > 0 {
		t.Error("some are refused at 0.8 of the capacity")
	}
	if loaded.served < 0.97 || loaded.served > 1.03 {
		t.Errorf("it served %.2f of its capacity", loaded.served)
	}
	if loaded.p99 > time.Duration(leastTarget)+2*time.Millisecond {
		t.Errorf("p99 of %v under overload", loaded.p99)
	}
}

// TestAdmissionOnset holds how long any request waits while nothing tells yet that more
// comes than can be answered.
func TestAdmissionOnset(t *testing.T) {
	for _, load := range []float64{1.2, 2, 10} {
		q := newQueue(station{cost: 70 * us, lag: 300 * us}, 1)
		q.run(time.Second, 0.8)
		if got := q.run(2*time.Second, load); got.most > time.Duration(burst)+10*time.Millisecond {
			t.Errorf("at %v times the capacity: %v", load, got)
		}
	}
}

// TestAdmissionTarget holds what the wait may be under overload: it follows a log that
// takes long for an answer, but no single stall.
func TestAdmissionTarget(t *testing.T) {
	for _, c := range []struct {
		name       string
		log, stall int64
		want       int64
	}{{"fast", 1 * ms, 0, 5 * ms}, {"stall", 1 * ms, 80 * ms, 5 * ms}, {"slow", 12 * ms, 0, 30 * ms}} {
		a := admission{overload: true}
		now := int64(0)
		for i := range 1000 {
			seq, _ := a.take(now, 1)
			now += c.log
			if i == 500 {
				now += c.stall
			}
			a.answered(seq, now)
			a.overload = true
		}
		if got := int64(a.limit()); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, time.Duration(got), time.Duration(c.want))
		}
	}
}

// TestAdmissionStall holds that a stall of the log refuses nobody if it is as long as a burst
// may take, and that few requests wait out a long one.
func TestAdmissionStall(t *testing.T) {
	q := newQueue(station{cost: 20 * us, lag: 200 * us}, 1)
	q.run(time.Second, 0.1)
	q.now += 180 * ms // nothing is served for so long
	if got := q.run(time.Second, 0.1); got.refused > 0 {
		t.Errorf("a stall of 180 ms: %v", got)
	}
	q.now += 2000 * ms
	if got := q.run(time.Second, 0.0002); got.refused > 0 {
		t.Errorf("ten requests a second and a stall of 2 s: %v", got)
	}
}

// TestAdmissionSlowLog holds that a log that begins to take 40 ms for an answer is no overload.
func TestAdmissionSlowLog(t *testing.T) {
	q := newQueue(station{cost: 10 * us, lag: 300 * us}, 1)
	q.run(time.Second, 0.01)
	q.lag = 40 * ms // from now on
	if got := q.run(5*time.Second, 0.05); got.refused > 0.001 {
		t.Errorf("%v", got)
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
	if !a.ring[fewWaiting-1].calm || a.ring[fewWaiting].calm {
		t.Error("few wait before the first of many")
	}
	a.answered(0, 1)
	if _, ok := a.take(1, 1); !ok {
		t.Error("no room after one was answered")
	}
	if _, ok := new(admission).take(0, 2*maxWaitingBytes); !ok {
		t.Error("alone, whatever its size, a request waits for nothing")
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

// TestFewWait holds that under overload, too, a few may wait, however long an answer takes, and no more than those.
func TestFewWait(t *testing.T) {
	a := admission{overload: true, excess: burst, pace: pace{time: leastPace * 100 * float64(ms), answers: leastPace}}
	for i := range fewWaiting + 1 {
		if _, ok := a.take(0, 1); ok != (i < fewWaiting) {
			t.Errorf("with %d waiting a request is taken: %v", i, ok)
		}
	}
}

// TestCalm: the least of what some blocks of requests took, from the first one on.
func TestCalm(t *testing.T) {
	var c calm
	if got := c.took(); got != 0 {
		t.Errorf("%d of none", got)
	}
	for i := range 2 * calmBlock {
		c.note(int64(900 - i))
		if got := c.took(); got != int64(900-i) {
			t.Fatalf("after %d: %d", i+1, got)
		}
	}
}

// TestIdleCounts holds that time in which nobody waited counts more from the last answer on, not from the last request.
func TestIdleCounts(t *testing.T) {
	a := admission{excess: burst, pace: pace{at: 90 * ms}}
	a.came(100 * ms)
	if want := burst - float64((100+idleCounts*10)*ms); a.excess != want {
		t.Errorf("%v of work left, want %v", time.Duration(a.excess), time.Duration(want))
	}
}
