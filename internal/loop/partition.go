package loop

import "encoding/binary"

// murmur2 is the partition hash of the Java client's default partitioner, for
// which keys of equal bytes land in the same partition everywhere.
func murmur2(key []byte) uint32 {
	const m, r = 0x5bd1e995, 24
	h := uint32(0x9747b28c) ^ uint32(len(key))
	for ; len(key) >= 4; key = key[4:] {
		k := binary.LittleEndian.Uint32(key) * m
		k ^= k >> r
		h = h*m ^ k*m
	}
	switch len(key) {
	case 3:
		h ^= uint32(key[2]) << 16
		fallthrough
	case 2:
		h ^= uint32(key[1]) << 8
		fallthrough
	case 1:
		h ^= uint32(key[0])
		h *= m
	}
	h ^= h >> 13
	h *= m
	return h ^ h>>15
}

// PartitionOf returns the partition of a key among p partitions: positive murmur2
// modulo p, as Java clients have it.
func PartitionOf(key []byte, p int) int { return int(murmur2(key)&0x7fffffff) % p }
