package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestAutoLive plays the aggregate live, without class and with random features, and
// recomputes everything that was decided from the logs alone.
func TestAutoLive(t *testing.T) {
	log := "embedded:" + filepath.Join(t.TempDir(), "log")
	world := []string{"--env", "linear:3,4", "--oracle", "auto", "--rounds", "300", "--window", "50", "--delays", "exp:20+never:0.1"}
	r := object(t, append([]string{"inject", "--json", "--log", log, "--listen", "127.0.0.1:0"}, world...)...)
	checkRun(t, r, 300)
	v := object(t, "verify", "--log", log, "--json")
	if number(t, v, "differences") != 0 || number(t, v, "decisions.checked") != 300 || need(t, v, "first") != nil {
		t.Errorf("verify: %v", v)
	}
	one, two := runs(t, world...), runs(t, world...)
	if a, b := number(t, one[0].(map[string]any), "regret"), number(t, two[0].(map[string]any), "regret"); a != b {
		t.Errorf("the same flags give the regrets %v and %v", a, b)
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
		checkRun(t, object(t, "inject", "--json", "--log", "mem:", "--oracle", name, "--env", "linear:3,4", "--rounds", "200"), 200)
	}
	data := writeFile(t, "log.csv", banditText)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--oracle", "hedge"}, "expected auto, linear, shared or hybrid; hedge needs a model file"},
		{[]string{"--twist", "permute"}, "permute takes the parameters share"},
		{[]string{"--twist", "turn:1"}, `unknown twist "turn:1"`},
		{[]string{"--data", data, "--action-column", "who", "--reward-column", "paid", "--twist", "permute:0.5"}, "does not tell the losses of all actions"},
	} {
		if got := execute(t.Context(), append([]string{"backtest", "--rounds", "50"}, c.args...)...); got.code != 2 || !strings.Contains(got.stderr, c.want) {
			t.Errorf("%v: exit code %d:\n%s\nwant %s", c.args, got.code, got.stderr, c.want)
		}
	}
	twisted := runs(t, "--env", "bandit:3,.2,.8", "--rounds", "400", "--delays", "none", "--twist", "permute:0.5", "--twist", "rewards:.6,.3")[0].(map[string]any)
	if name := need(t, twisted, "environment"); name != "bandit:3,0.2,0.8 permute:0.5 rewards:0.6,0.3" {
		t.Errorf("environment %v", name)
	}
}
