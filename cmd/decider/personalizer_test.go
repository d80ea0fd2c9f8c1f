package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"hindsight/internal/testkit"
	"hindsight/pkg/stream/tlstest"
)

// food starts a decider with the model of the page for people who leave Personalizer.
func food(t *testing.T, args ...string) *process {
	t.Helper()
	return start(t, decider(t, append([]string{"--model", "../../compose/personalizer.yaml", "--log",
		"embedded:" + t.TempDir(), "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"}, args...)...)).ready()
}

// TestSDKPersonalizerPage runs the calls of docs/migrate-from-personalizer.md, word for word but for the
// address; in apprentice mode the first action is what is answered.
func TestSDKPersonalizerPage(t *testing.T) {
	needsCurl(t)
	p := food(t)
	calls := strings.ReplaceAll(testkit.Block(t, "../../docs/migrate-from-personalizer.md", "calls"),
		"http://127.0.0.1:8080", p.http())
	sh := func(commands string) []byte {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "sh", "-ec", commands)
		cmd.Dir = "../.."
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	var ranked struct {
		Ranking []struct {
			ID          string
			Probability float64
		}
		EventID, RewardActionID string
	}
	if out := sh(calls); json.Unmarshal(out, &ranked) != nil || len(ranked.Ranking) != 4 ||
		ranked.Ranking[0].ID != ranked.RewardActionID || ranked.Ranking[2].ID != "juice" ||
		ranked.Ranking[2].Probability != 0 || ranked.EventID != "75269AD0-BFEE-4598-8196-C57383D38E10" {
		t.Errorf("a Rank response: %s", out)
	}
	if code, body := p.post(p.admin(), "/mode", `{"mode":"apprentice"}`); code != 200 {
		t.Fatalf("%d %s", code, body)
	}
	request, err := os.ReadFile("../../compose/clients/personalizer/rank.json")
	if err != nil {
		t.Fatal(err)
	}
	another := filepath.Join(t.TempDir(), "rank.json")
	event := strings.Replace(string(request), ranked.EventID, "another", 1)
	if err := os.WriteFile(another, []byte(event), 0o600); err != nil {
		t.Fatal(err)
	}
	rank, _, _ := strings.Cut(strings.Replace(calls, "compose/clients/personalizer/rank.json", another, 1), "\n")
	if out := sh(rank); json.Unmarshal(out, &ranked) != nil || ranked.RewardActionID != "pasta" ||
		ranked.Ranking[0].Probability != 1 {
		t.Errorf("an apprentice: %s", out)
	}
	p.stop(patience)
}

// personalizerLine is what the program of the page prints of one SDK: the last answer, and the probability of the
// salad.
var personalizerLine = regexp.MustCompile(`(?m)^(?:v1\.0|2022-09-01-preview): ([a-z ]+) \{.*'salad': ([0-9.]+)`)

// slotsFilled are the actions of the slots that the program fills; juice is no main course.
var slotsFilled = regexp.MustCompile(`^\{'main': '(pasta|ice cream|salad)', 'drink': '[a-z ]+'\}$`)

// TestSDKPersonalizer runs the program of the page, which asks with both generations of Personalizer's own SDK, over
// TLS and with a key: what is rewarded is soon what is mostly answered, and in apprentice mode the first action is.
// The second SDK also fills two slots.
func TestSDKPersonalizer(t *testing.T) {
	if out, err := exec.CommandContext(t.Context(), "python3", "-c",
		"import azure.ai.personalizer, azure.cognitiveservices.personalizer").CombinedOutput(); err != nil {
		if os.Getenv("HINDSIGHT_SDKS") == "require" {
			t.Fatalf("%v: %s", err, out)
		}
		t.Skip("Personalizer's SDKs are not here: .ci/sdks has them")
	}
	authority, keys := tlstest.NewAuthority(t), filepath.Join(t.TempDir(), "keys")
	cert, key := authority.Issue("127.0.0.1")
	add := decider(t, "keys", "add", "web", "decide,outcome", "--keys", keys)
	if _, err := add.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	made, err := add.Output()
	if err != nil {
		t.Fatal(err)
	}
	p := food(t, "--http-cert", cert, "--http-key", key, "--keys", keys)
	ask := func() (action [2]string, salad [2]float64, slots string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "python3", "../../compose/clients/python/personalizer.py", p.http(),
			strings.TrimSpace(string(made)))
		cmd.Env = environment("REQUESTS_CA_BUNDLE=" + authority.CA)
		out, err := cmd.CombinedOutput()
		lines := personalizerLine.FindAllStringSubmatch(string(out), -1)
		if err != nil || len(lines) != 2 {
			t.Fatalf("%v: %s", err, out)
		}
		for i, l := range lines {
			action[i] = l[1]
			if salad[i], err = strconv.ParseFloat(l[2], 64); err != nil {
				t.Fatal(err)
			}
		}
		_, slots, _ = strings.Cut(strings.TrimSpace(string(out)), "\nslots: ")
		return action, salad, slots
	}
	if _, salad, slots := ask(); salad[1] < .6 || !slotsFilled.MatchString(slots) {
		t.Errorf("after 99 rounds the salad is answered with probability %v, and slots with %s", salad[1], slots)
	}
	if code, body := p.post(p.admin(), "/mode", `{"mode":"apprentice"}`); code != 200 {
		t.Fatalf("%d %s", code, body)
	}
	if action, salad, slots := ask(); action != [2]string{"pasta", "pasta"} || salad != [2]float64{} ||
		slots != "{'main': 'pasta', 'drink': 'juice'}" {
		t.Errorf("apprentices answer %v, the salad with probabilities %v, and slots with %s", action, salad, slots)
	}
	p.stop(patience)
}
