package replay

import (
	"fmt"
	"os"
	"runtime"
)

// pages are memory for what is kept of every row, in a temporary file without a name: the
// system may drop it from memory and read it again. Where there is no such file, or no room
// in it, they are none.
type pages struct {
	file  *os.File
	size  int64
	maps  *[][]byte // of extents of the file
	free  []byte    // of the last one
	ended bool      // there is no more of them
}

// extentBytes is how much a file of pages grows at once, a multiple of every page.
const extentBytes = 4 << 20

// take returns n bytes, zeroed, at an address that any number may have; nil if there are none.
func (p *pages) take(n int) []byte {
	n = (n + 7) &^ 7
	if n > len(p.free) && (n > extentBytes || p.ended || p.grow() != nil) {
		p.ended = p.ended || n <= extentBytes
		return nil
	}
	b := p.free[:n:n]
	p.free = p.free[n:]
	return b
}

// grow begins another extent. It is written, so that a full disk is an error here and not a
// fault later.
func (p *pages) grow() error {
	if p.file == nil {
		f, err := unnamedFile("hindsight-*.rows")
		if err != nil {
			return err
		}
		p.file, p.maps = f, new([][]byte)
		runtime.AddCleanup(p, func(maps *[][]byte) {
			for _, m := range *maps {
				unmapPages(m)
			}
		}, p.maps)
	}
	if _, err := p.file.WriteAt(make([]byte, extentBytes), p.size); err != nil {
		return err
	}
	m, err := mapPages(p.file, p.size, extentBytes)
	if err != nil {
		return err
	}
	p.drop()
	p.size += extentBytes
	*p.maps, p.free = append(*p.maps, m), m
	return nil
}

// drop lets the system take the memory of all pages, whose content stays. It is safe for
// concurrent use with readers.
func (p *pages) drop() {
	if p == nil || p.maps == nil {
		return
	}
	for _, m := range *p.maps {
		dropPages(m)
	}
}

// unnamedFile makes a temporary file whose name is gone at once: nothing is left of it
// however the process ends.
func unnamedFile(pattern string) (*os.File, error) {
	f, err := os.CreateTemp("", pattern)
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, fmt.Errorf("unnamed temporary file: %w", err)
	}
	return f, nil
}
