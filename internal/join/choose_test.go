package join

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"hindsight/internal/intake"
	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/mem"
)

// ceaseless is a log in which five decisions come in each partition whenever somebody asks for an end, some times.
type ceaseless struct {
	*mem.Log
	*testing.T
	decisions []stream.Appender
	times     int
}

func (l *ceaseless) Bounds(ctx context.Context, topic string, partition int) (int64, int64, error) {
	if l.times--; l.times >= 0 {
		for _, a := range l.decisions {
			for range 5 {
				l.append(a)
			}
		}
	}
	return l.Log.Bounds(ctx, topic, partition)
}

func (l *ceaseless) append(a stream.Appender) {
	l.Helper()
	_, err := a.Append(l.Context(), &stream.Record{Value: []byte("x")})
	l.must(err)
}

func (l *ceaseless) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

// chooser returns a chooser of a log in which each partition has one record.
func (l *ceaseless) chooser(partitions int) *chooser {
	l.Helper()
	var inputs []*intake.Input
	for _, topic := range []string{"d", "o"} {
		l.must(l.Create(l.Context(), topic, partitions, stream.TopicOptions{}))
		for p := range partitions {
			a, err := l.Writer(l.Context(), topic, p, nil)
			l.must(err)
			l.append(a)
			in, err := intake.Open(l.Context(), l, topic, p, 0)
			l.must(err)
			l.Cleanup(in.Close)
			if inputs = append(inputs, in); topic == "d" {
				l.decisions = append(l.decisions, a)
			}
		}
	}
	limits := codec.Limits{Heart: loop.Heart, Pending: 1 << 20, Dedup: 1 << 20}
	return newChooser(inputs, loop.NewJoiner(partitions, limits, 1, nil), 0)
}

// choose polls and chooses.
func (l *ceaseless) choose(c *chooser) {
	l.Helper()
	_, _, err := c.poll(l.Context())
	l.must(err)
	_, err = c.choose(l.Context())
	l.must(err)
}

// TestDecisionsNeverCease holds that the cuts move log time though more decisions have come whenever the
// joiner looks than a reader gives at once: without that no round is due until those are read that fill
// the joiner's lead.
func TestDecisionsNeverCease(t *testing.T) {
	for _, partitions := range []int{1, 3} {
		t.Run(fmt.Sprint(partitions, " partitions"), func(t *testing.T) {
			log := &ceaseless{Log: mem.New(mem.Options{MaxBatch: 2, StrictBytes: true}), T: t}
			c := log.chooser(partitions)
			log.times = 1 << 30
			last := int64(0)
			for cut := range 10 {
				log.choose(c)
				if c.ahead || c.time <= last {
					t.Fatalf("cut %d: log time %d, was %d, decisions ahead: %t", cut, c.time, last, c.ahead)
				}
				last = c.time
				c.taken()
			}
		})
	}
}

// TestPatient holds that a patient chooser reads decisions until none come, and another one four times.
func TestPatient(t *testing.T) {
	for _, patient := range []bool{false, true} {
		log := &ceaseless{Log: mem.New(mem.Options{MaxBatch: 2, StrictBytes: true}), T: t}
		c := log.chooser(2)
		c.patient = patient
		log.must(c.inputs[0].FetchEnd(t.Context()))
		log.times = 20
		log.choose(c)
		if had := log.times <= 0 && len(c.inputs[0].Batch) == 101; had != patient {
			t.Errorf("patient %t: %d decisions in hand, %d times left", patient, len(c.inputs[0].Batch), log.times)
		}
	}
}

