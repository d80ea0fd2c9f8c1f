package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hindsight/internal/testkit/daily"
)

const policyModel = `name: replay
learner: {kind: exp4dale, policies: p.jsonl}
window: 50 rounds
`

const policyFile = `{"hindsight_policies":1,"actions":["a1","a2","a3","a4"]}
{"rules":[{"then":"a1"}]}
{"prior":2,"rules":[{"if":{"x1":[0,1]},"then":"a2"},{"then":"a3"}]}
`

// TestInjectPolicies plays exp4dale to a live system, with the policies of the
// environment, with those that go by its class, and with those of a file; the logs
// verify, which inject does itself and verify does again.
func TestInjectPolicies(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"m.yaml": policyModel, "p.jsonl": policyFile} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	runs := [][]string{
		{"--env", "sigmoid", "--learner", "exp4dale", "--order", "arrival"},
		{"--env", "sigmoid", "--learner", "exp4dale:plain,2000"},
		{"--env", "cyc:40,5", "--learner", "exp4dale"},
		{"--env", "cyc:40,5", "--model", filepath.Join(dir, "m.yaml")},
	}
	if testing.Short() {
		runs = runs[:1] // the same goroutines run for each
	}
	for i, args := range runs {
		if !testing.Short() && !daily.Turn(t, i, 2) {
			continue
		}
		log := "embedded:" + filepath.Join(t.TempDir(), "log")
		r := object(t, append([]string{"inject", "--rounds", "200", "--json", "--log", log, "--listen", "127.0.0.1:0"},
			args...)...)
		if number(t, r, "rounds") != 200 || need(t, r, "certificate.measured.value") == nil {
			t.Errorf("%v: %v", args, r)
		}
		if got := execute(t.Context(), "verify", "--log", log); got.code != 0 ||
			!strings.Contains(got.stdout, "identical") {
			t.Errorf("%v: verify: %+v", args, got)
		}
	}
}

// TestBacktestPolicies holds that a backtest of a class of policies is against the best
// of them, under the environment's own delays.
func TestBacktestPolicies(t *testing.T) {
	o := object(t, "backtest", "--env", "cyc:50,20", "--rounds", "400", "--learner", "fixed:a1", "--learner",
		"exp4dale",
		"--order", "arrival", "--json")
	runs, _ := o["runs"].([]any)
	if len(runs) != 2 {
		t.Fatalf("%v", o)
	}
	fixed, _ := runs[0].(map[string]any)
	if number(t, fixed, "regret") != 0 || number(t, fixed, "best_loss") != 0.75 ||
		need(t, fixed, "delays.spec") != "constant:20" {
		t.Errorf("%v", fixed)
	}
}

// TestBacktestOrder holds that a backtest without a model file learns rounds decided early as
// their outcomes come, and in order where it is told so.
func TestBacktestOrder(t *testing.T) {
	delay := func(args ...string) float64 {
		o := object(t, append([]string{"backtest", "--env", "sigmoid", "--oracle", "linear", "--rounds", "300",
			"--json"},
			args...)...)
		runs, _ := o["runs"].([]any)
		run, _ := runs[0].(map[string]any)
		return number(t, run, "delays.released.mean")
	}
	plain, early, fifo := delay(), delay("--order", "early"), delay("--order", "fifo")
	if plain != early || early > 0.75*fifo {
		t.Errorf("mean delay as released: %v, with --order early %v, with --order fifo %v", plain, early, fifo)
	}
}

// TestPoliciesUsage holds what is refused, and that it says what to do.
func TestPoliciesUsage(t *testing.T) {
	for want, args := range map[string][]string{
		"exp4dale needs policies": {"backtest", "--env", "hypercube:5,0.1", "--rounds", "10", "--learner",
			"exp4dale"},
		"for backtests only: no live system": {"inject", "--env", "unstable", "--rounds", "10", "--learner", "greedy",
			"--log", "mem:"},
		"its oracle (own) is Go code":       {"inject", "--env", "hypercube:5,0.1", "--rounds", "10", "--log", "mem:"},
		"expected fifo, early or arrival":   {"backtest", "--rounds", "10", "--order", "lifo"},
		"arrival needs an oracle":           {"backtest", "--env", "unstable", "--rounds", "10", "--order", "arrival"},
		"neither plain nor a sum of delays": {"backtest", "--rounds", "10", "--learner", "exp4dale:x"},
	} {
		if got := execute(t.Context(), args...); got.code == 0 || !strings.Contains(got.stderr, want) {
			t.Errorf("%v: exit code %d: %s, want %q", args, got.code, got.stderr, want)
		}
	}
}
