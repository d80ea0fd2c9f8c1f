package service

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"hindsight/internal/loop"
	"hindsight/internal/watch"
)

// TestGuardMetrics: the figures of a guard are there as long as there is one.
func TestGuardMetrics(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := watch.NewMetrics(reg, nil)
	guard, j := &loop.Guard{}, m.Joiner()
	for number, on := range []bool{false, true, false, true, true} {
		rules, holds := &loop.Rules{}, number == 3
		if on {
			rules.Guard = loop.GuardRules{Margin: .1, Alpha: .05}
		}
		if holds {
			rules.Guard.LoseAtMost = .02
		}
		guard.Begin(int64(number+1), false, rules)
		j.Guard(guard, false)
		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		shown := map[string]bool{}
		for _, f := range families {
			shown[f.GetName()] = true
		}
		for _, name := range []string{"hindsight_guard_alarm", "hindsight_guard_evidence_ratio",
			"hindsight_guard_excess_loss"} {
			if shown[name] != on {
				t.Errorf("epoch %d, guard %v: %s is there: %v", number+1, on, name, shown[name])
			}
		}
		if shown["hindsight_guard_held_rounds"] != holds || shown["hindsight_guard_forgone_gain"] != holds {
			t.Errorf("epoch %d, lose_at_most %v: %v", number+1, holds, shown)
		}
	}
}
