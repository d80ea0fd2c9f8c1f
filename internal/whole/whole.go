// Package whole writes files that are there as a whole or not at all.
package whole

import (
	"errors"
	"io"
	"os"
	"path/filepath"
)

// Write replaces the file at path in one step: a reader, or whoever comes after a crash, finds what
// was there before or all that is written. What is no plain file, such as a pipe, is written in place.
func Write(path string, write func(io.Writer) error) error {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(write(f), f.Close())
	}
	mode := os.FileMode(0o644)
	if err == nil {
		mode = info.Mode().Perm()
	}
	beside := Beside(path)
	_ = os.Remove(beside) // left by a process that crashed
	f, err := os.OpenFile(beside, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	if err := errors.Join(write(f), f.Close()); err != nil {
		return errors.Join(err, os.Remove(beside))
	}
	return os.Rename(beside, path)
}

// Beside returns the file that becomes the one at path, and that is replaced if it is there.
func Beside(path string) string { return path + ".new" }

// WriteText does so with a text.
func WriteText(path, text string) error {
	return Write(path, func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	})
}
