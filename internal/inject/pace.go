package inject

import (
	"context"
	"errors"
	"fmt"
	"hindsight/internal/replay"
	"math"
	"strconv"
	"strings"
	"time"
)

// Pace says when the rounds of an injection are asked: as far apart as their log has
// them, so many times as fast. The zero value does not wait.
type Pace struct {
	at    func(t int) int64 // log time of round t, in nanoseconds
	speed float64
	start time.Time // of the first round, by our clock
}

var errSpeed = errors.New("expected max, or how many times as fast as the log: 1x, 10x, 0.5x")

// ParseSpeed reads how many times as fast as its log an injection is, +Inf for max.
func ParseSpeed(text string) (float64, error) {
	if text == "" || text == "max" {
		return math.Inf(1), nil
	}
	x, ok := strings.CutSuffix(text, "x")
	speed, err := strconv.ParseFloat(x, 64)
	if !ok || err != nil || !(speed > 0) || math.IsInf(speed, 0) {
		return 0, fmt.Errorf("%q: %w", text, errSpeed)
	}
	return speed, nil
}

// NewPace returns the pace of an environment at a speed > 0, which is at most +Inf:
// then nothing waits, and the environment needs no times.
func NewPace(env *replay.Rounds, speed float64) (Pace, error) {
	if math.IsInf(speed, 1) {
		return Pace{}, nil
	}
	if !env.Timed() {
		return Pace{}, fmt.Errorf("%s has no times of its own to be paced by: leave the speed at max, or name the "+
			"column with the times of decisions", env.Name)
	}
	return Pace{at: env.Time, speed: speed}, nil
}

// wait waits until round t is to be asked. A round that is late is asked at once, and
// those after it are at their own times.
func (p *Pace) wait(ctx context.Context, t int) error {
	if p.at == nil {
		return nil
	}
	if p.start.IsZero() {
		p.start = time.Now()
	}
	timer := time.NewTimer(time.Until(p.start.Add(p.after(t))))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// after returns how long after the first round t is to be asked, at most some centuries.
func (p *Pace) after(t int) time.Duration {
	return time.Duration(min(float64(p.at(t)-p.at(0))/p.speed, math.MaxInt64/2))
}
