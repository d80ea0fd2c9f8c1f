package thrift

import (
	"encoding/binary"
	"errors"
)

// thriftWalk passes over a struct in Thrift's compact protocol and checks that every size in it is that of bytes that
// are there. https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md
type thriftWalk struct {
	b   []byte
	i   int
	bad bool // a size is not there: from then on there are no bytes
}

var errThrift = errors.New("a structure of Parquet that is damaged: it names a size that is not there, or nests " +
	"deeper than Parquet does")

// Types of the compact protocol.
const (
	thriftStop = iota
	thriftTrue
	thriftFalse
	thriftByte
	thriftI16
	thriftI32
	thriftI64
	thriftDouble
	thriftBinary
	thriftList
	thriftSet
	thriftMap
	thriftStruct
)

// checkThrift returns how long the struct is with which b begins.
func checkThrift(b []byte) (int, error) {
	w := thriftWalk{b: b}
	if w.structure(0); w.bad {
		return w.i, errThrift
	}
	return w.i, nil
}

// take takes n bytes.
func (w *thriftWalk) take(n uint64) []byte {
	if w.bad = w.bad || n > uint64(len(w.b)-w.i); w.bad {
		return nil
	}
	w.i += int(n)
	return w.b[w.i-int(n) : w.i]
}

func (w *thriftWalk) byte() byte {
	if b := w.take(1); !w.bad {
		return b[0]
	}
	return 0
}

func (w *thriftWalk) varint() uint64 {
	v, n := binary.Uvarint(w.b[w.i:])
	w.bad = w.bad || n <= 0
	w.take(uint64(n))
	return v
}

func (w *thriftWalk) structure(depth int) {
	for !w.bad {
		head := w.byte()
		t := head & 15
		if t == thriftStop {
			return
		}
		if head>>4 == 0 { // the field's number follows
			w.varint()
		}
		if t != thriftTrue && t != thriftFalse { // whose type is their value
			w.value(t, depth)
		}
	}
}

// value passes a value, in which structs, lists and maps nest to a depth that is bounded.
func (w *thriftWalk) value(t byte, depth int) {
	w.bad = w.bad || depth > 64
	switch t {
	case thriftTrue, thriftFalse, thriftByte:
		w.take(1)
	case thriftI16, thriftI32, thriftI64:
		w.varint()
	case thriftDouble:
		w.take(8)
	case thriftBinary:
		w.take(w.varint())
	case thriftList, thriftSet:
		head := w.byte()
		n := uint64(head >> 4)
		if n == 15 {
			n = w.varint()
		}
		w.values(n, depth, head&15)
	case thriftMap:
		if n := w.varint(); n > 0 {
			types := w.byte()
			w.values(n, depth, types>>4, types&15)
		}
	case thriftStruct:
		w.structure(depth + 1)
	default:
		w.bad = true
	}
}

// values passes n entries of values of these types. Each takes a byte at least.
func (w *thriftWalk) values(n uint64, depth int, types ...byte) {
	for w.bad = w.bad || n > uint64(len(w.b)-w.i); n > 0 && !w.bad; n-- {
		for _, t := range types {
			w.value(t, depth+1)
		}
	}
}
