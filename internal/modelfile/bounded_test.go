//go:build unix

package modelfile

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"hindsight/internal/bounded"
)

// A model file, or a file that it names, that is a pipe, a device or larger than such a file may
// be is refused at once, by its name.
func TestFilesAreBounded(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := syscall.Mkfifo(at("pipe.jsonl"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/zero", at("zero.jsonl")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at("large.jsonl"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(at("large.jsonl"), bounded.Named+1); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"pipe.jsonl", "zero.jsonl", "large.jsonl"} {
		model := "name: shop\noracle: {kind: hedge, class: " + name + "}\n"
		if err := os.WriteFile(at("shop.yaml"), []byte(model), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{at("shop.yaml"), at(name)} {
			if _, err := Load(path); err == nil || !strings.Contains(err.Error(), name+": ") {
				t.Errorf("%s of %s: %v", filepath.Base(path), name, err)
			}
		}
	}
}
