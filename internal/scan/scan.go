// Package scan reads text: JSON, lines, CSV, times; and says where a file is wrong.
package scan

import (
	"encoding/binary"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"unsafe"

	"hindsight/pkg/codec"
)

// MaxDepth bounds how deep JSON may be nested.
const MaxDepth = 64

// JSON reads JSON. Its strings alias the bytes, or where they hold escapes the arena.
// After the first error, which fail notes with its place, it reads nothing more.
type JSON struct {
	b     []byte
	i     int
	Msg   string // of the first error; "" none
	At    int
	arena []byte
}

func (s *JSON) Reset(b []byte) {
	s.b, s.i, s.Msg, s.At = b, 0, "", 0
	s.arena = s.arena[:0]
}

func (s *JSON) Fail(msg string) {
	if s.Msg == "" {
		s.Msg, s.At = msg, s.i
		s.i = len(s.b)
	}
}

func (s *JSON) Ok() bool { return s.Msg == "" }

// Place returns how many bytes have been read.
func (s *JSON) Place() int { return s.i }

// Peek returns the first byte of the next value, 0 at the end.
func (s *JSON) Peek() byte {
	for s.i < len(s.b) {
		switch c := s.b[s.i]; c {
		case ' ', '\t', '\r', '\n':
			s.i++
		default:
			return c
		}
	}
	return 0
}

// Open moves past { or [. Where there is none, [JSON.More] finds no entry.
func (s *JSON) Open(c byte) bool {
	if s.Peek() != c {
		if c == '{' {
			s.Fail("expected an object {…}")
		} else {
			s.Fail("expected a list […]")
		}
		return false
	}
	s.i++
	return true
}

// More moves to the next entry, or past the closing bracket; first is true before the
// first entry.
func (s *JSON) More(first *bool, end byte) bool {
	switch c := s.Peek(); {
	case s.Msg != "":
		return false
	case c == end && c != 0:
		s.i++
		return false
	case *first:
		*first = false
		return true
	case c == ',':
		s.i++
		return true
	case c == 0:
		s.Fail("the record ends too early")
	default:
		s.Fail("expected , or " + string(rune(end)))
	}
	return false
}

// Key reads a key and its colon.
func (s *JSON) Key() string {
	k := s.Text()
	if s.Peek() != ':' {
		s.Fail("expected : behind a key")
		return ""
	}
	s.i++
	return k
}

// Text reads a string.
func (s *JSON) Text() string {
	if s.Peek() != '"' {
		s.Fail("expected a text \"…\"")
		return ""
	}
	from := s.i + 1
	i := quoteOrSlash(s.b, from)
	switch {
	case i == len(s.b):
		s.Fail("a text has no end")
		return ""
	case s.b[i] == '\\':
		return s.escaped(from)
	}
	s.i = i + 1
	return unsafe.String(unsafe.SliceData(s.b[from:]), i-from)
}

// quoteOrSlash returns where from i on the first quote or backslash stands, len(b) if
// there is none. It looks at eight bytes at once: x has a zero byte where (x−0x01…01) &
// ^x & 0x80…80 is not 0, and the lowest such bit is that of the first.
func quoteOrSlash(b []byte, i int) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	for ; i+8 <= len(b); i += 8 {
		x := binary.LittleEndian.Uint64(b[i:])
		quote, slash := x^(ones*'"'), x^(ones*'\\')
		if found := ((quote-ones)&^quote | (slash-ones)&^slash) & highs; found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
	}
	for i < len(b) && b[i] != '"' && b[i] != '\\' {
		i++
	}
	return i
}

// escaped reads a string with escapes, whose content begins at from.
func (s *JSON) escaped(from int) string {
	start := len(s.arena)
	for s.i = from; s.i < len(s.b); {
		switch c := s.b[s.i]; c {
		case '"':
			s.i++
			return unsafe.String(unsafe.SliceData(s.arena[start:]), len(s.arena)-start)
		case '\\':
			s.escape()
		default:
			s.arena = append(s.arena, c)
			s.i++
		}
	}
	s.Fail("a text has no end")
	return ""
}

func (s *JSON) escape() {
	out, n, err := codec.AppendEscape(s.arena, s.b[s.i:])
	if err != nil {
		s.Fail("not an escape of JSON, or half of one")
		return
	}
	s.arena = out
	s.i += n
}

