//go:build !unix

package replay

import (
	"io"
	"os"
)

// mapFile returns the first n bytes of a file.
func mapFile(f *os.File, n int64) ([]byte, error) {
	b := make([]byte, n)
	_, err := io.ReadFull(io.NewSectionReader(f, 0, n), b)
	return b, err
}
