package service

import (
	"fmt"
	"math"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"pgregory.net/rapid"

	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream/mem"
)

// How many decisions are older than a time is known to a factor of 2, and never too high.
func TestSilenceCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s silence
		var times []int64
		at := int64(0)
		for range rapid.IntRange(0, 300).Draw(t, "decisions") {
			if rapid.IntRange(0, 99).Draw(t, "outcome") == 0 {
				s.outcome()
				times = nil
			}
			at += rapid.Int64Range(0, 5).Draw(t, "later")
			s.decision(at)
			times = append(times, at)
		}
		limit, want := rapid.Int64Range(0, at+1).Draw(t, "limit"), int64(0)
		for _, x := range times {
			if x <= limit {
				want++
			}
		}
		if got := s.older(limit); got > want || 2*got <= want && want > 0 {
			t.Errorf("%d of %d", got, want)
		}
	})
}

// By hand: 40 decisions, a second apart, of which 32 count once they are old enough.
func TestSilenceWaits(t *testing.T) {
	second := int64(time.Second)
	var s silence
	for i := range int64(40) {
		s.decision(i * second)
	}
	usual := func(share, delay float64) func() (float64, float64) {
		return func() (float64, float64) { return share, delay }
	}
	nan := math.NaN()
	for _, c := range []struct {
		at           time.Duration // after the first decision
		closed       int64
		share, delay float64
		want         float64
	}{
		{10*time.Minute - 1, 40, .5, 1, 0},
		{10 * time.Minute, 0, .5, 1, .5}, // the first is old enough
		{10*time.Minute + 31*time.Second, 0, .5, 1, 16},
		{10*time.Minute + 40*time.Second, 5, .5, nan, 2.5}, // delays are not known: windows tell
		{10*time.Minute + 40*time.Second, 5, nan, nan, .05},
		{10*time.Minute + 40*time.Second, 0, 0, nan, 0},
		{2 * time.Hour, 0, .5, 3600, 0}, // every hour, and one may be missed
		{3*time.Hour + time.Minute, 0, .5, 3600, 16},
		{2 * time.Hour, 40, .5, 3600, 20}, // whole windows have passed
	} {
		s.closed = c.closed
		if got := s.missing(int64(c.at), usual(c.share, c.delay)); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("after %v, %d closed, share %v, delay %v: %v outcomes are missing, want %v", c.at, c.closed, c.share, c.delay, got, c.want)
		}
	}
	f := codec.Feedback{Fate: codec.Skipped, Time: 0}
	for reason, want := range map[string]int64{"": 1, codec.ReasonOverflow: 0} {
		s.closed, f.Reason = 0, reason
		if s.release(&f); s.closed != want {
			t.Errorf("%q: %d closed", reason, s.closed)
		}
	}
	for _, late := range []codec.Feedback{{Fate: codec.Observed}, {Fate: codec.WithdrawnRound}, {Fate: codec.Skipped, Time: -1}} {
		s.closed = 0
		if s.release(&late); s.closed != 0 {
			t.Errorf("%+v counts", late)
		}
	}
	if s.outcome(); s.missing(math.MaxInt64, usual(1, 1)) != 0 {
		t.Error("an outcome came, and some are missing")
	}
}

// What a joiner shows: of outcomes that come late, in batches, or seldom, none is missing; of
// a reporter that ends, or never begins, they are.
func TestOutcomesMissing(t *testing.T) {
	const hour = time.Hour
	always := func(time.Duration) bool { return true }
	never := func(time.Duration) bool { return false }
	hourly := func(at time.Duration) bool { return at%hour == 0 }
	until := func(end time.Duration, f func(time.Duration) bool) func(time.Duration) bool {
		return func(at time.Duration) bool { return at < end && f(at) }
	}
	hours := func(n int64) loop.Window { return loop.Window{Nanos: n * int64(hour)} }
	for _, c := range []struct {
		name    string
		window  loop.Window
		every   time.Duration               // between decisions
		report  func(at time.Duration) bool // whether what was decided is reported now
		share   int                         // of 100 rounds have an outcome
		end     time.Duration
		missing bool
	}{
		{"every hour", hours(6), 2 * time.Minute, hourly, 90, 10 * hour, false},
		{"every hour, until it ends", hours(6), 2 * time.Minute, until(9*hour, hourly), 90, 12*hour + 10*time.Minute, true},
		{"late, at the start", hours(1), time.Second, never, 100, 15 * time.Minute, false},
		{"seldom", loop.Window{Nanos: int64(hour) / 6}, 10 * time.Second, always, 1, 4 * hour, false},
		{"at once, until it ends", hours(6), 20 * time.Second, until(7*hour, always), 90, 7*hour + 17*time.Minute, true},
		{"never", loop.Window{Rounds: 200}, 10 * time.Second, never, 100, 4 * hour, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			now := int64(0)
			r := newRig(t, func(r *rig) {
				r.log = mem.New(mem.Options{Clock: func() int64 { return 1e9 + now }})
				r.topics = createTopics(t, r.log, "m", 1)
				r.jc.Log, r.dc.Log = r.log, r.log
				r.rules.Window = c.window
				r.jc.MaxPending, r.dc.Dedup = 100_000, 100_000
			})
			var most, last float64
			var owed []string
			for n := 0; now <= int64(c.end); n++ {
				r.contexts(fmt.Sprint(n))
				if n*37%100 < c.share {
					owed = append(owed, fmt.Sprint(n))
				}
				r.must(r.settle())
				if c.report(time.Duration(now)) {
					r.outcomes(owed...)
					owed = nil
					r.must(r.settle())
				}
				var shown dto.Metric
				r.must(r.j.m.missing.Write(&shown))
				last = shown.GetGauge().GetValue()
				most = max(most, last)
				now += int64(c.every)
			}
			if c.missing != (last > 10) || !c.missing && most > 10 {
				t.Errorf("%v outcomes are missing at the end, and at most %v", last, most)
			}
			r.expect(map[string]float64{"hindsight_outcomes_missing": last})
		})
	}
}
