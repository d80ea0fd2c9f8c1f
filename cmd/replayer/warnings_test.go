package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What in a model file or a flag is seldom meant is said once, before the figures.
func TestWarningsAreTold(t *testing.T) {
	path := filepath.Join(t.TempDir(), "shop.yaml")
	if err := os.WriteFile(path, []byte("name: shop\nexplore: 0.05\nwindow: 10\noracle: {kind: linear}\n"+
		"unit: {sticky: 1h}\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	got := execute(t.Context(), "backtest", "--rounds", "50", "--model", path, "--learner", "dafa",
		"--learner", "greedy")
	for _, want := range []string{path + ":2:10: explore: 0.05 is no ε", path + ":3:9: window: 10 means rounds",
		path + ": unit: no draw holds"} {
		if got.code != 0 || strings.Count(got.stderr, "warning: "+want) != 1 || strings.Contains(got.stdout,
			"warning") {
			t.Errorf("exit code %d, %s\n%s; want once %s", got.code, got.stderr, got.stdout, want)
		}
	}
	got = execute(t.Context(), "backtest", "--rounds", "50", "--learner", "dafa:0.1", "--learner", "dafa:12")
	if got.code != 0 || strings.Count(got.stderr, "warning: ") != 1 || !strings.Contains(got.stderr,
		"--learner egreedy:0.1") {
		t.Errorf("exit code %d, %s", got.code, got.stderr)
	}
}
