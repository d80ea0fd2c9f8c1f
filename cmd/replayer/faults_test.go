package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"hindsight/internal/daemon"
)

// shopArgs are those of a backtest of the shop's log.
func shopArgs(data string, more ...string) []string {
	return append([]string{"backtest", "--data", data, "--time-column", "at", "--outcome-time-column", "seen",
		"--action-column", "item",
		"--propensity-column", "p", "--reward-column", "bought", "--features", "hour,plan", "--window", "20",
		"--bootstrap",
		"0"}, more...)
}

// writeFiles writes files into a folder and returns it.
func writeFiles(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestTwoModelFiles: two model files with the same learner are two learners, by their names, and
// not row orders of one.
func TestTwoModelFiles(t *testing.T) {
	dir := writeFiles(t, map[string]string{
		"a.yaml": "name: a\nactions: [blue, red]\noracle: {kind: linear}\nwindow: 20 rounds\nreward: {min: 0, " +
			"max: 1}\n",
		"b.yaml": "name: b\nactions: [blue, red]\noracle: {kind: linear, lambda: 50}\nexplore: cautious\nwindow: 20 " +
			"rounds\nreward: {min: 0, max: 1}\n",
	})
	csv := filepath.Join(dir, "csv")
	got := execute(t.Context(), shopArgs(writeShop(t, 200), "--policy", "model:"+dir+"/a.yaml", "--policy",
		"model:"+dir+"/b.yaml",
		"--delays", "none", "--csv", csv, "--json", "--sweep", "3")...)
	if got.code != 0 {
		t.Fatal(got.stderr)
	}
	var o map[string]any
	if err := json.Unmarshal([]byte(got.stdout), &o); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"summary", "sweep", "runs"} {
		rows := need(t, o, part).([]any)
		if len(rows) != 2 || need(t, rows[0].(map[string]any), "learner") == need(t, rows[1].(map[string]any),
			"learner") {
			t.Errorf("%s: %v", part, rows)
		}
	}
	if !strings.Contains(got.stderr, "model:"+dir+"/b.yaml") {
		t.Errorf("the table does not name the files:\n%s", got.stderr)
	}
}

// openBandit writes Open Bandit data with items that have features.
func openBandit(t *testing.T) string {
	t.Helper()
	var rows strings.Builder
	rows.WriteString(",timestamp,item_id,position,click,propensity_score\n")
	for i := range 40 {
		fmt.Fprintf(&rows, "%d,2019-11-24 00:%02d:01+00:00,%d,1,%d,0.5\n", i, i, i%2, i/2%2)
	}
	return writeFiles(t, map[string]string{"men.csv": rows.String(),
		"item_context.csv": ",item_id,item_feature_0\n0,0,-0.5\n1,1,0.7\n"})
}

