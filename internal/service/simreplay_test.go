package service_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"hindsight/internal/service"
	"hindsight/internal/verify"
)

// TestSimulationVerifies has the replayer recompute what simulations left: logs with
// crashes, takeovers, early outcomes and equal log times are identical to what follows
// from them.
func TestSimulationVerifies(t *testing.T) {
	const groups = 4
	n := 120
	if seeds, err := strconv.Atoi(os.Getenv("HINDSIGHT_SEEDS")); err == nil {
		n = seeds
	} else if testing.Short() {
		n = 24
	}
	for g := range groups {
		t.Run(fmt.Sprint("group", g), func(t *testing.T) {
			t.Parallel()
			equal, identical := 0, 0
			for seed := g; seed < n && !t.Failed(); seed += groups {
				s := service.Simulate(t, int64(seed))
				if s.Equal {
					equal++
				}
				r, err := verified(t, s)
				if err != nil || r.Differences > 0 {
					t.Errorf("seed %d: %v, %+v", seed, err, r)
				} else if r.ExitCode() == verify.Identical {
					identical++ // the others begin at offset 2, as after retention
				}
			}
			if !t.Failed() && (equal < n/groups/8 || identical < n/groups/3) {
				t.Errorf("of %d logs only %d had equal log times, only %d were checked from their beginning", n/groups, equal, identical)
			}
		})
	}
}

func verified(t *testing.T, s *service.Simulated) (*verify.Report, error) {
	return verify.Run(t.Context(), verify.Config{Log: s.Log, Name: s.Name, Seed: s.Seed, Build: s.Build, Dedup: s.Dedup, OneClock: s.Clock})
}

// powerTopics are those that lose their tails: HINDSIGHT_POWER, of which "all" are all.
func powerTopics() []string {
	switch only := os.Getenv("HINDSIGHT_POWER"); only {
	case "":
		return []string{"m.snapshots"}
	case "all":
		return nil
	default:
		return strings.Split(only, ",")
	}
}

// TestPowerLossVerifies has the replayer recompute what power losses left: what is gone is too old, and the
// rest is identical.
func TestPowerLossVerifies(t *testing.T) {
	n := 60
	if seeds, err := strconv.Atoi(os.Getenv("HINDSIGHT_SEEDS")); err == nil {
		n = seeds
	} else if testing.Short() {
		n = 12
	}
	codes := map[int]int{}
	for seed := range int64(n) {
		r, err := verified(t, service.SimulatePower(t, seed, powerTopics()))
		if err != nil || r.Differences > 0 {
			t.Errorf("seed %d: %v, %+v", seed, err, r.First)
		}
		codes[r.ExitCode()]++
	}
	t.Log("exit codes", codes)
}
