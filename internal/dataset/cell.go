package dataset

import (
	"encoding/binary"
	"math"
	"unsafe"

	"hindsight/internal/spill"
)

// cell is what a row has of a feature: absent; of a number its bits; of a text an index into the values of the column,
// or with longText where it lies among the texts of the log: behind how long it is, four bytes.
type cell uint64

const (
	absent   cell = 1<<64 - 1 // bits of a NaN, which no cell is
	longText cell = 1 << 63
)

func (c cell) number() float64 { return math.Float64frombits(uint64(c)) }

// text returns that of a cell of texts, which aliases its place.
func (c cell) text(values []string, long []byte) string {
	if c&longText == 0 {
		return values[c]
	}
	at := long[c&^longText:]
	b := at[4 : 4+binary.LittleEndian.Uint32(at)]
	return unsafe.String(unsafe.SliceData(b), len(b))
}

// addLong appends a text of at most [codec.MaxRecordBytes] and returns its cell.
func addLong(long *spill.Column[byte], text string) cell {
	at := len(long.All)
	long.Add(byte(len(text)), byte(len(text)>>8), byte(len(text)>>16), 0)
	long.Add(unsafe.Slice(unsafe.StringData(text), len(text))...)
	return longText | cell(at)
}
