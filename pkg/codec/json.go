package codec

import (
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

// jsonNumber reads a number, rounded to the nearest float64. A whole part and
// fraction of at most 15 digits in all and no exponent need one division of two
// exact numbers, which rounds once; all else is [strconv.ParseFloat]'s.
func (r *reader) jsonNumber() float64 {
	b, start := r.b, r.i
	i := start
	if i < len(b) && b[i] == '-' {
		i++
	}
	first := i
	var m uint64 // all digits as one number; meaningless when they are too many
	for ; i < len(b) && b[i]-'0' <= 9; i++ {
		m = m*10 + uint64(b[i]-'0')
	}
	digits, fraction := i-first, 0
	ok := digits == 1 || digits > 1 && b[first] != '0'
	if i < len(b) && b[i] == '.' {
		i++
		for ; i < len(b) && b[i]-'0' <= 9; i++ {
			m = m*10 + uint64(b[i]-'0')
			fraction++
		}
		ok = ok && fraction > 0
	}
	exponent := i < len(b) && b[i]|0x20 == 'e'
	if exponent {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		from := i
		for i < len(b) && b[i]-'0' <= 9 {
			i++
		}
		ok = ok && i > from
	}
	switch {
	case digits == 0 && first < len(b) && first == start:
		r.fail(errWantNum)
		return 0
	case !ok:
		r.fail(errSyntax)
		return 0
	case exponent || digits+fraction > 15:
		return r.jsonDecimal(start, i)
	}
	r.i = i
	f := float64(m) / tens[fraction]
	if first > start {
		f = -f
	}
	return f
}

// jsonDecimal reads the number in bytes from..to, whose form was checked.
func (r *reader) jsonDecimal(from, to int) float64 {
	f, err := strconv.ParseFloat(unsafe.String(&r.b[from], to-from), 64)
	if err != nil {
		r.fail(errRange)
		return 0
	}
	r.i = to
	return f
}