// TestWindowInRoundsEnds holds that decisions that come one by one end a window in rounds, though no outcome does: they
// are not left behind the first of them until a cut takes that.
func TestWindowInRoundsEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &ceaseless{Log: mem.New(mem.Options{}), T: t}
		rules := &loop.Rules{Range: loop.Range{Max: 1}, Window: loop.Window{Rounds: 3}}
		c := log.chooser(1)
		c.heart = loop.NewJoiner(1, codec.Limits{Heart: loop.Heart, Pending: 9, Dedup: 9}, 1,
			func(int64) *loop.Rules { return rules })
		decided := loop.DecisionEvent{Time: 1, D: codec.Decision{N: 1, ID: "a"}}
		log.must(c.heart.Take(&codec.Cut{Cut: 1, Time: 1, Decisions: []codec.Range{{Next: 1}}},
			[]loop.Batch{{Decisions: []loop.DecisionEvent{decided}}}))
		for _, in := range c.inputs {
			in.Start(t.Context(), func() {})
			synctest.Wait()
			_, _, err := c.poll(t.Context())
			log.must(err)
			in.Batch = nil // what each partition begins with
		}
		for n := range 3 {
			if c.due() {
				t.Errorf("due after %d later decisions", n)
			}
			log.append(log.decisions[0])
			synctest.Wait()
			_, got, err := c.poll(t.Context())
			if log.must(err); got != n+1 || len(c.inputs[0].Batch) != got {
				t.Errorf("%d decisions in hand, counted %d, want %d", len(c.inputs[0].Batch), got, n+1)
			}
		}
		if !c.due() {
			t.Error("not due after three later decisions")
		}
	})
}

