package codec

import (
	"encoding/binary"
	"math"
)

// First bytes of MessagePack values that hold no length of their own.
// https://github.com/msgpack/msgpack/blob/master/spec.md
const (
	mpNil     = 0xc0
	mpFalse   = 0xc2
	mpTrue    = 0xc3
	mpBin8    = 0xc4
	mpBin16   = 0xc5
	mpBin32   = 0xc6
	mpExt8    = 0xc7
	mpExt32   = 0xc9
	mpFloat32 = 0xca
	mpFloat64 = 0xcb
	mpUint8   = 0xcc
	mpUint16  = 0xcd
	mpUint32  = 0xce
	mpUint64  = 0xcf
	mpInt8    = 0xd0
	mpInt16   = 0xd1
	mpInt32   = 0xd2
	mpInt64   = 0xd3
	mpFixExt1 = 0xd4
	mpFixExt8 = 0xd8 // of 16 bytes, the last of the fixed extensions
	mpStr8    = 0xd9
	mpStr16   = 0xda
	mpStr32   = 0xdb
	mpList16  = 0xdc
	mpList32  = 0xdd
	mpMap16   = 0xde
	mpMap32   = 0xdf
)

// packTokens is what each first byte starts.
var packTokens = func() (table [256]token) {
	for c := range table {
		table[c] = packToken(byte(c))
	}
	return table
}()

func packToken(c byte) token {
	switch {
	case c < 0x80 || c >= 0xe0:
		return tokNum
	case c < 0x90:
		return tokMap
	case c < 0xa0:
		return tokList
	case c < 0xc0:
		return tokText
	}
	switch {
	case c == mpNil:
		return tokNull
	case c == mpFalse || c == mpTrue:
		return tokBool
	case c >= mpBin8 && c <= mpBin32:
		return tokBytes
	case c >= mpExt8 && c <= mpExt32, c >= mpFixExt1 && c <= mpFixExt8:
		return tokExt
	case c >= mpFloat32 && c <= mpInt64:
		return tokNum
	case c >= mpStr8 && c <= mpStr32:
		return tokText
	case c == mpList16 || c == mpList32:
		return tokList
	case c == mpMap16 || c == mpMap32:
		return tokMap
	}
	return tokNone // 0xc1 is never used
}

// uint reads the width bytes behind the first byte of a value, big endian, and moves past them.
func (r *reader) uint(width int) uint64 {
	if len(r.b)-r.i-1 < width {
		r.fail(errTruncated)
		return 0
	}
	p := r.b[r.i+1:]
	r.i += 1 + width
	switch width {
	case 1:
		return uint64(p[0])
	case 2:
		return uint64(binary.BigEndian.Uint16(p))
	case 4:
		return uint64(binary.BigEndian.Uint32(p))
	}
	return binary.BigEndian.Uint64(p)
}

// take returns the next n bytes and moves past them.
func (r *reader) take(n uint64) []byte {
	if n > uint64(len(r.b)-r.i) {
		r.fail(errTruncated)
		return nil
	}
	p := r.b[r.i : r.i+int(n) : r.i+int(n)]
	r.i += int(n)
	return p
}

// packBytes reads a str or a bin.
func (r *reader) packBytes(otherwise error) []byte {
	if r.i >= len(r.b) {
		r.fail(errTruncated)
		return nil
	}
	c := r.b[r.i]
	if c&0xe0 == 0xa0 {
		r.i++
		return r.take(uint64(c & 31))
	}
	switch c {
	case mpStr8, mpBin8:
		return r.take(r.uint(1))
	case mpStr16, mpBin16:
		return r.take(r.uint(2))
	case mpStr32, mpBin32:
		return r.take(r.uint(4))
	}
	r.fail(otherwise)
	return nil
}

// packCount reads the head of a map or list. A count that the bytes left cannot
// hold fails at once, so that nobody allocates for it.
func (r *reader) packCount() int {
	c := r.b[r.i]
	var n uint64
	least := uint64(1) // bytes of an entry
	switch {
	case c < 0x90:
		r.i++
		n, least = uint64(c&15), 2
	case c < 0xa0:
		r.i++
		n = uint64(c & 15)
	case c == mpList16:
		n = r.uint(2)
	case c == mpList32:
		n = r.uint(4)
	case c == mpMap16:
		n, least = r.uint(2), 2
	default:
		n, least = r.uint(4), 2
	}
	if n > uint64(len(r.b)-r.i)/least {
		r.fail(errTruncated)
		return 0
	}
	return int(n)
}

// packInt reads an integer of any width, or a float that is one.
func (r *reader) packInt() int64 {
	if r.i >= len(r.b) {
		r.fail(errTruncated)
		return 0
	}
	c := r.b[r.i]
	if c < 0x80 || c >= 0xe0 {
		r.i++
		return int64(int8(c))
	}
	switch c {
	case mpUint8:
		return int64(r.uint(1))
	case mpUint16:
		return int64(r.uint(2))
	case mpUint32:
		return int64(r.uint(4))
	case mpUint64:
		at := r.i
		u := r.uint(8)
		if u > math.MaxInt64 {
			r.i = at
			r.fail(errWantInt)
			return 0
		}
		return int64(u)
	case mpInt8:
		return int64(int8(r.uint(1)))
	case mpInt16:
		return int64(int16(r.uint(2)))
	case mpInt32:
		return int64(int32(r.uint(4)))
	case mpInt64:
		return int64(r.uint(8))
	case mpFloat32, mpFloat64:
		return r.whole(r.packFloat())
	}
	r.fail(errWantInt)
	return 0
}

// packFloat reads a float, or an integer, rounded to the nearest float64.
func (r *reader) packFloat() float64 {
	if r.i >= len(r.b) {
		r.fail(errTruncated)
		return 0
	}
	switch c := r.b[r.i]; c {
	case mpFloat64:
		return math.Float64frombits(r.uint(8))
	case mpFloat32:
		return float64(math.Float32frombits(uint32(r.uint(4))))
	case mpUint64:
		return float64(r.uint(8))
	default:
		if packTokens[c] != tokNum {
			r.fail(errWantNum)
			return 0
		}
	}
	return float64(r.packInt())
}

// packExt skips an extension: a type byte and its data.
func (r *reader) packExt() {
	c := r.b[r.i]
	var n uint64
	if c >= mpFixExt1 {
		r.i++
		n = 1 << (c - mpFixExt1)
	} else {
		n = r.uint(1 << (c - mpExt8))
	}
	r.take(n + 1)
}
