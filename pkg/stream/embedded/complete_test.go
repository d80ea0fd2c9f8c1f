package embedded_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"hindsight/pkg/stream"
	"hindsight/pkg/stream/embedded"
)

// TestKilledWhileMaking holds that a kill between the two files of a new stream, its
// configuration and that one's checksum, loses nothing that is stored later, nor does a power
// cut that takes what is in one of them.
func TestKilledWhileMaking(t *testing.T) {
	blank := func(path string) error { return os.Truncate(path, 0) }
	zeros := func(path string) error {
		info, err := os.Stat(path)
		if err == nil {
			err = os.WriteFile(path, make([]byte, info.Size()), 0o600)
		}
		return err
	}
	for what, damage := range map[string]struct {
		file string
		do   func(path string) error
	}{
		"no checksum": {"meta.sum", os.Remove}, "blank checksum": {"meta.sum", blank},
		"zeros for a checksum": {"meta.sum", zeros},
		"blank configuration":  {"meta.inf", blank}, "zeros for a configuration": {"meta.inf", zeros},
	} {
		t.Run(what, func(t *testing.T) { killedWhileMaking(t, damage.file, damage.do) })
	}
}

func killedWhileMaking(t *testing.T, file string, damage func(path string) error) {
	dir := t.TempDir()
	records := func(write bool) (next int64) {
		e, err := embedded.Open(t.Context(), embedded.Options{Dir: dir, Port: -1})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		if write {
			if err := e.Log().Create(t.Context(), "a", 1, stream.TopicOptions{}); err != nil {
				t.Fatal(err)
			}
			w, err := e.Log().Writer(t.Context(), "a", 0, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			if _, err := w.Append(t.Context(), &stream.Record{Value: []byte("x")}); err != nil {
				t.Fatal(err)
			}
			if err := w.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		_, next, err = e.Log().Bounds(t.Context(), "a", 0)
		if err != nil {
			t.Fatal(err)
		}
		return next
	}
	first := records(true)
	damaged := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == file && filepath.Base(filepath.Dir(filepath.Dir(path))) == "streams" {
			damaged++
			return damage(path)
		}
		return err
	})
	if err != nil || damaged == 0 {
		t.Fatalf("%d files: %v", damaged, err)
	}
	if next := records(true); next != first+1 {
		t.Errorf("next offset %d, want %d: the stream was left out", next, first+1)
	}
	if next := records(false); next != first+1 {
		t.Errorf("after another start: next offset %d, want %d", next, first+1)
	}
}
