package embedded

import (
	"bytes"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"hindsight/pkg/stream"
)

// TestFailedSync lets nothing pass any more after a sync that failed, also if the next could
// succeed, and logs that once.
func TestFailedSync(t *testing.T) {
	store, err := watch(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	g := newGate(store, slog.New(slog.NewTextHandler(&log, nil)))
	if err := g.pass(); err != nil || g.started != 1 {
		t.Fatalf("%d syncs for one that waits: %v", g.started, err)
	}
	fd := store.inotify
	store.inotify = -1
	for range 2 {
		if err := g.pass(); err == nil || !strings.Contains(err.Error(), "sync failed") {
			t.Errorf("after a sync that failed: %v", err)
		}
		store.inotify = fd
	}
	if n := strings.Count(log.String(), "then restart"); n != 1 {
		t.Errorf("logged %d times", n)
	}
	if err := g.close(); err != nil {
		t.Error(err)
	}
}

// TestFailedSyncEnds fails the appends of a log whose sync failed, which still closes, but not
// as if all were on the disk.
func TestFailedSyncEnds(t *testing.T) {
	o := Options{Dir: t.TempDir(), Port: -1, Sync: SyncAlways}
	o.Log.AckTimeout = 100 * time.Millisecond
	e, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Log().Create(t.Context(), "a", 1, stream.TopicOptions{}); err != nil {
		t.Fatal(err)
	}
	w, err := e.Log().Writer(t.Context(), "a", 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	folder, err := os.Open(o.Dir)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	if err := syscall.Dup3(int(folder.Fd()), e.gate.store.inotify, 0); err != nil { // reading it fails from now on
		t.Fatal(err)
	}
	if _, err = w.Append(t.Context(), &stream.Record{Value: []byte("x")}); err == nil {
		err = w.Flush(t.Context())
	}
	if err == nil {
		t.Error("a record that was not synced is acknowledged")
	}
	if err := e.Close(); err != nil {
		t.Log(err)
	}
	if stopped(o.Dir) {
		t.Error("the next start takes the blocks for synced")
	}
}
