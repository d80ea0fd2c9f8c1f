package logs

import "hash/maphash"

// DefaultDedup is the number of ids that a reader remembers: about 40 bytes each.
const DefaultDedup = 1 << 20

// seen remembers the last ids, as hashes of 128 bits under a fresh seed: two ids among
// a million are taken for one with a probability of 2^-88.
type seen struct {
	seeds [2]maphash.Seed
	at    map[[2]uint64]struct{}
	ring  [][2]uint64
	most  int
	old   int
	full  bool // some were forgotten
}

func newSeen(most int) *seen {
	if most <= 0 {
		most = DefaultDedup
	}
	return &seen{seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}, at: map[[2]uint64]struct{}{}, most: most}
}

// add reports whether an id is new, and remembers it. kind tells ids of different
// things apart.
func (s *seen) add(kind byte, id []byte) bool {
	k := [2]uint64{maphash.Bytes(s.seeds[0], id) + uint64(kind), maphash.Bytes(s.seeds[1], id)}
	if _, ok := s.at[k]; ok {
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
	s.at[k] = struct{}{}
	return true
}
