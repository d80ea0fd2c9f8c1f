package codec

import (
	"encoding/binary"
	"math"
	"strconv"
	"unicode/utf8"
)

// appendMap appends the head of a map with n entries.
func appendMap(dst []byte, n int) []byte {
	switch {
	case n < 16:
		return append(dst, 0x80|byte(n))
	case n < 1<<16:
		return append(dst, mpMap16, byte(n>>8), byte(n))
	}
	return binary.BigEndian.AppendUint32(append(dst, mpMap32), uint32(n))
}

// appendList appends the head of a list with n entries.
func appendList(dst []byte, n int) []byte {
	switch {
	case n < 16:
		return append(dst, 0x90|byte(n))
	case n < 1<<16:
		return append(dst, mpList16, byte(n>>8), byte(n))
	}
	return binary.BigEndian.AppendUint32(append(dst, mpList32), uint32(n))
}

// appendText appends a str.
func appendText(dst []byte, s string) []byte {
	switch n := len(s); {
	case n < 32:
		dst = append(dst, 0xa0|byte(n))
	case n < 1<<8:
		dst = append(dst, mpStr8, byte(n))
	case n < 1<<16:
		dst = append(dst, mpStr16, byte(n>>8), byte(n))
	default:
		dst = binary.BigEndian.AppendUint32(append(dst, mpStr32), uint32(n))
	}
	return append(dst, s...)
}

// appendKey appends a key of at most 31 bytes.
func appendKey(dst []byte, key string) []byte {
	return append(append(dst, 0xa0|byte(len(key))), key...)
}

// another appends a key to the map whose head is the byte at a place, and counts it there.
func another(dst []byte, head int, key string) []byte {
	dst[head]++
	return appendKey(dst, key)
}

// appendBytes appends a bin.
func appendBytes(dst, b []byte) []byte {
	switch n := len(b); {
	case n < 1<<8:
		dst = append(dst, mpBin8, byte(n))
	case n < 1<<16:
		dst = append(dst, mpBin16, byte(n>>8), byte(n))
	default:
		dst = binary.BigEndian.AppendUint32(append(dst, mpBin32), uint32(n))
	}
	return append(dst, b...)
}

// appendInt appends an integer in its shortest form.
func appendInt(dst []byte, v int64) []byte {
	switch {
	case v >= -32 && v < 1<<7:
		return append(dst, byte(v))
	case v >= 0 && v < 1<<8:
		return append(dst, mpUint8, byte(v))
	case v >= 0 && v < 1<<16:
		return append(dst, mpUint16, byte(v>>8), byte(v))
	case v >= 0 && v < 1<<32:
		return binary.BigEndian.AppendUint32(append(dst, mpUint32), uint32(v))
	case v >= 0:
		return binary.BigEndian.AppendUint64(append(dst, mpUint64), uint64(v))
	case v >= -1<<7:
		return append(dst, mpInt8, byte(v))
	case v >= -1<<15:
		return append(dst, mpInt16, byte(v>>8), byte(v))
	case v >= -1<<31:
		return binary.BigEndian.AppendUint32(append(dst, mpInt32), uint32(v))
	}
	return binary.BigEndian.AppendUint64(append(dst, mpInt64), uint64(v))
}

// appendFloat appends a float64.
func appendFloat(dst []byte, f float64) []byte {
	return binary.BigEndian.AppendUint64(append(dst, mpFloat64), math.Float64bits(f))
}

func appendBool(dst []byte, v bool) []byte {
	if v {
		return append(dst, mpTrue)
	}
	return append(dst, mpFalse)
}

// jsonFloat appends f as JSON, in the fewest digits that read back as f. What JSON cannot say is null.
func jsonFloat(dst []byte, f float64) []byte {
	abs := math.Abs(f)
	switch {
	case math.IsNaN(f) || math.IsInf(f, 0):
		return append(dst, "null"...)
	case abs != 0 && (abs < 1e-6 || abs >= 1e21):
		return strconv.AppendFloat(dst, f, 'e', -1, 64)
	}
	return strconv.AppendFloat(dst, f, 'f', -1, 64)
}

// AppendJSONText appends s as a JSON string. Bytes that are not UTF-8 become U+FFFD.
func AppendJSONText(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	from := 0 // what was not yet copied
	for i := 0; i < len(s); {
		if i+8 <= len(s) && needsNoEscape(word(s, i)) {
			i += 8
			continue
		}
		c := s[i]
		if c >= utf8.RuneSelf {
			u, n := utf8.DecodeRuneInString(s[i:])
			if u == utf8.RuneError && n == 1 {
				dst = append(append(dst, s[from:i]...), "\ufffd"...)
				from = i + 1
			}
			i += n
			continue
		}
		if c >= ' ' && c != '"' && c != '\\' {
			i++
			continue
		}
		dst = append(dst, s[from:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		i++
		from = i
	}
	return append(append(dst, s[from:]...), '"')
}

// needsNoEscape reports whether all bytes of x are plain and neither quote nor backslash:
// v has a zero byte where (v−0x01…01) & ^v & 0x80…80 is not 0.
func needsNoEscape(x uint64) bool {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	quote, slash := x^(ones*'"'), x^(ones*'\\')
	return isPlain(x) && ((quote-ones)&^quote|(slash-ones)&^slash)&highs == 0
}

// jsonComma appends a comma unless an object or array was just opened.
func jsonComma(dst []byte) []byte {
	if c := dst[len(dst)-1]; c == '{' || c == '[' {
		return dst
	}
	return append(dst, ',')
}

// jsonKey appends a key, with the comma before it if one is needed.
func jsonKey(dst []byte, key string) []byte {
	return append(AppendJSONText(jsonComma(dst), key), ':')
}

func jsonInt(dst []byte, v int64) []byte { return strconv.AppendInt(dst, v, 10) }
