package embedded

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sync/errgroup"
)

// changes knows what below a folder was written since it was last synced. The kernel tells it
// (inotify), and does so before the write returns: what a server sends after it wrote is sent
// after the event. One goroutine at a time uses it.
type changes struct {
	root    string
	inotify int
	folders map[int32]string    // by the number of their watch
	files   map[string]bool     // that were written
	names   map[string]bool     // folders with files that were made, renamed or removed
	open    map[string]*os.File // that were synced before, under the names that they still have
	buf     [1 << 16]byte
}

const watched = syscall.IN_ONLYDIR | syscall.IN_MODIFY | appeared | syscall.IN_DELETE | syscall.IN_MOVED_FROM

// maxSyncs bounds the syncs at once.
const maxSyncs = 8

const appeared = syscall.IN_CREATE | syscall.IN_MOVED_TO

// watch begins with everything below the folder as written.
func watch(dir string) (*changes, error) {
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, err
	}
	fd, err := syscall.InotifyInit1(syscall.IN_CLOEXEC | syscall.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("inotify (see fs.inotify.max_user_instances): %w", err)
	}
	c := &changes{root: root, inotify: fd, folders: map[int32]string{}, files: map[string]bool{},
		names: map[string]bool{filepath.Dir(root): true}, open: map[string]*os.File{}}
	if err := c.add(root); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// add watches a folder and those in it, and takes all that is in them as written. A file that
// appears meanwhile is listed, or told of, or both.
func (c *changes) add(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			var watch int
			if watch, err = syscall.InotifyAddWatch(c.inotify, path, watched); err == nil {
				c.folders[int32(watch)], c.names[path] = path, true
			}
		} else if err == nil && d.Type().IsRegular() {
			c.files[path] = true
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // a folder may be gone again
			return fmt.Errorf("inotify (see fs.inotify.max_user_watches): %s: %w", path, err)
		}
		return nil
	})
}

// sync puts on the disk what was written before the call: first the files, then their names.
func (c *changes) sync() error {
	if err := c.read(); err != nil {
		return err
	}
	if len(c.files)+len(c.names) == 0 {
		return nil
	}
	for path, f := range c.open {
		if c.names[filepath.Dir(path)] { // it may be another file's name by now
			f.Close()
			delete(c.open, path)
		}
	}
	byFolder := map[string][]*os.File{}
	for path := range c.files {
		f, err := c.file(path)
		if errors.Is(err, fs.ErrNotExist) { // it was renamed or removed, which an event tells
			continue
		}
		if err != nil {
			return err
		}
		byFolder[filepath.Dir(path)] = append(byFolder[filepath.Dir(path)], f)
	}
	var all errgroup.Group
	all.SetLimit(maxSyncs)
	for _, files := range byFolder {
		all.Go(func() error { return syncInOrder(files) })
	}
	if err := all.Wait(); err != nil {
		return err
	}
	for path := range c.names {
		if err := syncFile(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	clear(c.files)
	clear(c.names)
	return nil
}

// syncInOrder syncs the files of a folder. A block must not be on the disk before the one that
// it continues: a power cut in between would leave a gap.
func syncInOrder(files []*os.File) error {
	slices.SortFunc(files, func(a, b *os.File) int { // 9.blk, 10.blk
		return cmp.Or(len(a.Name())-len(b.Name()), strings.Compare(a.Name(), b.Name()))
	})
	for _, f := range files {
		if err := syscall.Fdatasync(int(f.Fd())); err != nil {
			return err
		}
	}
	return nil
}

// file opens a file, and leaves it open: the kernel tells each descriptor once of an error in
// writing back what was written since it was opened.
func (c *changes) file(path string) (*os.File, error) {
	if f := c.open[path]; f != nil {
		return f, nil
	}
	f, err := os.Open(path)
	if err == nil {
		c.open[path] = f
	}
	return f, err
}

// read takes all events.
func (c *changes) read() error {
	for {
		n, err := syscall.Read(c.inotify, c.buf[:])
		switch err {
		case nil:
		case syscall.EINTR:
			continue
		case syscall.EAGAIN:
			return nil
		default:
			return fmt.Errorf("inotify: %w", err)
		}
		for b := c.buf[:n]; len(b) > 0; {
			end := syscall.SizeofInotifyEvent + binary.NativeEndian.Uint32(b[12:])
			name, _, _ := bytes.Cut(b[syscall.SizeofInotifyEvent:end], []byte{0})
			watch, what := int32(binary.NativeEndian.Uint32(b)), binary.NativeEndian.Uint32(b[4:])
			if err := c.event(watch, what, string(name)); err != nil {
				return err
			}
			b = b[end:]
		}
	}
}

func (c *changes) event(watch int32, what uint32, name string) error {
	folder := c.folders[watch]
	path := filepath.Join(folder, name)
	switch {
	case what&syscall.IN_Q_OVERFLOW != 0: // some events are lost
		return c.add(c.root)
	case what&syscall.IN_IGNORED != 0: // the folder is gone
		delete(c.folders, watch)
		return nil
	case what&syscall.IN_MODIFY != 0:
		c.files[path] = true
		return nil
	}
	c.names[folder] = true
	if what&appeared == 0 {
		return nil
	}
	if what&syscall.IN_ISDIR != 0 {
		return c.add(path)
	}
	c.files[path] = true
	return nil
}

func (c *changes) close() error {
	for _, f := range c.open {
		f.Close()
	}
	return syscall.Close(c.inotify)
}
