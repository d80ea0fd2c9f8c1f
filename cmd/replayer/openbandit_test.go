package main

import (
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"hindsight/internal/testkit/daily"
)

const openData = "../../../shared/data"

// policyNames are how the check values call policies, and what --policy calls them.
func policySpec(name string) string {
	for old, spec := range map[string]string{"always_item_": "always:", "hash_u": "hash:user_feature_",
		"eps0.1_hash_u0": "eps:0.1,hash:user_feature_0"} {
		if rest, ok := strings.CutPrefix(name, old); ok {
			return spec + rest
		}
	}
	return name
}

// TestOpenBanditExpected meets the check values through the command: data found in a
// folder, by content, and policies by their names. Those of the reward model are of another
// one than the command's; package ope meets them.
func TestOpenBanditExpected(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("the race detector has nothing to find in one goroutine")
	}
	text, err := os.ReadFile(filepath.Join(openData, "expected.md"))
	if err != nil {
		t.Skipf("the check values are not beside the repository: %v", err)
	}
	paths := map[string]string{"matched": "matched", "ESS": "ess", "max w": "max_weight", "IPS": "estimates.ips.value",
		"IPS se": "estimates.ips.se",
		"SNIPS":  "estimates.snips.value", "cIPS10": "estimates.cips10.value"}
	var columns []string
	rows := map[string][][]string{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if cells[0] == "log" {
			columns = cells
		} else if strings.HasPrefix(cells[0], "men/") {
			rows[cells[0]] = append(rows[cells[0]], cells)
		}
	}
	values, expected := 0, 0
	for i, log := range slices.Sorted(maps.Keys(rows)) {
		if !daily.Turn(t, i, len(rows)) {
			continue
		}
		want := rows[log]
		expected += 7 * len(want)
		args := []string{"backtest", "--json", "--data", filepath.Join(openData, "obd_men",
			strings.TrimPrefix(log, "men/")), "--bootstrap", "0", "--policy", "logging"}
		for _, row := range want {
			args = append(args, "--policy", policySpec(row[1]))
		}
		o := object(t, args...)
		policies, _ := o["policies"].([]any)
		if runs, _ := o["runs"].([]any); len(policies) != len(want)+1 || runs == nil || len(runs) != 0 {
			t.Fatalf("%s: %d policies, runs %v", log, len(policies), o["runs"])
		}
		for i, row := range want {
			p := policies[i+1].(map[string]any)
			if _, ok := need(t, p, "flags").([]any); !ok || need(t, p, "policy") != policySpec(row[1]) {
				t.Errorf("%s: %v", row[1], p)
			}
			for j := 2; j < len(columns); j++ {
				path, ok := paths[columns[j]]
				if !ok {
					continue
				}
				x, err := strconv.ParseFloat(row[j], 64)
				if err != nil {
					t.Fatal(err)
				}
				values++
				// Nine digits are written; the estimators' own test knows how many.
				if got := number(t, p, path); math.Abs(got-x) > 1e-9+1e-8*math.Abs(x) {
					t.Errorf("%s %s: %s is %.12g, want %s", log, row[1], columns[j], got, row[j])
				}
			}
		}
	}
	if policies := len(slices.Concat(slices.Collect(maps.Values(rows))...)); values != expected || policies != 12 {
		t.Errorf("%d values, want %d, of %d policies", values, expected, policies)
	}
}

const openBanditText = `,timestamp,item_id,position,click,propensity_score,user_feature_0
0,2019-11-24 00:00:01+00:00,2,3,0,0.25,cef3390ed2
1,2019-11-24 00:00:02+00:00,0,1,1,0.5,0000000a00
2,2019-11-24 00:00:03+00:00,0,2,0,0.5,0000000a00
`

