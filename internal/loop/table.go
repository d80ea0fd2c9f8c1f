package loop

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"unsafe"
)

// table maps round ids to values of type V. It keeps its own copy of each id and reuses the memory of deleted entries,
// so that at a steady size putting and deleting do not allocate. Slots are stable: a slot number means the same entry
// until it is deleted.
type table[V any] struct {
	seed  uint64
	slots []slot[V]
	free  []int32
	index []int32 // open addressing, linear probing; 0: empty, else slot+1
	live  int
	room  []byte // for ids of new slots
}

type slot[V any] struct {
	hash uint64
	id   []byte
	v    V
}

// newTable returns an empty table. Its hash is keyed by seed: a client that does
// not know it cannot choose ids that collide.
func newTable[V any](seed uint64) *table[V] {
	return &table[V]{seed: seed, index: make([]int32, 64)}
}

// TableSeed returns the seed of the hashes of ids in a system with a secret seed. If that is
// empty, a client that knows this can choose ids that collide.
func TableSeed(secret []byte) uint64 { return hashBytes(0, secret) }

func (t *table[V]) find(hash uint64, id string) (at int, slot int32) {
	mask := len(t.index) - 1
	for at = int(hash) & mask; ; at = (at + 1) & mask {
		s := t.index[at] - 1
		if s < 0 || (t.slots[s].hash == hash && string(t.slots[s].id) == id) {
			return at, s
		}
	}
}

// get returns the slot of id, or -1.
func (t *table[V]) get(id string) int32 {
	_, s := t.find(hashString(t.seed, id), id)
	return s
}

// value returns the value in a live slot. The pointer is valid until the next put.
func (t *table[V]) value(slot int32) *V { return &t.slots[slot].v }

// put adds an id that is not in the table and returns its slot.
func (t *table[V]) put(id string, v V) int32 {
	s, _ := t.add(id, v)
	return s
}

// add adds an id and returns its slot. One that is there already keeps its value.
func (t *table[V]) add(id string, v V) (at int32, there bool) {
	if 2*(t.live+1) > len(t.index) {
		t.resize(2 * len(t.index))
	}
	hash := hashString(t.seed, id)
	place, s := t.find(hash, id)
	if s >= 0 {
		return s, true
	}
	if n := len(t.free); n > 0 {
		s, t.free = t.free[n-1], t.free[:n-1]
	} else {
		s = int32(len(t.slots))
		t.slots = append(t.slots, slot[V]{id: t.carve(len(id))})
	}
	e := &t.slots[s]
	e.hash, e.id, e.v = hash, append(e.id[:0], id...), v
	t.index[place] = s + 1
	t.live++
	return s, false
}

// del removes the entry of a live slot.
func (t *table[V]) del(s int32) {
	mask := len(t.index) - 1
	at := int(t.slots[s].hash) & mask
	for t.index[at] != s+1 {
		at = (at + 1) & mask
	}
	t.shiftBack(at, mask)
	var zero V
	t.slots[s].v = zero
	t.free = append(t.free, s)
	t.live--
}

// shiftBack closes the hole at an index position, so that no probe sequence that led over it breaks.
func (t *table[V]) shiftBack(hole, mask int) {
	for at := (hole + 1) & mask; t.index[at] != 0; at = (at + 1) & mask {
		home := int(t.slots[t.index[at]-1].hash) & mask
		if (at-home)&mask >= (at-hole)&mask {
			t.index[hole] = t.index[at]
			hole = at
		}
	}
	t.index[hole] = 0
}

// idChunk is how much room is made at once for the ids of new slots.
const idChunk = 4096

// carve returns room for an id of a new slot, which saves an allocation for each where a table is filled.
func (t *table[V]) carve(n int) []byte {
	n = max(16, (n+7)&^7)
	if n > idChunk/16 {
		return make([]byte, 0, n)
	}
	if n > len(t.room) {
		t.room = make([]byte, idChunk)
	}
	b := t.room[0:0:n]
	t.room = t.room[n:]
	return b
}

// reserve makes room for so many entries in all.
func (t *table[V]) reserve(n int) {
	t.slots = slices.Grow(t.slots, max(0, n-len(t.slots)))
	size := len(t.index)
	for size < 2*(n+1) {
		size *= 2
	}
	if size > len(t.index) {
		t.resize(size)
	}
}

// resize makes an index of a size, a power of two above that of now.
func (t *table[V]) resize(size int) {
	old := t.index
	t.index = make([]int32, size)
	mask := len(t.index) - 1
	for _, s := range old {
		if s == 0 {
			continue
		}
		at := int(t.slots[s-1].hash) & mask
		for t.index[at] != 0 {
			at = (at + 1) & mask
		}
		t.index[at] = s
	}
}

func hashString(seed uint64, s string) uint64 {
	return hashBytes(seed, unsafe.Slice(unsafe.StringData(s), len(s)))
}

func hashBytes(seed uint64, b []byte) uint64 {
	h := seed ^ uint64(len(b))*0x9e3779b97f4a7c15
	for ; len(b) >= 8; b = b[8:] {
		h = mix(h ^ binary.LittleEndian.Uint64(b))
	}
	var w uint64
	for i, c := range b {
		w |= uint64(c) << (8 * i)
	}
	return mix(mix(h ^ w))
}

// hashContent hashes the bytes of a record, two words at a time by one product of 128 bits, whose factors nobody knows
// who does not know the seed; two sums do not wait for each other. It is kept nowhere.
func hashContent(seed uint64, b []byte) uint64 {
	seed ^= uint64(len(b)) * 0x9e3779b97f4a7c15
	h0, h1, k0, k1 := mix(seed), mix(seed+1), mix(seed+2), mix(seed+3)
	for ; len(b) >= 32; b = b[32:] {
		w := b[:32]
		h0 = fold(h0^binary.LittleEndian.Uint64(w), k0^binary.LittleEndian.Uint64(w[8:]))
		h1 = fold(h1^binary.LittleEndian.Uint64(w[16:]), k1^binary.LittleEndian.Uint64(w[24:]))
	}
	return hashBytes(mix(h0^mix(h1)), b)
}

func fold(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

func mix(h uint64) uint64 {
	h *= 0xd6e8feb86659fd93
	h ^= h >> 32
	h *= 0xd6e8feb86659fd93
	return h ^ h>>29
}

// ring is a queue that reuses its memory.
type ring[T any] struct {
	buf  []T
	head int
	n    int
}

func (r *ring[T]) len() int { return r.n }

// at returns the i-th element from the front.
func (r *ring[T]) at(i int) *T { return &r.buf[(r.head+i)&(len(r.buf)-1)] }

func (r *ring[T]) push(v T) {
	if r.n == len(r.buf) {
		r.grow()
	}
	*r.at(r.n) = v
	r.n++
}

func (r *ring[T]) pop() T {
	p := r.at(0)
	v := *p
	var zero T
	*p = zero
	r.head = (r.head + 1) & (len(r.buf) - 1)
	r.n--
	return v
}

func (r *ring[T]) grow() {
	buf := make([]T, max(16, 2*len(r.buf)))
	for i := range r.n {
		buf[i] = *r.at(i)
	}
	r.buf, r.head = buf, 0
}
