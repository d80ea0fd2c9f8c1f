package kafka

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"strings"

	"github.com/segmentio/kafka-go/compress"

	"hindsight/pkg/stream"
)

// maxInflated bounds what a compressed batch may become: as much as a joiner reads before it
// releases. A few KB can become any size.
const maxInflated = 16 << 20

// errInflated reports a batch beyond that. Its text takes the place of each of its records.
var errInflated = fmt.Errorf("%w: it is more than %d bytes when inflated", ErrCorrupt, maxInflated)

// stored is a batch as a broker returns it.
type stored struct {
	base      int64 // offset of the first record
	next      int64 // after the last
	attrs     uint16
	baseTime  int64 // ms
	maxTime   int64
	pid       int64
	epoch     int16
	sequence  int32
	count     int32
	payload   []byte // the records, perhaps compressed
	checksum  uint32
	protected []byte // what the checksum covers
}

// cutBatch takes the first batch off b. It returns false if b ends before the batch
// does, which is how brokers end a response.
func cutBatch(b []byte) (s stored, rest []byte, ok bool, err error) {
	if len(b) <= atMagic {
		return s, nil, false, nil
	}
	be := binary.BigEndian
	length := be.Uint32(b[atLength:])
	if b[atMagic] != 2 {
		return s, nil, false, fmt.Errorf("%w: its format has version %d, not 2", ErrCorrupt, b[atMagic])
	}
	if length < batchHead-lengthBase || length > maxFrame {
		return s, nil, false, fmt.Errorf("%w: its length is %d", ErrCorrupt, length)
	}
	end := lengthBase + int(length)
	if end > len(b) {
		return s, nil, false, nil
	}
	h := b[:end:end]
	s = stored{
		base:      int64(be.Uint64(h)),
		attrs:     be.Uint16(h[atAttributes:]),
		baseTime:  int64(be.Uint64(h[atBaseTime:])),
		maxTime:   int64(be.Uint64(h[atMaxTime:])),
		pid:       int64(be.Uint64(h[atProducer:])),
		epoch:     int16(be.Uint16(h[atEpoch:])),
		sequence:  int32(be.Uint32(h[atSequence:])),
		count:     int32(be.Uint32(h[atCount:])),
		payload:   h[batchHead:],
		checksum:  be.Uint32(h[atCRC:]),
		protected: h[atAttributes:],
	}
	last := int32(be.Uint32(h[atLastDelta:]))
	s.next = s.base + int64(last) + 1
	if s.base < 0 || last < 0 || s.next < s.base || s.count < 0 || int64(s.count) > int64(last)+1 {
		return s, nil, false, fmt.Errorf("%w: %d records from %d on in %d offsets", ErrCorrupt, s.count, s.base,
			int64(last)+1)
	}
	return s, b[end:], true, nil
}

func (s *stored) check() error {
	if c := crc32.Checksum(s.protected, castagnoli); c != s.checksum {
		return fmt.Errorf("%w: its CRC is %08x, that of its bytes %08x", ErrCorrupt, s.checksum, c)
	}
	return nil
}

func (s *stored) isControl() bool { return s.attrs&controlBit != 0 }

// inflate decompresses the records; they are in memory of their own afterwards, unless they were not compressed.
func (s *stored) inflate() error {
	kind := compress.Compression(s.attrs & compressionMask)
	if kind == compress.None {
		return nil
	}
	codec := kind.Codec()
	if codec == nil {
		return fmt.Errorf("%w: compression %d is not known", ErrCorrupt, int(kind))
	}
	r := codec.NewReader(bytes.NewReader(s.payload))
	defer r.Close()
	all, err := io.ReadAll(io.LimitReader(r, maxInflated+1))
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrCorrupt, kind, err)
	}
	if len(all) > maxInflated {
		return errInflated
	}
	s.payload = all
	s.attrs &^= compressionMask
	return nil
}

// names holds the strings of headers that come again and again.
type names map[string]string

