package loop

import (
	"fmt"
	"testing"
	"time"

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
	cut     codec.Cut
	batches [2]Batch
	raws    [][]byte
	dec     codec.Decision
	wire    []byte
	outcome codec.Outcome
	outWire []byte
	ready   Ready
	fbWire  []byte
	fb      codec.Feedback
	round   int64
}

func hotContext(i int, json bool) []byte {
	c := codec.Context{}
	for k := range 16 {
		c.Features = append(c.Features, codec.Feature{Name: fmt.Sprint("feature", k), Kind: codec.Number,
			Value: float64((i*7+k*5)%23) / 23})
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
	h.joiner = NewJoiner(1, codec.Limits{Heart: Heart, Pending: 100, Dedup: 1000}, 1,
		func(int64) *Rules { return rules })
	h.cut = codec.Cut{Decisions: make([]codec.Range, 1), Outcomes: make([]codec.Range, 1)}
	h.batches = [2]Batch{{Decisions: make([]DecisionEvent, 1)}, {Outcomes: make([]OutcomeEvent, 1)}}
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
	d, o := &h.batches[0].Decisions[0], &h.batches[1].Outcomes[0]
	d.Offset, d.Time, o.Offset, o.Time = h.round, h.round, h.round, h.round
	if err := d.Parse("", h.wire); err != nil {
		h.t.Fatal(err)
	}
	h.outcome = codec.Outcome{ID: h.dec.ID, Kind: codec.Loss, Value: float64(h.round%3) / 2}
	h.outWire = codec.AppendOutcome(h.outWire[:0], &h.outcome)
	o.Parse("", h.outWire, "")
	h.cut.Cut, h.cut.Time = h.round, h.round
	h.cut.Decisions[0].Next, h.cut.Outcomes[0].Next = h.round+1, h.round+1
	if err := h.joiner.Take(&h.cut, h.batches[:]); err != nil {
		h.t.Fatal(err)
	}
	h.joiner.Ready(&h.ready)
	if len(h.ready.Feedback) != 1 {
		h.t.Fatalf("%d feedbacks are ready", len(h.ready.Feedback))
	}
	h.fbWire = codec.AppendFeedback(h.fbWire[:0], &h.ready.Feedback[0])
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
		{"draw", func() {
			_ = learner.Draw(h.dec.Propensities, learner.Uniform(testSeed, "hot", 0, h.round, h.dec.ID))
		}},
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
