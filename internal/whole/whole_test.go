package whole

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// What is written is there when it is whole: in the middle, and after an error, the file is what it
// was, and nothing is left beside it.
func TestWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.csv")
	has := func(want string) {
		t.Helper()
		if b, err := os.ReadFile(path); err != nil || string(b) != want {
			t.Errorf("%q %v, want %q", b, err, want)
		}
	}
	if err := os.WriteFile(path, []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	failed := errors.New("failed")
	for _, end := range []error{failed, nil} {
		err := Write(link, func(w io.Writer) error {
			if _, err := io.WriteString(w, "half"); err != nil {
				return err
			}
			has("before")
			_, err := io.WriteString(w, " and half")
			return errors.Join(err, end)
		})
		if !errors.Is(err, end) {
			t.Error(err)
		}
	}
	has("half and half")
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 2 {
		t.Errorf("%v", left)
	}
	if err := WriteText(os.DevNull, "x"); err != nil {
		t.Error(err)
	}
	if err := WriteText(filepath.Join(dir, "none", "x"), "x"); err == nil {
		t.Error("a folder that is not there")
	}
}
