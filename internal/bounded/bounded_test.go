//go:build unix

package bounded

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A file is read up to its bound; a pipe nobody writes to, a device and a folder are refused at
// once.
func TestRead(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for name, n := range map[string]int{"most": 10, "more": 11} {
		if err := os.WriteFile(at(name), make([]byte, n), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("most", at("link")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(at("pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ path, says string }{
		{at("most"), ""}, {at("link"), ""}, {at("more"), "more than the 10 bytes"}, {at("pipe"), "not a plain file"},
		{"/dev/zero", "not a plain file"}, {dir, "not a plain file"}, {at("none"), "no such file"},
	} {
		b, err := Read(c.path, 10)
		ok := err == nil && len(b) == 10
		if c.says != "" {
			ok = err != nil && strings.Contains(err.Error(), c.says)
		}
		if !ok {
			t.Errorf("%s: %d bytes, %v", c.path, len(b), err)
		}
	}
}
