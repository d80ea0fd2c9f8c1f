package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWindowCommand(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	r := execute(t.Context(), "window", "--rounds", "1000", "--windows", "20,200", "--seeds", "2", "--delays", "exp:50",
		"--json", "--out", dir)
	if r.code != 0 {
		t.Fatalf("exit %d: %s", r.code, r.stderr)
	}
	var out struct {
		Seeds   int
		Windows []struct {
			Window      string
			Skipped     float64
			Regret      *struct{ Value, SE float64 }
			Recommended bool
		}
	}
	if err := json.Unmarshal([]byte(r.stdout), &out); err != nil {
		t.Fatal(err)
	}
	if out.Seeds != 2 || len(out.Windows) != 2 || out.Windows[0].Window != "20 rounds" || out.Windows[0].Regret == nil {
		t.Fatalf("%+v", out)
	}
	if !(out.Windows[0].Skipped > out.Windows[1].Skipped) || out.Windows[0].Recommended == out.Windows[1].Recommended {
		t.Errorf("%+v", out.Windows)
	}
	if !strings.Contains(r.stderr, "take") {
		t.Errorf("no window is proposed in the table:\n%s", r.stderr)
	}
	for _, name := range []string{"window.json", "window.csv", "window.png"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWindowUsage(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"--windows 50,20", "20 after 50 rounds"},
		{"--windows 5m", "no times"},
		{"--windows x", "window"},
		{"--window 200", "--windows"},
		{"--seeds 0", "--seeds 0"},
	} {
		r := execute(t.Context(), append([]string{"window"}, strings.Fields(c.args)...)...)
		if r.code != 2 || !strings.Contains(r.stderr, c.want) {
			t.Errorf("%s: exit %d, %s", c.args, r.code, r.stderr)
		}
	}
}
