package service

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/mem"
)

// learned returns the learner's bytes.
func (r *rig) learned() []byte {
	r.t.Helper()
	b, err := r.d.follower.Replica().Epoch().Learner.AppendBinary(nil)
	r.must(err)
	return b
}

// fates counts the feedback by fate.
func (r *rig) fates() map[codec.Fate]int {
	r.t.Helper()
	n := map[codec.Fate]int{}
	var f codec.Feedback
	_, end, err := r.log.Bounds(r.t.Context(), r.topics.Feedback, 0)
	r.must(err)
	r.must(stream.Scan(r.t.Context(), r.log, r.topics.Feedback, 0, stream.Earliest, end,
		func(rec *stream.Record) error {
			if rec.Type != "" {
				return nil
			}
			n[f.Fate]++ // of the last one
			return codec.ParseFeedback(&f, rec.Value)
		}))
	n[f.Fate]++
	delete(n, 0)
	return n
}

// TestDamagedSnapshot flips a bit of snapshots: whoever restarts goes on from the last
// one that is whole, or from the beginning, to the same learner; it says so, and counts
// them.
func TestDamagedSnapshot(t *testing.T) {
	for damaged := range 4 {
		for _, bit := range []int{0, 777, 1 << 20} { // of the record
			r := newRig(t, func(r *rig) { r.dc.SnapshotEvery = 2 })
			for i := range 3 {
				r.contexts(fmt.Sprint(i, "a"), fmt.Sprint(i, "b"))
				r.outcomes(fmt.Sprint(i, "a"), fmt.Sprint(i, "b"))
				r.must(r.settle())
				r.must(r.d.WriteSnapshots(t.Context()))
			}
			want := r.learned()
			r.must(r.log.Edit(r.topics.Snapshots, 0, func(recs []stream.Record) []stream.Record {
				if len(recs) != 3 {
					t.Fatalf("%d snapshots", len(recs))
				}
				for i := range damaged {
					v := bytes.Clone(recs[2-i].Value)
					at := bit % (8 * len(v))
					v[at/8] ^= 1 << (at % 8)
					recs[2-i].Value = v
				}
				return recs
			}))
			var log bytes.Buffer
			r.dc.Logger = slog.New(slog.NewTextHandler(&log, nil))
			r.d.Close()
			r.open()
			r.must(r.settle())
			if !bytes.Equal(r.learned(), want) {
				t.Errorf("%d damaged in bit %d: another learner", damaged, bit)
			}
			if n := strings.Count(log.String(), "snapshot passed over"); n != damaged {
				t.Errorf("%d damaged in bit %d, told %d times:\n%s", damaged, bit, n, log.String())
			}
			r.expect(map[string]float64{`hindsight_snapshots_total{partition="0",result="damaged"}`: float64(damaged)})
		}
	}
}

// TestSnapshotNotWritten holds that decisions and learning go on while snapshots cannot be
// written, and that the next one is when it can.
func TestSnapshotNotWritten(t *testing.T) {
	r := newRig(t, func(r *rig) { r.dc.SnapshotEvery = 2 })
	r.fault = failing(r.topics.Snapshots)
	for i := range 5 {
		r.contexts(fmt.Sprint(i, "a"), fmt.Sprint(i, "b"))
		r.outcomes(fmt.Sprint(i, "a"), fmt.Sprint(i, "b"))
		r.must(r.settle())
		r.none(r.d.WriteSnapshots(t.Context()))
	}
	r.expect(map[string]float64{`hindsight_snapshots_total{partition="0",result="failed"}`: 5,
		`hindsight_learned_rounds{partition="0"}`: 10})
	r.fault = nil
	r.contexts("la", "lb")
	r.outcomes("la", "lb")
	r.must(r.settle())
	r.must(r.d.WriteSnapshots(t.Context()))
	r.expect(map[string]float64{`hindsight_snapshots_total{partition="0",result="written"}`: 1,
		`hindsight_learned_rounds{partition="0"}`: 12})
}

