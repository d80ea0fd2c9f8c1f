package spill

import (
	"os"
	"syscall"
)

// mapPages maps n bytes of a file at an offset, to be read and written.
func mapPages(f *os.File, at int64, n int) ([]byte, error) {
	return syscall.Mmap(int(f.Fd()), at, n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
}

func unmapPages(m []byte) { _ = syscall.Munmap(m) }

// dropPages takes pages of a file out of the memory of the process; they are the file's.
func dropPages(m []byte) { _ = syscall.Madvise(m, syscall.MADV_DONTNEED) }
