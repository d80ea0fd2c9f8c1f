package kafka

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"reflect"
	"testing"

	"github.com/segmentio/kafka-go/compress"

	"hindsight/pkg/stream"
)

// some are records for a batch.
func some(n int) []stream.Record {
	recs := make([]stream.Record, n)
	for i := range recs {
		recs[i] = stream.Record{Key: fmt.Appendf(nil, "k%d", i), Value: fmt.Appendf(nil, "v%d", i),
			Headers: []stream.Header{{Key: "a", Value: "1"}}}
	}
	return recs
}

// resum writes a batch's length and CRC anew.
func resum(b []byte) []byte {
	binary.BigEndian.PutUint32(b[atLength:], uint32(len(b)-lengthBase))
	binary.BigEndian.PutUint32(b[atCRC:], crc32.Checksum(b[atAttributes:], castagnoli))
	return b
}

func TestCompressedBatches(t *testing.T) {
	plain := encode(some(100), 1, 2, 3, 4)
	want := decodeOurs(t, plain)
	for _, kind := range []compress.Compression{compress.Gzip, compress.Snappy, compress.Lz4, compress.Zstd} {
		var z bytes.Buffer
		w := kind.Codec().NewWriter(&z)
		if _, err := w.Write(plain[batchHead:]); err != nil || w.Close() != nil {
			t.Fatal(err)
		}
		b := append(bytes.Clone(plain[:batchHead]), z.Bytes()...)
		b[atAttributes+1] |= byte(kind)
		if got := decodeOurs(t, resum(b)); !reflect.DeepEqual(got, want) {
			t.Errorf("%v: %d records, want %d", kind, len(got), len(want))
		}
		cut := resum(bytes.Clone(b[:len(b)-10]))
		if s, _, ok, _ := cutBatch(cut); !ok || !errors.Is(s.inflate(), ErrCorrupt) {
			t.Errorf("%v: a batch without its end is decompressed", kind)
		}
	}
	b := bytes.Clone(plain)
	b[atAttributes+1] |= 7
	if s, _, ok, _ := cutBatch(resum(b)); !ok || !errors.Is(s.inflate(), ErrCorrupt) {
		t.Error("a batch of unknown compression is read")
	}
}

// With log append time all records of a batch have its largest time.
func TestLogAppendTime(t *testing.T) {
	b := encode(some(3), 1, 2, 3, 1000)
	b[atAttributes+1] |= appendTimeBit
	binary.BigEndian.PutUint64(b[atMaxTime:], 7777)
	for _, r := range decodeOurs(t, resum(b)) {
		if r.Time != 7777e6 {
			t.Errorf("record %d has time %d", r.Offset, r.Time)
		}
	}
}

func TestDamagedBatches(t *testing.T) {
	good := encode(some(5), 1, 2, 3, 4)
	for i := range good { // every byte before the end of the CRC's cover
		b := bytes.Clone(good)
		b[i] ^= 0x55
		s, _, ok, err := cutBatch(b)
		if err == nil && ok && s.check() == nil && i >= atAttributes {
			t.Errorf("a flipped byte %d is not noticed", i)
		}
	}
	if _, _, ok, err := cutBatch(good[:len(good)-1]); ok || err != nil {
		t.Errorf("a batch without its last byte: %v, %v", ok, err)
	}
	old := bytes.Clone(good)
	old[atMagic] = 1
	if _, _, _, err := cutBatch(old); !errors.Is(err, ErrCorrupt) {
		t.Errorf("an old format: %v", err)
	}
	// A wrong layout under a good CRC.
	for name, change := range map[string]func(b []byte){
		"more records than offsets": func(b []byte) { binary.BigEndian.PutUint32(b[atCount:], 6) },
		"more records than bytes":   func(b []byte) { b[atCount+3], b[atLastDelta+3] = 6, 5 },
		"a record too long":         func(b []byte) { b[batchHead] = 0x7e },
		"a negative record":         func(b []byte) { b[batchHead] = 0x01 },
		"negative last offset":      func(b []byte) { b[atLastDelta] = 0x80 },
	} {
		b := bytes.Clone(good)
		change(b)
		if err := readAll(resum(b)); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// readAll reads a response's batches as a reader does.
func readAll(b []byte) error {
	c := &chunk{batches: b}
	if _, err := checkBatches(c, 0); err != nil {
		return err
	}
	r := &reader{chunk: c, rest: c.batches}
	_, err := r.decode(nil, 1<<20)
	return err
}

// A response may end in the middle of a batch, and begin before what was asked for.
func TestCutResponse(t *testing.T) {
	one, two := encode(some(3), 1, 2, 3, 4), encode(some(4), 1, 2, 6, 4)
	binary.BigEndian.PutUint64(two, 3)
	c := &chunk{batches: append(bytes.Clone(one), two[:len(two)-1]...)}
	next, err := checkBatches(c, 1)
	if err != nil || next != 3 || len(c.batches) != len(one) {
		t.Errorf("next %d, %d bytes, %v", next, len(c.batches), err)
	}
	r := &reader{chunk: c, rest: c.batches, pos: 1}
	recs, err := r.decode(nil, 100)
	if err != nil || len(recs) != 2 || recs[0].Offset != 1 || r.pos != 3 {
		t.Errorf("%d records, position %d, %v", len(recs), r.pos, err)
	}
	if _, err := checkBatches(&chunk{batches: one[:20]}, 0); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a response without a whole batch: %v", err)
	}
	if _, err := checkBatches(&chunk{batches: one}, 3); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a response with what was not asked for: %v", err)
	}
	damaged := bytes.Clone(two)
	damaged[len(damaged)-1] ^= 1
	c = &chunk{batches: append(bytes.Clone(one), damaged...)}
	if next, err := checkBatches(c, 0); err != nil || next != 3 || len(c.batches) != len(one) {
		t.Errorf("good before damaged: next %d, %d bytes, %v", next, len(c.batches), err)
	}
	if _, err := checkBatches(&chunk{batches: damaged}, 3); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a wrong CRC: %v", err)
	}
}

