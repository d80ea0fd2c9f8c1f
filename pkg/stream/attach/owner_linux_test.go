package attach

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"
)

// TestOwn holds whose folders are served, and that the error names what mends it. The users
// are those of containers: the folder is root's and of a group of the process, or its own.
func TestOwn(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can be somebody else")
	}
	const user, group, volume, stranger = 65532, 65532, 2000, 1001
	dir := t.TempDir()
	for _, above := range []string{filepath.Dir(dir), dir} {
		if err := os.Chmod(above, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name     string
		uid, gid int
		mode     os.FileMode
		says     string // "": nothing
	}{
		{"of its own", user, group, 0o700, ""},
		{"of its own, of an image", user, group, 0o755, ""},
		{"of root, with a group of the volume", 0, volume, 0o775 | os.ModeSetgid, ""},
		{"of root, with the group of the process", 0, group, 0o770, ""},
		{"of its own, with another group", user, stranger, 0o770, "run: chmod g-w "},
		{"of root, with root's group", 0, 0, 0o775, "run: chmod g-w "},
		{"of a stranger", stranger, group, 0o770, "belongs to user 1001, and this process runs as user 65532; " +
			"run: chown -R 65532 "},
		{"for everybody", user, group, 0o777, "run: chmod o-w "},
		{"for everybody, sticky", 0, 0, 0o777 | os.ModeSticky, "run: chmod o-w "},
	} {
		path := filepath.Join(dir, c.name)
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(path, c.uid, c.gid); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, c.mode); err != nil {
			t.Fatal(err)
		}
		err := as(t, user, group, volume, func() error { return Own(path) })
		switch {
		case c.says == "" && err != nil, c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says) ||
			!strings.Contains(err.Error(), path)):
			t.Errorf("a folder %s: %v; want %q", c.name, err, c.says)
		}
		if _, err := Lock(path); c.uid == stranger && (err == nil || !strings.Contains(err.Error(), "run: "+
			"chown -R 0 ")) {
			t.Errorf("root locks the folder of user %d: %v", c.uid, err)
		}
	}
}

// as runs f in a thread with another user and other groups, which then ends.
func as(t *testing.T, uid, gid, other int, f func() error) error {
	t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		groups := [1]uint32{uint32(other)}
		for _, call := range [][4]uintptr{
			{syscall.SYS_SETGROUPS, 1, uintptr(unsafe.Pointer(&groups))},
			{syscall.SYS_SETRESGID, uintptr(gid), uintptr(gid), uintptr(gid)},
			{syscall.SYS_SETRESUID, uintptr(uid), uintptr(uid), uintptr(uid)},
		} {
			if _, _, e := syscall.RawSyscall(call[0], call[1], call[2], call[3]); e != 0 {
				done <- e
				return
			}
		}
		done <- f()
	}()
	return <-done
}
