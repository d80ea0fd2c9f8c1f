package oracle

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// ErrSnapshot reports bytes that are no snapshot of this oracle with these
// parameters. The oracle is left as it was.
var ErrSnapshot = errors.New("not a snapshot of an oracle with these parameters")

// ErrNewer reports a snapshot that a later program wrote, in a layout that this one does
// not know. Such errors are [ErrSnapshot] too.
var ErrNewer = errors.New("a newer program is needed")

func snapshotError(oracle, what string) error {
	return fmt.Errorf("%s: %s: %w", oracle, what, ErrSnapshot)
}

// versionError says which version a snapshot has that this program does not read.
func versionError(oracle string, got, newest byte) error {
	if got > newest {
		return fmt.Errorf("%s: version %d, and this one reads versions up to %d: %w: %w", oracle, got, newest, ErrNewer,
			ErrSnapshot)
	}
	return snapshotError(oracle, fmt.Sprintf("there is no version %d", got))
}

func appendFloat(b []byte, v float64) []byte {
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
}

func appendFloats(b []byte, v []float64) []byte {
	for _, x := range v {
		b = appendFloat(b, x)
	}
	return b
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// wireReader reads what the functions above append. After the first error
// everything reads as zero; nothing is allocated for what cannot be there.
type wireReader struct {
	b   []byte
	bad bool
}

func (r *wireReader) fail() { r.bad, r.b = true, nil }

func (r *wireReader) take(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.fail()
		return nil
	}
	p := r.b[:n]
	r.b = r.b[n:]
	return p
}

func (r *wireReader) byte() byte {
	if p := r.take(1); len(p) == 1 {
		return p[0]
	}
	return 0
}

func (r *wireReader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

// count reads a number of things that take at least size bytes each.
func (r *wireReader) count(size int) int {
	n := r.uvarint()
	if n > uint64(len(r.b)/size) {
		r.fail()
		return 0
	}
	return int(n)
}

func (r *wireReader) int64() int64 {
	v := r.uvarint()
	if v > math.MaxInt64 {
		r.fail()
		return 0
	}
	return int64(v)
}

func (r *wireReader) float() float64 {
	if p := r.take(8); len(p) == 8 {
		return math.Float64frombits(binary.LittleEndian.Uint64(p))
	}
	return 0
}

// floats fills dst; none of them may be NaN or infinite.
func (r *wireReader) floats(dst []float64) {
	for i := range dst {
		v := r.float()
		if v-v != 0 {
			r.fail()
		}
		dst[i] = v
	}
}

func (r *wireReader) string() string {
	return string(r.take(r.uvarint()))
}
