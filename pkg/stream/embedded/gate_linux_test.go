package embedded

import (
	"strings"
	"testing"
)

// TestFailedSync lets nothing pass any more after a sync that failed, also if the next could succeed.
func TestFailedSync(t *testing.T) {
	store, err := watch(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	g := newGate(store)
	if err := g.pass(); err != nil {
		t.Fatal(err)
	}
	fd := store.inotify
	store.inotify = -1
	for range 2 {
		if err := g.pass(); err == nil || !strings.Contains(err.Error(), "sync failed") {
			t.Errorf("after a sync that failed: %v", err)
		}
		store.inotify = fd
	}
	if err := g.close(); err != nil {
		t.Error(err)
	}
}
