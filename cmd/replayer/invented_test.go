package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestInventedDelays holds that the first line of each table, and the head of a report, says
// where delays are none of the data's.
func TestInventedDelays(t *testing.T) {
	const want = "Artificial delays, not those of the data: lognormal:20,1.5"
	var text strings.Builder
	text.WriteString("label,n_x\n")
	for i := range 60 {
		fmt.Fprintf(&text, "%s,%d\n", []string{"a", "b"}[i%2], i%7)
	}
	dir := t.TempDir()
	data, page := filepath.Join(dir, "data.csv"), filepath.Join(dir, "page.html")
	if err := os.WriteFile(data, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ args, begins string }{
		{"backtest --data " + data + " --sweep none --report " + page, want},
		{"window --windows 5,10 --seeds 1 --data " + data, want},
		{"inject --log mem: --data " + data, "in short            60 rounds were played, with artificial delays;"},
		{"backtest --rounds 60", "learner"},
		{"backtest --delays none --data " + data, "learner"},
	} {
		if got := execute(t.Context(), strings.Fields(c.args)...); got.code != 0 ||
			!strings.HasPrefix(strings.TrimSpace(got.stdout), c.begins) {
			t.Errorf("%s: exit code %d, %s%s", c.args, got.code, got.stdout, got.stderr)
		}
	}
	html, err := os.ReadFile(page)
	if err != nil || !strings.Contains(string(html), want) {
		t.Errorf("the report does not say it: %v", err)
	}
}
