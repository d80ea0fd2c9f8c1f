package oracle

import (
	"encoding"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"unsafe"
)

// ErrSnapshot reports bytes that are no snapshot of this oracle with these parameters. The oracle is left as it was.
var ErrSnapshot = errors.New("not a snapshot of an oracle with these parameters")

// ErrNewer reports a snapshot that a later program wrote, in a layout that this one does
// not know. Such errors are [ErrSnapshot] too.
var ErrNewer = errors.New("a newer program is needed")

// Coder writes a state as bytes, or reads it back: a function describes a state once, for both. Numbers are little
// endian. After the first fault everything reads as 0, and nothing is allocated for what cannot be there; a fault gets
// its words from the next [Coder.Must].
type Coder struct {
	b       []byte
	reading bool
	bad     bool
	err     error
	of      string // begins errors
	not     error  // what bytes are that cannot be read
}

// NewWriter returns a coder that appends to b.
func NewWriter(b []byte) Coder { return Coder{b: b} }

// NewReader returns a coder that reads b. Its errors begin with of and wrap not.
func NewReader(b []byte, of string, not error) Coder {
	return Coder{b: b, reading: true, of: of, not: not}
}

// Reading reports whether it reads.
func (c *Coder) Reading() bool { return c.reading }

// Bytes returns what was written, or what is left to read.
func (c *Coder) Bytes() []byte { return c.b }

// Must reports whether a state can be what was read so far: there was no fault, and ok. If not, what says why.
func (c *Coder) Must(ok bool, what string) bool {
	if c.reading && c.err == nil && (c.bad || !ok) {
		c.Fail(fmt.Errorf("%s%s: %w", c.of, what, c.not))
	}
	return c.err == nil
}

// Fail ends with an error, unless there was one before.
func (c *Coder) Fail(err error) {
	if c.err == nil {
		c.err = err
	}
	c.fault()
}

func (c *Coder) fault() { c.bad, c.b = true, nil }

// Err returns the first error, which may be that something was left to read.
func (c *Coder) Err() error {
	c.Must(len(c.b) == 0, "wrong length")
	return c.err
}

// Raw are n bytes. What it reads it does not copy; nil after a fault.
func (c *Coder) Raw(b []byte, n int) []byte {
	switch {
	case !c.reading:
		c.b = append(c.b, b...)
		return b
	case n > len(c.b):
		c.fault()
		return nil
	}
	p := c.b[:n]
	c.b = c.b[n:]
	return p
}

// Blob are bytes behind their length, a varint.
func (c *Coder) Blob(b []byte) []byte { return c.Raw(b, c.Count(len(b), 1)) }

// Byte is the next byte.
func (c *Coder) Byte(v *byte) {
	if !c.reading {
		c.b = append(c.b, *v)
	} else if p := c.Raw(nil, 1); len(p) == 1 {
		*v = p[0]
	} else {
		*v = 0
	}
}

// Flag is a byte that is 0 or 1.
func (c *Coder) Flag(v *bool) {
	b := byte(0)
	if *v {
		b = 1
	}
	if c.Byte(&b); b > 1 {
		c.fault()
	}
	if c.reading {
		*v = b == 1
	}
}

// Version begins a state: its layout, of those up to the newest. other says what differs where another is known.
func (c *Coder) Version(layout, newest byte, other string) bool {
	v := layout
	switch c.Byte(&v); {
	case !c.reading:
		return true
	case v > newest:
		c.Fail(fmt.Errorf("%sversion %d, and this one reads versions up to %d: %w: %w", c.of, v, newest,
			ErrNewer, c.not))
	case v < 1:
		return c.Must(false, fmt.Sprintf("there is no version %d", v))
	}
	return c.Must(v == layout, other)
}

// Uint is a number as a varint.
func (c *Coder) Uint(v *uint64) {
	if !c.reading {
		c.b = binary.AppendUvarint(c.b, *v)
		return
	}
	x, n := binary.Uvarint(c.b)
	if n <= 0 {
		c.fault()
		*v = 0
		return
	}
	*v, c.b = x, c.b[n:]
}

// Ints are numbers of at least 0, as varints.
func (c *Coder) Ints(v ...*int64) {
	for _, v := range v {
		x := uint64(*v)
		if c.Uint(&x); x > math.MaxInt64 {
			c.fault()
			x = 0
		}
		if c.reading {
			*v = int64(x)
		}
	}
}

