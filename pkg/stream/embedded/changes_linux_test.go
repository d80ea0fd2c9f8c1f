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
	c.files[file], c.names[dir] = true, true
	if err := c.sync(); err != nil {
		t.Error(err)
	}
	is("synced", nil, nil)
	if f := c.open[file]; f == nil {
		t.Error("a file that was synced is not left open")
	} else if again, err := c.file(file); again != f || err != nil {
		t.Errorf("the file is opened again: %v", err)
	}
}

// TestSyncInOrder holds that a block is on the disk before the one that goes on after it, and that an error is told.
func TestSyncInOrder(t *testing.T) {
	dir := t.TempDir()
	var files []*os.File
	for _, name := range []string{"10.blk", "9.blk", "11.blk", "8.blk"} {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	if err := syncInOrder(files); err != nil {
		t.Error(err)
	}
	for i, want := range []string{"8.blk", "9.blk", "10.blk", "11.blk"} {
		if got := filepath.Base(files[i].Name()); got != want {
			t.Errorf("%s is synced as number %d, want %s", got, i, want)
		}
		files[i].Close()
		if err := syncInOrder(files); err == nil {
			t.Error("a file that cannot be synced is")
		}
	}
}

// TestLook holds when a store is taken for one that can write again: when a file is written and on the disk.
func TestLook(t *testing.T) {
	m := &mender{e: &Engine{o: Options{Dir: t.TempDir()}}}
	room := filepath.Join(m.e.o.Dir, roomFile)
	for _, device := range []struct {
		is   string
		want error
	}{{"/dev/full", syscall.ENOSPC}, {"/dev/null", syscall.EINVAL}} { // what takes nothing, and what does not sync
		if err := os.Symlink(device.is, room); err != nil {
			t.Fatal(err)
		}
		if err := m.look(); !errors.Is(err, device.want) {
			t.Errorf("%s: %v", device.is, err)
		}
	}
	if err := m.look(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(room); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what it wrote is left: %v", err)
	}
}
