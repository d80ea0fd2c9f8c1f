package main

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hindsight/internal/modelfile"
	"hindsight/internal/topics"
	"hindsight/pkg/stream/mem"
)

func TestRetentionInDays(t *testing.T) {
	for text, want := range map[string]time.Duration{"7d": 7 * 24 * time.Hour, "168h": 7 * 24 * time.Hour,
		"90m": 90 * time.Minute, "0": 0, "0d": 0, "-1h": -time.Hour} {
		var r retention
		if err := r.Set(text); err != nil || time.Duration(r) != want {
			t.Errorf("%s: %v, %v", text, &r, err)
		}
	}
	for _, text := range []string{"", "7", "d", "1.5d", "-1d", "7y", "99999999999d"} {
		var r retention
		if err := r.Set(text); err == nil {
			t.Errorf("%q: %v", text, &r)
		}
	}
}

// A new log that would drop what the model waits for is told. An old one keeps what it was created with.
func TestRetentionBelowWindow(t *testing.T) {
	for text, want := range map[string]bool{"window: 8d": true, "window: 7d": true, "window: 6d": false,
		"window: 900 rounds": false, "unit: {sticky: 30d}": true, "": false,
		"outcomes: {q: {window: 8d}}\nreward: q": true} {
		path := filepath.Join(t.TempDir(), "m.yaml")
		if err := os.WriteFile(path, []byte("name: m\n"+text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		source, err := modelfile.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		log, week := mem.New(mem.Options{}), retention(7*24*time.Hour)
		warned := func(r retention) bool {
			var b bytes.Buffer
			r.announce(t.Context(), slog.New(slog.NewTextHandler(&b, nil)), log, source)
			return strings.Contains(b.String(), "retention=168h0m0s")
		}
		if got := warned(week); got != want || warned(0) {
			t.Errorf("%q: warned %v, for ever %v", text, got, warned(0))
		}
		if err := topics.Create(t.Context(), log, "m", 1, topics.Retention{}); err != nil {
			t.Fatal(err)
		}
		if warned(week) {
			t.Errorf("%q: an old log that keeps its records for ever", text)
		}
	}
}

// TestRetentionIsAnnounced: the command tells of it, once for a log.
func TestRetentionIsAnnounced(t *testing.T) {
	dir := t.TempDir()
	model := writeModel(t, dir, "name: m\nwindow: 8d\nactions: [a, b]\n")
	for i, want := range []int{1, 0} {
		p := start(t, program(t, "decider", "--log", "embedded:"+filepath.Join(dir, "log"), "--model", model,
			"--seed-file", filepath.Join(dir, "seed"), "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")).ready()
		p.stop(patience)
		if n := p.said("the new log drops records"); n != want {
			t.Errorf("start %d: told %d times:\n%s", i+1, n, p.log())
		}
	}
}
