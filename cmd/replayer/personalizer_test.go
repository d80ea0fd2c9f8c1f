package main

import (
	"os"
	"strings"
	"testing"
)

// TestPersonalizerEvaluate runs the command that the page for people who leave
// Personalizer shows, word for word but for the folder.
func TestPersonalizerEvaluate(t *testing.T) {
	page, err := os.ReadFile("../../compose/PERSONALIZER.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "<!-- evaluate -->\n```sh\nreplayer ")
	line, _, ok := strings.Cut(rest, "\n```")
	if !ok {
		t.Fatal("the page has no command to evaluate")
	}
	got := execute(t.Context(), strings.Fields(strings.Replace(line, "compose/", "../../compose/", 1))...)
	for _, want := range []string{"snips", "uniform ", "hash:FromUrl.timeOfDay ", "120 rows, 4 actions"} {
		if got.code != 0 || !strings.Contains(got.stdout, want) {
			t.Errorf("exit code %d, no %q in\n%s%s", got.code, want, got.stdout, got.stderr)
		}
	}
}
