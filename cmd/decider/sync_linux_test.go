package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// TestSync decides with --sync always, the joiner being a process of its own: the decider
// watches what its store writes, which it does not by default, and both do their work.
func TestSync(t *testing.T) {
	for _, sync := range []string{"always", "interval"} {
		dir := t.TempDir()
		model := writeModel(t, dir, shop)
		d := start(t, decider(t, "--log", "embedded:"+dir, "--listen", "127.0.0.1:0", "--model", model,
			"--joiner=false", "--sync", sync))
		d.reached(dir)
		eventually(t, "the topics are there", func() bool { return hasTopics(t, dir) })
		j := start(t, feedbackJoiner(t, "--log", "embedded:"+dir, "--model", model)).ready()
		d.ready()
		if was := decideOnce(t, asService(d.reached(dir)), "first"); was.N != 1 {
			t.Errorf("sync %s: decided round %d", sync, was.N)
		}
		if watches := watchesFiles(t, d.cmd.Process.Pid); watches != (sync == "always") {
			t.Errorf("sync %s: the store is watched: %v", sync, watches)
		}
		j.stop(patience)
		d.stop(patience)
	}
	if code := start(t, decider(t, "--sync", "often")).wait(patience); code != 2 {
		t.Errorf("--sync often: exit code %d", code)
	}
}

// watchesFiles reports whether a process has an instance of inotify.
func watchesFiles(t *testing.T, pid int) bool {
	t.Helper()
	all, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range all {
		if to, err := os.Readlink(fd); err == nil && to == "anon_inode:inotify" {
			return true
		}
	}
	return false
}
