package codec

import (
	"math"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
	"unsafe"
)

func jsonToken(c byte) token {
	switch c {
	case '{':
		return tokMap
	case '[':
		return tokList
	case '"':
		return tokText
	case 't', 'f':
		return tokBool
	case 'n':
		return tokNull
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return tokNum
	}
	return tokNone
}

// space moves past white space.
func (r *reader) space() {
	for r.i < len(r.b) {
		switch r.b[r.i] {
		case ' ', '\t', '\r', '\n':
			r.i++
		default:
			return
		}
	}
}

// jsonMore moves to the next entry of an object or array, past the comma, or
// past its closing bracket.
func (r *reader) jsonMore(s *span) bool {
	r.space()
	if r.i >= len(r.b) {
		r.fail(errTruncated)
		return false
	}
	switch c := r.b[r.i]; {
	case c == s.close:
		r.i++
		return false
	case !s.comma:
		s.comma = true
		return true
	case c != ',':
		r.fail(errSyntax)
		return false
	}
	r.i++
	r.space()
	return true
}

func (r *reader) jsonKey() string {
	key := r.jsonString()
	r.space()
	if r.i >= len(r.b) || r.b[r.i] != ':' {
		if r.i >= len(r.b) {
			r.fail(errTruncated)
		}
		r.fail(errSyntax)
		return ""
	}
	r.i++
	r.space()
	return key
}

func (r *reader) jsonWord(word string) {
	if len(r.b)-r.i < len(word) || string(r.b[r.i:r.i+len(word)]) != word {
		r.fail(errSyntax)
		return
	}
	r.i += len(word)
}

// jsonString reads a string. Without escapes it is an alias of the bytes.
func (r *reader) jsonString() string {
	if r.i >= len(r.b) {
		r.fail(errTruncated)
		return ""
	}
	if r.b[r.i] != '"' {
		r.fail(errWantText)
		return ""
	}
	b := r.b[r.i+1:]
	for i, c := range b {
		switch {
		case c == '"':
			r.i += i + 2
			return unsafe.String(unsafe.SliceData(b), i)
		case c == '\\':
			return r.jsonEscaped()
		case c < ' ':
			r.i += i + 1
			r.fail(errSyntax)
			return ""
		}
	}
	r.i = len(r.b)
	r.fail(errTruncated)
	return ""
}

// jsonEscaped reads a string with escapes into memory of its own.
func (r *reader) jsonEscaped() string {
	var out []byte
	for r.i++; r.i < len(r.b); {
		c := r.b[r.i]
		switch {
		case c == '"':
			r.i++
			return string(out)
		case c < ' ':
			r.fail(errSyntax)
			return ""
		case c == '\\':
			out = r.jsonEscape(out)
		default:
			r.i++
			out = append(out, c)
		}
	}
	r.fail(errTruncated)
	return ""
}

func (r *reader) jsonEscape(out []byte) []byte {
	out, n, err := AppendEscape(out, r.b[r.i:])
	if r.i += n; err != nil {
		r.fail(err)
	}
	return out
}

// AppendEscape appends what the JSON escape that b begins with stands for, and returns how many bytes it has.
func AppendEscape(dst, b []byte) (out []byte, n int, err error) {
	if len(b) < 2 {
		return dst, 0, errTruncated
	}
	c := b[1]
	switch c {
	case '"', '\\', '/':
	case 'b':
		c = '\b'
	case 'f':
		c = '\f'
	case 'n':
		c = '\n'
	case 'r':
		c = '\r'
	case 't':
		c = '\t'
	case 'u':
		u, err := hexOf(b)
		if n = 6; err == nil && utf16.IsSurrogate(u) {
			low, wrong := hexOf(b[n:])
			if u, n, err = utf16.DecodeRune(u, low), 12, wrong; u == utf8.RuneError && err == nil {
				err = errSurrogate
			}
		}
		if err != nil {
			return dst, 0, err
		}
		return utf8.AppendRune(dst, u), n, nil
	default:
		return dst, 0, errSyntax
	}
	return append(dst, c), 2, nil
}

// hexOf returns the number of the \uXXXX that b begins with.
func hexOf(b []byte) (rune, error) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, errSyntax
	}
	u, err := strconv.ParseUint(unsafe.String(&b[2], 4), 16, 32)
	if err != nil {
		return 0, errSyntax
	}
	return rune(u), nil
}

// tens are the powers of ten that float64 holds exactly, as far as needed.
var tens = [...]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15}

// Decimal returns the JSON number that text begins with, rounded to the nearest float64, and the bytes it takes; n is
// 0 where there is none, x infinite where no float64 holds it. Without an exponent up to 15 digits and their power of
// ten are exact, and their quotient is the float next to the number (Clinger 1990, How to Read Floating Point Numbers
// Accurately); all else is [strconv.ParseFloat]'s.
func Decimal(text string) (x float64, n int) {
	var m uint64 // all digits as one number; meaningless when they are too many
	if len(text) == 0 {
		return 0, 0
	}
	if text[0] == '-' { // one assignment, which takes no branch: signs are not foreseen
		n = 1
	}
	first := n
	for ; n < len(text) && text[n]-'0' <= 9; n++ {
		m = m*10 + uint64(text[n]-'0')
	}
	digits, fraction := n-first, 0
	ok := digits == 1 || digits > 1 && text[first] != '0'
	if n < len(text) && text[n] == '.' {
		n++
		for ; n < len(text) && text[n]-'0' <= 9; n++ {
			m = m*10 + uint64(text[n]-'0')
			fraction++
		}
		ok = ok && fraction > 0
	}
	exponent := n < len(text) && text[n]|0x20 == 'e'
	if exponent {
		n++
		if n < len(text) && (text[n] == '+' || text[n] == '-') {
			n++
		}
		from := n
		for n < len(text) && text[n]-'0' <= 9 {
			n++
		}
		ok = ok && n > from
	}
	switch {
	case !ok:
		return 0, 0
	case exponent || digits+fraction > 15:
		x, _ = strconv.ParseFloat(text[:n], 64)
		return x, n
	}
	x = float64(m) / tens[fraction]
	return math.Float64frombits(math.Float64bits(x) | uint64(first)<<63), n
}

// jsonNumber reads a number.
func (r *reader) jsonNumber() float64 {
	b := r.b[r.i:]
	x, n := Decimal(unsafe.String(unsafe.SliceData(b), len(b)))
	switch {
	case n > 0 && !math.IsInf(x, 0):
		r.i += n
		return x
	case n > 0:
		r.fail(errRange)
	case len(b) == 0:
		r.fail(errTruncated)
	case jsonToken(b[0]) != tokNum:
		r.fail(errWantNum)
	default:
		r.fail(errSyntax)
	}
	return 0
}
