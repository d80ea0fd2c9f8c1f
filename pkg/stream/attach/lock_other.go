//go:build !unix

package attach

import (
	"errors"
	"os"
)

var (
	errHeld   = errors.New("held")
	errNoLock = errors.New("file locks are not supported on this system; use a NATS server instead")
)

const itself = 0

func lockFile(*os.File) error { return errNoLock }

func shareFile(*os.File) error { return errNoLock }

func isLocked(*os.File) (bool, error) { return false, errNoLock }
