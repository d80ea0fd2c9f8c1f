package embedded_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hindsight/pkg/stream/attach"
	"hindsight/pkg/stream/embedded"
)

// TestPreparedLinks holds that files are made and not opened: a link that somebody has left
// in the folder leads to nothing that is written.
func TestPreparedLinks(t *testing.T) {
	for name, opens := range map[string]bool{attach.ConnectFile + ".new": true, "limit.new": true,
		attach.LockFile: false} {
		dir, precious := t.TempDir(), filepath.Join(t.TempDir(), "precious")
		if err := os.WriteFile(precious, []byte("as it was"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(precious, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		e, err := embedded.Open(t.Context(), embedded.Options{Dir: dir, Port: -1})
		if opens != (err == nil) || !opens && !strings.Contains(err.Error(), name+" is a symbolic link, which is not "+
			"followed: remove it") {
			t.Errorf("with a link as %s: %v", name, err)
		}
		if err == nil {
			closeEngine(t, e)
		}
		if is, err := os.ReadFile(precious); string(is) != "as it was" {
			t.Errorf("what %s led to holds %q: %v", name, is, err)
		}
	}
}
