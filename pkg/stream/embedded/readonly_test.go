package embedded_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"hindsight/pkg/stream"
	"hindsight/pkg/stream/attach"
	"hindsight/pkg/stream/embedded"
)

// small makes blocks of 32 kB, the smallest that the server has.
var small = stream.TopicOptions{MaxBytes: 120_000}

const smallRecords = 500 // in some blocks

// shortAge is the shortest that the server takes.
const shortAge = 100 * time.Millisecond

// Whoever only reads a folder leaves it as it is, however old its records are and
// whatever damage they have, and reads what others would have read before.
func TestReadOnly(t *testing.T) {
	block := func(dir, name string) string {
		return filepath.Join(dir, "jetstream", "$G", "streams", "a_0", "msgs", name)
	}
	first := func(dir string) string { return block(dir, "2.blk") }
	last := func(dir string) string { return block(dir, "3.blk") }
	index := func(dir string) string { return block(dir, "index.db") }
	for _, tt := range []struct {
		name   string
		change func(t *testing.T, dir string) error
		whole  bool // all records can be read
		links  int  // blocks that are not copied
	}{
		{"closed", func(*testing.T, string) error { return nil }, true, 2},
		{"killed", func(_ *testing.T, dir string) error { return os.Remove(index(dir)) }, true, 2},
		{"flipped byte in the middle", func(t *testing.T, dir string) error {
			overwrite(t, first(dir), 0.4, false)
			return nil
		}, false, 1},
		{"killed, and a flipped byte", func(t *testing.T, dir string) error {
			overwrite(t, first(dir), 0.4, false)
			return os.Remove(index(dir))
		}, false, 1},
		{"last block cut", func(t *testing.T, dir string) error { truncate(t, last(dir), 0.5); return nil }, false, 2},
		{"last block lost", func(_ *testing.T, dir string) error { return os.Remove(last(dir)) }, false, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			next := writeNumbered(t, dir, smallRecords, small)
			if err := errors.Join(embedded.SetAge(dir, shortAge), tt.change(t, dir)); err != nil {
				t.Fatal(err)
			}
			<-time.After(shortAge)
			before := contents(t, dir)
			if n := len(before); n < 6 {
				t.Fatalf("only %d files: %v", n, before)
			}
			for range 2 {
				t.Setenv("TMPDIR", t.TempDir())
				view := open(t, embedded.Options{Dir: dir, ReadOnly: true})
				if got := links(t); got != tt.links {
					t.Errorf("%d blocks are links, and not %d", got, tt.links)
				}
				closeEngine(t, view)
				if err := readNumbered(t, embedded.Options{Dir: dir, ReadOnly: true}, next); (err == nil) != tt.whole {
					t.Errorf("read: %v", err)
				}
				if after := contents(t, dir); fmt.Sprint(after) != fmt.Sprint(before) {
					t.Errorf("was %v\nis  %v", before, after)
				}
			}
			e := open(t, embedded.Options{Dir: dir, DontListen: true})
			defer closeEngine(t, e)
			if first, end, err := e.Log().Bounds(t.Context(), "a", 0); err != nil || first < end {
				t.Errorf("a server keeps %d to %d of it, %v: this shows nothing", first, end, err)
			}
		})
	}
}

