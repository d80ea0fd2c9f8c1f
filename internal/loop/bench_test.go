package loop

import (
	"fmt"
	"strconv"
	"testing"
	"time"
	"unsafe"

	"hindsight/pkg/codec"
	"hindsight/pkg/learner"
)

// heat is the hot path at a steady state: K = 10 actions, 16 features, the linear
// oracle, a joiner and a decider that remember as many rounds as they may.
type heat struct {
	t       testing.TB
	replica *Replica
	decider *Decider
	joiner  *Joiner
	raws    [][]byte
	dec     codec.Decision
	wire    []byte
	outcome codec.Outcome
	outWire []byte
	ready   []codec.Feedback
	fbWire  []byte
	fb      codec.Feedback
	round   int64
}

func hotContext(i int, json bool) []byte {
	c := codec.Context{}
	for k := range 16 {
		c.Features = append(c.Features, codec.Feature{Name: fmt.Sprint("feature", k), Kind: codec.Number, Value: float64((i*7+k*5)%23) / 23})
	}
	for k := range 10 {
		c.Actions = append(c.Actions, codec.Action{Name: fmt.Sprint("action", k)})
	}
	if json {
		return codec.AppendContextJSON(nil, &c)
	}
	return codec.AppendContext(nil, &c)
}

func newHeat(t testing.TB, json bool) *heat {
	h := &heat{t: t, replica: NewReplica()}
	rules := &Rules{MaxActions: 10, Range: Range{Max: 1}, Window: Window{Rounds: 64}}
	h.replica.Begin(Epoch{Number: 1, Rules: rules, Learner: newDAFA(t)})
	h.decider = NewDecider(h.replica, testSeed, "hot", 0, 1000)
	h.joiner = NewJoiner(JoinerOptions{Partitions: 1, MaxPending: 100, Dedup: 1000}, func(int64) *Rules { return rules })
	for i := range 64 {
		h.raws = append(h.raws, hotContext(i, json))
	}
	for range 3000 {
		h.decide()
		h.join()
		h.learn()
	}
	return h
}

func (h *heat) decide() {
	h.round++
	// A context without an id, as most requests come: one is minted.
	if res := h.decider.Decide(&h.dec, h.raws[h.round%64], "", Source{Offset: RequestSource}); res.Verdict != Decided {
		h.t.Fatal(res.Err)
	}
	h.wire = codec.AppendDecision(h.wire[:0], &h.dec)
}

func (h *heat) join() {
	if err := h.joiner.AddDecision(Place{0, h.round}, h.round, h.wire); err != nil {
		h.t.Fatal(err)
	}
	h.outcome = codec.Outcome{ID: h.dec.ID, Kind: codec.Loss, Value: float64(h.round%3) / 2}
	h.outWire = codec.AppendOutcome(h.outWire[:0], &h.outcome)
	h.joiner.AddOutcome(Place{0, h.round}, h.round, h.outWire, "")
	h.ready = h.joiner.AppendReady(h.ready[:0])
	if len(h.ready) != 1 {
		h.t.Fatalf("%d feedbacks are ready", len(h.ready))
	}
	h.fbWire = codec.AppendFeedback(h.fbWire[:0], &h.ready[0])
}

func (h *heat) learn() {
	if err := codec.ParseFeedback(&h.fb, h.fbWire); err != nil {
		h.t.Fatal(err)
	}
	if err := h.replica.Learn(&h.fb, nil); err != nil {
		h.t.Fatal(err)
	}
}

// The hot path does not allocate, bytes to bytes.
func TestNoAllocs(t *testing.T) {
	for _, json := range []bool{false, true} {
		h := newHeat(t, json)
		// Many rounds a run: the average is cut to an integer.
		if n := testing.AllocsPerRun(1, func() {
			for range 1000 {
				h.decide()
				h.join()
				h.learn()
			}
		}); n != 0 {
			t.Errorf("json %v: %v allocations in 1000 rounds", json, n)
		}
	}
}

