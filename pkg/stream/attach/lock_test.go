//go:build unix

package attach

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Whoever asks whether a folder is held may be stopped while it does: that does not keep
// out who wants to hold it.
func TestLockWaits(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, LockFile)
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	asking, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := shareFile(asking); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(60*time.Millisecond, func() { _ = asking.Close() })
	unlock, err := Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := unlock(); err != nil {
		t.Error(err)
	}
}
