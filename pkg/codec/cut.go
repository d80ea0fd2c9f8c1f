package codec

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// Cut says what the joiner takes next of its inputs, and by which log time: the feedback
// behind it, up to the next cut, and its rejects follow from that and from all cuts before.
//
// MessagePack: {"v", "cut", "time", "decisions": [[partition, next, sum]…], "outcomes":
// [[partition, next, sum]…], "crc"}.
type Cut struct {
	V         int     `msgpack:"v"`
	Cut       int64   `msgpack:"cut"`       // 1, 2, 3, … dense in the feedback log
	Time      int64   `msgpack:"time"`      // log time reached, ns; never less than before
	Decisions []Range `msgpack:"decisions"` // one of each partition that moves, ascending
	Outcomes  []Range `msgpack:"outcomes"`  // likewise
}

// Range is what a cut takes of one partition: the records from where its last range ended, or the
// last mark stands, up to Next.
type Range struct {
	Partition int    `msgpack:"partition"`
	Next      int64  `msgpack:"next"` // next unread offset
	Sum       uint32 `msgpack:"sum"`  // of the records taken: see [Sum]
}

// Sum returns the CRC-32C of the records taken, given that of those before (0: none): of
// each the offset and the log time as signed varints of Go, the type and the value.
func Sum(before uint32, offset, time int64, kind string, value []byte) uint32 {
	var numbers [2 * binary.MaxVarintLen64]byte
	n := binary.PutVarint(numbers[:], offset)
	n += binary.PutVarint(numbers[n:], time)
	sum := ^before
	for _, b := range numbers[:n] { // byte by byte: given to crc32, they would be on the heap
		sum = castagnoli[byte(sum)^b] ^ sum>>8
	}
	for i := range len(kind) {
		sum = castagnoli[byte(sum)^kind[i]] ^ sum>>8
	}
	return crc32.Update(^sum, castagnoli, value)
}

// AppendCut appends a cut, in this build's version.
func AppendCut(dst []byte, x *Cut) []byte { return appendRare(dst, cutRecord, Version, x) }

// ParseCut parses a cut into dst, whose memory it reuses, and refuses what [ParseEpoch] does and
// numbers that no cut has.
func ParseCut(dst *Cut, b []byte) error {
	*dst = Cut{Decisions: dst.Decisions[:0], Outcomes: dst.Outcomes[:0]}
	if err := parseRare(cutRecord, b, dst); err != nil {
		return err
	}
	if dst.Cut < 1 {
		return wrong("cut", "cut", errCutNumber)
	}
	if err := checkRanges("decisions", dst.Decisions); err != nil {
		return err
	}
	return checkRanges("outcomes", dst.Outcomes)
}

func checkRanges(key string, ranges []Range) error {
	last := -1
	for i := range ranges {
		if ranges[i].Partition <= last {
			return wrong("cut", item(key, i), errPartitions)
		}
		if last = ranges[i].Partition; ranges[i].Next < 1 {
			return wrong("cut", item(key, i), errNext)
		}
	}
	return nil
}

var (
	errCutNumber  = fmt.Errorf("%w: %w", ErrCorrupt, errPositive)
	errPartitions = fmt.Errorf("%w: partitions start at 0 and ascend", ErrCorrupt)
	errNext       = fmt.Errorf("%w: the next offset is at least 1", ErrCorrupt)
)
