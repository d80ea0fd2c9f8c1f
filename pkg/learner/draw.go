package learner

import (
	"crypto/sha256"
	"encoding/binary"
)

// drawDomain separates the draws from every other use of SHA-256 and the seed.
const drawDomain = "hindsight/draw/1"

// Uniform returns the 53 random bits of a round's draw: the first 8 bytes, big
// endian, of
//
//	SHA-256(domain ‖ seed ‖ name ‖ partition ‖ n ‖ id) >> 11
//
// where every field follows its length and all integers are 8 bytes, big endian.
// It is a function of what is logged and of the seed. The seed must be secret:
// who knows it can choose an id that draws a wanted action.
func Uniform(seed []byte, name string, partition int, n int64, id string) uint64 {
	// Large enough for a seed of 32 bytes beside the longest name and id, so that
	// nothing is allocated.
	var buf [640]byte
	b := appendField(buf[:0], drawDomain)
	b = binary.BigEndian.AppendUint64(b, uint64(len(seed)))
	b = append(b, seed...)
	b = appendField(b, name)
	b = binary.BigEndian.AppendUint64(b, 8)
	b = binary.BigEndian.AppendUint64(b, uint64(partition))
	b = binary.BigEndian.AppendUint64(b, 8)
	b = binary.BigEndian.AppendUint64(b, uint64(n))
	b = appendField(b, id)
	h := sha256.Sum256(b)
	return binary.BigEndian.Uint64(h[:8]) >> 11
}

func appendField(b []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint64(b, uint64(len(s))), s...)
}
