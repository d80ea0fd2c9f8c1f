package door

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"hindsight/internal/testkit"
	"hindsight/pkg/codec"
)

// TestAssignments holds that what another system decided becomes a round, alone and in a batch, once, and that outcomes
// join it.
func TestAssignments(t *testing.T) {
	w := open(t, setting{model: "actions: [x, y, z]\nwindow: 1h\nreward: {min: 0, max: 1}\n"})
	const said = `{"id":"a","features":{"hour":14},"assigned":{"action":"y","propensities":{"x":0.75,"y":0.25},"by":"router"}}`
	answer := func(d []byte) string { // without its place
		var all map[string]any
		if err := json.Unmarshal(d, &all); err != nil {
			t.Fatal(err, string(d))
		}
		return fmt.Sprintln(all["id"], all["action"], all["mode"], all["propensity"], all["propensities"],
			all["duplicate"])
	}
	for _, repeat := range []string{"false", "true"} {
		got := w.call("POST", "/v1/assignments", said)
		want := "a y external 0.25 map[x:0.75 y:0.25 z:0] " + repeat + "\n"
		if text := answer(got.body); got.status != 200 || text != want {
			t.Errorf("%d %s, want %s", got.status, text, want)
		}
	}
	if n := len(w.records("shop.decisions")); n != 1 {
		t.Errorf("%d decisions", n)
	}
	if got := w.call("POST", "/v1/decide", `{"id":"a"}`).problem(t); got.Status != 409 {
		t.Errorf("%+v", got)
	}
	items := []string{said, `{"id":"b","assigned":{"action":"x","propensity":0.5}}`,
		`{"id":"c","assigned":{"action":"z"}}`}
	want := []string{"a y external 0.25 map[x:0.75 y:0.25 z:0] true\n",
		"b x external 0.5 map[x:0.5 y:<nil> z:<nil>] false\n", "c z external <nil> map[x:<nil> y:<nil> " +
			"z:<nil>] false\n"}
	for i := range items {
		items[i] = `{"context":` + items[i] + `}`
	}
	for i, r := range w.batch(items).Results {
		if text := answer(r.Body); r.Status != 200 || text != want[i] {
			t.Errorf("%d %q, want %q", r.Status, text, want[i])
		}
	}
	for _, id := range []string{"a", "b", "c"} {
		w.call("POST", "/v1/outcome", `{"id":"`+id+`","reward":1}`)
	}
	eventually(t, "the rounds are joined", func() bool { return len(w.records("shop.feedback")) >= 3 })
	for _, id := range []string{"a", "c"} {
		var round struct {
			Decision struct {
				Mode, By, Why string
				Propensity    *float64
				Draw          *float64
			}
		}
		got := w.call("GET", "/v1/rounds/"+id, "")
		if err := json.Unmarshal(got.body, &round); err != nil || round.Decision.Mode != "external" ||
			round.Decision.Draw != nil || (round.Decision.Propensity == nil) != (id == "c") ||
			(round.Decision.By == "router") != (id == "a") {
			t.Errorf("%v: %s", err, got.body)
		}
	}
	var state struct {
		Assigned struct {
			Rounds  int
			Unknown int `json:"without_propensity"`
		}
		Actions struct{ Decisions int }
	}
	got := w.call("GET", "/v1/state", "")
	if err := json.Unmarshal(got.body, &state); err != nil || state.Assigned.Rounds != 3 ||
		state.Assigned.Unknown != 1 || state.Actions.Decisions != 0 {
		t.Errorf("%v: %+v", err, state)
	}
}

// TestAssignmentsRefused holds how what cannot have been decided is refused, by name.
func TestAssignmentsRefused(t *testing.T) {
	w := open(t, setting{})
	for body, detail := range map[string]string{
		`{"id":"a","actions":["x","y"]}`: "assigned: the " +
			"key is missing",
		`{"actions":["x","y"],"assigned":{"action":"x"}}`:                                           "id: is missing",
		`{"id":"a","actions":["x","y"],"assigned":{"action":"z"}}`:                                  `assigned.action: is not among the actions: "z"`,
		`{"id":"a","actions":["x","y"],"assigned":{"action":"x","propensity":1.5}}`:                 "assigned.propensity: must be in (0,1]",
		`{"id":"a","actions":["x","y"],"assigned":{"action":"x","propensities":{"x":1,"y":0.1}}}`:   "do not sum to 1",
		`{"id":"a","actions":["x","y"],"assigned":{"action":"x","propensities":{"x":0.5,"z":0.5}}}`: `assigned.propensities: is not among the actions: "z"`,
		`{"id":"a","actions":["x","y"],"assigned":{}}`:                                              "assigned.action: the key is missing",
		`{`: "the bytes end too early",
	} {
		if p := w.call("POST", "/v1/assignments", body).problem(t); p.Status != 400 || !strings.Contains(p.Detail,
			detail) {
			t.Errorf("%s: %+v", body, p)
		}
	}
	if n := len(w.records("shop.decisions")); n != 0 {
		t.Errorf("%d decisions", n)
	}
	packed := codec.AppendContext(nil, &codec.Context{ID: "a", Actions: []codec.Action{{Name: "x"}}})
	if p := w.call("POST", "/v1/assignments", string(packed), "Content-Type: application/msgpack").problem(
		t); p.Status != 400 {
		t.Errorf("%+v", p)
	}
}

// TestAssignmentsPage holds that the calls of docs/assignments.md are answered.
func TestAssignmentsPage(t *testing.T) {
	w := open(t, setting{model: "reward: {min: 0, max: 1}\n"})
	if n := w.playPage("assignments.md", "assign"); n != 2 || len(w.records("shop.decisions")) != 1 {
		t.Errorf("%d calls", n)
	}
}

// playPage makes the calls of a page's marked block, and returns how many there are.
func (w *world) playPage(page, mark string) (n int) {
	w.t.Helper()
	calls := testkit.Block(w.t, "../../docs/"+page, mark)
	for _, call := range strings.Split(calls, "curl ")[1:] {
		path, body, _ := strings.Cut(strings.TrimPrefix(call, "http://127.0.0.1:8080"), " --json '")
		if got := w.call("POST", path, strings.TrimSuffix(strings.TrimSpace(body), "'")); got.status/100 != 2 {
			w.t.Errorf("%s: %d %s", call, got.status, got.body)
		}
		n++
	}
	return n
}

// BenchmarkAssignments measures batches of rounds that another system decided beside those that are decided here, turn
// by turn.
func BenchmarkAssignments(b *testing.B) {
	w, _ := onEmbedded(b)
	var took [2]time.Duration
	n := 0
	for b.Loop() {
		for kind := range took {
			var items []string
			for range maxBatch {
				n++
				said := ""
				if kind == 1 {
					said = `,"assigned":{"action":"a3","propensity":0.25,"by":"router"}`
				}
				body := string(askedBody(n))
				items = append(items, `{"context":`+body[:len(body)-1]+said+`}}`)
			}
			start := time.Now()
			for _, r := range w.batch(items).Results {
				if r.Status != 200 {
					b.Fatalf("%d %s", r.Status, r.Body)
				}
			}
			took[kind] += time.Since(start)
		}
	}
	b.ReportMetric(took[0].Seconds()/took[1].Seconds(), "of-own-rate")
	b.ReportMetric(float64(b.N*maxBatch)/took[1].Seconds(), "assigned/s")
}
