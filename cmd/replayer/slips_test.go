package main

import (
	"strings"
	"testing"

	"hindsight/internal/daemon"
)

// TestSlips holds that what is nearly right is answered with what is.
func TestSlips(t *testing.T) {
	for args, want := range map[string]string{
		"backtst":                   `unknown command "backtst" (did you mean "backtest"?)`,
		"backtest --learner egredy": `unknown learner "egredy" (did you mean "egreedy"?)`,
		"backtest --learner daffa":  `unknown learner "daffa" (did you mean "dafa"?)`,
		"fit shop.yaml":             "replayer fit --model shop.yaml",
		"verify embedded:x":         "embedded:x",
	} {
		if got := execute(t.Context(), strings.Fields(args)...); got.code != daemon.WrongUsage ||
			!strings.Contains(got.stderr, want) {
			t.Errorf("%s: exit code %d, %s; want %s", args, got.code, got.stderr, want)
		}
	}
}

// TestSlipBeforeData holds that a wrong learner is told as what it is, before a log is read that may be long.
func TestSlipBeforeData(t *testing.T) {
	const data = "../../compose/clients/personalizer/log.dsjson"
	got := execute(t.Context(), "backtest", "--data", data, "--learner", "magic")
	if got.code != daemon.WrongUsage || !strings.HasPrefix(got.stderr, `replayer: --learner: unknown learner "magic"`) {
		t.Errorf("exit code %d, %s", got.code, got.stderr)
	}
}

// TestInjectInShort holds that inject begins with what was played, lost and possible.
func TestInjectInShort(t *testing.T) {
	got := execute(t.Context(), "inject", "--rounds", "40", "--log", "mem:")
	if first, _, _ := strings.Cut(got.stdout, "; uniform play has"); got.code != 0 || !strings.HasPrefix(first,
		"in short            40 rounds were played; their mean loss is 0.") {
		t.Errorf("exit code %d, %s%s", got.code, got.stdout, got.stderr)
	}
}