// Several outcomes a round, windows that close, skipped rounds: the joiner does not
// allocate either.
func TestNoAllocsWindow(t *testing.T) {
	rules := &Rules{MaxActions: 10, Range: Range{Max: 1}, Window: Window{Rounds: 8}, Outcomes: Mean, Arrival: true}
	j := NewJoiner(JoinerOptions{Partitions: 1, MaxPending: 100, Dedup: 50}, func(int64) *Rules { return rules })
	d := codec.Decision{Epoch: 1, Actions: []string{"a", "b"}, Propensities: []float64{0.5, 0.5}, Context: []byte(`{}`)}
	var n, offset int64
	var id, wire []byte
	var ready []codec.Feedback
	step := func() {
		n++
		id = strconv.AppendInt(id[:0], n, 10)
		d.N, d.ID = n, unsafe.String(&id[0], len(id))
		wire = codec.AppendDecision(wire[:0], &d)
		if err := j.AddDecision(Place{0, n}, n, wire); err != nil {
			t.Fatal(err)
		}
		for k := range n % 3 {
			o := codec.Outcome{ID: d.ID, Kind: codec.Loss, Value: float64(k) / 2}
			wire = codec.AppendOutcome(wire[:0], &o)
			j.AddOutcome(Place{0, offset}, n, wire, "")
			offset++
		}
		ready = j.AppendReady(ready[:0])
	}
	for range 3000 {
		step()
	}
	if n := testing.AllocsPerRun(1, func() {
		for range 1000 {
			step()
		}
	}); n != 0 {
		t.Errorf("%v allocations in 1000 rounds", n)
	}
	if len(ready) != 1 {
		t.Errorf("%d feedbacks a step", len(ready))
	}
}

// BenchmarkHeart is one round through the heart, bytes to bytes, with the share of
// each part and its ratio to a floor: copying the bytes that a round writes and
// drawing its SHA-256, measured in the same run.
func BenchmarkHeart(b *testing.B) {
	for _, json := range []bool{false, true} {
		name := "context=msgpack"
		if json {
			name = "context=json"
		}
		b.Run(name, func(b *testing.B) {
			h := newHeat(b, json)
			b.ReportAllocs()
			var decide, join, learn time.Duration
			for b.Loop() {
				t0 := time.Now()
				h.decide()
				t1 := time.Now()
				h.join()
				t2 := time.Now()
				h.learn()
				decide, join, learn = decide+t1.Sub(t0), join+t2.Sub(t1), learn+time.Since(t2)
			}
			all := float64(decide + join + learn)
			b.ReportMetric(float64(decide)/all, "decide/round")
			b.ReportMetric(float64(join)/all, "join/round")
			b.ReportMetric(float64(learn)/all, "learn/round")
			b.ReportMetric(all/float64(h.floor(b.N)), "x-floor")
		})
	}
}

// floor is the least that n rounds could take: their bytes are copied, their draw made.
func (h *heat) floor(n int) time.Duration {
	var buf []byte
	from := time.Now()
	for i := range n {
		buf = append(buf[:0], h.wire...)
		buf = append(buf, h.outWire...)
		buf = append(buf, h.fbWire...)
		h.round += int64(learner.Uniform(testSeed, "hot", 0, int64(i), h.dec.ID) & 1)
	}
	return max(1, time.Since(from))
}

// BenchmarkParts measures each part alone, and what it is of a decision.
func BenchmarkParts(b *testing.B) {
	h := newHeat(b, false)
	raw := h.raws[0]
	var c codec.Context
	var law []float64
	parts := []struct {
		name string
		do   func()
	}{
		{"parse", func() { _ = codec.ParseContext(&c, raw); _ = c.Validate() }},
		{"propensities", func() { law, _ = h.replica.epoch.Learner.Propensities(law[:0], h.replica.reader.input()) }},
		{"draw", func() { _ = learner.Draw(h.dec.Propensities, learner.Uniform(testSeed, "hot", 0, h.round, h.dec.ID)) }},
		{"encode", func() { h.wire = codec.AppendDecision(h.wire[:0], &h.dec) }},
	}
	for _, part := range parts {
		b.Run("part="+part.name, func(b *testing.B) {
			b.ReportAllocs()
			from := time.Now()
			for b.Loop() {
				part.do()
			}
			each := float64(time.Since(from)) / float64(b.N)
			from = time.Now()
			for range b.N {
				h.decide()
			}
			b.ReportMetric(each*float64(b.N)/float64(time.Since(from)), "share-of-decide")
		})
	}
}
