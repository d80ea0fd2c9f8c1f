package kafka

import (
	"encoding/binary"
	"hash/crc32"
	"math"
	"slices"

	"hindsight/pkg/stream"
)

// Layout of a batch of records, format version 2: where its fields are.
// https://kafka.apache.org/documentation/#recordbatch
const (
	atLength     = 8  // of what follows
	atMagic      = 16 //
	atCRC        = 17 // Castagnoli, of what follows it
	atAttributes = 21
	atLastDelta  = 23 // offset of the last record, from the first
	atBaseTime   = 27 // ms
	atMaxTime    = 35
	atProducer   = 43
	atEpoch      = 51
	atSequence   = 53
	atCount      = 57
	batchHead    = 61
	lengthBase   = 12 // the length counts from here
)

// Bits of a batch's attributes.
const (
	compressionMask = 0x07
	appendTimeBit   = 0x08
	transactionBit  = 0x10
	controlBit      = 0x20
)

// headerNonce carries the random number of an open record; readers leave it out.
const headerNonce = "hindsight-nonce"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// batch is a batch of records that is being filled. Its memory is used again.
type batch struct {
	b     []byte // batchHead bytes, zero until seal, then the records
	count int
}

func (b *batch) reset() {
	b.b, b.count = append(b.b[:0], make([]byte, batchHead)...), 0
}

// add appends a record, with headers beside its own.
func (b *batch) add(r *stream.Record, more []stream.Header) {
	start, headers := len(b.b), len(r.Headers)+len(more)
	if r.Type != "" {
		headers++
	}
	o := append(b.b, 0, 0) // no attributes, the batch's time
	o = binary.AppendVarint(o, int64(b.count))
	o = appendNullable(o, r.Key)
	o = appendNullable(o, r.Value)
	o = binary.AppendVarint(o, int64(headers))
	if r.Type != "" {
		o = appendHeader(o, stream.HeaderType, r.Type)
	}
	for _, headers := range [...][]stream.Header{r.Headers, more} {
		for i := range headers {
			o = appendHeader(o, headers[i].Key, headers[i].Value)
		}
	}
	var size [binary.MaxVarintLen64]byte
	b.b = slices.Insert(o, start, size[:binary.PutVarint(size[:], int64(len(o)-start))]...)
	b.count++
}

// seal writes the head. now is in ms since 1970.
func (b *batch) seal(pid int64, epoch int16, sequence int32, now int64) {
	h := b.b
	be := binary.BigEndian
	be.PutUint32(h[atLength:], uint32(len(h)-lengthBase))
	be.PutUint32(h[atLength+4:], math.MaxUint32) // epoch of the leader: −1
	h[atMagic] = 2
	be.PutUint32(h[atLastDelta:], uint32(b.count-1))
	be.PutUint64(h[atBaseTime:], uint64(now))
	be.PutUint64(h[atMaxTime:], uint64(now))
	be.PutUint64(h[atProducer:], uint64(pid))
	be.PutUint16(h[atEpoch:], uint16(epoch))
	be.PutUint32(h[atSequence:], uint32(sequence))
	be.PutUint32(h[atCount:], uint32(b.count))
	be.PutUint32(h[atCRC:], crc32.Checksum(h[atAttributes:], castagnoli))
}

func appendNullable(b, v []byte) []byte {
	if v == nil {
		return append(b, 1) // −1
	}
	return append(binary.AppendVarint(b, int64(len(v))), v...)
}

func appendHeader(b []byte, key, value string) []byte {
	b = append(binary.AppendVarint(b, int64(len(key))), key...)
	return append(binary.AppendVarint(b, int64(len(value))), value...)
}

// nextSequence is the sequence number after n more records. Like brokers it goes on with 0 after the largest.
func nextSequence(sequence int32, n int) int32 {
	return int32((int64(sequence) + int64(n)) & math.MaxInt32)
}
