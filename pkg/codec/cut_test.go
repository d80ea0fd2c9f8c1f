package codec

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"testing"

	"pgregory.net/rapid"
)

// TestSum holds that the sum of a range is the CRC-32C of what its records are written as, one
// behind the other.
func TestSum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []byte
		sum := uint32(0)
		for range rapid.IntRange(1, 4).Draw(t, "records") {
			offset, time := rapid.Int64().Draw(t, "offset"), rapid.Int64().Draw(t, "time")
			kind := rapid.SampledFrom([]string{"", TypeMark, TypeOpen}).Draw(t, "type")
			value := rapid.SliceOfN(rapid.Byte(), 0, 50).Draw(t, "value")
			sum = Sum(sum, offset, time, kind, value)
			all = append(binary.AppendVarint(binary.AppendVarint(all, offset), time), kind...)
			all = append(all, value...)
		}
		if want := crc32.Checksum(all, crc32.MakeTable(crc32.Castagnoli)); sum != want {
			t.Fatalf("%08x, want %08x", sum, want)
		}
	})
}

// A cut is one of the hot path's records: it allocates nothing, nor does a sum.
func TestCutAllocs(t *testing.T) {
	x := sampleCut()
	noAllocs(t, "cut", x, AppendCut, ParseCut, func(*Cut) error { return nil })
	value := bytes.Repeat([]byte("x"), 1000)
	if n := testing.AllocsPerRun(100, func() { Sum(0, 1<<40, 1<<60, TypeMark, value) }); n != 0 {
		t.Errorf("a sum allocates %v times", n)
	}
}

// TestCutSize holds a cut of one partition to what its rate is reckoned with.
func TestCutSize(t *testing.T) {
	x := Cut{Cut: 1 << 20, Time: 1 << 60, Decisions: []Range{{0, 1 << 20, 1 << 31}},
		Outcomes: []Range{{0, 1 << 20, 1 << 31}}}
	if b := AppendCut(nil, &x); len(b) > 84 {
		t.Errorf("%d bytes", len(b))
	}
}

func BenchmarkCut(b *testing.B) {
	for name, partitions := range map[string]int{"partitions=1": 1, "partitions=256": 256} {
		x := Cut{Cut: 1 << 20, Time: 1 << 60}
		for p := range partitions {
			x.Decisions = append(x.Decisions, Range{p, 1 << 20, 1 << 31})
			x.Outcomes = append(x.Outcomes, Range{p, 1 << 20, 1 << 31})
		}
		buf := AppendCut(nil, &x)
		b.Run("append/"+name, func(b *testing.B) {
			for b.Loop() {
				buf = AppendCut(buf[:0], &x)
			}
		})
		b.Run("parse/"+name, func(b *testing.B) {
			var back Cut
			for b.Loop() {
				if err := ParseCut(&back, buf); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
