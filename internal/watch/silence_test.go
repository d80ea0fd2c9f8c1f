package watch

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hindsight/pkg/codec"
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
			t.Errorf("after %v, %d closed, share %v, delay %v: %v outcomes are missing, want %v", c.at,
				c.closed, c.share, c.delay, got, c.want)
		}
	}
	f := codec.Feedback{Fate: codec.Skipped, Time: 0}
	for reason, want := range map[string]int64{"": 1, codec.ReasonOverflow: 0} {
		s.closed, f.Reason = 0, reason
		if s.release(&f); s.closed != want {
			t.Errorf("%q: %d closed", reason, s.closed)
		}
	}
	for _, late := range []codec.Feedback{{Fate: codec.Observed}, {Fate: codec.WithdrawnRound},
		{Fate: codec.Skipped, Time: -1}} {
		s.closed = 0
		if s.release(&late); s.closed != 0 {
			t.Errorf("%+v counts", late)
		}
	}
	if s.outcome(); s.missing(math.MaxInt64, usual(1, 1)) != 0 {
		t.Error("an outcome came, and some are missing")
	}
}