// TestClockOfADay moves the log's clock a day on, and a day back, with rounds waiting for
// their outcomes. On, what waits is past its window by the only time there is, and closes
// in order; back, nothing closes early, and outcomes are observed. Both ways the loop goes
// on, and the metric of log time tells.
func TestClockOfADay(t *testing.T) {
	const day = int64(24 * time.Hour)
	for _, c := range []struct {
		name string
		jump int64
		want map[codec.Fate]int
		late float64 // outcomes
	}{
		{"on", day, map[codec.Fate]int{codec.Observed: 2 + 2, codec.Skipped: 2}, 2},
		{"back", -day, map[codec.Fate]int{codec.Observed: 2 + 2 + 2}, 0},
	} {
		now := int64(1_000_000) * int64(time.Hour)
		r := newRig(t, func(r *rig) {
			r.rules.Window.Rounds, r.rules.Window.Nanos = 0, int64(10*time.Minute)
			log := mem.New(mem.Options{Clock: func() int64 { now += int64(time.Millisecond); return now }})
			r.log, r.topics = log, createTopics(t, log, "m", 1)
			r.jc.Log, r.dc.Log = log, log
		})
		r.contexts("1", "2")
		r.outcomes("1", "2")
		r.must(r.settle())
		r.contexts("3", "4")
		r.must(r.settle())
		before := r.value(`hindsight_log_time_seconds`)
		now += c.jump
		r.contexts("5", "6") // moves log time on, if the clock does
		r.must(r.settle())
		r.outcomes("3", "4", "5", "6")
		r.must(r.settle())
		if got := r.fates(); fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: fates %v, want %v", c.name, got, c.want)
		}
		r.expect(map[string]float64{`hindsight_rejects_total{reason="late",topic="outcomes"}`: c.late})
		if past := r.value(`hindsight_log_time_seconds`) - before; (past >= 24*3600) != (c.jump > 0) {
			t.Errorf("%s: log time moved by %v s", c.name, past)
		}
		learned := r.learned()
		r.d.Close() // and a restart comes to the same
		r.j.Close()
		r.open()
		r.must(r.settle())
		if !slices.Equal(r.learned(), learned) {
			t.Errorf("%s: another learner after a restart", c.name)
		}
	}
}

// TestMarkWaitsForRecords: the round whose window in rounds a decision ended is closed by the
// next record, and by a mark only once none came for a second.
func TestMarkWaitsForRecords(t *testing.T) {
	now := time.Unix(0, int64(1_000_000)*int64(time.Hour))
	r := newRig(t, func(r *rig) {
		r.rules.Window.Rounds, r.rules.Window.Nanos = 2, 0
		log := mem.New(mem.Options{Clock: func() int64 { now = now.Add(time.Millisecond); return now.UnixNano() }})
		r.log, r.topics = log, createTopics(t, log, "m", 1)
		r.jc.Log, r.dc.Log = log, log
	})
	tick := func(later time.Duration, closed int) {
		t.Helper()
		now = now.Add(later)
		r.must(r.j.Tick(t.Context(), now))
		r.must(r.settle())
		if got := r.fates(); got[codec.Skipped] != closed {
			t.Errorf("fates %v, want %d skipped", got, closed)
		}
	}
	r.contexts("1", "2", "3")
	r.must(r.settle())
	tick(0, 0)
	tick(900*time.Millisecond, 0)
	r.contexts("4")
	r.must(r.settle())
	tick(200*time.Millisecond, 1) // round 1, by decision 4
	tick(900*time.Millisecond, 1)
	tick(200*time.Millisecond, 2)
	r.jc.Learned = func(int, int64) {} // who plays to it ends windows
	r.j.Close()
	r.open()
	r.contexts("5")
	r.must(r.settle())
	tick(5*time.Second, 2)
	tick(5*time.Second, 2)
	r.contexts("6")
	r.must(r.settle())
	tick(0, 3)
}

// TestProcessClockOfADay gives the joiner a clock that is a day behind the log's, or ahead,
// while nothing comes that would move log time. What has an outcome in its window is
// observed; what has none is closed when its window has passed, and not before.
func TestProcessClockOfADay(t *testing.T) {
	const day, window = 24 * time.Hour, 10 * time.Minute
	for _, wrong := range []time.Duration{-day, 0, day} {
		now := time.Unix(0, int64(1_000_000)*int64(time.Hour))
		r := newRig(t, func(r *rig) {
			r.rules.Window.Rounds, r.rules.Window.Nanos = 0, int64(window)
			log := mem.New(mem.Options{Clock: func() int64 { now = now.Add(time.Millisecond); return now.UnixNano() }})
			r.log, r.topics = log, createTopics(t, log, "m", 1)
			r.jc.Log, r.dc.Log = log, log
		})
		r.contexts("1", "2")
		r.must(r.settle())
		wait := func(d time.Duration) { // in seconds, at each of which the joiner looks at its clock
			for range d / time.Second {
				now = now.Add(time.Second)
				r.must(r.j.Tick(t.Context(), now.Add(wrong)))
				r.must(r.settle())
			}
		}
		wait(window - time.Minute)
		if got := r.fates(); len(got) != 0 {
			t.Errorf("%v wrong: closed early: %v", wrong, got)
		}
		r.outcomes("1")
		r.must(r.settle())
		wait(2 * time.Minute)
		if got, want := r.fates(), (map[codec.Fate]int{codec.Observed: 1, codec.Skipped: 1}); fmt.Sprint(
			got) != fmt.Sprint(want) {
			t.Errorf("%v wrong: fates %v, want %v", wrong, got, want)
		}
	}
}
