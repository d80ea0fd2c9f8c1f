// Package secret reads secrets from files that no other user can use, and takes them out of what others can see.
package secret

import (
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"strings"

	"hindsight/internal/bounded"
)

// othersOrGroupWrite are the modes of a file that others can use.
const othersOrGroupWrite = 0o027

// Read returns the bytes of a secret's file, at most most of them. what names the secret in errors, which never show
// any of it. A file that others can read, or a group can write, is refused.
func Read(path, what string, most int64) ([]byte, error) {
	f, err := bounded.Open(path, bounded.Any)
	if err != nil {
		return nil, fmt.Errorf("read %s file: %w", what, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("read %s file: %w", what, err)
	}
	if !info.Mode().IsRegular() || info.Size() > most {
		return nil, fmt.Errorf("%s file %s: not a file of at most %d bytes", what, path, most)
	}
	if mode := info.Mode().Perm(); exposed(mode) {
		return nil, fmt.Errorf("%s file %s has mode %04o, so that others can use it, and it holds a secret; run: "+
			"chmod 600 %q", what, path, mode, path)
	}
	text := make([]byte, info.Size())
	if _, err := io.ReadFull(f, text); err != nil {
		return nil, fmt.Errorf("%s file %s: %w", what, path, err)
	}
	return text, nil
}

func exposed(mode fs.FileMode) bool { return mode&othersOrGroupWrite != 0 }

// Warn tells of a secret's file that others can use, if path names one, and how to mend
// that. It is for files that other programs make and read as well, keys and credentials:
// they come from tools and mounts that give them such modes, and a system that runs must
// not stop at its next start over that. What is made for us alone, [Read] refuses. logger may be nil.
func Warn(logger *slog.Logger, path, what string) {
	if logger == nil || path == "" {
		return
	}
	info, err := os.Stat(path)
	if err != nil {
		return // its reader reports it
	}
	if mode := info.Mode().Perm(); exposed(mode) {
		logger.Warn("a file with a secret can be used by others", "what", what, "file", path, "mode",
			fmt.Sprintf("%04o", mode), "run", fmt.Sprintf("chmod 600 %q", path))
	}
}

// Line returns the one line of a secret's file, without its end. It must not be empty.
func Line(path, what string, most int64) (string, error) {
	text, err := Read(path, what, most+int64(len("\r\n")))
	if err != nil {
		return "", err
	}
	line := strings.TrimRight(string(text), "\r\n")
	if line == "" {
		return "", fmt.Errorf("%s file %s is empty", what, path)
	}
	return line, nil
}
