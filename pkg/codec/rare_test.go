package codec

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"slices"
	"testing"
)

// rareKinds are the kinds with a checksum.
func rareKinds() []kind {
	return slices.DeleteFunc(kinds(), func(k kind) bool { return !bytes.Contains(k.append(), []byte(crcKey)) })
}

// No bit of a rare record can be flipped unnoticed, not even between two
// spellings of a number.
func TestRareBitFlips(t *testing.T) {
	for _, k := range kinds() {
		b := k.append()
		if !bytes.Contains(b, []byte(crcKey)) && !bytes.Contains(b, []byte(jsonCRC)) {
			continue
		}
		for i := range 8 * len(b) {
			flipped := append([]byte(nil), b...)
			flipped[i/8] ^= 1 << (i % 8)
			if x, err := k.parse(flipped); err == nil {
				t.Errorf("%s: bit %d of byte %d (%#x) went unnoticed: %+v", k.name, i%8, i/8, b[i/8], x)
			}
		}
	}
}

// The checksum is the CRC-32C of what is before its key, and is required.
func TestRareChecksum(t *testing.T) {
	for _, k := range rareKinds() {
		b := k.append()
		body := b[:len(b)-9]
		if got, want := binary.BigEndian.Uint32(b[len(b)-4:]),
			crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)); got != want {
			t.Errorf("%s: checksum %08x, want %08x", k.name, got, want)
		}
		without := append([]byte(nil), body...)
		if without[0] == mpMap16 {
			without[2]--
		} else {
			without[0]--
		}
		if _, err := k.parse(without); !errors.Is(err, errNoCRC) {
			t.Errorf("%s: without a checksum: %v", k.name, err)
		}
	}
}