// maxNames bounds how many are kept.
const maxNames = 256

func (m names) of(b []byte) string {
	if s, ok := m[string(b)]; ok {
		return s
	}
	s := string(b)
	if len(m) < maxNames && len(s) <= 64 {
		m[s] = s
	}
	return s
}

// decoder takes records out of one batch after the other.
type decoder struct {
	s     stored
	f     fields
	left  int32 // records not taken yet
	large bool  // the batch is errInflated
	last  int64 // offset of the record before
	known names

	headers []stream.Header // of records that were taken: allocated for many at once
	text    strings.Builder // of their values, likewise

	keepNonce bool
}

// start begins a batch, which has been inflated.
func (d *decoder) start(s stored) {
	d.s, d.f, d.left, d.last, d.large = s, fields{b: s.payload}, s.count, s.base-1, false
	if d.known == nil {
		d.known = names{}
	}
}

// record takes the next record. Its bytes are those of the batch.
func (d *decoder) record(r *stream.Record) error {
	if d.large {
		at := d.s.next - int64(d.left)
		*r = stream.Record{Offset: at, Time: d.s.maxTime * 1e6, Value: []byte(errInflated.Error())}
		d.left--
		return nil
	}
	n := d.f.varint() // bad: 0, which is too few
	if uint64(n) > uint64(len(d.f.b)) {
		return fmt.Errorf("%w: a record of %d bytes where %d are left", ErrCorrupt, n, len(d.f.b))
	}
	f := fields{b: d.f.b[:n]}
	d.f.b = d.f.b[n:]
	d.left--
	f.take(1) // attributes
	dt, do := f.varint(), f.varint()
	*r = stream.Record{Offset: d.s.base + do, Time: d.s.baseTime + dt}
	if d.s.attrs&appendTimeBit != 0 {
		r.Time = d.s.maxTime
	}
	r.Time *= 1e6
	r.Key, r.Value = f.varbytes(), f.varbytes()
	d.readHeaders(&f, r)
	if f.bad || len(f.b) > 0 || r.Offset <= d.last || r.Offset >= d.s.next {
		return fmt.Errorf("%w: record %d of it has a wrong layout", ErrCorrupt, d.s.count-d.left)
	}
	d.last = r.Offset
	if r.Type == stream.TypeOpen && !d.keepNonce {
		dropNonce(r)
	}
	return nil
}

// Room for headers is made for so many, and for so many bytes of their values, at once: a caller that keeps one keeps
// all of it.
const (
	manyHeaders = 64
	manyText    = 4 << 10
)

func (d *decoder) readHeaders(f *fields, r *stream.Record) {
	n := f.varint()
	if n < 0 || n > int64(len(f.b)) {
		f.bad = true
	}
	if len(d.headers) >= manyHeaders {
		d.headers = make([]stream.Header, 0, 2*manyHeaders)
	}
	from := len(d.headers)
	for range n {
		key, value := f.varbytes(), f.varbytes()
		switch {
		case f.bad:
			return
		case string(key) == stream.HeaderType:
			r.Type = d.known.of(value)
		default:
			d.headers = append(d.headers, stream.Header{Key: d.known.of(key), Value: d.value(value)})
		}
	}
	if to := len(d.headers); to > from {
		r.Headers = d.headers[from:to:to]
	}
}

// value returns the value of a header.
func (d *decoder) value(b []byte) string {
	if d.text.Cap()-d.text.Len() < len(b) {
		d.text.Reset()
		d.text.Grow(max(manyText, len(b)))
	}
	from := d.text.Len()
	d.text.Write(b)
	return d.text.String()[from:]
}

// dropNonce leaves out the header that is ours alone.
func dropNonce(r *stream.Record) {
	for i, h := range r.Headers {
		if h.Key == headerNonce {
			if r.Headers = append(r.Headers[:i], r.Headers[i+1:]...); len(r.Headers) == 0 {
				r.Headers = nil
			}
			return
		}
	}
}
