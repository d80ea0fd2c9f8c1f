package main

import (
	"strings"
	"testing"

	"hindsight/internal/daemon"
	"hindsight/internal/testkit/daemontest"
)

func TestNumbersOfFlags(t *testing.T) { daemontest.Bounds(t, command) }

// TestNumbersInTexts holds that numbers that are part of a flag's text have bounds, too.
func TestNumbersInTexts(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector has nothing to find in one goroutine")
	}
	for _, args := range []string{
		"backtest --window 99999999999", "backtest --window 99999999999h", "backtest --window NaN",
		"window --windows 1,99999999999",
		"backtest --delays exp:1e300", "backtest --delays constant:-1", "backtest --delays pareto:1.5,NaN",
		"backtest --env close:1e9", "backtest --env linear:1e9,2", "backtest --env hypercube:1e9,0",
		"backtest --env blocks:1,1e9",
		"backtest --learner egreedy:2", "backtest --learner dafa:1e300",
		"backtest --learner exp4dale:99999999999999999",
		"backtest --twist permute:2", "backtest --twist rewards:1e300,-1e300",
		"backtest --report x.html --sweep 99999999999999", "inject --speed 1e300x", "inject --listen 127.0.0.1:99999",
	} {
		if got := execute(t.Context(), strings.Fields(args)...); got.code != daemon.WrongUsage {
			t.Errorf("%s: exit code %d: %s%.300s", args, got.code, got.stderr, got.stdout)
		}
	}
}
