package kafka

import (
	"encoding/binary"
	"errors"
)

// errShort reports a response that ends too early.
var errShort = errors.New("the broker's response is cut short")

// fields reads the big-endian fields of a message; after the first that is not there all are zero and bad is set.
type fields struct {
	b   []byte
	bad bool
}

func (f *fields) take(n int) []byte {
	if n < 0 || n > len(f.b) {
		f.b, f.bad = nil, true
		return nil
	}
	b := f.b[:n]
	f.b = f.b[n:]
	return b
}

func (f *fields) int16() int16 { return int16(f.number(2)) }
func (f *fields) int32() int32 { return int32(f.number(4)) }
func (f *fields) int64() int64 { return int64(f.number(8)) }

// number reads one of so many bytes.
func (f *fields) number(bytes int) (v uint64) {
	for _, b := range f.take(bytes) {
		v = v<<8 | uint64(b)
	}
	return v
}

// stringBytes reads a string that may be null, which reads as empty.
func (f *fields) stringBytes() []byte { return f.take(int(max(0, f.int16()))) }

// bytes reads a field of bytes that may be null, which reads as empty.
func (f *fields) bytes() []byte { return f.take(int(max(0, f.int32()))) }

// varint reads a zigzag number of at most 64 bits.
func (f *fields) varint() int64 {
	v, n := binary.Varint(f.b)
	if n <= 0 {
		f.b, f.bad = nil, true
		return 0
	}
	f.b = f.b[n:]
	return v
}

// uvarint reads a number of at most 31 bits.
func (f *fields) uvarint() uint64 {
	v, n := binary.Uvarint(f.b)
	if n <= 0 || v > 1<<31-1 {
		f.b, f.bad = nil, true
		return 0
	}
	f.b = f.b[n:]
	return v
}

// varbytes reads bytes with a varint for their length; −1 is nil, 0 is not.
func (f *fields) varbytes() []byte {
	n := f.varint()
	if n == -1 {
		return nil
	}
	b := f.take(int(n))
	return b[:len(b):len(b)]
}

func appendInt16(b []byte, v int16) []byte { return binary.BigEndian.AppendUint16(b, uint16(v)) }
func appendInt32(b []byte, v int32) []byte { return binary.BigEndian.AppendUint32(b, uint32(v)) }
func appendInt64(b []byte, v int64) []byte { return binary.BigEndian.AppendUint64(b, uint64(v)) }

func appendString(b []byte, s string) []byte {
	return append(appendInt16(b, int16(len(s))), s...)
}
