package embedded

import (
	"os"
	"path/filepath"
	"testing"
)

// TestStoreLimit: the limit is what is given, or else what was chosen when the store was made.
func TestStoreLimit(t *testing.T) {
	dir := t.TempDir()
	if n, err := storeLimit(dir, 7); n != 7 || err != nil {
		t.Error(n, err)
	}
	chosen, err := storeLimit(dir, 0)
	free, failed := freeBytes(dir)
	if err != nil || failed != nil || chosen < free/10*7 || chosen > free/10*85/10 { // of what was free a moment ago
		t.Errorf("%d of %d free bytes: %v, %v", chosen, free, err, failed)
	}
	if n, err := storeLimit(dir, 0); n != chosen || err != nil {
		t.Errorf("%d, and then %d: %v", chosen, n, err)
	}
	for text, want := range map[string]int64{"1": 1, " 123\n": 123, "0": 0, "-1": 0, "x": 0} {
		if err := os.WriteFile(filepath.Join(dir, limitFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if n, err := storeLimit(dir, 0); n != want || (err == nil) != (want > 0) {
			t.Errorf("%q is a limit of %d: %v", text, n, err)
		}
	}
}
