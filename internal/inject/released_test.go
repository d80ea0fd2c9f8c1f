package inject

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"hindsight/internal/dataset"
	"hindsight/internal/delay"
	"hindsight/internal/join"
	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/mem"
)

// TestReleasesByHand: 6 rounds, decided 10 ns apart. after are the rounds released after each
// decision and the outcomes that come right after it, end those when all have come.
func TestReleasesByHand(t *testing.T) {
	two := loop.Window{Rounds: 2}
	for _, c := range []struct {
		raw   []int64
		rules loop.Rules
		after []int64
		end   int64
	}{
		{[]int64{0, 0, 0, 0, 0, 0}, loop.Rules{Window: two}, []int64{1, 2, 3, 4, 5, 6}, 6},
		{[]int64{1, 0, 0, 0, 0, 0}, loop.Rules{Window: two}, []int64{0, 2, 3, 4, 5, 6}, 6},
		// the outcome after decision 3 ends the window
		{[]int64{0, delay.Never, 0, 0, 0, 0}, loop.Rules{Window: two}, []int64{1, 1, 1, 4, 5, 6}, 6},
		// decision 4 does, and the outcome after decision 5
		{[]int64{0, delay.Never, 0, delay.Never, 0, 0}, loop.Rules{Window: two}, []int64{1, 1, 1, 1, 3, 6}, 6},
		// its own outcome is too late, and ends it
		{[]int64{2, 0, 0, 0, 0, 0}, loop.Rules{Window: two}, []int64{0, 0, 3, 4, 5, 6}, 6},
		// time does
		{[]int64{0, 0, 0, delay.Never, 0, delay.Never}, loop.Rules{Window: two}, []int64{1, 2, 3, 3, 3, 3}, 5},
		// nothing does
		{[]int64{0, 0, 0, 0, delay.Never, 0}, loop.Rules{Window: two}, []int64{1, 2, 3, 4, 4, 4}, 4},
		// they come after the last decision
		{[]int64{0, 0, 0, 0, 99, 99}, loop.Rules{Window: two}, []int64{1, 2, 3, 4, 4, 4}, 6},
		// the first one that waits
		{[]int64{0, delay.Never, 0, 0, delay.Never, delay.Never}, loop.Rules{Window: two}, []int64{1, 1, 1, 4, 4, 4},
			4},
		// is passed by the last
		{[]int64{0, 0, 0, 0, delay.Never, 0}, loop.Rules{Window: two, Arrival: true}, []int64{1, 2, 3, 4, 4, 5}, 5},
		{[]int64{0, 0, 0, 0, 0, 0}, loop.Rules{Window: two, Outcomes: loop.Mean}, []int64{0, 0, 1, 2, 3, 4}, 4},
		{[]int64{0, 0, 0, 0, 0, 0}, loop.Rules{Window: two, Activation: true}, []int64{0, 0, 1, 2, 3, 4}, 4},
		// decision 3 comes later than that
		{[]int64{0, delay.Never, 0, 0, 0, 0}, loop.Rules{Window: loop.Window{Nanos: 15}}, []int64{1, 1, 1, 4, 5, 6}, 6},
	} {
		s := delay.NewSchedule(len(c.raw), nil)
		c.rules.Range, c.rules.MaxActions = loop.Range{Max: 1}, 1
		r := newReleases(&c.rules, 1, 1, len(c.raw))
		give := func(due []delay.Awaited) {
			for _, a := range due {
				if err := r.outcome(&codec.Outcome{ID: dataset.RoundID(int(a.Round)), Kind: codec.Loss},
					true); err != nil {
					t.Fatal(err)
				}
			}
		}
		for i, d := range c.raw {
			s.Add(d, 0)
			dec := codec.Decision{N: int64(i + 1), ID: dataset.RoundID(i), Epoch: 1, Actions: []string{"a"},
				Propensities: []float64{1}}
			if err := r.decided(&dec, int64(10*(i+1)), d == delay.Never); err != nil {
				t.Fatal(err)
			}
			if r.ending() {
				r.later()
			}
			give(s.After(i))
		}
		after := slices.Clone(r.after)
		give(s.Rest())
		end, err := r.atEnd()
		if err != nil {
			t.Fatal(err)
		}
		if got, want := fmt.Sprint(after, end), fmt.Sprint(c.after, c.end); got != want {
			t.Errorf("%v, %+v: %s, want %s", c.raw, c.rules, got, want)
		}
	}
}

