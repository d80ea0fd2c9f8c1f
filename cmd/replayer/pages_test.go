package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hindsight/internal/testkit"
)

// TestPageBacktest runs the first backtest of docs/backtest.md and the quickstart, word for word but for the
// folder: a fresh clone has its log.
func TestPageBacktest(t *testing.T) {
	line, ok := strings.CutPrefix(strings.TrimSpace(testkit.Block(t, "../../docs/backtest.md", "backtest")), "replayer ")
	got := execute(t.Context(), strings.Fields(strings.Replace(line, "compose/", "../../compose/", 1))...)
	for _, want := range []string{"\nlogging ", "\nuniform ", "\nlearner:dafa ", "\ndafa     none ",
		"few events: 120 rows"} {
		if !ok || got.code != 0 || !strings.Contains(got.stdout, want) {
			t.Errorf("exit code %d, no %q in\n%s%s", got.code, want, got.stdout, got.stderr)
		}
	}
}

// TestPageData makes the labelled files as docs/benchmarks.md says, of rows as UCI's files have them.
func TestPageData(t *testing.T) {
	if _, err := exec.LookPath("shuf"); err != nil {
		t.Skip("no shuf here: coreutils has it")
	}
	dir := t.TempDir()
	digits := func(label string) string { return strings.Repeat("  0,", 15) + "100, " + label + "\n" }
	for name, text := range map[string]string{"pendigits.tra": digits("8") + digits("0"), "pendigits.tes": digits("1"),
		"agaricus-lepiota.data": "p" + strings.Repeat(",?", 22) + "\n" + "e" + strings.Repeat(",x", 22) + "\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	made := exec.CommandContext(t.Context(), "sh", "-ec", testkit.Block(t, "../../docs/benchmarks.md", "data"))
	made.Dir = dir
	if out, err := made.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	zeros := strings.Repeat(",0", 15) + ",100"
	for name, want := range map[string][]string{
		"pendigits.csv": {"label,n_1,n_2,n_3,n_4,n_5,n_6,n_7,n_8,n_9,n_10,n_11,n_12,n_13,n_14,n_15,n_16", "0" + zeros, "1" +
			zeros, "8" + zeros},
		"mushroom.csv": {
			"label,c_1,c_2,c_3,c_4,c_5,c_6,c_7,c_8,c_9,c_10,c_11,c_12,c_13,c_14,c_15,c_16,c_17,c_18,c_19,c_20,c_21,c_22",
			"e" + strings.Repeat(",x", 22), "p" + strings.Repeat(",?", 22)},
	} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(string(b)), "\n")
		if slices.Sort(lines[1:]); !slices.Equal(lines, want) {
			t.Errorf("%s: %q, want %q", name, lines, want)
		}
	}
}
