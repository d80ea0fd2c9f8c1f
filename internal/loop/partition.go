package loop

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"strings"
)

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

// PartitionOf returns the partition of a key among p partitions: positive murmur2 modulo p, as Java clients have it.
func PartitionOf(key []byte, p int) int { return int(murmur2(key)&0x7fffffff) % p }

// A context without an id gets one of the shape that its partition mints. Whoever asks may have used that id before: on
// purpose, or because a decision was lost with the log's tail and its client asked again with the id that it was told,
// in another round. Such a context is no repeat of that round, and gets the next id of a sequence that follows from
// what is logged. Nobody can use those up ahead: their ends follow from the secret seed.

// Mints is how many ids are tried for a context without one. To find all of them taken
// takes as many rounds of one number that were lost, each after its id was told.
const Mints = 8

// mintDomain separates the ends of ids from every other use of SHA-256 and the seed.
const mintDomain = "hindsight/id/1"

// AppendMinted appends the id that is tried for a context without one: for try 0
// "<partition>-<offset>", or "r-<partition>-<n>" if the offset is [RequestSource]; for the
// others, 1 … Mints−1, that with "-" and 16 hexadecimal digits, the first 8 bytes of
//
//	SHA-256(domain ‖ seed ‖ name ‖ id of try 0 ‖ try)
//
// where every field follows its length as an unsigned varint (LEB128), and try is 8 bytes,
// big endian; the domain is "hindsight/id/1".
func AppendMinted(dst, seed []byte, name string, partition int, n, offset int64, try int) []byte {
	plain := len(dst)
	if offset == RequestSource {
		dst, offset = append(dst, "r-"...), n
	}
	dst = strconv.AppendInt(dst, int64(partition), 10)
	dst = strconv.AppendInt(append(dst, '-'), offset, 10)
	if try == 0 {
		return dst
	}
	var b []byte
	for _, f := range [][]byte{[]byte(mintDomain), seed, []byte(name), dst[plain:],
		binary.BigEndian.AppendUint64(nil, uint64(try))} {
		b = append(binary.AppendUvarint(b, uint64(len(f))), f...)
	}
	h := sha256.Sum256(b)
	return hex.AppendEncode(append(dst, '-'), h[:8])
}

// MintedBy returns the partition that mints an id for a request, and whether the id has the shape of one.
func MintedBy(id string) (partition int, ok bool) {
	rest, ok := strings.CutPrefix(id, "r-")
	if !ok {
		return 0, false
	}
	p, rest, _ := strings.Cut(rest, "-")
	n, end, anew := strings.Cut(rest, "-")
	partition, err := strconv.Atoi(p)
	if err != nil || partition < 0 || strconv.Itoa(partition) != p {
		return 0, false
	}
	if _, err := strconv.ParseUint(n, 10, 63); err != nil || n[0] == '0' {
		return 0, false
	}
	_, err = hex.DecodeString(end)
	return partition, !anew || len(end) == 16 && err == nil
}
