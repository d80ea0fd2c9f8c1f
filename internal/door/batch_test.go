package door

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
)

// results are those of a batch.
type results struct {
	Results []struct {
		Status int
		Body   json.RawMessage
	}
}

func (w *world) batch(items []string, headers ...string) (r results) {
	w.t.Helper()
	got := w.call("POST", "/v1/batch", "["+strings.Join(items, ",")+"]", headers...)
	if err := json.Unmarshal(got.body, &r); err != nil || got.status != 200 || len(r.Results) != len(items) {
		w.t.Fatalf("%v: %d results of %d, %d %.400s", err, len(r.Results), len(items), got.status, got.body)
	}
	return r
}

// TestBatch holds that a batch has one result each, in order, and that each is what it would be alone.
func TestBatch(t *testing.T) {
	w := open(t, setting{})
	var items []string
	for i := range 900 {
		items = append(items, fmt.Sprintf(`{"context":{"id":"%d","actions":["x","y"]}}`, i))
	}
	for i := range 100 {
		items = append(items, fmt.Sprintf(`{"outcome":{"id":"%d","loss":0.5}}`, i))
	}
	for i, r := range w.batch(items).Results {
		want := fmt.Sprintf(`{"id":"%d","stored":true}`, i-900)
		var d decision
		if err := json.Unmarshal(r.Body, &d); err != nil {
			t.Fatal(err)
		}
		switch {
		case i < 900 && (r.Status != 200 || d.ID != fmt.Sprint(i) || d.N != int64(i)+1):
			t.Errorf("%d: %d %s", i, r.Status, r.Body)
		case i >= 900 && (r.Status != 202 || string(r.Body) != want):
			t.Errorf("%d: %d %s", i, r.Status, r.Body)
		}
	}
	if d, o := len(w.records("shop.decisions")), len(w.records("shop.outcomes")); d != 900 || o != 100 {
		t.Errorf("%d decisions, %d outcomes", d, o)
	}
	mixed := []string{items[0], `{"context":{"id":"0","actions":["x"]}}`, `{}`, `{"context":{},"outcome":{}}`,
		`{"outcome":{"id":"0"}}`, `{"context":{"id":"new","actions":["x","y"]}}`, `{"outcome":{"id":"new","loss":1}}`}
	for i, r := range w.batch(mixed).Results {
		if want := []int{200, 409, 400, 400, 400, 200, 202}[i]; r.Status != want {
			t.Errorf("%s: %d %s; want %d", mixed[i], r.Status, r.Body, want)
		}
	}
}

// TestBatchOrder holds that an outcome is sent when the contexts before it are decided.
func TestBatchOrder(t *testing.T) {
	log := &heldLog{Log: newLog()}
	w := open(t, setting{log: log})
	log.hold.Lock()
	done := make(chan results)
	go func() {
		done <- w.batch([]string{`{"context":{"id":"a","actions":["x","y"]}}`, `{"outcome":{"id":"a","loss":1}}`})
	}()
	eventually(t, "the context is in the log", func() bool { return len(w.records("shop.decisions")) == 1 })
	w.call("POST", "/v1/outcome", `{"id":"other","loss":1}`) // outcomes are stored in their order
	if n := len(w.records("shop.outcomes")); n != 1 {
		t.Errorf("%d outcomes before the decision is answered", n)
	}
	log.hold.Unlock()
	if r := <-done; r.Results[0].Status != 200 || r.Results[1].Status != 202 {
		t.Errorf("%+v", r)
	}
}

