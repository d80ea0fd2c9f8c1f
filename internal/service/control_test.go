package service

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	"hindsight/internal/follow"
	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream/mem"
)

// controlled is a joiner at work that takes orders.
func controlled(t *testing.T, c *Control) (stop func()) {
	t.Helper()
	log := mem.New(mem.Options{})
	createTopics(t, log, "m", 1)
	build := func(rec *codec.Epoch, files map[string][]byte) (loop.Epoch, error) {
		ep, err := testBuild(rec, files)
		if err == nil {
			ep.Rules.Mode = rec.Mode
		}
		return ep, err
	}
	j, err := OpenJoiner(t.Context(),
		SystemConfig{Log: log, Source: &follow.Source{Name: "m", Version: 1, Model: []byte("name: m\n")}, Build: build,
			Partitions: 1, MaxPending: 1000, Dedup: 100, MarkEvery: 10, Logger: slog.New(slog.DiscardHandler),
			Control: c})
	must(t, j, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	leave := c.enter(j) // Run does it too, but perhaps later than the first order
	go func() { done <- j.Run(ctx) }()
	return func() {
		cancel()
		must(t, 0, <-done)
		leave()
		j.Close()
	}
}

func send(h http.HandlerFunc, kind, body string) (int, string) {
	w := httptest.NewRecorder()
	r := httptest.NewRequest("POST", "/mode", strings.NewReader(body))
	r.Header.Set("Content-Type", kind)
	h(w, r)
	return w.Code, w.Body.String()
}

// TestControl goes through what the pages answer, with and without a joiner.
func TestControl(t *testing.T) {
	const kind = "application/json"
	c := &Control{}
	if code, body := send(c.SwitchMode(nil), kind, `{"mode":"paused"}`); code != 503 ||
		!strings.Contains(body, "not at work in this process") {
		t.Errorf("without a joiner: %d %s", code, body)
	}
	stop := controlled(t, c)
	for _, x := range []struct {
		kind, body string
		code       int
		want       string
	}{
		{kind, `{"mode":"paused","reason":"prices\nare wrong"}`, 200, `"cause": "admin: prices are wrong"`},
		{kind, `{"mode":"paused"}`, 200, `"epoch": 2,`},
		{kind, `{"mode":"live"}`, 200, `"epoch": 3,`},
		{kind, `{"mode":"off"}`, 400, "unknown mode"},
		{kind, `{}`, 400, "unknown mode"},
		{kind, `{"mode":"live","mod":1}`, 400, "unknown field"},
		{kind, `{"mode":"live"} {}`, 400, "JSON object"},
		{kind, `{"mode":"` + strings.Repeat("x", 5000) + `"}`, 400, "JSON object"},
		{"text/plain", `{"mode":"paused"}`, 415, "Content-Type"},
		{"", `{"mode":"paused"}`, 415, "Content-Type"},
	} {
		if code, body := send(c.SwitchMode(nil), x.kind, x.body); code != x.code || !strings.Contains(body, x.want) {
			t.Errorf("%.60s: %d %s, want %d %s", x.body, code, body, x.code, x.want)
		}
	}
	w := httptest.NewRecorder()
	c.Mode(w, httptest.NewRequest("GET", "/mode", nil))
	var page ModePage
	if err := json.Unmarshal(w.Body.Bytes(), &page); err != nil || page.Mode != "live" || page.Epoch != 3 ||
		page.Learner != 1 {
		t.Errorf("%s", w.Body)
	}
	if code, _ := send(c.RenewModel(nil), kind, `{}`); code != 409 {
		t.Errorf("without a file: %d", code)
	}
	version := int64(1)
	c.Reload = func() (*follow.Source, error) {
		return &follow.Source{Name: "m", Version: version, Model: []byte("name: m\nwindow: 3\n")}, nil
	}
	if code, body := send(c.RenewModel(nil), kind, `{}`); code != 409 || !strings.Contains(body, "same version 1") {
		t.Errorf("of the same version: %d %s", code, body)
	}
	version = 2
	if code, body := send(c.RenewModel(nil), kind, `{}`); code != 200 || !strings.Contains(body, `"epoch": 4,`) {
		t.Errorf("of the next version: %d %s", code, body)
	}
	stop()
	if _, err := c.Switch(t.Context(), codec.Paused, ""); !errors.Is(err, errElsewhere) {
		t.Errorf("after it: %v", err)
	}
	if code, body := send(c.Mode, kind, ""); code != 503 || !strings.Contains(body, "whose page /mode answers") {
		t.Errorf("after it: %d %s", code, body)
	}
}

func TestCause(t *testing.T) {
	if got := cause("admin", "a\x00b\nc"); got != "admin: a b c" {
		t.Error(got)
	}
	if got := cause("admin", "x"+strings.Repeat("é", 1000)); !utf8.ValidString(got) {
		t.Errorf("%q is not text", got)
	}
	if got := cause("admin", strings.Repeat("x", 1000)); len(got) > 250 {
		t.Error(len(got))
	}
}
