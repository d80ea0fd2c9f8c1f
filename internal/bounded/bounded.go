// Package bounded reads files that a user or a model file names: plain files, which a pipe or a
// device is not, and no more of them than there should be.
package bounded

import (
	"fmt"
	"io"
	"math"
	"os"
)

// Limits of files.
const (
	Named       = 64 << 20 // that a model file names
	Certificate = 1 << 20  // of certificates, keys and credentials
	Any         = math.MaxInt64
)

// Open opens a file of at most most bytes. What is none is told before it is opened, for that
// waits until somebody writes to a pipe.
func Open(path string, most int64) (*os.File, error) {
	switch info, err := os.Stat(path); {
	case err != nil: // as opening it will say
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s: not a plain file: no pipe, device or folder is read here", path)
	case info.Size() > most:
		return nil, tooMuch(path, most)
	}
	return os.Open(path)
}

// Read returns the bytes of a file, at most most of them.
func Read(path string, most int64) ([]byte, error) {
	f, err := Open(path, most)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(b)) > most {
		err = tooMuch(path, most)
	}
	return b, err
}

func tooMuch(path string, most int64) error {
	return fmt.Errorf("%s: more than the %d bytes that are read of such a file", path, most)
}
