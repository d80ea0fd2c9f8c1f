package service

import (
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hindsight/pkg/stream"
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
	r.d.gate = newGate("decide", r.m, func(m stream.Message, _ time.Time) { <-release; m.Respond(nil) })
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
		if c.asked && r.d.gate.waiting() == 0 {
			r.d.gate.request(stream.Message{Respond: func([]byte, ...stream.Header) error { return nil }})
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
	r.d.gate.close()
}

// TestLearningIsNotStarved lets four users ask without a pause, and contexts come by
// topic, while there is feedback to learn: learning gets its share.
func TestLearningIsNotStarved(t *testing.T) {
	n := 4000
	if testing.Short() {
		n = 400
	}
	// ready has so many feedbacks to learn, and as many contexts to decide.
	ready := func() *rig {
		r := newRig(t, func(r *rig) { r.jc.MaxPending = 2 * n; r.dc.Dedup = 4 * n })
		for i := range n {
			r.contexts(strconv.Itoa(i))
		}
		for busy := true; busy; {
			var err error
			busy, err = r.d.StepContexts(t.Context(), n)
			r.must(err)
		}
		for i := range n {
			r.outcomes(strconv.Itoa(i))
		}
		for busy := true; busy; {
			var err error
			busy, err = r.j.Step(t.Context())
			r.must(err)
		}
		for i := range n {
			r.contexts("more" + strconv.Itoa(i))
		}
		return r
	}
	learn := func(r *rig) time.Duration {
		began := time.Now()
		for r.d.follower.heart.LearnedThrough() < int64(n) {
			if _, err := r.d.StepFeedback(t.Context(), learnSlice); err != nil {
				t.Error(err)
				break
			}
		}
		return time.Since(began)
	}
	alone := learn(ready())
	r := ready()
	r.d.slice = contextTime
	var quit atomic.Bool
	var asked atomic.Int64
	var group sync.WaitGroup
	for u := range 4 {
		group.Go(func() {
			for i := 0; !quit.Load(); i++ {
				r.d.request(stream.Message{Data: fmt.Appendf(nil, `{"id":"u%d-%d","actions":["a","b"]}`, u, i), Respond: func([]byte, ...stream.Header) error { return nil }})
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
	flooded := learn(r)
	quit.Store(true)
	group.Wait()
	share := float64(alone) / float64(flooded)
	t.Logf("%d feedbacks take %v alone, %v under %d requests: a share of %.2f", n, alone, flooded, asked.Load(), share)
	if share < 1./12 && !testing.Short() { // half of what it has, for a busy machine
		t.Errorf("learning had %.3f of the time", share)
	}
}
