// Package recent remembers something of the last ids, in bounded memory.
package recent

import "hash/maphash"

// DefaultIDs is the number of ids that a reader remembers: about 25 bytes each.
const DefaultIDs = 1 << 20

// Recent remembers something of each of the last ids, as hashes of 96 bits under a fresh
// seed: two ids among a million are taken for one with a probability of 2^-57. Ids of
// different kinds are different. It is not safe for concurrent use.
type Memory[V any] struct {
	seeds [2]maphash.Seed
	ring  []remembered[V]
	// open addressing with linear probing: a place in the ring, from 1; 0: free. A power of two, at most half full
	index []uint32
	most  int
	old   int // place in the ring that is given up next
	full  bool
}

// remembered is what is known of one id.
type remembered[V any] struct {
	id idHash
	v  V
}

type idHash [3]uint32

// NewRecent returns a memory of at most so many ids; of none or fewer: [DefaultIDs].
func New[V any](most int) *Memory[V] {
	if most <= 0 {
		most = DefaultIDs
	}
	return &Memory[V]{seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}, index: make([]uint32, 16),
		most: most}
}

func (s *Memory[V]) hash(kind byte, id []byte) idHash {
	a, b := maphash.Bytes(s.seeds[0], id)+uint64(kind), maphash.Bytes(s.seeds[1], id)
	return idHash{uint32(a), uint32(a >> 32), uint32(b)}
}

// find returns the slot of the index that has an id, or else the free one for it.
func (s *Memory[V]) find(id idHash) (slot int, ok bool) {
	mask := len(s.index) - 1
	for slot = int(id[0]) & mask; s.index[slot] != 0; slot = (slot + 1) & mask {
		if s.ring[s.index[slot]-1].id == id {
			return slot, true
		}
	}
	return slot, false
}

// Get returns what is remembered of an id.
func (s *Memory[V]) Get(kind byte, id []byte) (v V, ok bool) {
	slot, ok := s.find(s.hash(kind, id))
	if ok {
		v = s.ring[s.index[slot]-1].v
	}
	return v, ok
}

// Put remembers v of an id, and reports whether the id is new.
func (s *Memory[V]) Put(kind byte, id []byte, v V) bool {
	r := remembered[V]{s.hash(kind, id), v}
	if slot, ok := s.find(r.id); ok {
		s.ring[s.index[slot]-1].v = v
		return false
	}
	if len(s.ring) < s.most {
		s.ring = append(s.ring, r)
		s.grow()
		slot, _ := s.find(r.id)
		s.index[slot] = uint32(len(s.ring))
		return true
	}
	s.forget(s.ring[s.old].id)
	s.ring[s.old] = r
	slot, _ := s.find(r.id)
	s.old++
	s.index[slot] = uint32(s.old)
	s.old %= s.most
	s.full = true
	return true
}

// grow keeps the index at most half full; the last of the ring is not in it.
func (s *Memory[V]) grow() {
	if 2*len(s.ring) <= len(s.index) {
		return
	}
	s.index = make([]uint32, 2*len(s.index))
	for i := range s.ring[:len(s.ring)-1] {
		slot, _ := s.find(s.ring[i].id)
		s.index[slot] = uint32(i + 1)
	}
}

// forget takes an id out of the index, and moves those behind it up that it kept away from
// their places (Knuth, volume 3, section 6.4, algorithm R).
func (s *Memory[V]) forget(id idHash) {
	mask := len(s.index) - 1
	free, _ := s.find(id)
	for i := (free + 1) & mask; s.index[i] != 0; i = (i + 1) & mask {
		home := int(s.ring[s.index[i]-1].id[0]) & mask
		if (i-home)&mask >= (i-free)&mask {
			s.index[free] = s.index[i]
			free = i
		}
	}
	s.index[free] = 0
}

// Forgot reports whether ids were forgotten for lack of room.
func (s *Memory[V]) Forgot() bool { return s.full }
