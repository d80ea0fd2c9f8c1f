package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hindsight/internal/testkit/daily"
)

// TestOraclesLive plays each oracle over features live, the aggregate with random features,
// and recomputes everything that was decided from the logs alone.
func TestOraclesLive(t *testing.T) {
	t.Parallel()
	oracles := []string{"auto", "linear", "shared", "hybrid", "diagonal"}
	if testing.Short() {
		oracles = oracles[:1] // the same goroutines run for each
	}
	for i, oracle := range oracles {
		if i > 0 && !daily.Turn(t, i, 2) {
			continue
		}
		log := "embedded:" + filepath.Join(t.TempDir(), "log")
		r := object(t, append([]string{"inject", "--json", "--log", log, "--listen", "127.0.0.1:0", "--oracle", oracle},
			noClass...)...)
		checkRun(t, r, 300)
		v := object(t, "verify", "--log", log, "--json")
		if number(t, v, "differences") != 0 || number(t, v, "decisions.checked") != 300 || need(t, v, "first") != nil {
			t.Errorf("%s: verify: %v", oracle, v)
		}
	}
}

// noClass is a world that brings no class.
var noClass = []string{"--env", "linear:3,4", "--rounds", "300", "--window", "50", "--delays", "exp:20+never:0.1"}

// TestDefaultOracle: data without a class has the aggregate unless another is named, the
// same each time, and the run says so before it begins; an environment with a class keeps
// that.
func TestDefaultOracle(t *testing.T) {
	world := append([]string{"backtest", "--json"}, noClass...)
	said := execute(t.Context(), world...).stderr
	if !strings.HasPrefix(said, "oracle auto; the default; 3 regressions an action, as large as the columns seen, the "+
		"third on random features while ") {
		t.Errorf("without a word: %s", said)
	}
	if said := execute(t.Context(), append(world, "--oracle", "linear")...).stderr; !strings.HasPrefix(said,
		"oracle linear; the model names it; 1 regression an action") {
		t.Errorf("with --oracle linear: %s", said)
	}
	if said := execute(t.Context(), "backtest", "--rounds", "50").stderr; !strings.HasPrefix(said, "oracle hedge; ") {
		t.Errorf("of a class: %s", said)
	}
	world = append(slices.Clone(noClass), "--oracle", "auto")
	plain := runs(t, noClass...)
	one, two := runs(t, world...), runs(t, world...)
	if a, b := number(t, one[0].(map[string]any), "regret"), number(t, two[0].(map[string]any), "regret"); a != b {
		t.Errorf("the same flags give the regrets %v and %v", a, b)
	}
	if a, b := number(t, plain[0].(map[string]any), "regret"), number(t, one[0].(map[string]any), "regret"); a != b {
		t.Errorf("the default has the regret %v, --oracle auto %v", a, b)
	}
	linear := runs(t, append(world, "--oracle", "linear")...)
	if a, b := number(t, one[0].(map[string]any), "regret"), number(t, linear[0].(map[string]any), "regret"); a == b {
		t.Errorf("the aggregate and the linear oracle have the same regret %v: --oracle has no effect", a)
	}
}

// TestOracleAndTwistFlags holds what is said of wrong ones, and that a class is left out
// where another oracle replaces the class's.
func TestOracleAndTwistFlags(t *testing.T) {
	checkRun(t, object(t, "inject", "--json", "--log", "mem:", "--oracle", "auto", "--rounds", "200"), 200)
	for _, name := range []string{"shared", "hybrid"} {
		checkRun(t, object(t, "inject", "--json", "--log", "mem:", "--oracle", name, "--env", "linear:3,4", "--rounds",
			"200"), 200)
	}
	data := writeFile(t, "log.csv", banditText)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--oracle", "hedge"}, "expected auto, linear, fourier, shared, hybrid or diagonal; hedge needs a model " +
			"file"},
		{[]string{"--twist", "permute"}, "permute takes the parameters share"},
		{[]string{"--twist", "turn:1"}, `unknown twist "turn:1"`},
		{[]string{"--data", data, "--action-column", "who", "--reward-column", "paid", "--twist", "permute:0.5"},
			"does not tell the losses of all actions"},
	} {
		if got := execute(t.Context(), append([]string{"backtest", "--rounds", "50"}, c.args...)...); got.code != 2 ||
			!strings.Contains(got.stderr, c.want) {
			t.Errorf("%v: exit code %d:\n%s\nwant %s", c.args, got.code, got.stderr, c.want)
		}
	}
	twisted := runs(t, "--env", "bandit:3,.2,.8", "--rounds", "400", "--delays", "none", "--twist", "permute:0.5",
		"--twist", "rewards:.6,.3")[0].(map[string]any)
	if name := need(t, twisted, "environment"); name != "bandit:3,0.2,0.8 permute:0.5 rewards:0.6,0.3" {
		t.Errorf("environment %v", name)
	}
}
