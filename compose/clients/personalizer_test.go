package clients

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"hindsight/internal/engine"
	"hindsight/internal/model"
	"hindsight/internal/replay"
)

// block returns the commands of a page behind a mark.
func block(t *testing.T, page, mark string) string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "<!-- "+mark+" -->\n```")
	_, rest, _ = strings.Cut(rest, "\n") // its language
	out, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatalf("%s has no commands marked %q", page, mark)
	}
	return out
}

// ranking is what both clients print.
type ranking struct {
	Ranking []struct {
		ID          string
		Probability float64
	}
	EventID, RewardActionID string
}

// judge holds a Rank response against the request of the page.
func (r *ranking) judge(t *testing.T, out string) {
	t.Helper()
	if err := json.Unmarshal([]byte(out), r); err != nil {
		t.Fatalf("%s: %v", out, err)
	}
	sum, juice := 0.0, false
	for _, a := range r.Ranking {
		sum += a.Probability
		juice = juice || a.ID == "juice" // is excluded
	}
	if len(r.Ranking) != 3 || sum < 1-1e-12 || sum > 1+1e-12 || juice || r.Ranking[0].ID != r.RewardActionID ||
		r.EventID == "" {
		t.Errorf("a Rank response: %s", out)
	}
}

// TestPersonalizerClients runs the programs of the page for people who leave
// Personalizer, word for word: rank, reward; then the same in Python, for another event.
// Whoever asks for a known event gets its decision, with whichever program.
func TestPersonalizerClients(t *testing.T) {
	e := startModel(t, "../personalizer.yaml")
	bin := filepath.Join(t.TempDir(), "personalizer")
	run(t, "go", "build", "-o", bin, "./personalizer")
	sh := func(commands string) string {
		return run(t, "sh", "-ec", "cd ../..\n"+strings.NewReplacer("go run ./compose/clients/personalizer ",
			bin+" -nats "+e.URL+" ", "personalizer.py ", "personalizer.py --nats "+e.URL+" ").Replace(commands))
	}
	calls := strings.SplitAfter(strings.TrimSpace(block(t, "../PERSONALIZER.md", "calls")), "\n")
	if len(calls) != 2 {
		t.Fatalf("the page has the calls %q", calls)
	}
	var first ranking
	first.judge(t, sh(calls[0]))
	sh(calls[1])
	observed(t, e, 1)

	var learning ranking
	apprentice := startModel(t, asApprentice(t))
	answer := run(t, bin, "-nats", apprentice.URL, "-model", "food", "rank", "personalizer/rank.json")
	if err := json.Unmarshal([]byte(answer), &learning); err != nil || learning.RewardActionID != "pasta" ||
		learning.Ranking[0].Probability != 1 {
		t.Errorf("an apprentice answers the first action: %v %s", err, answer)
	}

	if err := exec.Command("python3", "-c", "import nats").Run(); err != nil {
		t.Skip("the Python package is not here: pip install nats-py")
	}
	python := func(command string) string {
		return strings.Replace(command, "go run ./compose/clients/personalizer -model",
			"python3 compose/clients/python/personalizer.py --model", 1)
	}
	var same ranking
	same.judge(t, sh(python(calls[0])))
	if !reflect.DeepEqual(same, first) {
		t.Errorf("asked again in Python, the same event gets %+v, and not %+v", same, first)
	}
	request, err := os.ReadFile("personalizer/rank.json")
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "rank.json")
	if err := os.WriteFile(other, bytes.Replace(request, []byte(first.EventID), []byte("another"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	another := strings.NewReplacer("compose/clients/personalizer/rank.json", other, first.EventID, "another")
	var second ranking
	second.judge(t, sh(another.Replace(python(calls[0]))))
	sh(another.Replace(python(calls[1])))
	observed(t, e, 2)
}

// asApprentice writes the page's model with mode: apprentice.
func asApprentice(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../personalizer.yaml")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "model.yaml")
	if err := os.WriteFile(path, append(text, "mode: apprentice\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// observed waits until so many rounds have their outcomes.
func observed(t *testing.T, e *engine.Engine, n int64) {
	t.Helper()
	eventually(t, "an observed round", func() bool {
		s, err := replay.Summarize(t.Context(), e.Log, "food", "none", model.Epoch)
		return err == nil && s.Rounds == n && s.Fates.Observed == n
	})
}

// TestPersonalizerModel holds that the model of the page has Personalizer's defaults.
func TestPersonalizerModel(t *testing.T) {
	text, err := os.ReadFile("../personalizer.yaml")
	if err != nil {
		t.Fatal(err)
	}
	m, err := model.Parse("personalizer.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	if !m.Reward || !m.Impute || m.DefaultLoss != 1 || m.Window.Nanos != 10*60*1e9 || m.Activation {
		t.Errorf("%+v", m)
	}
}
