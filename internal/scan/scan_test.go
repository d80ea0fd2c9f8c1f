package scan

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

// The search by eight bytes finds what one by one byte finds, wherever it begins.
func TestQuoteOrSlash(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := []byte(rapid.StringOfN(rapid.SampledFrom([]rune{'a', '"', '\\', 'é', '!', '#', ']', '[', 0, 0x7f}), 0, 40,
			-1).Draw(t, "b"))
		from := rapid.IntRange(0, len(b)).Draw(t, "from")
		want := len(b)
		if i := bytes.IndexAny(b[from:], `"\`); i >= 0 {
			want = from + i
		}
		if got := quoteOrSlash(b, from); got != want {
			t.Fatalf("%q from %d: %d, want %d", b, from, got, want)
		}
	})
}