// TestBatchTime holds that a batch whose time is over asks no more, and has a result for each request all the same.
func TestBatchTime(t *testing.T) {
	w := open(t, setting{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	out := httptest.NewRecorder()
	b := &batch{d: w.door, w: out, ctx: ctx, client: client{"test", mayAll}}
	for range 3 {
		b.ask(&batchItem{Context: []byte(context1)})
	}
	b.writeAll(0)
	if n := strings.Count(out.Body.String(), `{"status":503,`); n != 3 || len(w.records("shop.decisions")) != 0 {
		t.Errorf("%d: %s", n, out.Body)
	}
}

// TestBatchRefusals holds which batches are refused as a whole, and which roles their requests need.
func TestBatchRefusals(t *testing.T) {
	file, keys := keyFile(t, "web decide", "desk read")
	w := open(t, setting{flags: []string{"--keys", file}})
	web := "Authorization: Bearer " + keys["web"]
	for _, c := range []struct {
		body   string
		header string
		status int
		says   string
	}{
		{"[" + strings.Repeat(`{},`, maxBatch) + "{}]", web, 413, "at most 1000"},
		{`{"context":{}}`, web, 400, "a JSON array"},
		{strings.Repeat("[", 1e5), web, 400, "a JSON array"},
		{`[]`, "Authorization: Bearer " + keys["desk"], 403,
			"the key of desk has not the role decide or outcome: add one with: decider keys add desk decide"},
		{`[]`, "", 401, "no such key"},
	} {
		if got := w.call("POST", "/v1/batch", c.body, c.header); got.status != c.status || !strings.Contains(
			got.problem(t).Detail, c.says) {
			t.Errorf("%.40s: %d %s; want %d, %q", c.body, got.status, got.body, c.status, c.says)
		}
	}
	items := []string{`{"context":{"id":"a","actions":["x","y"]}}`, `{"outcome":{"id":"a","loss":1}}`}
	if r := w.batch(items, web).Results; r[0].Status != 200 || r[1].Status != 403 {
		t.Errorf("%+v", r)
	}
	if got := w.call("POST", "/v1/batch", "[]", web, "Content-Type: application/msgpack"); got.status != 415 {
		t.Errorf("%d %s", got.status, got.body)
	}
	if n := w.refused("outcome")["other"]; n != 1 {
		t.Errorf("%v outcomes are counted as refused", n)
	}
}

// TestPages holds what there is to read, and that it needs the role read.
func TestPages(t *testing.T) {
	file, keys := keyFile(t, "web decide", "desk read")
	w := open(t, setting{flags: []string{"--keys", file}})
	web, desk := "Authorization: Bearer "+keys["web"], "Authorization: Bearer "+keys["desk"]
	w.decide(`{"id":"a/b","features":{"hour":14},"actions":["x","y"]}`, web)
	for _, c := range []struct {
		path, says string
		status     int
	}{
		{"/v1/rounds/a%2Fb", `"propensity"`, 200},
		{"/v1/rounds/other", "no decision that is kept has this id", 404},
		{"/v1/rounds/" + strings.Repeat("x", 256), "no decision that is kept has this id", 404},
		{"/v1/rounds/" + strings.Repeat("x", 257), "at most 256 bytes", 400},
		{"/v1/state", `"mode": "live"`, 200},
		{"/v1/certificate", `"certificate"`, 200},
		{"/v1/policies", "this learner keeps no models", 404},
		{"/v1/candidates", `"candidates": []`, 200},
	} {
		got := w.call("GET", c.path, "", desk)
		if got.status != c.status || !strings.Contains(string(got.body), c.says) {
			t.Errorf("%.40s: %d %s; want %d, %q", c.path, got.status, got.body, c.status, c.says)
		}
		if got.status >= 400 {
			got.problem(t)
		}
		if got.header.Get("Cache-Control") != "no-store" || got.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%.40s: %v", c.path, got.header)
		}
		if got := w.call("GET", c.path, "", web); got.status != 403 {
			t.Errorf("%.40s without the role: %d", c.path, got.status)
		}
	}
}

// TestCandidates: of two actions the better one is worth what it loses, the other is beaten, and the rule finds the
// better one better than what is played. Rounds without an outcome are counted, and what is assumed of them is said.
func TestCandidates(t *testing.T) {
	w := open(t, setting{model: "actions: [x, y]\nlearner: uniform\nwindow: 20 rounds\n" +
		"candidates: [{always: x}, {always: y}]\npromote: {of: \"always:x\", better_by: 0.1}\n"})
	type interval struct{ Mean, Low, High float64 }
	var page struct {
		Rounds     int64
		Unknown    int64 `json:"without_loss"`
		Assumes    string
		Candidates []struct {
			Policy      string
			Loss, Worst interval
			Beaten      bool
		}
		Promote struct {
			Of       string
			Feedback int64
		}
		Points []struct {
			Rounds int64
			Losses []interval
		}
	}
	const rounds = 400
	for i := range rounds {
		d := w.decide(fmt.Sprintf(`{"id":"p%d"}`, i))
		if i%50 == 7 {
			continue
		}
		if got := w.call("POST", "/v1/outcome", fmt.Sprintf(`{"id":"p%d","loss":%v}`, i,
			map[string]int{"y": 1}[d.Action])); got.status != 202 {
			t.Fatalf("%d %s", got.status, got.body)
		}
	}
	for page.Rounds < rounds-20 {
		got := w.call("GET", "/v1/candidates", "")
		if err := json.Unmarshal(got.body, &page); err != nil || got.status != 200 {
			t.Fatalf("%v: %d %s", err, got.status, got.body)
		}
	}
	if page.Unknown != 8 || !strings.Contains(page.Assumes, "independently of their value") ||
		len(page.Candidates) != 2 {
		t.Fatalf("%+v", page)
	}
	x, y := page.Candidates[0], page.Candidates[1]
	if x.Policy != "always:x" || x.Beaten || x.Loss.Low > 0 || x.Loss.High > .5 || x.Loss.Mean > .1 ||
		x.Worst.High <= x.Loss.High {
		t.Errorf("%+v", x)
	}
	if y.Policy != "always:y" || !y.Beaten || y.Loss.High < 1 || y.Loss.Low < .5 || y.Worst.Low >= y.Loss.Low {
		t.Errorf("%+v", y)
	}
	if page.Promote.Of != "always:x" || page.Promote.Feedback == 0 || len(page.Points) == 0 {
		t.Fatalf("%+v", page)
	}
	if last := page.Points[len(page.Points)-1]; last.Rounds < rounds/2 || last.Losses[0].Mean > .1 ||
		last.Losses[1].Mean < .9 {
		t.Errorf("the last point is of round %d: %+v", last.Rounds, last.Losses)
	}
}

// TestPolicies: of two functions the rounds refute one, and the list then has the other alone. What cannot be listed is
// refused by name.
func TestPolicies(t *testing.T) {
	w := open(t, setting{model: class, files: map[string][]byte{"c.jsonl": []byte(
		`{"hindsight_class":1,"kind":"linear","features":["hour"],"actions":["x","y"]}
{"prior":1,"w":[[0,0.9],[0,0.1]]}
{"prior":1,"w":[[0,0.1],[0,0.9]]}
`)}})
	list := func(query string) (page struct {
		LearnedThrough       int64 `json:"learned_through"`
		Functions, Surviving int
		Models               []struct {
			Function int
			P        float64 `json:"p_value"`
		}
	}) {
		got := w.call("GET", "/v1/policies"+query, "")
		if err := json.Unmarshal(got.body, &page); err != nil || got.status != 200 {
			t.Fatalf("%v: %d %s", err, got.status, got.body)
		}
		return page
	}
	if page := list(""); page.Functions != 2 || page.Surviving != 2 || len(page.Models) != 2 {
		t.Errorf("before any round: %+v", page)
	}
	const rounds = 200
	for i := range rounds {
		d := w.decide(fmt.Sprintf(`{"id":"p%d","features":{"hour":3},"actions":["x","y"]}`, i))
		if got := w.call("POST", "/v1/outcome", fmt.Sprintf(`{"id":"p%d","loss":%v}`, i,
			map[string]int{"x": 1}[d.Action])); got.status != 202 {
			t.Fatalf("%d %s", got.status, got.body)
		}
	}
	for list("").LearnedThrough < rounds {
	}
	if page := list(""); page.Surviving != 1 || len(page.Models) != 1 || page.Models[0].Function != 0 ||
		page.Models[0].P < .05 {
		t.Errorf("after %d rounds: %+v", rounds, page)
	}
	if page := list("?limit=0"); page.Surviving != 1 || len(page.Models) != 0 {
		t.Errorf("of none: %+v", page)
	}
	if p := w.call("GET", "/v1/policies?alpha=2", "").problem(t); p.Status != 400 ||
		!strings.Contains(p.Detail, "alpha is 2: give a level") {
		t.Errorf("%+v", p)
	}
}
