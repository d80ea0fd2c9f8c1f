package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"hindsight/pkg/stream/natstest"
)

// TestInjectPartitions plays the same rounds to 1, 2 and 4 partitions: their outcomes
// meet the same delays, every round has its fate, and the logs verify.
func TestInjectPartitions(t *testing.T) {
	t.Parallel()
	var raw string
	for _, partitions := range []int{1, 2, 4} {
		o := object(t, "inject", "--rounds", "400", "--delays", "exp:10", "--seed", "3", "--log", "mem:",
			"--partitions", fmt.Sprint(partitions), "--json")
		fates := o["fates"].(map[string]any)
		if fates["observed"] != 400.0 || o["rounds"] != 400.0 {
			t.Errorf("%d partitions: %v", partitions, o)
		}
		got := fmt.Sprint(o["delays"].(map[string]any)["raw"])
		if partitions == 1 {
			raw = got
		} else if got != raw {
			t.Errorf("%d partitions: delays as arrived are %s, of one partition %s", partitions, got, raw)
		}
	}
	if got := execute(t.Context(), "inject", "--partitions", "0"); got.code != 2 || !strings.Contains(got.stderr,
		"at least 1") {
		t.Errorf("no partitions: exit code %d, %s", got.code, got.stderr)
	}
}

// TestInjectIsBacktest: what inject prints of a learner is what backtest prints, to the bit.
func TestInjectIsBacktest(t *testing.T) {
	t.Parallel()
	for _, delays := range []string{"none", "exp:50"} {
		args := []string{"--rounds", "1000", "--delays", delays, "--window", "100", "--seed", "3", "--json"}
		live := object(t, append([]string{"inject", "--log", "mem:"}, args...)...)
		played := object(t, append([]string{"backtest"}, args...)...)["runs"].([]any)[0].(map[string]any)
		for _, key := range []string{"mean_loss", "regret", "fates"} {
			if got, want := fmt.Sprint(live[key]), fmt.Sprint(played[key]); got != want || live[key] == nil {
				t.Errorf("%s, %s: live %s, in the backtest %s", delays, key, got, want)
			}
		}
	}
}

// TestServers plays on a server and verifies there.
func TestServers(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, natstest.Options{Users: []natstest.User{{Name: "u", Password: "topsecret"}}})
	url := "nats://u:topsecret@" + s.Addr()
	seed := filepath.Join(t.TempDir(), "seed")
	run := func(code int, says string, args ...string) {
		t.Helper()
		got := execute(t.Context(), args...)
		if all := got.stdout + got.stderr; got.code != code || !strings.Contains(all, says) ||
			strings.Contains(all, "secret") {
			t.Errorf("%.7s: exit code %d, want %d and %q:\n%s", args[0], got.code, code, says, all)
		}
	}
	run(0, "audit it again:  replayer verify --log nats://***@"+s.Addr(), "inject", "--rounds", "200", "--partitions",
		"2", "--log", url, "--seed-file", seed)
	run(0, "identical", "verify", "--log", url, "--seed-file", seed)
	run(1, "already", "inject", "--rounds", "200", "--log", url, "--seed-file", seed)
	run(1, "holds the seed of another system", "inject", "--rounds", "200", "--seed", "7", "--log", url, "--seed-file",
		seed)
	run(4, "refuses this user, password or credentials", "verify", "--log", "nats://u:wrongsecret@"+s.Addr(),
		"--seed-file", seed)
	run(2, "percent-encoded", "verify", "--log", "nats://u:p/secret@h")
}
