package service

import (
	"strings"
	"testing"
	"time"

	"hindsight/internal/loop"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/mem"
)

// TestAheadOfTime has one outcome that the log gave a time of next year: no round is closed by it,
// the record is named, and when it is deleted joining goes on, with --accept-loss.
func TestAheadOfTime(t *testing.T) {
	now := time.Now()
	wall := func() time.Time { return now }
	r := newRig(t, func(r *rig) {
		r.rules.Window = loop.Window{Nanos: int64(time.Hour)}
		r.log = mem.New(mem.Options{Clock: func() int64 { return now.UnixNano() }})
		r.topics = createTopics(t, r.log, "m", 1)
		r.jc.Log, r.dc.Log, r.jc.AcceptLoss = r.log, r.log, true
	})
	r.j.wall = wall
	r.contexts("a", "b")
	r.must(r.settle())
	far := now.AddDate(1, 0, 0).UnixNano()
	r.outcomes("stranger", "a", "b")
	r.must(r.log.Edit("m.outcomes", 0, func(recs []stream.Record) []stream.Record {
		recs[0].Time = far
		return recs
	}))
	r.must(r.settle())
	if r.j.Heart().LastN() != 0 || r.j.Heart().Now() >= far {
		t.Fatalf("%d feedbacks, log time %v", r.j.Heart().LastN(), time.Unix(0, r.j.Heart().Now()))
	}
	now = now.Add(2 * time.Hour) // past the end of the window
	r.must(r.j.Tick(t.Context(), now))
	r.must(r.settle())
	if r.j.Heart().LastN() != 0 {
		t.Fatal("rounds are closed while outcomes that may be theirs are not read")
	}
	if why := r.j.whyHeld(); why == nil || !strings.Contains(why.Error(), "m.outcomes[0]@") ||
		!strings.Contains(why.Error(), "--accept-loss") {
		t.Fatalf("it says %v", why)
	}
	first, _, err := r.log.Bounds(t.Context(), "m.outcomes", 0)
	r.must(err)
	r.must(r.log.Truncate("m.outcomes", 0, first+1))
	r.j.Close()
	r.j, err = OpenJoiner(t.Context(), r.jc)
	r.must(err)
	r.j.wall = wall
	r.must(r.settle())
	if n := r.j.Heart().LastN(); r.j.whyHeld() != nil || n != 2 {
		t.Errorf("%d feedbacks, held by %v", n, r.j.whyHeld())
	}
}
