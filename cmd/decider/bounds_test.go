package main

import (
	"strings"
	"testing"

	"hindsight/internal/daemon"
	"hindsight/internal/testkit/daemontest"
)

func TestNumbersOfFlags(t *testing.T) { daemontest.Bounds(t, command) }

// TestNumbersOfTheEnvironment holds that these have the bounds of the flags that they stand for.
func TestNumbersOfTheEnvironment(t *testing.T) {
	var said strings.Builder
	env := &daemon.Env{Stderr: &said, Getenv: func(name string) string {
		return map[string]string{"HINDSIGHT_LOG": "mem:", "HINDSIGHT_PARTITIONS": "1000000"}[name]
	}}
	code := daemon.Run(t.Context(), env, command(env))
	if want := "--partitions 1000000: it must be at most 4096"; code != daemon.WrongUsage ||
		!strings.Contains(said.String(), want) {
		t.Errorf("exit code %d, %q; want %q", code, said.String(), want)
	}
}
