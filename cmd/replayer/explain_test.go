package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"hindsight/internal/daemon"
	"hindsight/internal/explain"
)

// TestExplain tells the life of a round of a log that inject wrote, and of none that is not
// there.
func TestExplain(t *testing.T) {
	t.Parallel()
	log := "embedded:" + filepath.Join(t.TempDir(), "log")
	if got := execute(t.Context(), "inject", "--rounds", "60", "--log", log, "--listen",
		"127.0.0.1:0"); got.code != daemon.Done {
		t.Fatalf("inject: %+v", got)
	}
	got := execute(t.Context(), "explain", "r20", "--log", log, "--json")
	var e explain.Explanation
	if err := json.Unmarshal([]byte(got.stdout), &e); err != nil || got.code != daemon.Done {
		t.Fatalf("%v: %+v", err, got)
	}
	if e.Check != "identical" || e.Taught == nil || len(e.Taught.Actions) < 2 {
		t.Errorf("%s", got.stdout)
	}
	text := execute(t.Context(), "explain", "r20", "--log", log)
	for _, says := range []string{"recomputed   identical", `"features"`, "fate         observed", "μ ",
		"learned      predictions"} {
		if text.code != daemon.Done || !strings.Contains(text.stdout, says) {
			t.Errorf("%q is not in %s%s", says, text.stdout, text.stderr)
		}
	}
	if hidden := execute(t.Context(), "explain", "r20", "--log", log, "--no-features"); strings.Contains(hidden.stdout,
		`"features"`) {
		t.Errorf("features are shown: %s", hidden.stdout)
	}
	if none := execute(t.Context(), "explain", "nobody", "--log", log); none.code != daemon.Failed ||
		!strings.Contains(none.stderr, "no decision that is kept has this id") {
		t.Errorf("%+v", none)
	}
	for _, wrong := range []string{"explain", "explain x --log mem:", "explain a b"} {
		if got := execute(t.Context(), strings.Fields(wrong)...); got.code != daemon.WrongUsage {
			t.Errorf("%s: %+v", wrong, got)
		}
	}
}
