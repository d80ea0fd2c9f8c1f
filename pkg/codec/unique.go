package codec

import (
	"hash/maphash"
	"math/bits"
	"slices"
)

const (
	fewNames   = 64   // up to so many, a filter and a search are fastest
	stackSlots = 1024 // of the table on the stack, which serves half as many names
)

// Repeated returns the index of the first of n names that occurred before it, or
// -1. It takes time in proportion to n, whatever the names: the seed of the hash
// is fresh, and the result does not depend on it. It allocates only for more than
// stackSlots/2 names.
func Repeated(n int, name func(i int) string) int { return repeated(n, name, new([]int32)) }

// repeated is Repeated that keeps a large table for the next time.
func repeated(n int, name func(i int) string, kept *[]int32) int {
	if n <= fewNames {
		return duplicateOfFew(n, name)
	}
	var room [stackSlots]int32
	table := room[:]
	if 2*n > stackSlots {
		size := 1 << bits.Len(uint(2*n-1))
		*kept = slices.Grow((*kept)[:0], size)[:size]
		table = *kept
		clear(table)
	}
	// A slot has the index of a name, plus 1, and in the bits above it some of the hash, so that names that only share
	// the slot are mostly not compared.
	mask := uint64(len(table) - 1)
	seed := maphash.MakeSeed()
	for i := range n {
		s := name(i)
		h := maphash.String(seed, s)
		slot, tag := h&mask, uint32(h>>32)&^uint32(mask)
		for ; table[slot] != 0; slot = (slot + 1) & mask {
			if x := uint32(table[slot]); x&^uint32(mask) == tag && name(int(x&uint32(mask))-1) == s {
				return i
			}
		}
		table[slot] = int32(tag | uint32(i+1))
	}
	return -1
}

// duplicateOfFew searches only for names whose sketch occurred before.
func duplicateOfFew(n int, name func(i int) string) int {
	var seen [4]uint64
	for i := range n {
		s := name(i)
		h := sketch(s)
		if seen[h>>6]&(1<<(h&63)) != 0 {
			for j := range i {
				if name(j) == s {
					return i
				}
			}
		}
		seen[h>>6] |= 1 << (h & 63)
	}
	return -1
}

// sketch is a hash of the length and the last 8 bytes.
func sketch(s string) uint8 {
	var x uint64
	if n := len(s); n >= 8 {
		x = word(s, n-8)
	} else {
		for i := range n {
			x = x<<8 | uint64(s[i])
		}
	}
	return uint8((x ^ uint64(len(s))) * 0x9e3779b97f4a7c15 >> 56)
}
