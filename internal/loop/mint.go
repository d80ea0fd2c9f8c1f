package loop

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"strings"
)

// A context without an id gets one of the shape that its partition mints. Whoever asks may
// have used that id before: on purpose, or because a decision was lost with the log's tail
// and its client asked again with the id that it was told, in another round. Such a context
// is no repeat of that round, and gets the next id of a sequence that follows from what is
// logged. Nobody can use those up ahead: their ends follow from the secret seed.

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

// MintedBy returns the partition that mints an id for a request, and whether the id has
// the shape of one.
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
