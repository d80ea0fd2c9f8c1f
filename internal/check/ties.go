package check

import (
	"slices"

	"hindsight/pkg/codec"
)

// sortSaid puts the outcomes of a round in the order in which they were judged: of log
// time, in a partition of offsets. Of equal log times in several partitions the order
// was that in which they could be read, and the logs tell it: what was rejected for
// the sake of another came after it. Else lower partitions come first.
func (c *checker) sortSaid(list []*said) {
	slices.SortFunc(list, func(a, b *said) int {
		return compare(a.at, b.at, int64(a.place.partition), int64(b.place.partition), a.place.offset, b.place.offset)
	})
	for i := 0; i < len(list); {
		end := i + 1
		for end < len(list) && list[end].at == list[i].at {
			end++
		}
		c.mergeTie(list[i:end])
		i = end
	}
}

// mergeTie merges the outcomes of one log time, which are sorted by partition and
// offset: of the first of each partition the one of the lowest rank goes first.
func (c *checker) mergeTie(list []*said) {
	for i := range list {
		next := i
		for k := i + 1; k < len(list); k++ {
			first := list[k-1].place.partition != list[k].place.partition
			if first && c.rank(list[k]) < c.rank(list[next]) {
				next = k
			}
		}
		o := list[next]
		copy(list[i+1:next+1], list[i:next])
		list[i] = o
	}
}

// rank is 0 for what was rejected for its own sake while the round waited, 1 for what
// was not rejected, 2 for what was rejected for the sake of another.
func (c *checker) rank(o *said) int {
	switch r := c.refused[o.place]; {
	case r == nil:
		return 1
	case r.Reason == codec.ReasonMalformed || r.Reason == codec.ReasonMismatch:
		return 0
	}
	return 2
}
