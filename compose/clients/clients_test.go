// Package clients holds the test that runs the clients of this folder against a
// real system.
package clients

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"hindsight/internal/engine"
	"hindsight/internal/model"
	"hindsight/internal/modelfile"
	"hindsight/internal/service"
	"hindsight/internal/topics"
	"hindsight/pkg/stream"
)

// startSystem runs the default model on an embedded log until the test ends.
func startSystem(t *testing.T) *engine.Engine { return startModel(t, "") }

// startModel runs a model file.
func startModel(t *testing.T, path string) *engine.Engine {
	t.Helper()
	e, err := engine.Open(t.Context(), engine.Options{Log: "embedded:" + t.TempDir(), Listen: "127.0.0.1:0",
		Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	source, err := modelfile.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := topics.Create(t.Context(), e.Log, source.Name, 1, topics.Retention{}); err != nil {
		t.Fatal(err)
	}
	stop, err := service.Start(context.Background(), service.SystemConfig{Log: e.Log, Bus: e.Bus, Name: source.Name,
		Source: source, Build: model.Epoch, Seed: []byte("a seed for tests"), Partitions: 1, Owned: []int{0},
		Owner: "test", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(stop(), e.Close()); err != nil {
			t.Error(err)
		}
	})
	return e
}

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// misreport asks for a decision and reports a loss out of the model's range, and waits for its reject.
func misreport(t *testing.T, e *engine.Engine) {
	t.Helper()
	nc, err := nats.Connect(e.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	for _, r := range [][2]string{{"decide", `{"id":"mine","actions":["a","b"]}`},
		{"outcome", `{"id":"mine","loss":1.5}`}} {
		if m, err := nc.Request("hindsight."+r[0], []byte(r[1]), 10*time.Second); err != nil ||
			m.Header.Get("Nats-Service-Error") != "" {
			t.Fatalf("%s: %v, %v", r[0], err, m)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	in, err := e.Log.Read(ctx, "hindsight.rejects", 0, stream.Earliest)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	for records := []stream.Record(nil); len(records) == 0; {
		if records, err = in.Next(ctx, records); err != nil {
			t.Fatal(err)
		}
	}
}

// wantRejects checks the JSON that a client printed of the topic rejects.
func wantRejects(t *testing.T, out string) {
	t.Helper()
	var r struct{ Topic, Reason, Detail, ID, Bytes string }
	if err := json.Unmarshal([]byte(out), &r); err != nil || r.Topic != "outcomes" || r.Reason != "malformed" ||
		r.ID != "mine" ||
		r.Detail != "out of the model's range: 1.5 is not in [0, 1]" || r.Bytes != `{"id":"mine","loss":1.5}` {
		t.Errorf("%v: %+v of %s", err, r, out)
	}
}

// TestGoClient runs the program that docs/nats.md shows.
func TestGoClient(t *testing.T) {
	e := startSystem(t)
	out := run(t, "go", "run", "./go", e.URL)
	for _, want := range []string{"round r-0-1: show ", "(drawn with probability 0.333)", "outcome stored: true"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in the output:\n%s", want, out)
		}
	}
	misreport(t, e)
	wantRejects(t, run(t, "go", "run", "./go", "read", e.Dir, "hindsight.rejects"))
}

// TestPythonReader runs the Python program that docs/nats.md shows.
func TestPythonReader(t *testing.T) {
	if err := exec.Command("python3", "-c", "import nats, msgpack").Run(); err != nil {
		t.Skip("the Python packages are not here: pip install nats-py msgpack")
	}
	e := startSystem(t)
	misreport(t, e)
	if out := run(t, "python3", "python/read.py", e.Dir); !strings.HasPrefix(out, "1 mine ") {
		t.Errorf("read from the log:\n%s", out)
	}
	wantRejects(t, run(t, "python3", "python/read.py", e.Dir, "hindsight.rejects"))
	empty := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "python3", "python/read.py", empty).CombinedOutput(); err == nil ||
		string(out) != empty+"/connect.json is not there: give the folder of a decider's log\n" {
		t.Errorf("of a folder without a log: %v, %s", err, out)
	}
}
