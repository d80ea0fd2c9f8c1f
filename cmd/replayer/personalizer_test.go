package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"hindsight/internal/testkit"
)

// TestPersonalizerEvaluate runs the command that the page for people who leave
// Personalizer shows, word for word but for the folder.
func TestPersonalizerEvaluate(t *testing.T) {
	page, err := os.ReadFile("../../docs/migrate-from-personalizer.md")
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

// TestPersonalizerNames types what the page says to teach a learner that Rank asks: then no feature has a name that
// Rank's features do not have, and the log teaches.
func TestPersonalizerNames(t *testing.T) {
	t.Parallel()
	convert, rest, _ := strings.Cut(testkit.Block(t, "../../docs/migrate-from-personalizer.md", "names"), " | ")
	filter, teach, _ := strings.Cut(rest, " >food.jsonl\n")
	args := strings.Fields(strings.Replace(convert, "compose/", "../../compose/", 1))
	got := execute(t.Context(), args[1:]...)
	sed := exec.CommandContext(t.Context(), "sh", "-ec", filter)
	sed.Stdin = strings.NewReader(got.stdout)
	lines, err := sed.Output()
	if err != nil || got.code != 0 {
		t.Fatalf("%v: %+v", err, got)
	}
	known := map[string]bool{"timeOfDay": true, "weekend": true, "taste": true, "spice": true}
	n := 0
	for d := json.NewDecoder(strings.NewReader(string(lines))); d.More(); n++ {
		var event struct {
			Features map[string]any
			Actions  []struct{ Features map[string]any }
		}
		if err := d.Decode(&event); err != nil {
			t.Fatal(err)
		}
		event.Actions = append(event.Actions, struct{ Features map[string]any }{event.Features})
		for _, a := range event.Actions {
			for name := range a.Features {
				if !known[name] {
					t.Errorf("event %d has the feature %s", n, name)
				}
			}
		}
	}
	if n != 120 {
		t.Errorf("%d events", n)
	}
	model := "name: food\nversion: 2\nwarm: keep\nreward: {min: 0, max: 1}\nwindow: 10m\nmissing: impute\n"
	args = strings.Fields(strings.NewReplacer("food.jsonl", writeFile(t, "food.jsonl", string(lines)), "food.yaml",
		writeFile(t, "food.yaml", model), "embedded:food-data", "embedded:"+t.TempDir()+"/log").Replace(teach))
	if got := execute(t.Context(), args[1:]...); got.code != 0 {
		t.Errorf("%+v", got)
	}
}
