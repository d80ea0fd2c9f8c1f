package see

import (
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"hindsight/internal/service"
)

// The state of a system that has played tells what was played, and no feature or secret.
func TestState(t *testing.T) {
	w := newWorld(t, "window: 200 rounds\n")
	w.play(399, 1)
	last, _ := w.ask(rand.New(rand.NewPCG(0, 0)))
	w.report(`{"id":%q,"loss":7}`, last)                  // out of range
	s := w.until("what was played", func(s *State) bool { // each part is told when it is known
		return s.Refused["malformed"] == 1 && s.Refused["orphan"] > 0 && len(s.Rejects) > 0 && s.Fates["observed"] > 100 && s.Losses.Rounds >= 100 &&
			s.Delays.Seconds.N >= 100 && s.Delays.Rounds.N >= 100 && s.Actions.Decisions == 400 && s.Exploration.Draws == 400 &&
			s.Waiting.Head != nil && s.Certificate != nil && s.Certificate.Certificate.T > 0
	})
	if !s.Ready || s.Program != "decider" || s.Model != "shop" || len(s.Deciders) != 1 || !s.Joiner || s.UpSeconds <= 0 {
		t.Errorf("%+v", s)
	}
	if s.Actions.Decisions != 400 || len(s.Actions.Most) != 4 || s.Exploration.Draws != 400 || *s.Exploration.Evidence < 1 || s.Exploration.Refuted || *s.Exploration.Gamma <= 0 {
		t.Errorf("%+v %+v", s.Actions, s.Exploration)
	}
	if s.Losses.Rounds < 100 || *s.Losses.Loss <= 0 || *s.Losses.Uniform <= 0 || len(s.Losses.Buckets) == 0 || s.Losses.Start == nil || *s.Losses.JoinRatio <= 0 {
		t.Errorf("%+v", s.Losses)
	}
	if s.Delays.Seconds.N < 100 || *s.Delays.Seconds.P99 < *s.Delays.Seconds.P50 || s.Delays.Rounds.N < 100 || s.Waiting.Head == nil || *s.Waiting.Pending == 0 {
		t.Errorf("%+v %+v", s.Delays, s.Waiting)
	}
	if s.Refused["orphan"] == 0 || len(s.Rejects) == 0 || s.Rejects[0].Means == "" || s.Certificate == nil || s.Certificate.Certificate.T == 0 {
		t.Errorf("%v %+v %+v", s.Refused, s.Rejects, s.Certificate)
	}
	if slices.ContainsFunc(s.Alarms, func(a AlarmState) bool { return a.Firing }) || len(s.Elsewhere) == 0 {
		t.Errorf("alarms %+v", s.Alarms)
	}
	for _, path := range []string{"/", "/state", "/page.js", "/page.css", "/explain?id=" + url.QueryEscape(last), "/explain?format=text&id=" + url.QueryEscape(last)} {
		code, body := w.get(path)
		if code != 200 || len(body) < 200 || strings.Contains(body, planted) {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	if code, body := w.get("/explain?format=text&id=" + url.QueryEscape(last)); code != 200 || !strings.Contains(body, "recomputed   identical") {
		t.Errorf("%d %s", code, body)
	}
}

func TestExplainRefuses(t *testing.T) {
	w := newWorld(t, "window: 200 rounds\n")
	for path, want := range map[string]int{"/explain": 400, "/explain?id=": 400, "/explain?id=" + strings.Repeat("x", maxID+1): 400, "/explain?id=nobody": 404} {
		if code, body := w.get(path); code != want || !strings.Contains(body, `"message"`) {
			t.Errorf("%.40s: %d %s", path, code, body)
		}
	}
	w.see.room <- struct{}{}
	if code, body := w.get("/explain?id=x"); code != 503 || !strings.Contains(body, "ask again") {
		t.Errorf("%d %s", code, body)
	}
	if code, _ := w.get("/nothing"); code != 404 {
		t.Errorf("a page that is not there: %d", code)
	}
}

// Before there are metrics the page tells why the process is not ready.
func TestStateBefore(t *testing.T) {
	s := New(Options{Program: "feedback-joiner", Model: "shop", Health: service.NewHealth(service.RoleJoiner)})
	for _, p := range s.Pages() {
		if p.Path == "/state" || p.Path == "/explain" {
			r := httptest.NewRecorder()
			p.Answer(r, httptest.NewRequest(http.MethodGet, p.Path+"?id=x", nil))
			if p.Path == "/state" && (r.Code != 200 || !strings.Contains(r.Body.String(), "starting, or shutting down")) || p.Path == "/explain" && r.Code != 503 {
				t.Errorf("%s: %d %s", p.Path, r.Code, r.Body)
			}
		}
	}
}
