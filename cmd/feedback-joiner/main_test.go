package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hindsight/internal/daemon"
)

// try runs the command in process.
func try(ctx context.Context, args ...string) (code int, stderr string) {
	var out, log bytes.Buffer
	env := &daemon.Env{Args: args, Getenv: func(string) string { return "" }, Stdin: strings.NewReader(""),
		Stdout: &out, Stderr: &log}
	return daemon.Run(ctx, env, command(env)), log.String()
}

// TestRefused holds that what cannot work is said, with what to do. How it works is
// tested beside the decider.
func TestRefused(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad.yaml")
	if err := os.WriteFile(bad, []byte("name: shop\nwindow: forever\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(dir, "left") // of a decider that was killed
	if err := os.MkdirAll(left, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"LOCK", "connect.json"} {
		if err := os.WriteFile(filepath.Join(left, name), []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"no decider", []string{"--log", "embedded:" + dir}, 1, "start it with: decider --joiner=false --log " +
			"embedded:" + dir},
		{"a dead decider", []string{"--log", "embedded:" + left}, 1, "start it with: decider --joiner=false --log " +
			"embedded:" + left},
		{"no folder", []string{"--log", "embedded:" + filepath.Join(dir, "none")}, 1,
			"start it with: decider --joiner=false"},
		{"which folder", []string{"--log", "embedded:"}, 2, "expected embedded:DIR"},
		{"in memory", []string{"--log", "mem:"}, 2, "expected embedded:DIR"},
		{"no memory", []string{"--pending-mib", "0"}, 2, "--pending-mib 0: it must be at least 1"},
		{"unknown flag", []string{"--listen", "x"}, 2, "unknown flag: --listen"},
		{"no model file", []string{"--model", filepath.Join(dir, "none.yaml")}, 1, "none.yaml: no such file"},
		{"a bad model", []string{"--model", bad}, 1, "bad.yaml:2:9: "},
	} {
		code, stderr := try(t.Context(), c.args...)
		if code != c.code || !strings.Contains(stderr, c.says) {
			t.Errorf("%s: exit code %d, %q; want %d, %q", c.name, code, stderr, c.code, c.says)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "seed")); err == nil {
		t.Error("a command that was refused made a seed")
	}
}
