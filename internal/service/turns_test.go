package service

import (
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hindsight/internal/front"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/mem"
)

// TestTopicLeavesRoom holds how many decisions of contexts by topic may be on their way:
// under, at and over the limit, and while requests wait.
func TestTopicLeavesRoom(t *testing.T) {
	r := newRig(t, func(r *rig) { r.dc.MaxInFlight = DefaultMaxInFlight })
	f := newFlight(r.d)
	for range DefaultMaxInFlight - 1 {
		f.add(ticket{n: 1})
	}
	if !f.topicRoom() {
		t.Error("no room where nobody asks")
	}
	release := make(chan struct{})
	r.d.gate = front.NewGate("decide", r.m, func(m stream.Message, _ time.Time) { <-release; m.Respond(nil) })
	for _, c := range []struct {
		topic, requests int
		asked           bool
		topicRoom, room bool
	}{
		{767, 0, false, true, true},
		{768, 0, false, false, true},
		{767, 256, false, true, true},
		{767, 257, false, false, false},
		{63, 0, true, true, true},
		{64, 0, true, false, true},
		{63, 900, true, true, true},
	} {
		f := newFlight(r.d)
		for range c.topic {
			f.add(ticket{n: 1})
		}
		for range c.requests {
			f.add(ticket{n: 1, send: func([]byte, ...stream.Header) error { return nil }})
		}
		if c.asked && r.d.gate.Waiting() == 0 {
			r.d.gate.Request(stream.Message{Respond: func([]byte, ...stream.Header) error { return nil }})
		}
		if f.topicRoom() != c.topicRoom || f.room() != c.room {
			t.Errorf("%+v: room for a context %v, for a request %v", c, f.topicRoom(), f.room())
		}
		for range c.topic + c.requests {
			f.pop()
		}
		if f.topic != 0 {
			t.Errorf("%d of the topic are left", f.topic)
		}
	}
	close(release)
	r.d.gate.Close()
}

// TestContextsTakeTurns holds that contexts by topic give the turn away when their time is
// over.
func TestContextsTakeTurns(t *testing.T) {
	const n = 20_000
	for _, c := range []struct {
		slice time.Duration
		all   bool
	}{{0, true}, {time.Microsecond, false}} {
		r := newRig(t, func(r *rig) {
			r.log = mem.New(mem.Options{MaxBatch: n})
			r.topics = createTopics(t, r.log, "m", 1)
			r.jc.Log, r.dc.Log = r.log, r.log
		})
		r.must(r.settle())
		for i := range n {
			r.contexts(strconv.Itoa(i))
		}
		r.d.slice = c.slice
		busy, err := r.d.StepContexts(t.Context(), 2*n)
		if decided := r.d.heart.Next() - 1; err != nil || !busy || (decided == n) != c.all || decided == 0 {
			t.Errorf("%v: %d of %d decided in one turn, %v", c.slice, decided, n, err)
		}
	}
}

// TestLearningIsNotStarved lets four users ask without a pause, and contexts come by
// topic, while there is feedback to learn: learning gets its share. The share is of the
// work done, each decision and each feedback as long as it takes alone: the machine may
// do other things meanwhile.
func TestLearningIsNotStarved(t *testing.T) {
	n := 20_000
	if testing.Short() {
		n = 400
	}
	r := newRig(t, func(r *rig) { r.jc.MaxPending = 2 * n; r.dc.Dedup = 8 * n; r.rules.Window.Rounds = int64(2 * n) })
	all := func(step func() (bool, error)) time.Duration {
		began := time.Now()
		for busy := true; busy; {
			var err error
			busy, err = step()
			r.must(err)
		}
		return time.Since(began)
	}
	feedback := func(prefix string) (deciding time.Duration) { // of n rounds, not yet learned
		for i := range n {
			r.contexts(prefix + strconv.Itoa(i))
		}
		deciding = all(func() (bool, error) { return r.d.StepContexts(t.Context(), n) })
		for i := range n {
			r.outcomes(prefix + strconv.Itoa(i))
		}
		all(func() (bool, error) { return r.j.Step(t.Context()) })
		return deciding
	}
	learn := func() time.Duration {
		return all(func() (bool, error) { return r.d.StepFeedback(t.Context(), learnSlice) })
	}
	decision := feedback("a") / time.Duration(n)
	alone := learn()
	feedback("b")
	for i := range n {
		r.contexts("more" + strconv.Itoa(i))
	}
	r.d.slice = contextTime
	var quit atomic.Bool
	var asked atomic.Int64
	var group sync.WaitGroup
	for u := range 4 {
		group.Go(func() {
			for i := 0; !quit.Load(); i++ {
				r.d.Request(stream.Message{Data: fmt.Appendf(nil, `{"id":"u%d-%d","actions":["a","b"]}`, u, i),
					Respond: func([]byte, ...stream.Header) error { return nil }})
				asked.Add(1)
			}
		})
	}
	group.Go(func() {
		for !quit.Load() {
			if busy, err := r.d.StepContexts(t.Context(), contextSlice); err != nil || !busy {
				return
			}
		}
	})
	for asked.Load() < 100 {
		runtime.Gosched() // let them begin
	}
	r.d.mu.Lock()
	before := r.d.heart.Next()
	r.d.mu.Unlock()
	learn()
	r.d.mu.Lock()
	decided := r.d.heart.Next() - before
	r.d.mu.Unlock()
	quit.Store(true)
	group.Wait()
	share := float64(alone) / float64(alone+time.Duration(decided)*decision)
	t.Logf("%d feedbacks take %v alone; meanwhile %d decisions, %v each: a share of %.2f", n, alone, decided,
		decision, share)
	if share < 1./20 && !testing.Short() { // a third of what it has
		t.Errorf("learning had %.3f of the time", share)
	}
}
