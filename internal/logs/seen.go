package logs

import "hash/maphash"

// DefaultDedup is the number of ids that a reader remembers: about 40 bytes each.
const DefaultDedup = 1 << 20

// Recent remembers something of each of the last ids, as hashes of 128 bits under a fresh
// seed: two ids among a million are taken for one with a probability of 2^-88. Ids of
// different kinds are different. It is not safe for concurrent use.
type Recent[V any] struct {
	seeds [2]maphash.Seed
	at    map[[2]uint64]V
	ring  [][2]uint64
	most  int
	old   int
	full  bool
}

// NewRecent returns a memory of at most so many ids; of none or fewer: [DefaultDedup].
func NewRecent[V any](most int) *Recent[V] {
	if most <= 0 {
		most = DefaultDedup
	}
	return &Recent[V]{seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}, at: map[[2]uint64]V{}, most: most}
}

func (s *Recent[V]) key(kind byte, id []byte) [2]uint64 {
	return [2]uint64{maphash.Bytes(s.seeds[0], id) + uint64(kind), maphash.Bytes(s.seeds[1], id)}
}

// Get returns what is remembered of an id.
func (s *Recent[V]) Get(kind byte, id []byte) (v V, ok bool) {
	v, ok = s.at[s.key(kind, id)]
	return v, ok
}

// Put remembers v of an id, and reports whether the id is new.
func (s *Recent[V]) Put(kind byte, id []byte, v V) bool {
	k := s.key(kind, id)
	if _, ok := s.at[k]; ok {
		s.at[k] = v
		return false
	}
	if len(s.ring) < s.most {
		s.ring = append(s.ring, k)
	} else {
		delete(s.at, s.ring[s.old])
		s.ring[s.old] = k
		s.old = (s.old + 1) % s.most
		s.full = true
	}
	s.at[k] = v
	return true
}

// Forgot reports whether ids were forgotten for lack of room.
func (s *Recent[V]) Forgot() bool { return s.full }
