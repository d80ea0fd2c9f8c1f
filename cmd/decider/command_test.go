package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"hindsight/internal/check"
	"hindsight/internal/daemon"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/nats"
)

// TestStopUnderLoad stops a decider politely in the middle of everything.
func TestStopUnderLoad(t *testing.T) {
	t.Parallel()
	seed := testSeed(t)
	r := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	args := []string{"--log", "embedded:" + dir, "--listen", "127.0.0.1:0", "--model", writeModel(t, dir, shop)}
	l := newLoad(t, dir, "shop", seed)
	for range 3 {
		p := start(t, decider(t, args...)).ready()
		l.attach(p.reached(dir).URL)
		after(p, time.Duration(100+r.IntN(200))*time.Millisecond)
		p.stop(10 * time.Second)
		l.detach()
		l.mu.Lock()
		replies := l.replies
		l.mu.Unlock()
		audit(t, dir, "shop", replies, check.Options{Unfinished: true}, nil)
	}
	p := start(t, decider(t, args...)).ready()
	l.attach(p.reached(dir).URL)
	l.stop()
	settle(t, l)
	l.detach()
	p.stop(10 * time.Second)
	audit(t, dir, "shop", l.replies, check.Options{}, func(log stream.Log) { auditUsers(t, log, l) })
}

// TestSecondSignal holds that a second signal ends a decider that takes long to
// stop: one whose log nobody reads.
func TestSecondSignal(t *testing.T) {
	dir := t.TempDir()
	cmd := decider(t, "--log", "embedded:"+dir, "--listen", "127.0.0.1:0")
	log, full, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	defer full.Close()
	cmd.Stderr = full
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, cmd: cmd, ended: make(chan struct{})}
	go func() { cmd.Wait(); close(p.ended) }()
	defer p.kill()
	c := p.reached(dir)
	user, err := nats.Dial(c.URL, "test", nats.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer user.Close()
	eventually(t, "an answer", func() bool { return answers(t, user) })
	_ = log.SetReadDeadline(time.Now().Add(patience))
	lines := bufio.NewScanner(log)
	for lines.Scan() && !strings.Contains(lines.Text(), "msg=ready") { // the last line of a start
	}
	fill(t, full)
	p.signal(syscall.SIGTERM)
	eventually(t, "no answer", func() bool { return !answers(t, user) })
	select {
	case <-p.ended:
		t.Fatalf("it stopped though its log is full: %v", cmd.ProcessState)
	default:
	}
	p.signal(syscall.SIGTERM)
	if code := p.wait(patience); code != -1 || cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGTERM {
		t.Errorf("after the second signal: %v", cmd.ProcessState)
	}
}

// answers reports whether somebody decides.
func answers(t testing.TB, user *nats.Client) bool {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, headers, err := user.Bus().Request(ctx, "hindsight.decide", []byte(`{"actions":["a","b"]}`))
	if err != nil && !errors.Is(err, stream.ErrNoResponder) {
		t.Fatal(err)
	}
	return err == nil && len(headers) == 0
}