// TestWorstLooksAtActions: worst plays the same rounds as backtest, with the features of actions.
func TestWorstLooksAtActions(t *testing.T) {
	env := &daemon.Env{Getenv: func(string) string { return "" }, Stdin: strings.NewReader(""),
		Stdout: new(strings.Builder), Stderr: new(strings.Builder)}
	w := &worst{env: env, source: source{data: openBandit(t), format: formatAuto, oracle: "shared", accept: 1, seed: 1}}
	w.source.reading.flags(env, pflag.NewFlagSet("", pflag.ContinueOnError), new(logAccess))
	s, err := w.stress(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !s.trial.Rounds.Featured {
		t.Error("actions have no features")
	}
}

// TestInputs: a report names every file that was read, with its checksum.
func TestInputs(t *testing.T) {
	dir := writeFiles(t, map[string]string{
		"m.yaml": "name: m\nactions: [blue, red]\noracle: {kind: linear}\nwindow: 20 rounds\nreward: {min: 0, " +
			"max: 1}\n",
		"p.csv": "red,blue\n" + strings.Repeat("0.5,0.5\n", 60),
	})
	shop := writeShop(t, 60)
	roles := func(args ...string) string {
		t.Helper()
		o := object(t, append(args, "--json", "--csv", filepath.Join(dir, "csv"), "--sweep", "none")...)
		var out []string
		for _, in := range need(t, o, "parameters.inputs").([]any) {
			in := in.(map[string]any)
			if len(in["sha256"].(string)) != 64 {
				t.Errorf("%v", in)
			}
			out = append(out, fmt.Sprintf("%v %v", in["role"], in["name"]))
		}
		return strings.Join(out, ", ")
	}
	if got := roles(shopArgs(shop, "--policy", "eps:0.1,table:"+dir+"/p.csv", "--policy", "model:"+dir+"/m.yaml",
		"--policy", "model:"+dir+"/m.yaml")...); got != "data shop.csv, probabilities p.csv, model m.yaml" {
		t.Error(got)
	}
	men := openBandit(t)
	if got := roles("backtest", "--data", men+"/men.csv", "--policy",
		"logging"); got != "data men.csv, items item_context.csv" {
		t.Error(got)
	}
	if got := roles("backtest", "--data", men, "--policy", "logging"); got != "data item_context.csv, data men.csv" {
		t.Error(got)
	}
}

// TestOneBound: the table, the page and CSV show one bound of a run.
func TestOneBound(t *testing.T) {
	dir := t.TempDir()
	got := execute(t.Context(), "backtest", "--rounds", "3000", "--orders", "2", "--delays", "none", "--window", "50",
		"--sweep", "none",
		"--report", dir+"/out.html", "--csv", dir)
	table := regexp.MustCompile(`dafa +none .* ([\d.,]+|vacuous|–) +[\d,]+\n`).FindStringSubmatch(got.stdout)
	page, err := os.ReadFile(dir + "/out.html")
	if err != nil || table == nil {
		t.Fatal(err, got)
	}
	row := regexp.MustCompile(
		`<td class="text ">dafa</td><td class="text ">none</td>.*<td class="">([^<]+)</td><td ` +
			`class="">[^<]+</td></tr>`).FindSubmatch(page)
	if row == nil || string(row[1]) != table[1] || table[1] == "vacuous" {
		t.Errorf("the table says %q, the page %q", table[1], row)
	}
	csv, err := os.ReadFile(filepath.Join(dir, "summary.csv"))
	if digits := strings.ReplaceAll(table[1], ",", ""); err != nil || !strings.Contains(string(csv), ","+digits) {
		t.Errorf("summary.csv has no %s:\n%s", digits, csv)
	}
}

// TestNamedSnapshot: a policy is not flagged for a word in its name.
func TestNamedSnapshot(t *testing.T) {
	data := writeShop(t, 60)
	b, err := os.ReadFile(data)
	if err == nil {
		err = os.WriteFile(data, []byte(strings.ReplaceAll(string(b), "red", "snapshot")), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	o := object(t, shopArgs(data, "--policy", "always:snapshot", "--log", data, "--json")...)
	if flags := fmt.Sprint(need(t, need(t, o, "policies").([]any)[0].(map[string]any), "flags")); strings.Contains(
		flags, "learned from rows") {
		t.Error(flags)
	}
}

// TestDamagedResume: a damaged file of --resume is named as that, and no fault of --policy.
func TestDamagedResume(t *testing.T) {
	file := filepath.Join(t.TempDir(), "runs.jsonl")
	args := shopArgs(writeShop(t, 60), "--policy", "uniform", "--resume", file)
	if got := execute(t.Context(), args...); got.code != 0 {
		t.Fatal(got.stderr)
	}
	b, err := os.ReadFile(file)
	if err == nil {
		b = regexp.MustCompile(`"result":.*\n`).ReplaceAll(b, []byte("\"result\":[1]}\n"))
		err = os.WriteFile(file, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	got := execute(t.Context(), args...)
	if got.code != 1 || strings.Contains(got.stderr, "--policy") || !strings.Contains(got.stderr, file) ||
		!strings.Contains(got.stderr, "another file") {
		t.Errorf("exit code %d: %s", got.code, got.stderr)
	}
}

// TestRewardsAreNamed: where the data has rewards, worst and the bounds speak of them.
func TestRewardsAreNamed(t *testing.T) {
	dir, shop := t.TempDir(), writeShop(t, 60)
	worst := shopArgs(shop, "--oracle", "linear", "--steps", "1", "--random", "1", "--draws", "1", "--out", dir+"/w")
	worst = append([]string{"worst"}, slices.DeleteFunc(worst[1:],
		func(a string) bool { return a == "--bootstrap" || a == "0" })...)
	if got := execute(t.Context(), worst...); got.code != 0 || !strings.Contains(got.stdout, "missed reward") ||
		strings.Contains(got.stdout, "loss") {
		t.Errorf("worst: %+v", got)
	}
	const says = "regret is missed reward, in units of the whole range from 0 to 1"
	got := execute(t.Context(), append([]string{"inject", "--log", "mem:"}, worst[1:len(worst)-8]...)...)
	if text := strings.Join(strings.Fields(got.stdout), " "); got.code != 0 || !strings.Contains(text, says) {
		t.Errorf("inject: %s%s", text, got.stderr)
	}
	if got := execute(t.Context(), shopArgs(shop, "--sweep", "none", "--report", dir+"/out.html")...); got.code != 0 {
		t.Fatal(got.stderr)
	}
	page, err := os.ReadFile(dir + "/out.html")
	if err != nil || !strings.Contains(string(page), says) || strings.Contains(string(page), "loss above the best") {
		t.Errorf("the page does not say %q", says)
	}
}