// links counts the blocks of the one view in the temporary folder that are links. All there is its owner's alone.
func links(t *testing.T) (n int) {
	t.Helper()
	err := filepath.WalkDir(os.Getenv("TMPDIR"), func(path string, d fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".blk" && d.Type()&fs.ModeSymlink != 0 {
			n++
		}
		if err != nil || d.Type()&fs.ModeSymlink != 0 {
			return err
		}
		mode := fs.FileMode(0o600)
		if d.IsDir() {
			mode = 0o700
		}
		info, err := d.Info()
		if err == nil && path != os.Getenv("TMPDIR") && info.Mode().Perm() != mode {
			t.Errorf("%s is %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// contents returns the sums of the files of a folder, without the lock.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	sums := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == attach.LockFile {
			return err
		}
		data, err := os.ReadFile(path)
		sums[strings.TrimPrefix(path, dir)] = fmt.Sprintf("%d %.8x", len(data), sha256.Sum256(data))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return sums
}

// Several read a folder at once; meanwhile nobody serves it, and they serve nobody and
// write nothing.
func TestReadOnlyShares(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	if _, err := embedded.Open(ctx, embedded.Options{Dir: dir, ReadOnly: true}); err == nil ||
		!strings.Contains(err.Error(), "holds no log") {
		t.Errorf("an empty folder: %v", err)
	}
	writeNumbered(t, dir, 10, small)
	t.Setenv("TMPDIR", t.TempDir())
	one, two := open(t, embedded.Options{Dir: dir, ReadOnly: true}), open(t, embedded.Options{Dir: dir, ReadOnly: true})
	if one.URL() != "" {
		t.Errorf("it listens at %s", one.URL())
	}
	_, err := embedded.Open(ctx, embedded.Options{Dir: dir, Port: -1})
	if self := fmt.Sprintf("in use by process %d (", os.Getpid()); !errors.Is(err, attach.ErrInUse) ||
		!strings.Contains(err.Error(), self) {
		t.Errorf("a server beside readers: %v", err)
	}
	a, _, err := two.Log().Open(ctx, "a", 0, stream.OpenOptions{})
	if err == nil {
		_, err = a.Append(ctx, &stream.Record{Value: []byte("x")})
		err = errors.Join(err, a.Flush(ctx), a.Close())
	}
	if err == nil {
		t.Error("a record was appended")
	}
	closeEngine(t, one)
	closeEngine(t, two)
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	lock := filepath.Join(dir, attach.LockFile)
	if err := os.Remove(lock); err != nil { // as in a backup
		t.Fatal(err)
	}
	closeEngine(t, open(t, embedded.Options{Dir: dir, ReadOnly: true}))
	if _, err := os.Stat(lock); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a lock file was made, which may keep out its owner: %v", err)
	}
	served := open(t, embedded.Options{Dir: dir, Port: -1})
	defer closeEngine(t, served)
	if _, err := embedded.Open(ctx, embedded.Options{Dir: dir, ReadOnly: true}); !errors.Is(err, attach.ErrInUse) {
		t.Errorf("a reader beside a server: %v", err)
	}
}

// The views of processes that were killed are removed by whoever opens the next one, and
// no others.
func TestReadOnlyRemovesViews(t *testing.T) {
	dir, temp := t.TempDir(), t.TempDir()
	writeNumbered(t, dir, 10, small)
	t.Setenv("TMPDIR", temp)
	used := open(t, embedded.Options{Dir: dir, ReadOnly: true})
	locks, err := filepath.Glob(filepath.Join(temp, "*", attach.LockFile))
	if err != nil || len(locks) != 1 {
		t.Fatalf("%v, %v", locks, err)
	}
	for _, name := range []string{"hindsight-view-killed", "hindsight-view-begun", "hindsight-view-unlocked",
		"something-else"} {
		if err := os.Mkdir(filepath.Join(temp, name), 0o700); err != nil {
			t.Fatal(err)
		}
		lock := filepath.Join(temp, name, attach.LockFile)
		if name == "hindsight-view-unlocked" {
			continue
		}
		if err := os.WriteFile(lock, []byte("1 (replayer)\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if name != "hindsight-view-begun" {
			locks = append(locks, lock)
		}
	}
	other := t.TempDir() // with a lock that nobody holds, as of a log
	if err := errors.Join(os.WriteFile(filepath.Join(other, attach.LockFile), nil, 0o600),
		os.Symlink(other, filepath.Join(temp, "hindsight-view-link"))); err != nil {
		t.Fatal(err)
	}
	long := time.Now().Add(-time.Hour)
	for _, lock := range append(locks, filepath.Join(other, attach.LockFile)) {
		if err := os.Chtimes(lock, long, long); err != nil {
			t.Fatal(err)
		}
	}
	closeEngine(t, open(t, embedded.Options{Dir: dir, ReadOnly: true}))
	left, err := filepath.Glob(filepath.Join(temp, "*"))
	want := []string{filepath.Dir(locks[0])}
	for _, name := range []string{"hindsight-view-begun", "hindsight-view-link", "hindsight-view-unlocked",
		"something-else"} {
		want = append(want, filepath.Join(temp, name))
	}
	slices.Sort(want)
	if err != nil || !slices.Equal(left, want) {
		t.Errorf("left are\n%v, %v, and not\n%v", left, err, want)
	}
	if _, err := os.Stat(filepath.Join(other, attach.LockFile)); err != nil {
		t.Error(err)
	}
	closeEngine(t, used)
}
