package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"hindsight/internal/testkit"
)

// TestPageBacktest runs the first backtest of docs/backtest.md and the quickstart, word for word but for the
// folder: a fresh clone has its log.
func TestPageBacktest(t *testing.T) {
	line, ok := strings.CutPrefix(strings.TrimSpace(testkit.Block(t, "../../docs/backtest.md", "backtest")),
		"replayer ")
	got := execute(t.Context(), strings.Fields(strings.Replace(line, "compose/", "../../compose/", 1))...)
	for _, want := range []string{"\nlogging ", "\nuniform ", "\nlearner:dafa ", "\ndafa     none ",
		"few events: 120 rows"} {
		if !ok || got.code != 0 || !strings.Contains(got.stdout, want) {
			t.Errorf("exit code %d, no %q in\n%s%s", got.code, want, got.stdout, got.stderr)
		}
	}
}

// TestPageBacktestCommands runs every command of docs/backtest.md, word for word, on small files with the names that
// the page gives them.
func TestPageBacktestCommands(t *testing.T) {
	page, err := os.ReadFile("../../docs/backtest.md")
	if err != nil {
		t.Fatal(err)
	}
	compose, err := filepath.Abs("../../compose")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	if err := os.Symlink(compose, "compose"); err != nil {
		t.Fatal(err)
	}
	shop, labels, flights := ",timestamp,item_id,position,click,propensity_score,user_feature_0\n", "label,n_1,n_2\n",
		"decision_ts,outcome_ts,carrier,on_time,origin,dest,distance,month,dow,sched_hour\n"
	arms := ""
	for i := range 60 {
		x := uint32(i+1) * 2654435761 >> 8
		shop += fmt.Sprintf("%d,2019-11-24 00:00:%02d+00:00,%d,1,%d,0.5,%08x\n", i, i, x%2, x>>4%2, x)
		labels += fmt.Sprintf("%d,%d,%d\n", x%3, x>>4%10, x%3)
		flights += fmt.Sprintf("2026-01-01 00:%02d:00,2026-01-01 01:%02d:00,%s,%d,A,B,%d,1,%d,%d\n", i, i,
			[]string{"x", "y"}[x%2], x>>4%2, x>>8%900, i%7, i%24)
		arms += fmt.Sprintf(`{"prompt":"no %d","source":"s","arms":{"a":{"reward":%v,"cost":%v},`+
			`"b":{"reward":1,"cost":0.01}}}`+"\n", i, float64(x%8)/8, float64(1+x>>4%4)/1e4)
	}
	for name, text := range map[string]string{"men/random/men.csv": shop, "pendigits.csv": labels,
		"flights_log.csv": flights, "val_k4.jsonl": arms,
		"route.yaml": "actions: [a, b]\nfeatures: {prompt: {text: ngrams}, source: text}\nreward: reward\n" +
			"outcomes: {reward: {window: 200r}, cost: {max: 0.1, window: 20r}}\n" +
			"budget: {cost: {of: cost, mean_at_most: 5e-4, about: {a: 2e-4, b: 0.01}}}\n"} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700),
			os.WriteFile(name, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	words, n := regexp.MustCompile(`'[^']*'|\S+`), 0
	for _, block := range strings.Split(string(page), "```sh\n")[1:] {
		block, _, _ = strings.Cut(strings.ReplaceAll(block, "\\\n", ""), "```")
		for line := range strings.Lines(block) {
			args := words.FindAllString(line, -1)
			for i := range args {
				args[i] = strings.Trim(args[i], "'")
			}
			if n++; args[1] == "inject" {
				args = append(args, "--listen", "127.0.0.1:0")
			}
			if got := execute(t.Context(), args[1:]...); args[0] != "replayer" || got.code != 0 {
				t.Errorf("%s: exit code %d: %s", line, got.code, got.stderr)
			}
		}
	}
	if n < 8 {
		t.Errorf("%d commands", n)
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
		"pendigits.csv": {"label,n_1,n_2,n_3,n_4,n_5,n_6,n_7,n_8,n_9,n_10,n_11,n_12,n_13,n_14,n_15,n_16", "0" +
			zeros, "1" + zeros, "8" + zeros},
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
