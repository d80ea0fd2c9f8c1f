package codec

import (
	"hash/maphash"
	"math/bits"
)

const (
	fewNames   = 12   // up to so many, comparing all pairs is fastest
	stackSlots = 1024 // of the table on the stack, which serves half as many names
)

// duplicate returns the index of the first of n names that occurred before it, or
// -1. It takes time in proportion to n, whatever the names: the seed of the hash
// is fresh, and the result does not depend on it. It allocates only for more than
// stackSlots/2 names.
func duplicate(n int, name func(i int) string) int {
	if n <= fewNames {
		for i := 1; i < n; i++ {
			s := name(i)
			for j := range i {
				if name(j) == s {
					return i
				}
			}
		}
		return -1
	}
	var room [stackSlots]int32
	table := room[:]
	if 2*n > stackSlots {
		table = make([]int32, 1<<bits.Len(uint(2*n-1)))
	}
	mask := uint64(len(table) - 1)
	seed := maphash.MakeSeed()
	for i := range n {
		s := name(i)
		slot := maphash.String(seed, s) & mask
		for ; table[slot] != 0; slot = (slot + 1) & mask {
			if name(int(table[slot]-1)) == s {
				return i
			}
		}
		table[slot] = int32(i + 1)
	}
	return -1
}

func duplicateText(names []string) int {
	return duplicate(len(names), func(i int) string { return names[i] })
}

func duplicateFeature(features []Feature) int {
	return duplicate(len(features), func(i int) string { return features[i].Name })
}

func duplicateAction(actions []Action) int {
	return duplicate(len(actions), func(i int) string { return actions[i].Name })
}