// TestOpenBanditFlags: what --policy and its kin take, and what is refused.
func TestOpenBanditFlags(t *testing.T) {
	data := writeFile(t, "men.csv", openBanditText)
	zero := writeFile(t, "men.csv", openBanditText+"3,2019-11-24 00:00:04+00:00,0,2,0,0,0000000a00\n")
	plain := writeFile(t, "log.csv", banditText)
	o := object(t, "backtest", "--json", "--data", data, "--learner", "uniform", "--policy", "learner:egreedy:0.1",
		"--lambda", "inf", "--crossfit", "3", "--bootstrap", "50", "--min-events", "2")
	p := need(t, o, "policies").([]any)[0].(map[string]any)
	for _, name := range []string{"ips", "snips", "dm", "dr", "sndr", "cips+Inf", "switchdr+Inf", "dros+Inf"} {
		for _, part := range []string{"value", "se", "low", "high", "bootstrap.low", "bernstein.high"} {
			need(t, p, "estimates."+name+"."+part)
		}
	}
	if number(t, o, "estimators.crossfit") != 3 || number(t, o, "estimators.rows") != 3 ||
		need(t, o, "estimators.of") != "reward" || number(t, o, "estimators.min_propensity") != .25 {
		t.Errorf("estimators %v", o["estimators"])
	}
	run := need(t, o, "runs").([]any)[0].(map[string]any)
	need(t, run, "replay.snips.value")
	if p := object(t, "backtest", "--json", "--data", data)["policies"].([]any); len(p) != 3 {
		// logging, uniform, and the learner that is played
		t.Errorf("%d policies by default", len(p))
	}
	auto := object(t, "backtest", "--json", "--data", data, "--policy", "uniform", "--lambda", "auto")
	number(t, auto["policies"].([]any)[0].(map[string]any), "estimates.dros_auto.lambda")
	columns := []string{"--data", plain, "--action-column", "who", "--reward-column", "paid"}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--data", zero, "--policy", "uniform"}, 1, "men.csv:5: column propensity_score: the action " +
			"was played with propensity 0"},
		{append([]string{"--policy", "uniform"}, columns...), 2, "name their column: --propensity-column"},
		{append([]string{"--propensity-column", "x"}, columns...), 1,
			"log.csv:3: column x: the propensity 2 is not in (0, 1]"},
		{append([]string{"--accept", "0.5"}, columns...), 2, "--propensity-column"},
		{[]string{"--env", "sigmoid", "--policy", "uniform"}, 2, "this data has none"},
		{[]string{"--data", data, "--policy", "always:9"}, 2, `there is no action "9" in the log; there are 0, 1, 2`},
		{[]string{"--data", data, "--policy", "learner:wizard"}, 2, "wizard"},
		{[]string{"--data", data, "--policy", "model:/nowhere/m.yaml"}, 2, "/nowhere/m.yaml"},
		{[]string{"--data", data, "--oracle", "wizard"}, 2, `replayer: --oracle: unknown oracle "wizard"`},
		{[]string{"--data", data, "--lambda", "0"}, 2, `--lambda "0": expected`},
		{[]string{"--data", data, "--crossfit", "1"}, 2, "--crossfit 1: expected"},
		{[]string{"--data", data, "--bootstrap", "-1"}, 2, "--bootstrap -1"},
		{[]string{"--data", data, "--accept", "2"}, 2, "--accept 2: it must be at most 1"},
		{[]string{"--data", data, "--format", "xml"}, 2, `--format "xml": expected`},
		{[]string{"--data", plain, "--format", "obd"}, 1, "log.csv:1: not Open Bandit data"},
		{append([]string{"--format", "obd"}, columns...), 2, "columns are named for --format bandit only"},
	} {
		got := execute(t.Context(), append([]string{"backtest"}, c.args...)...)
		if got.code != c.code || !strings.Contains(got.stderr, c.want) {
			t.Errorf("%v: exit code %d, want %d:\n%s\nwant %s", c.args, got.code, c.code, got.stderr, c.want)
		}
	}
}

// TestOpenBanditTable holds the width of what people see, and a model file as a policy.
func TestOpenBanditTable(t *testing.T) {
	data := writeFile(t, "men.csv", openBanditText)
	file := writeFile(t, "m.yaml", "name: m\nversion: 1\nreward: {min: 0, max: 1}\nwindow: 200\nlearner: greedy\n")
	got := execute(t.Context(), "backtest", "--data", data, "--policy", "uniform", "--policy",
		"eps:0.1,hash:user_feature_0", "--policy", "model:"+file, "--learner", "uniform")
	if got.code != 0 {
		t.Fatal(got.stderr)
	}
	for line := range strings.Lines(got.stdout) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 100 && !strings.Contains(line, file) {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	for _, want := range []string{"! all policies: few events: 3 rows", "support missing", "\nlearner  delays",
		"each matched round is weighted", "SNIPS"} {
		if !strings.Contains(strings.ToLower(strings.ReplaceAll(got.stdout, "\n", " ")),
			strings.ToLower(strings.ReplaceAll(want, "\n", " "))) {
			t.Errorf("no %q in:\n%s", want, got.stdout)
		}
	}
}
