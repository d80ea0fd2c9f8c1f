//go:build unix

package replay

import (
	"os"
	"syscall"
)

// mapFile returns the first n bytes of a file, for good: what aliases them is handed out.
func mapFile(f *os.File, n int64) ([]byte, error) {
	return syscall.Mmap(int(f.Fd()), 0, int(n), syscall.PROT_READ, syscall.MAP_SHARED)
}
