package service

import (
	"fmt"
	"testing"
	"time"

	"hindsight/internal/loop"
	"hindsight/pkg/stream/mem"
)

// What a joiner shows: of outcomes that come late, in batches, or seldom, none is missing; of
// a reporter that ends, or never begins, they are.
func TestOutcomesMissing(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector has nothing to find in one goroutine")
	}
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
		{"every hour, until it ends", hours(6), 2 * time.Minute, until(9*hour, hourly), 90, 12*hour + 10*time.Minute,
			true},
		{"late, at the start", hours(1), time.Second, never, 100, 15 * time.Minute, false},
		{"seldom", loop.Window{Nanos: int64(hour) / 6}, 10 * time.Second, always, 1, 4 * hour, false},
		{"at once, until it ends", hours(6), 20 * time.Second, until(7*hour, always), 90, 7*hour + 17*time.Minute,
			true},
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
				last = scrape(t, r.reg)["hindsight_outcomes_missing"]
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
