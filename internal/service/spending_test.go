package service

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"hindsight/pkg/learner"
)

// Costs far from what the model says they are about are warned of at first and when they have doubled, by the budget.
func TestStrangeCosts(t *testing.T) {
	var log bytes.Buffer
	d := &Decider{cfg: SystemConfig{Logger: slog.New(slog.NewTextHandler(&log, nil))}, strange: map[string]int64{}}
	b := &learner.Budget{Name: "cost", Mean: 1}
	for i, c := range []struct {
		strange int64
		warns   int
	}{{0, 0}, {1, 1}, {2, 1}, {3, 2}, {6, 2}, {7, 3}, {1, 4}, {2, 4}} {
		d.warnStrange([]learner.Spending{{Budget: b, Costs: 9, Strange: c.strange}})
		if n := strings.Count(log.String(), `unit, and at the constants" budget=cost costs=`); n != c.warns {
			t.Errorf("look %d: %d warnings, want %d:\n%s", i, n, c.warns, &log)
		}
	}
}
