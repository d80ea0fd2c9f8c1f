package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hindsight/internal/paper"
)

func TestPaperCommand(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	r := execute(t.Context(), "paper", "--quick", "--seeds", "1", "--claim", "unstable", "--json", "--out", dir)
	if r.code != 0 {
		t.Fatalf("exit %d: %s", r.code, r.stderr)
	}
	var out struct {
		Findings []struct {
			Claim  string
			Checks []struct{ Holds bool }
			Tables []struct {
				Columns []string
				Rows    [][]any
			}
		}
	}
	if err := json.Unmarshal([]byte(r.stdout), &out); err != nil {
		t.Fatal(err)
	}
	if len(out.Findings) != 1 || out.Findings[0].Claim != "unstable" || len(out.Findings[0].Checks) == 0 ||
		len(out.Findings[0].Tables[0].Rows) == 0 {
		t.Errorf("%+v", out)
	}
	for _, name := range []string{"unstable.json", "unstable-1.csv", "unstable.png"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPaperUsage(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"--claim nothing", "there is no such claim; there are exp4"},
		{"--seeds -1", "--seeds -1"},
		{"more", "unknown command"},
	} {
		r := execute(t.Context(), append([]string{"paper"}, strings.Fields(c.args)...)...)
		if r.code != 2 || !strings.Contains(r.stderr, c.want) {
			t.Errorf("%s: exit %d, %s", c.args, r.code, r.stderr)
		}
	}
}

// What contradicts the paper is an exit code, not only a line in a table.
func TestContradictionsAreErrors(t *testing.T) {
	good := &paper.Finding{Claim: "good", Checks: []paper.Check{{What: "x", Holds: true}}}
	bad := &paper.Finding{Claim: "bad", Checks: []paper.Check{{What: "x", Holds: true}, {What: "y"}}}
	if err := contradicted([]*paper.Finding{good}); err != nil {
		t.Error(err)
	}
	if err := contradicted([]*paper.Finding{good, bad}); err == nil || !strings.Contains(err.Error(), "bad") ||
		strings.Contains(err.Error(), "good") {
		t.Errorf("%v", err)
	}
}
