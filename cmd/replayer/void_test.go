package main

import (
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// wrongClass writes a labelled CSV and a model file with a class whose functions all say that
// either action loses more than it does.
func wrongClass(t *testing.T) (data, model string) {
	t.Helper()
	dir := t.TempDir()
	var rows strings.Builder
	rows.WriteString("label,n_x\n")
	for i := range 300 {
		fmt.Fprintf(&rows, "%s,%d\n", []string{"red", "green"}[i%2], i%2)
	}
	for name, text := range map[string]string{
		"c.jsonl": `{"hindsight_class":1,"kind":"linear","features":["n_x"],"actions":["red","green"]}
{"prior":1,"w":[[0,0.9],[0,0.9]]}
{"prior":1,"w":[[0,0.95],[0,0.95]]}
`,
		"m.yaml":   "name: m\noracle: {kind: hedge, eta: 0.5, class: c.jsonl}\nwindow: 20 rounds\n",
		"data.csv": rows.String(),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "data.csv"), filepath.Join(dir, "m.yaml")
}

// bounds returns those of a certificate, which must be those of a finite class.
func bounds(t *testing.T, run map[string]any) (out []map[string]any) {
	t.Helper()
	for _, kind := range []string{"plausible_set", "measured_drift", "a_priori"} {
		b, ok := need(t, run, "certificate."+kind).(map[string]any)
		if !ok {
			t.Fatalf("no %s", kind)
		}
		out = append(out, b)
	}
	return out
}

// TestRefutedClassVoidsBounds holds that a refuted class makes its bounds void, by name and
// without a figure, wherever they are printed.
func TestRefutedClassVoidsBounds(t *testing.T) {
	data, model := wrongClass(t)
	dir := filepath.Join(t.TempDir(), "out")
	played := func(command string, more ...string) []string {
		return append([]string{command, "--data", data, "--model", model, "--delays", "constant:3"}, more...)
	}
	backtest := func(more ...string) []string { return played("backtest", append(more, "--sweep", "none")...) }
	all := object(t, backtest("--json", "--csv", dir, "--report", dir+".html")...)
	run := need(t, all, "runs").([]any)[0].(map[string]any)
	live := object(t, played("inject", "--json", "--log", "mem:")...)
	for name, r := range map[string]map[string]any{"backtest": run, "inject": live} {
		for _, b := range bounds(t, r) {
			if b["value"] != nil || b["void"] != "class refuted" {
				t.Errorf("%s: JSON: %v", name, b)
			}
		}
	}
	if lines, ok := need(t, run, "course").(map[string]any)["bounds"]; ok {
		t.Errorf("the course of a void bound is in JSON: %v", lines)
	}
	for _, c := range []struct {
		name        string
		args        []string
		want, wrong string
	}{
		{"table", backtest(), `"void": class refuted`, "  vacuous  "},
		{"inject", played("inject", "--log", "mem:"), "measured drift: void, class refuted", "regret ≤"},
		{"window", played("window", "--windows", "20", "--seeds", "2"), "  void  ", "  vacuous  "},
	} {
		got := execute(t.Context(), c.args...)
		if got.code != 0 || !strings.Contains(got.stdout, c.want) || strings.Contains(got.stdout, c.wrong) {
			t.Errorf("%s: exit code %d: %s%s", c.name, got.code, got.stdout, got.stderr)
		}
	}
	for file, columns := range map[string]map[string]string{
		"summary.csv": {"bound": "", "void": "class refuted"},
		"runs.csv": {"certificate.plausible_set.value": "", "certificate.plausible_set.void": "class refuted",
			"certificate.plausible_set.missing_at_random": "", "certificate.measured_drift.value": "",
			"certificate.measured_drift.void": "class refuted"},
		"course.csv": {"bounds.plausible_set": "", "bounds.measured_drift": "", "bounds.a_priori": ""},
	} {
		f, err := os.Open(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		rows, err := csv.NewReader(f).ReadAll()
		f.Close()
		if err != nil || len(rows) < 2 {
			t.Fatalf("%s: %v %v", file, rows, err)
		}
		for _, row := range rows[1:] {
			for i, column := range rows[0] {
				if want, asked := columns[column]; asked && row[i] != want {
					t.Errorf("%s: %s is %q, want %q", file, column, row[i], want)
				}
			}
		}
		for column := range columns {
			if !strings.Contains(strings.Join(rows[0], "\n")+"\n", column+"\n") {
				t.Errorf("%s has no column %s", file, column)
			}
		}
	}
	page, err := os.ReadFile(dir + ".html")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"bounds on the regret are void: class refuted", "no longer: class refuted",
		">void<"} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the report does not say %q", want)
		}
	}
	if strings.Contains(string(page), "bound: measured drift") {
		t.Error("the report draws a void bound")
	}
}
