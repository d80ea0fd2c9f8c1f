//go:build unix

package attach

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// Own is an error if a folder belongs to another user than this process's or root, or if
// others can write to it: they could have prepared it, and could change a log in it. A group
// of this process may write, as volumes of containers let one.
func Own(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return nil // opening it reports that
	}
	if err := ownedBy(info, "folder", dir); err != nil {
		return err
	}
	at, _ := info.Sys().(*syscall.Stat_t)
	switch mode := info.Mode().Perm(); {
	case mode&0o002 != 0 && modeless(dir):
		return nil
	case mode&0o002 != 0:
		instead := "name a folder in it, which is then made"
		if _, err := os.Stat(filepath.Join(dir, LockFile)); err == nil {
			instead = "move what is in it to a folder of its own"
		}
		return fmt.Errorf("folder %s has mode %04o, so that others can write to it; run: chmod o-w %q, or %s",
			dir, mode, dir, instead)
	case mode&0o020 != 0 && at != nil && !member(int(at.Gid)):
		return fmt.Errorf("folder %s has mode %04o, so that group %d can write to it, which is none of this process; "+
			"run: chmod g-w %q", dir, mode, at.Gid, dir)
	}
	return nil
}

// modeless reports whether a folder lies on a file system that gives everything one mode, as some of
// networks and of other systems do: what is made for its owner alone is open to all there, too.
func modeless(dir string) bool {
	made, err := os.MkdirTemp(dir, "mode-")
	if err != nil {
		return false
	}
	defer os.Remove(made)
	info, err := os.Stat(made)
	return err == nil && info.Mode().Perm()&0o002 != 0
}

// OwnFile is an error if a file belongs to another user than this process's or root. what names it in the error.
func OwnFile(path, what string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return ownedBy(info, what, path)
}

func ownedBy(info fs.FileInfo, what, path string) error {
	at, ok := info.Sys().(*syscall.Stat_t)
	if me := os.Geteuid(); ok && at.Uid != 0 && int(at.Uid) != me {
		return fmt.Errorf("%s %s belongs to user %d, and this process runs as user %d; run: chown -R %[4]d %[5]q, or "+
			"run it as that user", what, path, at.Uid, me, path)
	}
	return nil
}

func member(group int) bool {
	groups, _ := os.Getgroups() // without them that of the process counts
	return group == os.Getegid() || slices.Contains(groups, group)
}
