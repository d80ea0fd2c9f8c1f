package main

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"hindsight/internal/daemon"
	"hindsight/pkg/stream/attach"
	"hindsight/pkg/stream/embedded"
)

// TestStoppedLogStays holds that a folder that nobody serves, whose records are all older
// than it keeps them, is as it was after everything that reads logs, and says the same
// each time.
func TestStoppedLogStays(t *testing.T) {
	const age = 100 * time.Millisecond
	dir := filepath.Join(t.TempDir(), "log")
	log := "embedded:" + dir
	if got := execute(t.Context(), "inject", "--rounds", "60", "--log", log, "--listen",
		"127.0.0.1:0"); got.code != daemon.Done {
		t.Fatalf("inject: %+v", got)
	}
	if err := embedded.SetAge(dir, age); err != nil {
		t.Fatal(err)
	}
	<-time.After(age)
	before := folder(t, dir)
	t.Setenv("TMPDIR", t.TempDir())
	said := map[string]string{}
	for _, args := range [][]string{
		{"verify", "--log", log},
		{"explain", "r20", "--log", log},
		{"convert", log, "--to", "jsonl", "--out", filepath.Join(t.TempDir(), "out.jsonl")},
		{"backtest", "--data", log, "--policy", "uniform"},
		{"fit", "--data", log, "--fit-rows", "40", "--functions", "3", "--out", filepath.Join(t.TempDir(),
			"class.jsonl")},
		{"window", "--data", log, "--windows", "2,10", "--seeds", "1"},
		{"explain", "r20", "--log", log},
		{"verify", "--log", log},
	} {
		got := execute(t.Context(), args...)
		text := speed.ReplaceAllString(got.stdout, "")
		if was, again := said[args[0]]; got.code != daemon.Done || again && text != was {
			t.Errorf("%s: %+v; before: %s", args[0], got, was)
		}
		said[args[0]] = text
		if after := folder(t, dir); after != before {
			t.Fatalf("%s: the folder was\n%s\nand is\n%s", args[0], before, after)
		}
		if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
			t.Fatalf("%s leaves %v behind: %v", args[0], left, err)
		}
	}
	if !checkedAll.MatchString(said["verify"]) {
		t.Errorf("verify: %s", said["verify"])
	}
}

// speed is what differs from one run to the next.
var speed = regexp.MustCompile(`[0-9.]+ s, [0-9]+ \w+ a second`)

// checkedAll is what verify says of 60 rounds.
var checkedAll = regexp.MustCompile(`decisions +60  checked +60\n`)

// folder lists the files of a folder with their sums, without the lock.
func folder(t *testing.T, dir string) string {
	t.Helper()
	var list strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == attach.LockFile {
			return err
		}
		data, err := os.ReadFile(path)
		fmt.Fprintf(&list, "%x %d %s\n", sha256.Sum256(data), len(data), path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list.String()
}
