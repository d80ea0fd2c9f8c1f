package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hindsight/internal/daemon"
	"hindsight/internal/report"
)

// What cannot be replayed says where and why, and what to do.
func TestOddData(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"pretty.json", "{\"id\":\"a\",\n\"action\":\"red\"}\n", "jq -c . FILE"},
		{"cut.json", `{"_label_cost":-1.0,`, "cut.json:1:21: expected a text"},
		{"named.csv", "at,item\n1,red\n", "name its columns by --action-column, --reward-column or --loss-column, " +
			"--features and others: there are at, item"},
		{"semicolons.csv", "label;n_x\na;0,5\n", "0,5"},
		{"range.json", round("1e308", "0.5") + round("-1e308", "0.5"), "[-1e+308, 1e+308], which is too wide"},
		{"silent.json", `{"actions":["a","b"],"action":"a","propensity":0.5}` + "\n",
			"replayer: silent.json: no row of this log has an outcome"},
		{"wide.csv", "\xff\xfel\x00", "iconv -f UTF-16"},
	} {
		path := filepath.Join(t.TempDir(), c.name)
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := execute(t.Context(), "backtest", "--data", path); got.code != 1 || !strings.Contains(got.stderr,
			c.want) || !strings.Contains(got.stderr, c.name) {
			t.Errorf("%s: exit code %d: %s", c.name, got.code, got.stderr)
		}
	}
}

func round(reward, propensity string) string {
	return `{"actions":["red","blue"],"action":"red","reward":` + reward + `,"propensity":` + propensity + "}\n"
}

// Rewards that all are one large number have a range. Weights that are larger than any number are null, and a flag
// says so.
func TestLargeNumbers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "large.json")
	text := strings.Repeat(round("1e17", "0.5"), 5) + round("1e17", "5e-324")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got := object(t, "backtest", "--data", path, "--policy", "logging", "--policy", "uniform", "--json")
	policies := need(t, got, "policies").([]any)
	if dr := need(t, policies[0].(map[string]any), "estimates.dr.value"); dr != 1e17 {
		t.Errorf("the mean of 1e17 is %v", dr)
	}
	uniform := policies[1].(map[string]any)
	flags := need(t, uniform, "flags").([]any)
	if need(t, uniform, "max_weight") != nil || !slices.ContainsFunc(flags, func(f any) bool {
		return strings.HasPrefix(f.(string), "weights are so large")
	}) {
		t.Errorf("largest weight %v, flags %v", uniform["max_weight"], flags)
	}
}

// The files of a folder are checked as they are read: below it, hidden ones left out.
func TestInputsOfFolder(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a.json", ".hidden", "sub/b.json"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := report.ReadInput("data", dir)
	if err != nil || len(got) != 2 || got[0].Name != "a.json" || got[1].Name != "sub/b.json" {
		t.Errorf("%+v, %v", got, err)
	}
}

// No result is written over the log that it is made from, by whatever name, be it a file or one of a folder.
func TestResultOverLog(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "data.csv"), filepath.Join(t.TempDir(), "link")
	fresh, text := filepath.Join(t.TempDir(), "log.new"), strings.Repeat(round("1", "0.5"), 3)
	if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Link(path, link),
		os.Link(path, fresh)); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"convert", path, "--to", "jsonl", "--out", path},
		{"convert", dir, "--to", "jsonl", "--out", link},
		{"convert", fresh, "--to", "jsonl", "--out", strings.TrimSuffix(fresh, ".new")},
		{"convert", path, "--rejects", path},
		{"backtest", "--data", path, "--rejects", link},
		{"backtest", "--data", dir, "--report", path},
		{"backtest", "--data", path, "--csv", dir},
		{"fit", "--data", path, "--out", path},
		{"worst", "--data", path, "--out", link},
	} {
		got := execute(t.Context(), args...)
		b, err := os.ReadFile(path)
		if said := strings.Contains(got.stderr, ", which is read, would be"); got.code != daemon.WrongUsage || !said ||
			string(b) != text {
			t.Errorf("%q: exit code %d, %q; %d bytes of %d are left (%v)", args, got.code, got.stderr, len(b),
				len(text), err)
		}
	}
}

// A conversion that fails leaves the file that was there.
func TestConvertWholeOrNot(t *testing.T) {
	dir := t.TempDir()
	path, out := filepath.Join(dir, "log"), filepath.Join(dir, "out")
	if err := errors.Join(os.WriteFile(path, []byte(round("1", "0.5")+"{\n"), 0o600),
		os.WriteFile(out, []byte("before"), 0o600)); err != nil {
		t.Fatal(err)
	}
	got := execute(t.Context(), "convert", path, "--strict", "--to", "jsonl", "--out", out)
	if b, err := os.ReadFile(out); got.code != daemon.Failed || string(b) != "before" || err != nil {
		t.Errorf("exit code %d, %q; the file has %q (%v)", got.code, got.stderr, b, err)
	}
	if left, err := os.ReadDir(dir); len(left) != 2 || err != nil {
		t.Errorf("%v, %v", left, err)
	}
}

// A folder that holds a model file of the user's is no new one: it keeps that file.
func TestInjectKeepsFiles(t *testing.T) {
	dir := t.TempDir()
	path, text := filepath.Join(dir, "model.yaml"), "# mine\nname: m\noracle: linear\nwindow: 5\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got := execute(t.Context(), "inject", "--rounds", "5", "--model", path, "--log", "embedded:"+dir)
	b, err := os.ReadFile(path)
	if _, seed := os.Stat(filepath.Join(dir, "seed")); got.code != daemon.Failed || string(b) != text || err != nil ||
		!strings.Contains(got.stderr, "model.yaml exists, and would be overwritten") || seed == nil {
		t.Errorf("exit code %d, %q; the file has %q (%v), the seed %v", got.code, got.stderr, b, err, seed)
	}
}
