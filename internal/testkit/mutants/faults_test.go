package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestFaultsApply: the faults that are written by hand can be planted, and those that do nothing are made by the rules:
// code that changes takes them along.
func TestFaultsApply(t *testing.T) {
	t.Chdir("../../..")
	byHand, err := readPlanted("internal/testkit/mutants/planted.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range byHand {
		if f.to == 0 {
			t.Errorf("%s: %s: its text is not there, or twice", f.file, f.name)
		}
	}
	made := map[string]bool{}
	for _, pattern := range []string{"internal/*/*.go", "pkg/*/*.go", "pkg/*/*/*.go"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			all, err := sites(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range all {
				made[f.change()] = true
			}
		}
	}
	for line := range strings.Lines(equivalent) {
		if line = strings.TrimSuffix(line, "\n"); line != "" && line[0] != '#' && !made[line] {
			t.Errorf("no rule makes this: %s", line)
		}
	}
}