// Count is a number of things, as a varint, that take at least size bytes each.
func (c *Coder) Count(n, size int) int {
	x := uint64(n)
	if c.Uint(&x); c.reading && x > uint64(len(c.b)/size) {
		c.fault()
		return 0
	}
	return int(x)
}

// Words are numbers of at least 0, of 8 bytes.
func (c *Coder) Words(v ...*int64) {
	for _, v := range v {
		if !c.reading {
			c.b = binary.LittleEndian.AppendUint64(c.b, uint64(*v))
		} else if p := c.Raw(nil, 8); p == nil {
			*v = 0
		} else if *v = int64(binary.LittleEndian.Uint64(p)); *v < 0 {
			c.fault()
			*v = 0
		}
	}
}

// Length is [Coder.Count] of 8 bytes.
func (c *Coder) Length(n, size int) int {
	x := int64(n)
	if c.Words(&x); c.reading && x > int64(len(c.b)/size) {
		c.fault()
		return 0
	}
	return int(x)
}

// Bits are floats of any bits.
func (c *Coder) Bits(v []float64) {
	if !c.reading {
		for _, x := range v {
			c.b = binary.LittleEndian.AppendUint64(c.b, math.Float64bits(x))
		}
		return
	}
	p := c.Raw(nil, 8*len(v))
	if p == nil {
		clear(v)
		return
	}
	for i := range v {
		v[i] = math.Float64frombits(binary.LittleEndian.Uint64(p[8*i:]))
	}
}

// Floats are finite floats.
func (c *Coder) Floats(v []float64) { c.FloatsFrom(math.Inf(-1), v) }

// FloatsFrom are finite floats of at least low.
func (c *Coder) FloatsFrom(low float64, v []float64) {
	c.Bits(v)
	if !c.reading {
		return
	}
	for _, x := range v {
		if !(x >= low) || math.IsInf(x, 0) {
			c.fault()
		}
	}
}

// Float is one finite float of at least low.
func (c *Coder) Float(low float64, v ...*float64) {
	for _, v := range v {
		c.FloatsFrom(low, unsafe.Slice(v, 1))
	}
}

// Text is a text, which what is read does not copy.
func (c *Coder) Text(s *string) {
	if p := c.Blob(unsafe.Slice(unsafe.StringData(*s), len(*s))); c.reading {
		*s = unsafe.String(unsafe.SliceData(p), len(p))
	}
}

// String is a text.
func (c *Coder) String(s *string) {
	c.Text(s)
	if c.reading {
		*s = strings.Clone(*s)
	}
}

// Word is a number that [Coder.Same] takes as 8 bytes.
type Word int

// Same are parameters: those that are read must be these. what says what differs if not.
func (c *Coder) Same(what string, parameters ...any) bool {
	for _, v := range parameters {
		same := false
		switch v := v.(type) {
		case bool:
			x := v
			c.Flag(&x)
			same = x == v
		case float64:
			x := [1]float64{v}
			c.Bits(x[:])
			same = x[0] == v
		case int:
			x := int64(v)
			c.Ints(&x)
			same = x == int64(v)
		case uint64:
			x := v
			c.Uint(&x)
			same = x == v
		case Word:
			x := int64(v)
			c.Words(&x)
			same = x == int64(v)
		}
		if !c.Must(same, what) {
			return false
		}
	}
	return true
}

// Part is a state behind its length of 8 bytes. It returns what is read of it.
func (c *Coder) Part(state encoding.BinaryAppender) []byte {
	if c.reading {
		return c.Raw(nil, c.Length(0, 1))
	}
	at := len(c.b)
	b, err := state.AppendBinary(binary.LittleEndian.AppendUint64(c.b, 0))
	if err != nil {
		c.Fail(err)
		return nil
	}
	binary.LittleEndian.PutUint64(b[at:], uint64(len(b)-at-8))
	c.b = b
	return nil
}

// coded is a state that is described by a function of its own.
type coded[T any] interface {
	*T
	code(c *Coder)
}

// appendState appends the bytes of o.
func appendState[T any, P coded[T]](b []byte, o P) ([]byte, error) {
	c := NewWriter(b)
	o.code(&c)
	return c.b, c.err
}

// readState sets o to the state in b, read into a fresh one; if it cannot be read o stays as it was.
func readState[T any, P coded[T]](b []byte, of string, o, fresh P) error {
	c := NewReader(b, of+": ", ErrSnapshot)
	fresh.code(&c)
	if err := c.Err(); err != nil {
		return err
	}
	*o = *fresh
	return nil
}