// TestReleasesKnown holds when the order of release is known: to one who decides one round at a time, and in one
// partition, unless it hangs on where outcomes lie.
func TestReleasesKnown(t *testing.T) {
	window := loop.Window{Rounds: 2}
	given, measured := &loop.Provisional{After: window}, &loop.Provisional{}
	for _, c := range []struct {
		partitions, lead int
		provisional      *loop.Provisional
		off              bool
	}{{1, 1, nil, false}, {1, 2, nil, false}, {2, 1, nil, false}, {2, 2, nil, true}, {1, 2, given, false},
		{1, 2, measured, true}, {1, 1, measured, false}, {2, 2, given, true}} {
		rules := &loop.Rules{Window: window, Provisional: c.provisional, Range: loop.Range{Max: 1}, MaxActions: 1}
		r := newReleases(rules, c.partitions, c.lead, 3)
		if r.after = []int64{5}; r.off != c.off || r.by(-1) != 0 || (r.by(0) == 5) == c.off {
			t.Errorf("%+v: off %v, %d released", c, r.off, r.by(0))
		}
		r.time = 10
		if err := r.close(); err != nil || r.time != 10 { // what is written next may have this time
			t.Errorf("log time %d, %v", r.time, err)
		}
	}
}

// TestLearnedWaits holds that an injection waits for all deciders, for as long as one of them learns, and not for ever.
func TestLearnedWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, begin := NewLearned(2), time.Now()
		l.Note(0, 9)
		go func() {
			for n := range int64(3) {
				time.Sleep(injectStall - 1)
				l.Note(1, n)
			}
		}()
		if err := l.wait(t.Context(), 2); err != nil || time.Since(begin) != 3*(injectStall-1) {
			t.Errorf("after %v: %v", time.Since(begin), err)
		}
		if err := l.wait(t.Context(), 2); err != nil {
			t.Error(err)
		}
		begin = time.Now()
		if err := l.wait(t.Context(), 3); err == nil || time.Since(begin) != injectStall {
			t.Errorf("nothing is learned, and after %v: %v", time.Since(begin), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := l.wait(ctx, 3); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}

// TestFeedStalls holds that decisions are not waited for for ever, and that what ends the wait is told.
func TestFeedStalls(t *testing.T) {
	for _, partitions := range []int{1, 2} {
		synctest.Test(t, func(t *testing.T) {
			log := mem.New(mem.Options{})
			in := &Injection{Log: log, Partitions: partitions, Topics: join.TopicsOf("m")}
			if _, err := in.openDecisions(t.Context()); !errors.Is(err, stream.ErrNotFound) {
				t.Errorf("without a topic: %v", err)
			}
			if err := log.Create(t.Context(), in.Topics.Decisions, partitions, stream.TopicOptions{}); err != nil {
				t.Fatal(err)
			}
			w, err := log.Writer(t.Context(), in.Topics.Decisions, 0, nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.Append(t.Context(), &stream.Record{Value: []byte("before")}); err != nil {
				t.Fatal(err)
			}
			f, err := in.openDecisions(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer f.close()
			begin := time.Now()
			if _, err := f.next(t.Context(), nil); err != errInjectStalled || time.Since(begin) != injectStall {
				t.Errorf("%d partitions: after %v: %v", partitions, time.Since(begin), err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := f.next(ctx, nil); err == nil || err == errInjectStalled {
				t.Errorf("%d partitions: %v", partitions, err)
			}
			log.Close()
			begin = time.Now()
			if _, err := f.next(t.Context(), nil); err == nil || err == errInjectStalled || time.Since(begin) > 0 {
				t.Errorf("%d partitions of a closed log: after %v: %v", partitions, time.Since(begin), err)
			}
		})
	}
}

// TestDecisionFeed holds that decisions of several partitions are whole though their readers read on meanwhile.
func TestDecisionFeed(t *testing.T) { synctest.Test(t, testDecisionFeed) }

func testDecisionFeed(t *testing.T) {
	log := mem.New(mem.Options{MaxBatch: 1, StrictBytes: true})
	defer log.Close()
	in := &Injection{Log: log, Partitions: 2, Topics: join.TopicsOf("m"), Taught: true}
	if err := log.Create(t.Context(), in.Topics.Decisions, 2, stream.TopicOptions{}); err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{}
	for i := range 6 {
		w, err := log.Writer(t.Context(), in.Topics.Decisions, i%2, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Append(t.Context(), &stream.Record{Value: fmt.Append(nil, "decision ", i)}); err != nil {
			t.Fatal(err)
		}
		want[fmt.Sprint("decision ", i)] = true
	}
	f, err := in.openDecisions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	for range 6 {
		got, err := f.next(t.Context(), nil)
		synctest.Wait() // until the readers have read on
		if err != nil || len(got) != 1 || !want[string(got[0].Value)] {
			t.Fatalf("%v, %v", got, err)
		}
		delete(want, string(got[0].Value))
	}
}
