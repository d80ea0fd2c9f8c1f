package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"hindsight/internal/check"
)

// mount mounts and unmounts at the end of the test; where that is not permitted the
// test is left out.
func mount(t *testing.T, source, target, kind string, flags uintptr, data string) {
	t.Helper()
	if err := os.MkdirAll(target, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount(source, target, kind, flags, data); err != nil {
		t.Skipf("mount is not permitted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(target, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

// TestReadOnlyMount refuses a folder on a file system that nobody may write to, be it
// root: one that is new, one to be made, and one that holds a log.
func TestReadOnlyMount(t *testing.T) {
	dir := t.TempDir()
	real, ro := filepath.Join(dir, "real"), filepath.Join(dir, "ro")
	if err := os.MkdirAll(filepath.Join(real, "new"), 0o755); err != nil {
		t.Fatal(err)
	}
	start(t, decider(t, "--log", "embedded:"+filepath.Join(real, "old"), "--listen", "127.0.0.1:0", "--admin",
		"none")).ready().stop(patience)
	mount(t, real, ro, "", syscall.MS_BIND, "")
	if err := syscall.Mount("", ro, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Skipf("a read-only mount is not permitted here: %v", err)
	}
	for folder, says := range map[string]string{
		"new":  "/ro/new is not writable: ",
		"old":  "/ro/old is not writable: ",
		"none": "/ro/none cannot be made: ",
	} {
		got := finish(t, decider(t, "--log", "embedded:"+filepath.Join(ro, folder), "--admin", "none"))
		if got.code != 1 || !strings.Contains(got.stderr, says) || !strings.Contains(got.stderr, "read-only "+
			"file system") {
			t.Errorf("%s: exit code %d, %q; want %q", folder, got.code, got.stderr, says)
		}
	}
}

// asker asks for decisions over a connection, one id after the other.
type asker struct {
	t       *testing.T
	conn    *natsgo.Conn
	pad     int // features of a context, 2000 bytes each
	n       int
	replies []check.Reply // decisions that were told
	refused int           // with 503
}

func (a *asker) connect(url string) {
	a.t.Helper()
	var err error
	if a.conn, err = natsgo.Connect(url); err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(a.conn.Close)
}

// ask asks with the next id and reports whether a decision was told. All else but 503
// and no answer is a mistake.
func (a *asker) ask() bool {
	a.t.Helper()
	a.n++
	id := fmt.Sprintf("r%d", a.n)
	data := fmt.Appendf(nil, `{"id":%q,"actions":["x","y"],"features":{"n":%d`, id, a.n)
	for i := range a.pad {
		data = fmt.Appendf(data, `,"pad%d":%q`, i, strings.Repeat("p", 2000))
	}
	m, err := a.conn.Request("shop.decide", append(data, "}}"...), 2*time.Second)
	switch {
	case errors.Is(err, natsgo.ErrTimeout), errors.Is(err, natsgo.ErrNoResponders):
		return false
	case err != nil:
		a.t.Fatal(err)
	}
	code := m.Header.Get("Nats-Service-Error-Code")
	if code == "" {
		a.replies = append(a.replies, check.Reply{ID: id, Data: m.Data})
		return true
	}
	if code != "503" {
		a.t.Errorf("%s was refused with %s %s", id, code, m.Data)
	}
	a.refused++
	return false
}

// TestDiskFull fills the disk of a decider, or the limit of its log: it answers with
// 503 or not at all, says why, and is not ready. With room on the disk it goes on by
// itself, and no client loses its connection; a limit is read at the start. Both go on
// with everything that was told.
func TestDiskFull(t *testing.T) {
	notShort(t)
	t.Parallel()
	for _, c := range []struct {
		name, says, readyz string // small records still fit below the limit, so that readyz comes and goes
		fill, free         func(t *testing.T, a *asker, dir string)
	}{
		{"disk", "no space left on device: make room", "no space left on device: make room", fillDisk,
			func(t *testing.T, _ *asker, dir string) {
				if err := os.Remove(filepath.Join(dir, "ballast")); err != nil {
					t.Fatal(err)
				}
			}},
		{"limit", "resource limits exceeded", "", fillLog, func(t *testing.T, _ *asker, dir string) {
			if err := os.WriteFile(filepath.Join(dir, "limit"), []byte("20000000\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "disk")
			mount(t, "none", dir, "tmpfs", 0, "size=24m,mode=0700")
			if c.name == "limit" {
				if err := os.WriteFile(filepath.Join(dir, "limit"), []byte("8000000\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			args := []string{"--log", "embedded:" + dir, "--listen", "127.0.0.1:0", "--model", writeModel(t,
				t.TempDir(), shop), "--admin", "127.0.0.1:0"}
			p := start(t, decider(t, args...)).ready()
			a := &asker{t: t, pad: 1}
			a.connect(p.reached(dir).URL)
			for range 200 {
				if !a.ask() {
					t.Fatal("no decision on an empty disk")
				}
			}
			c.fill(t, a, dir)
			eventually(t, "that there is no room is felt", func() bool { return !a.ask() })
			p.becomes(p.admin(), 503, c.readyz)
			for range 10 {
				if a.ask() {
					t.Errorf("a decision without room for it: r%d", a.n)
				}
			}
			eventually(t, "it says why", func() bool { return strings.Contains(p.log(), c.says) })
			t.Logf("%d asked, %d told, %d refused, %d without an answer", a.n, len(a.replies), a.refused,
				a.n-len(a.replies)-a.refused)
			c.free(t, a, dir)
			if c.name == "limit" {
				p.stop(patience)
				p = start(t, decider(t, args...)).ready()
				a.connect(p.reached(dir).URL)
			}
			p.becomes(p.admin(), 200, "")
			if !a.ask() {
				t.Error("no decision after there was room again")
			}
			if n := a.conn.Stats().Reconnects; n > 0 {
				t.Errorf("the client lost its connection %d times", n)
			}
			p.stop(patience)
			audit(t, dir, "shop", a.replies, check.Options{Unfinished: true}, nil)
		})
	}
}

// fillLog asks for large decisions until one is not made.
func fillLog(t *testing.T, a *asker, _ string) {
	a.pad = 30
	eventually(t, "the log is full", func() bool { return !a.ask() })
}

// TestStartOnFullDisk holds that a decider that finds no room at its start says which file it
// could not write, and what to do.
func TestStartOnFullDisk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "disk")
	mount(t, "none", dir, "tmpfs", 0, "size=1m,mode=0700")
	fillDisk(t, nil, dir)
	got := finish(t, decider(t, "--log", "embedded:"+dir, "--listen", "127.0.0.1:0", "--admin", "none"))
	want := "decider: write " + filepath.Join(dir, "LOCK") + ": no space left on device: make room, then start it again"
	if got.code != 1 || !strings.Contains(got.stderr, want) {
		t.Errorf("exit code %d, %s; want %s", got.code, got.stderr, want)
	}
}

// fillDisk writes to a file until nothing fits.
func fillDisk(t *testing.T, _ *asker, dir string) {
	f, err := os.Create(filepath.Join(dir, "ballast"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := 1 << 20; size > 0; {
		if _, err = f.Write(make([]byte, size)); err != nil {
			size /= 2
		}
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
}
