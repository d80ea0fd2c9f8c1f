package inject

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"hindsight/internal/logs"
	"hindsight/internal/replay"
	"hindsight/internal/world"
)

func TestParseSpeed(t *testing.T) {
	for text, want := range map[string]float64{"": math.Inf(1), "max": math.Inf(1), "1x": 1, "10x": 10, "0.5x": .5,
		"1e3x": 1000} {
		if got, err := ParseSpeed(text); err != nil || got != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"10", "x", "0x", "-1x", "NaNx", "Infx", "1e999x", "10 x"} {
		if _, err := ParseSpeed(text); !errors.Is(err, errSpeed) || !strings.Contains(err.Error(), text) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestPace asks four rounds that their log has at 0, 2, 2 and 10 s, five times as fast:
// at 0, .4, .4 and 2 s. Who is late does not make the others late.
func TestPace(t *testing.T) {
	log := []int64{1e9, 3e9, 3e9, 11e9}
	for _, late := range []time.Duration{0, 700 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			p := Pace{at: func(t int) int64 { return log[t] }, speed: 5}
			start := time.Now()
			for i, want := range []time.Duration{0, 400 * time.Millisecond, 400 * time.Millisecond, 2 * time.Second} {
				if err := p.wait(t.Context(), i); err != nil {
					t.Fatal(err)
				}
				if got := time.Since(start); got != max(want, min(late, time.Duration(i)*late)) {
					t.Errorf("late by %v: round %d was asked after %v, want %v", late, i, got, want)
				}
				if i == 0 {
					time.Sleep(late) // of the bubble's clock
				}
			}
		})
	}
}

func TestPaceStops(t *testing.T) {
	p := Pace{at: func(t int) int64 { return int64(t) << 62 }, speed: 1e-9} // centuries
	ctx, cancel := context.WithCancel(t.Context())
	if err := p.wait(ctx, 0); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := p.wait(ctx, 1); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := (&Pace{}).wait(ctx, 1); err != nil {
		t.Errorf("without a pace: %v", err)
	}
	if _, err := NewPace(replay.OfWorld(world.NewSigmoid(10, 1, world.SigmoidOptions{})), 10); err == nil ||
		!strings.Contains(err.Error(), "no times") {
		t.Errorf("an environment without times: %v", err)
	}
	for speed, want := range map[float64]time.Duration{5: 400 * time.Millisecond, math.Inf(1): 0} {
		p, err := NewPace(testLog(t, lessonText(3), logs.Mapping{Time: "at", Action: "who", Reward: "paid"}), speed)
		if err != nil || (p.at != nil) != (want > 0) || want > 0 && p.after(2) != want {
			t.Errorf("%v times as fast: %+v, %v", speed, p, err)
		}
	}
}
