package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"hindsight/internal/check"
	"hindsight/internal/engine"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/attach"
	"hindsight/pkg/stream/nats"
)

// TestBackup does what docs/backup.md says about backups: it copies the folder of a
// decider that has stopped, with the seed in it. The decider goes on, its folder is
// destroyed, and another one goes on from the copy, elsewhere, as from the state that
// was copied.
func TestBackup(t *testing.T) {
	notShort(t)
	t.Parallel()
	seed := testSeed(t)
	dir := t.TempDir()
	old, backup, restored := filepath.Join(dir, "old"), filepath.Join(dir, "backup"), filepath.Join(dir, "restored")
	model := writeModel(t, dir, shop)
	startIn := func(folder string) *process {
		return start(t, decider(t, "--log", "embedded:"+folder, "--listen", "127.0.0.1:0", "--model", model))
	}
	before := newLoadOf(t, old, "shop", seed, loadOptions{prefix: "before-"})
	p := startIn(old).ready()
	before.attach(p.reached(old).URL)
	after(p, 500*time.Millisecond)
	before.stop()
	settle(t, before)
	before.detach()
	p.stop(patience)
	copyFolder(t, old, backup)

	p = startIn(old).ready()
	was := decideOnce(t, asService(p.reached(old)), "probe")
	for i := range 10 { // which is lost with the folder
		decideOnce(t, asService(p.reached(old)), fmt.Sprint("gone-", i))
	}
	p.stop(patience)
	if err := os.RemoveAll(old); err != nil {
		t.Fatal(err)
	}

	copyFolder(t, backup, restored)
	kept := filepath.Join(dir, "kept")
	if err := os.Rename(filepath.Join(restored, engine.SeedName), kept); err != nil {
		t.Fatal(err)
	}
	for range 2 { // and no other seed is made by the first try
		got := finish(t, decider(t, "--log", "embedded:"+restored, "--listen", "127.0.0.1:0", "--model", model))
		if want := "the seed of this log is missing: there is no file " + filepath.Join(restored,
			engine.SeedName); got.code != 1 || !strings.Contains(got.stderr, want) {
			t.Fatalf("without its seed: exit code %d, %s", got.code, got.stderr)
		}
	}
	if err := os.Rename(kept, filepath.Join(restored, engine.SeedName)); err != nil {
		t.Fatal(err)
	}

	p = startIn(restored).ready()
	if is := decideOnce(t, asService(p.reached(restored)), "probe"); !reflect.DeepEqual(is, was) {
		t.Errorf("the restored system decides\n%+v, the old one decided\n%+v", is, was)
	}
	then := newLoadOf(t, restored, "shop", seed, loadOptions{prefix: "then-"})
	then.attach(p.reached(restored).URL)
	after(p, 500*time.Millisecond)
	then.stop()
	settle(t, then)
	then.detach()
	p.stop(patience)
	report := audit(t, restored, "shop", append(before.replies, then.replies...), check.Options{},
		func(log stream.Log) {
			auditUsers(t, log, before)
			auditUsers(t, log, then)
		})
	t.Logf("decision %d, which had learned through feedback %d, is the same before and after; %s", was.N,
		was.LearnedThrough, figures(report))
}

// notShort leaves out a test of processes in the run for the race detector.
func notShort(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("it takes seconds, and -race has nothing to find here that it does not find elsewhere")
	}
}

// decideOnce asks for a decision and returns it as the log has it, without what tells
// when it was made and where it lies.
func decideOnce(t *testing.T, url, id string) (d codec.Decision) {
	t.Helper()
	c, err := (&nats.Access{URL: url}).Dial("test", nats.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, headers, err := c.Bus().Request(ctx, "shop.decide",
		fmt.Appendf(nil, `{"id":%q,"features":{"hour":7,"country":"FR"},"actions":["red","green","blue","black"]}`, id))
	if err != nil || errorCode(headers) != 0 {
		t.Fatalf("%s: %v %v", id, headers, err)
	}
	scan(t, c.Log(), "shop.decisions", 0, func(r *stream.Record) error {
		var x codec.Decision
		if err := codec.ParseDecision(&x, append([]byte(nil), r.Value...)); err != nil {
			return err
		}
		if x.ID == id {
			d = x
		}
		return nil
	})
	d.Time = 0
	if d.N == 0 || len(d.Propensities) != 4 {
		t.Fatalf("%s: the log has %+v", id, d)
	}
	return d
}

// asService is the URL of an embedded server with the user who may do everything.
func asService(c attach.Connect) string {
	return strings.Replace(c.URL, "://", "://"+c.User+":"+c.Password+"@", 1)
}

// copyFolder copies a folder with its modes, as cp -a does.
func copyFolder(t *testing.T, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if e.IsDir() {
			return os.MkdirAll(filepath.Join(to, name), info.Mode().Perm())
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, name), data, info.Mode().Perm())
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestEmbeddedPaused stops the owner of a folder for longer than anybody would wait
// for, and lets it go on: nobody can have taken the folder meanwhile, and nothing is
// harmed.
func TestEmbeddedPaused(t *testing.T) {
	notShort(t)
	t.Parallel()
	seed := testSeed(t)
	dir := t.TempDir()
	args := []string{"--log", "embedded:" + dir, "--listen", "127.0.0.1:0", "--model", writeModel(t, dir, shop)}
	l := newLoad(t, dir, "shop", seed)
	p := start(t, decider(t, args...)).ready()
	l.attach(p.reached(dir).URL)
	brief := true // after a longer pause its own requests have timed out: it opens what it has again
	for range long(1, 3) {
		after(p, 300*time.Millisecond)
		p.signal(syscall.SIGSTOP)
		began := time.Now()
		got := finish(t, decider(t, args...))
		if want := fmt.Sprintf("is in use by process %d (decider)", p.cmd.Process.Pid); got.code != 1 ||
			!strings.Contains(got.stderr, want) {
			t.Errorf("a second decider while the first is paused: exit code %d, %s; want %q", got.code,
				got.stderr, want)
		}
		after(p, time.Duration(long(2, 30))*time.Second-time.Since(began)) // longer than a lease
		p.signal(syscall.SIGCONT)
		brief = brief && time.Since(began) < 4*time.Second
	}
	after(p, 300*time.Millisecond)
	l.stop()
	settle(t, l)
	l.detach()
	if p.said("fenced") > 0 || brief && p.said("level=ERROR") > 0 {
		t.Errorf("who was paused says:\n%s", p.log())
	}
	p.stop(patience)
	report := audit(t, dir, "shop", l.replies, check.Options{}, func(log stream.Log) { auditUsers(t, log, l) })
	if brief && report.Openings != 2 {
		t.Errorf("%d openings of decisions and feedback, want one of each", report.Openings)
	}
	t.Log(figures(report))
}