// Holes, markers of transactions and batches without records are passed.
func TestHolesAndMarkers(t *testing.T) {
	at := func(base int64, count, offsets int32, attrs byte) []byte {
		b := encode(some(int(count)), 1, 2, 3, 4)
		binary.BigEndian.PutUint64(b, uint64(base))
		binary.BigEndian.PutUint32(b[atLastDelta:], uint32(offsets-1))
		b[atAttributes+1] |= attrs
		return resum(b)
	}
	b := at(10, 2, 5, 0)                            // 10, 11; 12 to 14 were compacted away
	b = append(b, at(15, 1, 1, controlBit|0x10)...) // a marker
	b = append(b, at(20, 1, 1, 0)...)
	b = append(b, at(21, 0, 4, 0)...) // all compacted away
	b = append(b, at(25, 1, 1, controlBit|0x10)...)
	c := &chunk{batches: b}
	if next, err := checkBatches(c, 10); err != nil || next != 26 {
		t.Fatalf("next %d, %v", next, err)
	}
	r := &reader{chunk: c, rest: c.batches, pos: 10}
	recs, err := r.decode(nil, 2)
	if err != nil || len(recs) != 2 || r.pos != 20 {
		t.Fatalf("%d records, position %d, %v", len(recs), r.pos, err)
	}
	recs, err = r.decode(nil, 100)
	if err != nil || len(recs) != 1 || recs[0].Offset != 20 || r.pos != 26 {
		t.Errorf("%d records, position %d, %v", len(recs), r.pos, err)
	}
}

// TestUndone holds which batches are of an aborted transaction: those of its producer from its first to its marker.
// What that producer commits right before or after is read, and what others write meanwhile.
func TestUndone(t *testing.T) {
	const data, marker = transactionBit, transactionBit | controlBit
	u := undone{coming: []aborted{{producer: 1, first: 14}, {producer: 2, first: 18}}}
	for i, x := range []struct {
		pid   int64
		attrs uint16
		skips bool
	}{
		{1, data, false}, {1, marker, false}, // committed
		{1, data, true}, {3, data, false}, {2, data, true}, {1, 0, false}, {1, data, true}, {1, marker, true},
		{1, data, false}, {2, data, true}, {1, marker, false}, {2, marker, true}, {2, data, false},
	} {
		base := 10 + 2*int64(i)
		if got := u.skips(&stored{base: base, next: base + 2, pid: x.pid, attrs: x.attrs}); got != x.skips {
			t.Errorf("batch %d, of producer %d: skipped %v", base, x.pid, got)
		}
	}
}

// Whatever a broker sends, reading it ends with records or an error.
func FuzzBatches(f *testing.F) {
	f.Add(encode(some(3), 1, 2, 3, 4))
	f.Add(append(encode(some(1), 1, 2, 3, 4), encode(some(2), 1, 2, 4, 4)...))
	var z bytes.Buffer
	w := compress.Gzip.Codec().NewWriter(&z)
	plain := encode(some(3), 1, 2, 3, 4)
	_, _ = w.Write(plain[batchHead:])
	_ = w.Close()
	b := append(bytes.Clone(plain[:batchHead]), z.Bytes()...)
	b[atAttributes+1] |= byte(compress.Gzip)
	f.Add(resum(b))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > batchHead { // else hardly any input gets past the checksum
			end := min(len(b), lengthBase+int(binary.BigEndian.Uint32(b[atLength:])&0xffff))
			if end > batchHead {
				binary.BigEndian.PutUint32(b[atLength:], uint32(end-lengthBase))
				binary.BigEndian.PutUint32(b[atCRC:], crc32.Checksum(b[atAttributes:end], castagnoli))
			}
		}
		c := &chunk{batches: b}
		next, err := checkBatches(c, 0)
		if err != nil {
			return
		}
		r := &reader{log: &Log{c: &Client{o: Options{Logger: slog.New(slog.DiscardHandler)}}}, chunk: c,
			rest: c.batches}
		recs, err := r.decode(nil, 1<<20)
		for i := range recs {
			if recs[i].Offset < 0 || recs[i].Offset >= next || i > 0 && recs[i].Offset <= recs[i-1].Offset {
				t.Fatalf("record %d at %d, next %d", i, recs[i].Offset, next)
			}
		}
		if err == nil && len(c.batches) > 0 && r.pos < 0 {
			t.Fatalf("position %d", r.pos)
		}
	})
}

// Answers of brokers may be cut anywhere.
func FuzzFields(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 0, 1, 't', 0, 0, 0, 1, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		x := fields{b: b}
		x.partition(&place{Topic: "t", Partition: 0})
		x.tags()
		for !x.bad {
			_, _, _, _ = x.varbytes(), x.bytes(), x.stringBytes(), x.uvarint()
			x.varint()
			x.int64()
		}
	})
}