// fill writes to a pipe until nothing fits any more.
func fill(t testing.TB, w *os.File) {
	t.Helper()
	fd := int(w.Fd())
	if err := syscall.SetNonblock(fd, true); err != nil {
		t.Fatal(err)
	}
	for size := 4096; size > 0; {
		_, err := syscall.Write(fd, make([]byte, size))
		if errors.Is(err, syscall.EAGAIN) {
			size /= 2
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.SetNonblock(fd, false); err != nil {
		t.Fatal(err)
	}
}

// result is a command that ended.
type result struct {
	code   int
	stderr string
	took   time.Duration
}

func finish(t testing.TB, cmd *exec.Cmd) result {
	t.Helper()
	began := time.Now()
	p := start(t, cmd)
	code := p.wait(patience)
	return result{code, p.log(), time.Since(began)}
}

// TestRefused holds that what cannot work is said at once, with what to do.
func TestRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	held := filepath.Join(dir, "held")
	holder := start(t, decider(t, "--log", "embedded:"+held, "--listen", "127.0.0.1:0")).ready()
	fresh := "embedded:" + filepath.Join(dir, "fresh")
	for _, c := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"a held folder", []string{"--log", "embedded:" + held}, 1,
			fmt.Sprintf("held is in use by process %d (decider)", holder.cmd.Process.Pid)},
		{"a taken port", []string{"--log", fresh, "--listen", taken.Addr().String()}, 1,
			taken.Addr().String() + ": bind: address already in use; give another port"},
		{"a file as folder", []string{"--log", "embedded:" + file}, 1, "folder " + file + " cannot be made"},
		{"a folder in a file", []string{"--log", "embedded:" + filepath.Join(file, "x")}, 1, "cannot be made"},
		{"an unknown flag", []string{"--bogus"}, 2, "unknown flag: --bogus"},
		{"an argument", []string{"extra"}, 2, "extra"},
		{"a model without its flag", []string{"shop.yaml"}, 2, "a model file is named by a flag: decider --model " +
			"shop.yaml"},
		{"another log", []string{"--log", "cassandra:x"}, 2, "expected embedded:DIR"},
		{"no memory", []string{"--log", "mem:", "--pending-mib", "0"}, 2, "--pending-mib 0: it must be at least 1"},
		{"no port", []string{"--log", fresh, "--listen", "127.0.0.1"}, 2, "expected HOST:PORT"},
		{"a bad port", []string{"--log", fresh, "--listen", "127.0.0.1:99999"}, 2, "is not a port"},
		{"a retention that is none", []string{"--log", fresh, "--retention", "7y"}, 2, "expected a duration, for " +
			"example 7d"},
		{"false after a space", []string{"--log", fresh, "--joiner", "false"}, 2, "--joiner takes its value after an " +
			"equals sign: --joiner=false"},
		{"a negative retention", []string{"--log", fresh, "--retention", "-1h"}, 2, "--retention"},
		{"all addresses", []string{"--log", fresh, "--listen", "0.0.0.0:0"}, 1, "not a loopback address"},
		{"no model file", []string{"--log", fresh, "--model", filepath.Join(dir, "none.yaml")}, 1, "none.yaml: no " +
			"such file"},
		{"a bad model", []string{"--log", fresh, "--model", writeModel(t, dir, "name: shop\nwindows: 1m\n")}, 1,
			"model.yaml:2:1: "},
	} {
		got := finish(t, decider(t, c.args...))
		if got.code != c.code || !strings.Contains(got.stderr, c.says) {
			t.Errorf("%s: exit code %d, %q; want %d, %q", c.name, got.code, got.stderr, c.code, c.says)
		}
		if got.took > 10*time.Second {
			t.Errorf("%s was refused after %v", c.name, got.took)
		}
		if hint := strings.Contains(got.stderr, "Try: decider --help"); hint != (c.code == 2) {
			t.Errorf("%s: a hint to --help: %v", c.name, hint)
		}
	}
	holder.stop(patience)
}

// TestReadOnlyFolder needs a user who cannot write everywhere.
func TestReadOnlyFolder(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may write to any folder")
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	if got := finish(t, decider(t, "--log", "embedded:"+dir)); got.code != 1 || !strings.Contains(got.stderr,
		"not writable") {
		t.Errorf("%+v", got)
	}
}

// TestModelOfTheLog holds that a log goes on only with its own model and seed, or a
// newer version.
func TestModelOfTheLog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	log := []string{"--log", "embedded:" + dir, "--listen", "127.0.0.1:0"}
	with := func(model string, more ...string) *exec.Cmd {
		return decider(t, append(append(log, "--model", writeModel(t, t.TempDir(), model)), more...)...)
	}
	first := start(t, with(shop)).ready()
	first.stop(patience)
	start(t, with(shop)).ready().stop(patience)
	second := shop + "explore: cautious\n"
	other := filepath.Join(t.TempDir(), "seed")
	if _, err := daemon.SeedFile(other); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		cmd  *exec.Cmd
		says string
	}{
		{"other content", with(second), "has the same version 1; raise version: to start a new epoch"},
		{"another seed", with(shop, "--seed-file", other), "not the seed that the log was created with"},
	} {
		if got := finish(t, c.cmd); got.code != 1 || !strings.Contains(got.stderr, c.says) {
			t.Errorf("%s: exit code %d, %s; want %q", c.name, got.code, got.stderr, c.says)
		}
	}
	start(t, with(strings.Replace(second, "version: 1", "version: 2", 1))).ready().stop(patience)
	if got := finish(t, with(shop)); got.code != 1 || !strings.Contains(got.stderr, "the log is at version 2 of the "+
		"model, this file says version 1") {
		t.Errorf("an older version: %+v", got)
	}
	if r := audit(t, dir, "shop", nil, check.Options{}, nil); r.Epochs != 2 {
		t.Errorf("%d epochs, want 2", r.Epochs)
	}
}