// TestChoice: what a cut takes and which log time it reaches. A record of 1,000 or later is not believed, so that the
// partition holds more than is in hand; an outcome of a negative time is of an unknown round.
func TestChoice(t *testing.T) {
	short, mixed := [][]int64{{10, 30, 1000}, {20, 40}}, [][]int64{{20, -25, 26}}
	for name, x := range map[string]struct {
		decisions, outcomes [][]int64
		set                 func(*chooser)
		take                []int
		time                int64
		ahead               bool
	}{
		"nothing":              {nil, nil, nil, []int{0, 0, 0, 0}, 0, false},
		"all in hand":          {[][]int64{{10}, {20}}, [][]int64{{15}, {-25}}, nil, []int{1, 1, 1, 1}, 25, false},
		"decisions alone":      {[][]int64{{10}, {20}}, nil, nil, []int{1, 1, 0, 0}, 20, false},
		"outcomes alone":       {nil, [][]int64{{-15}, {25}}, nil, []int{0, 0, 1, 1}, 25, false},
		"more outcomes":        {[][]int64{{10}, {20}}, [][]int64{{15, 1000}, {16}}, nil, []int{1, 1, 1, 0}, 15, false},
		"more decisions":       {short, [][]int64{{25, 30, 31}}, nil, []int{2, 1, 2, 0}, 30, false},
		"in no order":          {[][]int64{{30, 10, 1000}, {20, 40}}, nil, nil, []int{2, 1, 0, 0}, 30, false},
		"unknown behind":       {short, [][]int64{{30, -31}}, nil, []int{2, 1, 1, 0}, 30, false},
		"unknown at the last":  {short, [][]int64{{20, -30}}, nil, []int{2, 1, 1, 0}, 29, true},
		"unknown":              {short, mixed, nil, []int{2, 1, 1, 0}, 24, true},
		"unknown in both":      {short, [][]int64{{20, -25}, {20, -23}}, nil, []int{2, 1, 1, 1}, 22, true},
		"unknown, lifted":      {short, [][]int64{{27, -25}}, nil, []int{2, 1, 0, 0}, 26, true},
		"many ahead":           {short, mixed, lead(maxLead, 0, 3), []int{2, 1, 3, 0}, 26, false},
		"many bytes ahead":     {short, mixed, lead(0, maxLeadBytes, 3), []int{2, 1, 3, 0}, 26, false},
		"as many as may":       {short, mixed, lead(maxLead-1, maxLeadBytes-1, 3), []int{2, 1, 1, 0}, 24, true},
		"many, clocks apart":   {short, mixed, lead(maxLead, 0, 9), []int{2, 1, 1, 0}, 24, false},
		"no room for them":     {short, mixed, pending(2), []int{2, 1, 3, 0}, 29, false},
		"just room for them":   {short, mixed, pending(3), []int{2, 1, 1, 0}, 24, true},
		"log time is further":  {short, [][]int64{{-25}}, reached(50), []int{2, 2, 0, 0}, 50, false},
		"log time was told":    {nil, [][]int64{{15}}, told(40), []int{0, 0, 1, 0}, 40, false},
		"told, and more there": {short, [][]int64{{15}}, told(40), []int{2, 1, 1, 0}, 30, false},
	} {
		at := int64(0)
		log := mem.New(mem.Options{Clock: func() int64 { return at }})
		var inputs []*intake.Input
		for topic, times := range map[string][][]int64{"d": x.decisions, "o": x.outcomes} {
			no(t, log.Create(t.Context(), topic, 2, stream.TopicOptions{}))
			for p, times := range times {
				w, err := log.Writer(t.Context(), topic, p, nil)
				no(t, err)
				for _, at = range times {
					rec := stream.Record{Type: codec.TypeMark, Value: []byte("x")} // a round is not asked for
					if at < 0 {
						rec, at = stream.Record{Value: []byte(`{"id":"r","loss":0}`)}, -at
					}
					_, err := w.Append(t.Context(), &rec)
					no(t, err)
				}
			}
		}
		for i := range 4 {
			in, err := intake.Open(t.Context(), log, []string{"d", "o"}[i/2], i%2, 0)
			no(t, err)
			in.Believe = func(r *stream.Record) bool { return r.Time < 1000 }
			inputs = append(inputs, in)
		}
		c := newChooser(inputs, loop.NewJoiner(2, codec.Limits{Heart: loop.Heart, Pending: 9, Dedup: 9}, 1, nil), 0)
		if x.set != nil {
			x.set(c)
		}
		outcomes, decisions, err := c.poll(t.Context())
		no(t, err)
		had, lead, bytes := 0, c.lead, c.leadBytes
		for _, in := range c.inputs {
			had += len(in.Batch)
		}
		some, err := c.choose(t.Context())
		no(t, err)
		if !slices.Equal(c.take, x.take) || c.time != x.time || c.ahead != x.ahead || some != (slices.Max(x.take) > 0) {
			t.Errorf("%s: some %t: %v to %d, ahead %t", name, some, c.take, c.time, c.ahead)
		}
		if outcomes != len(inputs[2].Batch)+len(inputs[3].Batch) || outcomes+decisions != had {
			t.Errorf("%s: %d outcomes and %d decisions of %d in hand", name, outcomes, decisions, had)
		}
		n := c.take[0] + c.take[1]
		if c.taken(); c.ahead && (c.lead != lead+n || c.leadBytes != bytes+n) || !c.ahead && c.lead+c.leadBytes != 0 {
			t.Errorf("%s: %d decisions ahead of %d bytes", name, c.lead, c.leadBytes)
		}
		for _, in := range c.inputs {
			had -= len(in.Batch)
		}
		if had != n+c.take[2]+c.take[3] {
			t.Errorf("%s: %d taken from hand", name, had)
		}
	}
}

func no(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// lead has decisions been taken ahead, with clocks that differ.
func lead(decisions, bytes int, skew int64) func(*chooser) {
	return func(c *chooser) { c.lead, c.leadBytes, c.skew = decisions, bytes, skew }
}

func told(time int64) func(*chooser) { return func(c *chooser) { c.told = time } }

// pending has so many rounds wait at most.
func pending(n int64) func(*chooser) {
	return func(c *chooser) {
		c.heart = loop.NewJoiner(2, codec.Limits{Heart: loop.Heart, Pending: n, Dedup: 9}, 1, nil)
	}
}

// reached has a cut have come to a log time.
func reached(time int64) func(*chooser) {
	return func(c *chooser) { _ = c.heart.Take(&codec.Cut{Cut: 1, Time: time}, nil) }
}
