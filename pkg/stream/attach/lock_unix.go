//go:build unix

package attach

import (
	"errors"
	"os"
	"syscall"
	"time"
)

// itself opens a file and nothing that a link or a pipe of its name leads to.
const itself = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

var errHeld = errors.New("held")

// lockFile takes an exclusive lock. It tries for a fifth of a second, since isLocked holds
// a shared one for an instant, or longer if its process has to wait for a processor.
func lockFile(f *os.File) error {
	for try := 0; ; try++ {
		err := flock(f, syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, errHeld) || try == 40 {
			return err
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// shareFile takes a lock that others may share, but no exclusive one.
func shareFile(f *os.File) error { return flock(f, syscall.LOCK_SH|syscall.LOCK_NB) }

func isLocked(f *os.File) (bool, error) {
	err := flock(f, syscall.LOCK_SH|syscall.LOCK_NB)
	if errors.Is(err, errHeld) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return false, flock(f, syscall.LOCK_UN)
}

func flock(f *os.File, how int) error {
	for {
		switch err := syscall.Flock(int(f.Fd()), how); {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EWOULDBLOCK):
			return errHeld
		default:
			return err
		}
	}
}
