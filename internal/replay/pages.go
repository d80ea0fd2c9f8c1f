package replay

import (
	"fmt"
	"os"
	"runtime"
)

// pages keep what is written once and read later in any order in a temporary file without a
// name: the system may drop it from memory and read it again. Where there is no such file, or
// no room in it, they are none.
type pages struct {
	file  *os.File
	size  int64     // of the file, as far as it is mapped
	maps  *[][]byte // of extents of the file
	free  []byte    // of the last one: nothing is written there
	ended bool      // there is no more of them
}

// Extents of a file are multiples of every page. They grow with the file: to drop its memory
// takes a call for each.
const (
	extentBytes = 4 << 20 // of the first
	extentMost  = 64 << 20
)

// put keeps b, of a size that every page is a multiple of or that is a multiple of it, and
// returns where it is, to be read only; nil if there is no place for it.
func (p *pages) put(b []byte) []byte {
	if len(b) > len(p.free) && !p.ended {
		p.ended = p.grow(len(b)) != nil
	}
	if p.ended {
		return nil
	}
	// Written by a call, so that a full disk is an error here and not a fault later.
	if _, err := p.file.WriteAt(b, p.size-int64(len(p.free))); err != nil {
		p.ended = true
		return nil
	}
	kept := p.free[:len(b):len(b)]
	p.free = p.free[len(b):]
	return kept
}

// grow begins another extent, with room for n bytes.
func (p *pages) grow(n int) error {
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
	extent := int64(extentBytes)
	for extent < int64(n) || extent < min(p.size, extentMost) {
		extent *= 2
	}
	m, err := mapPages(p.file, p.size, int(extent))
	if err != nil {
		return err
	}
	p.size += extent
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
