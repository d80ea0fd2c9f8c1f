package thrift

import (
	"encoding/binary"
	"errors"
)

// thriftWalk passes over a struct in Thrift's compact protocol and checks that every size
// in it is that of bytes that are there.
// https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md
type thriftWalk struct {
	b []byte
	i int
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
	err := w.structure(0)
	return w.i, err
}

func (w *thriftWalk) byte() (byte, error) {
	if w.i >= len(w.b) {
		return 0, errThrift
	}
	w.i++
	return w.b[w.i-1], nil
}

func (w *thriftWalk) varint() (uint64, error) {
	v, n := binary.Uvarint(w.b[w.i:])
	if n <= 0 {
		return 0, errThrift
	}
	w.i += n
	return v, nil
}

// pass passes n bytes.
func (w *thriftWalk) pass(n uint64) error {
	if n > uint64(len(w.b)-w.i) {
		return errThrift
	}
	w.i += int(n)
	return nil
}

func (w *thriftWalk) structure(depth int) error {
	for {
		head, err := w.byte()
		if err != nil || head&15 == thriftStop {
			return err
		}
		if head>>4 == 0 { // the field's number follows
			if _, err := w.varint(); err != nil {
				return err
			}
		}
		if t := head & 15; t != thriftTrue && t != thriftFalse { // whose type is their value
			if err := w.value(t, depth); err != nil {
				return err
			}
		}
	}
}

// value passes a value, in which structs, lists and maps nest to a depth that is bounded.
func (w *thriftWalk) value(t byte, depth int) error {
	if depth > 64 {
		return errThrift
	}
	switch t {
	case thriftTrue, thriftFalse, thriftByte:
		return w.pass(1)
	case thriftI16, thriftI32, thriftI64:
		_, err := w.varint()
		return err
	case thriftDouble:
		return w.pass(8)
	case thriftBinary:
		n, err := w.varint()
		if err != nil {
			return err
		}
		return w.pass(n)
	case thriftList, thriftSet:
		head, err := w.byte()
		if err != nil {
			return err
		}
		n := uint64(head >> 4)
		if n == 15 {
			if n, err = w.varint(); err != nil {
				return err
			}
		}
		return w.values(n, depth, head&15)
	case thriftMap:
		n, err := w.varint()
		if err != nil || n == 0 {
			return err
		}
		types, err := w.byte()
		if err != nil {
			return err
		}
		return w.values(n, depth, types>>4, types&15)
	case thriftStruct:
		return w.structure(depth + 1)
	}
	return errThrift
}

// values passes n entries of values of these types. Each takes a byte at least.
func (w *thriftWalk) values(n uint64, depth int, types ...byte) error {
	if n > uint64(len(w.b)-w.i) {
		return errThrift
	}
	for range n {
		for _, t := range types {
			if err := w.value(t, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}
