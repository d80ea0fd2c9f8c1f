package embedded

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
)

// TestChanges holds what each event of the kernel says that is to be synced: where some were lost, all of it.
func TestChanges(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	file, folder := filepath.Join(dir, "file"), filepath.Join(dir, "folder")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Mkdir(folder, 0o700),
		os.Symlink(file, filepath.Join(dir, "link"))); err != nil {
		t.Fatal(err)
	}
	c, err := watch(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	is := func(when string, files, names []string) {
		t.Helper()
		if f, n := slices.Sorted(maps.Keys(c.files)), slices.Sorted(maps.Keys(c.names)); !slices.Equal(f, files) ||
			!slices.Equal(n, names) {
			t.Errorf("%s: files %v and names in %v, want %v and %v", when, f, n, files, names)
		}
		clear(c.files)
		clear(c.names)
	}
	is("at first", []string{file}, []string{filepath.Dir(dir), dir, folder})
	var root int32
	for watch, path := range c.folders {
		if path == dir {
			root = watch
		}
	}
	for _, x := range []struct {
		when         string
		what         uint32
		name         string
		files, names []string
	}{
		{"some are lost", syscall.IN_Q_OVERFLOW, "", []string{file}, []string{dir, folder}},
		{"written", syscall.IN_MODIFY, "file", []string{file}, nil},
		{"made", syscall.IN_CREATE, "file", []string{file}, []string{dir}},
		{"renamed to", syscall.IN_MOVED_TO, "file", []string{file}, []string{dir}},
		{"renamed from", syscall.IN_MOVED_FROM, "file", nil, []string{dir}},
		{"removed", syscall.IN_DELETE, "file", nil, []string{dir}},
		{"a folder is made", syscall.IN_CREATE | syscall.IN_ISDIR, "folder", nil, []string{dir, folder}},
		{"a folder is removed", syscall.IN_DELETE | syscall.IN_ISDIR, "folder", nil, []string{dir}},
		{"it is gone", syscall.IN_IGNORED, "", nil, nil},
	} {
		if err := c.event(root, x.what, x.name); err != nil {
			t.Error(err)
		}
		is(x.when, x.files, x.names)
	}
	if c.folders[root] != "" {
		t.Error("a folder that is gone is watched")
	}
}
