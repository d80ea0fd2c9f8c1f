package codec

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/vmihailenco/msgpack/v5"
)

// Every head has the shortest form, at both sides of each limit, as the reference
// writes it.
func TestShortestForms(t *testing.T) {
	var buf bytes.Buffer
	e := msgpack.NewEncoder(&buf)
	e.UseCompactInts(true)
	check := func(what string, n int64, got []byte, err error) {
		t.Helper()
		if err != nil || !bytes.Equal(got, buf.Bytes()) {
			t.Errorf("%s %d: %.20x, want %.20x (%v)", what, n, got, buf.Bytes(), err)
		}
		buf.Reset()
	}
	for bit := range 64 {
		for _, d := range []int64{-1, 0, 1} {
			v := int64(uint64(1)<<bit) + d
			check("int", v, appendInt(nil, v), e.EncodeInt(v))
			if v > math.MinInt64 {
				check("int", -v, appendInt(nil, -v), e.EncodeInt(-v))
			}
			r := reader{b: appendInt(nil, v)}
			if got := r.int(); got != v || r.end("int") != nil {
				t.Errorf("%d reads back as %d", v, got)
			}
		}
	}
	for _, n := range []int{0, 1, 15, 16, 31, 32, 127, 128, 255, 256, 65535, 65536} {
		s := strings.Repeat("x", n)
		check("text", int64(n), appendText(nil, s), e.EncodeString(s))
		check("bytes", int64(n), appendBytes(nil, []byte(s)), e.EncodeBytes([]byte(s)))
		check("map", int64(n), appendMap(nil, n), e.EncodeMapLen(n))
		check("list", int64(n), appendList(nil, n), e.EncodeArrayLen(n))
	}
}

// A number is written with an exponent from the size on at which JavaScript writes it so.
func TestJSONFloats(t *testing.T) {
	for f, want := range map[float64]string{0: "0", 1e-6: "0.000001", 9.5e-7: "9.5e-07", -1e21: "-1e+21",
		999999999999999900000: "999999999999999900000", math.Inf(-1): "null"} {
		if got := string(jsonFloat(nil, f)); got != want {
			t.Errorf("%g: %s, want %s", f, got, want)
		}
	}
}

// Texts are written alike whether they are looked at by eight bytes or by one.
func TestJSONTextByEight(t *testing.T) {
	for at := range 20 {
		for _, c := range []string{`"`, `\`, "\n", "\x01", "é", "\xff", "\x7f", "~"} {
			s := strings.Repeat("x", at) + c + strings.Repeat("y", 20-at)
			one := []byte{'"'}
			for _, part := range []string{s[:at], c, s[at+len(c):]} {
				for i := 0; i < len(part); {
					_, n := utf8.DecodeRuneInString(part[i:])
					b := AppendJSONText(nil, part[i:i+n]) // shorter than eight bytes
					one = append(one, b[1:len(b)-1]...)
					i += n
				}
			}
			if got := AppendJSONText(nil, s); string(got) != string(one)+`"` {
				t.Fatalf("%q: %s, want %s\"", s, got, one)
			}
		}
	}
}
