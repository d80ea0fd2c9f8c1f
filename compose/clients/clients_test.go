// Package clients holds the test that runs the clients of this folder against a
// real system.
package clients

import (
	"context"
	"log/slog"
	"os/exec"
	"strings"
	"testing"

	"hindsight/internal/engine"
	"hindsight/internal/model"
	"hindsight/internal/modelfile"
	"hindsight/internal/service"
)

// startSystem runs the default model on an embedded log until the test ends.
func startSystem(t *testing.T) *engine.Engine { return startModel(t, "") }

// startModel runs a model file.
func startModel(t *testing.T, path string) *engine.Engine {
	t.Helper()
	e, err := engine.Open(t.Context(), engine.Options{Log: "embedded:" + t.TempDir(), Listen: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	source, err := modelfile.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := service.CreateTopics(t.Context(), e.Log, source.Name, 1, service.Retention{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- service.RunSystem(ctx, service.SystemConfig{Log: e.Log, Bus: e.Bus, Name: source.Name, Source: source, Build: model.Epoch,
			Seed: []byte("a seed for tests"), Partitions: 1, Owned: []int{0}, Owner: "test", Logger: slog.New(slog.DiscardHandler)}, func() { close(ready) })
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	select {
	case <-ready:
	case err := <-done:
		done <- nil
		t.Fatal(err)
	}
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

// TestGoClient runs the program that README shows.
func TestGoClient(t *testing.T) {
	e := startSystem(t)
	out := run(t, "go", "run", "./go", e.URL)
	for _, want := range []string{"round r-0-1: show ", "(drawn with probability 0.333)", "outcome stored: true"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in the output:\n%s", want, out)
		}
	}
}

// TestPythonClients runs the Python programs that README shows.
func TestPythonClients(t *testing.T) {
	if err := exec.Command("python3", "-c", "import nats, msgpack").Run(); err != nil {
		t.Skip("the Python packages are not here: pip install nats-py msgpack")
	}
	e := startSystem(t)
	out := run(t, "python3", "python/ask.py", e.URL)
	if !strings.Contains(out, "r-0-1 ") || !strings.Contains(out, "'stored': True") {
		t.Errorf("asked and reported:\n%s", out)
	}
	if out := run(t, "python3", "python/read.py", e.Dir); !strings.HasPrefix(out, "1 r-0-1 ") {
		t.Errorf("read from the log:\n%s", out)
	}
}
