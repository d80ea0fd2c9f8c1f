package learner

import (
	"crypto/sha256"
	"encoding/binary"
)

// drawDomain separates the draws from every other use of SHA-256 and the seed.
const drawDomain = "hindsight/draw/1"

// Uniform returns the 53 random bits of a round's draw: the first 8 bytes, big endian, of
//
//	SHA-256(domain ‖ seed ‖ name ‖ partition ‖ n ‖ id) >> 11
//
// where every field follows its length as an unsigned varint (LEB128), and partition and n are 8 bytes, big endian; the
// domain is "hindsight/draw/1". It is a function of what is logged and of the seed. The seed must be secret: who knows
// it can choose an id that draws a wanted action.
func Uniform(seed []byte, name string, partition int, n int64, id string) uint64 {
	// Large enough for a seed of 32 bytes beside the longest name and id, so that
	// nothing is allocated. With a UUID as id it is two blocks of SHA-256.
	var buf [640]byte
	b := appendField(buf[:0], drawDomain)
	b = binary.AppendUvarint(b, uint64(len(seed)))
	b = append(b, seed...)
	b = appendField(b, name)
	b = binary.BigEndian.AppendUint64(append(b, 8), uint64(partition))
	b = binary.BigEndian.AppendUint64(append(b, 8), uint64(n))
	b = appendField(b, id)
	h := sha256.Sum256(b)
	return binary.BigEndian.Uint64(h[:8]) >> 11
}

func appendField(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}
