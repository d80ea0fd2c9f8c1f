package model

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"hindsight/internal/loop"
)

// Limits on windows: longer ones would hold more than any log keeps.
const (
	maxWindowRounds = 1_000_000_000
	maxWindowNanos  = int64(10 * 365 * 24 * time.Hour)
)

var errWindow = errors.New(
	`expected a duration or a number of rounds, positive and finite; for example: 10m, 36h, 7d, "200 rounds" or 200r`)

// ParseWindow reads how long a round waits for its outcome: a duration (10m,
// 36h, 7d) or a number of later rounds (200, 200r, "200 rounds").
func ParseWindow(s string) (loop.Window, error) {
	text := strings.TrimSpace(s)
	digits := text
	for _, suffix := range []string{"rounds", "round", "r"} {
		if cut, ok := strings.CutSuffix(text, suffix); ok {
			digits = strings.TrimSpace(cut)
			break
		}
	}
	if n, err := strconv.ParseInt(digits, 10, 64); err == nil {
		if n < 1 || n > maxWindowRounds {
			return loop.Window{}, fmt.Errorf("window of %d rounds is not in 1…%d: %w", n, maxWindowRounds, errWindow)
		}
		return loop.Window{Rounds: n}, nil
	}
	d, err := ParseDuration(text)
	if err != nil {
		return loop.Window{}, fmt.Errorf("window %q: %w", s, errWindow)
	}
	if d <= 0 || int64(d) > maxWindowNanos {
		return loop.Window{}, fmt.Errorf("window %q is not in (0, 10 years]: a round without an outcome must end: %w",
			s, errWindow)
	}
	return loop.Window{Nanos: int64(d)}, nil
}

// ParseDuration is [time.ParseDuration] that also reads whole days: 7d.
func ParseDuration(s string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(s, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 32); err == nil {
			s = strconv.FormatUint(24*n, 10) + "h"
		}
	}
	return time.ParseDuration(s)
}

// FormatWindow writes a window as ParseWindow reads it.
func FormatWindow(w loop.Window) string {
	switch {
	case w.Rounds == 1:
		return "1 round"
	case w.Rounds > 0:
		return strconv.FormatInt(w.Rounds, 10) + " rounds"
	}
	s := time.Duration(w.Nanos).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

var errNotFinite = errors.New("not a finite number")

// parseFloat reads a finite decimal number; −0 becomes 0 so that equal models
// have equal bytes.
func parseFloat(s string) (float64, error) {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return 0, fmt.Errorf("%q: %w", s, errNotFinite)
	}
	return f + 0, nil
}

// formatFloat writes the shortest text that reads back; −0 is written as 0.
func formatFloat(f float64) string { return strconv.FormatFloat(f+0, 'g', -1, 64) }