// Number reads a number, rounded to the nearest float64. Other programs write some that JSON does not have: 01 and 1.
func (s *JSON) Number() float64 {
	s.Peek()
	b := s.b[s.i:]
	text := unsafe.String(unsafe.SliceData(b), len(b))
	if digits := strings.TrimPrefix(text, "-"); digits == "" || digits[0]-'0' > 9 {
		s.Fail("expected a number")
		return 0
	}
	x, n := codec.Decimal(text)
	if n == 0 || math.IsInf(x, 0) {
		return s.longNumber(s.i)
	}
	s.i += n
	return x
}

// longNumber reads a number of any form.
func (s *JSON) longNumber(start int) float64 {
	i := start
	for i < len(s.b) && (s.b[i]-'0' <= 9 || s.b[i] == '.' || s.b[i]|0x20 == 'e' || s.b[i] == '+' || s.b[i] == '-') {
		i++
	}
	f, err := strconv.ParseFloat(unsafe.String(&s.b[start], i-start), 64)
	if err != nil {
		s.Fail("not a number that a float64 holds")
		return 0
	}
	s.i = i
	return f
}

// Word reads true, false or null.
func (s *JSON) Word(w string) {
	s.Peek()
	if len(s.b)-s.i < len(w) || string(s.b[s.i:s.i+len(w)]) != w {
		s.Fail("expected " + w)
		return
	}
	s.i += len(w)
}

// Null reads null if that is next.
func (s *JSON) Null() bool {
	if s.Peek() != 'n' {
		return false
	}
	s.Word("null")
	return true
}

func (s *JSON) Boolean() bool {
	if s.Peek() == 't' {
		s.Word("true")
		return s.Ok()
	}
	s.Word("false")
	return false
}

// Skip passes a value.
func (s *JSON) Skip(depth int) {
	if depth > MaxDepth {
		s.Fail("nested too deep")
		return
	}
	switch s.Peek() {
	case '{':
		s.i++
		for first := true; s.More(&first, '}'); {
			s.Key()
			s.Skip(depth + 1)
		}
	case '[':
		s.i++
		for first := true; s.More(&first, ']'); {
			s.Skip(depth + 1)
		}
	case '"':
		s.skipText()
	case 't':
		s.Word("true")
	case 'f':
		s.Word("false")
	case 'n':
		s.Word("null")
	default:
		s.Number()
	}
}

// skipText passes a string.
func (s *JSON) skipText() {
	for i := s.i + 1; ; {
		i = quoteOrSlash(s.b, i)
		switch {
		case i < len(s.b) && s.b[i] == '"':
			s.i = i + 1
			return
		case i+1 >= len(s.b):
			s.Fail("a text has no end")
			return
		}
		i += 2
	}
}

// End checks that nothing follows.
func (s *JSON) End() {
	if s.Peek() != 0 || s.Ok() && s.i < len(s.b) {
		s.Fail("bytes behind the record")
	}
}

// Join makes a name a.b in the arena.
func (s *JSON) Join(a, b string) string {
	if a == "" {
		return b
	}
	start := len(s.arena)
	s.arena = append(append(append(s.arena, a...), '.'), b...)
	return unsafe.String(unsafe.SliceData(s.arena[start:]), len(s.arena)-start)
}

// Whole reads a whole number.
func (s *JSON) Whole() int {
	f := s.Number()
	if s.Ok() && (f != math.Trunc(f) || math.Abs(f) > 1<<31) {
		s.Fail("expected a whole number")
		return 0
	}
	return int(f)
}

func (s *JSON) Wholes(dst []int) []int          { return list(s, dst, (*JSON).Whole) }
func (s *JSON) Numbers(dst []float64) []float64 { return list(s, dst, (*JSON).Number) }

// list appends the values of a list; null is none.
func list[T any](s *JSON, dst []T, one func(*JSON) T) []T {
	if s.Null() || !s.Open('[') {
		return dst
	}
	for first := true; s.More(&first, ']'); {
		dst = append(dst, one(s))
	}
	return dst
}

// Time reads a time; null is none.
func (s *JSON) Time() int64 {
	if s.Null() {
		return NoTime
	}
	at := s.i
	text := s.Text()
	if !s.Ok() {
		return NoTime
	}
	t, err := ParseTime(text)
	if err != nil {
		s.i = at
		s.Fail(err.Error())
		return NoTime
	}
	return t
}
