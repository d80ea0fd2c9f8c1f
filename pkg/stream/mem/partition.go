package mem

import (
	"slices"
	"sort"
	"sync"

	"hindsight/pkg/stream"
)

// chunkBytes is how much memory for records is asked for at a time.
const chunkBytes = 64 << 10

// partition is an ordered list of records.
type partition struct {
	stream.Place
	log *Log
	o   stream.TopicOptions

	mu    sync.Mutex
	owner uint64          // number of the latest owner
	next  int64           // offset of the next record
	recs  []stream.Record // offsets grow
	bytes int64           // of recs
	chunk []byte          // free memory for the bytes of records
	wake  chan struct{}   // closed at the next change; nil while nobody waits
}

func (p *partition) first() int64 {
	if len(p.recs) == 0 {
		return p.next
	}
	return p.recs[0].Offset
}

// search returns the index of the first record at or after offset.
func (p *partition) search(offset int64) int {
	return sort.Search(len(p.recs), func(i int) bool { return p.recs[i].Offset >= offset })
}

// store appends a copy of r, or says ErrFull. p.mu is held.
func (p *partition) store(r *stream.Record) (offset int64, err error) {
	n := size(r)
	if p.o.MaxBytes > 0 && p.o.RejectWhenFull && p.bytes+int64(n) > p.o.MaxBytes {
		return 0, stream.ErrFull
	}
	c := stream.Record{Offset: p.next, Time: p.log.now(), Type: r.Type,
		Key: p.copyBytes(r.Key), Value: p.copyBytes(r.Value), Headers: slices.Clone(r.Headers)}
	p.recs = append(p.recs, c)
	p.bytes += int64(n)
	p.next += p.log.o.Step
	p.expire(c.Time)
	p.signal()
	return c.Offset, nil
}

// expire drops what the topic's limits no longer keep.
func (p *partition) expire(now int64) {
	k := 0
	bytes := p.bytes
	for k < len(p.recs)-1 {
		r := &p.recs[k]
		old := p.o.MaxAge > 0 && now-r.Time > p.o.MaxAge
		over := p.o.MaxBytes > 0 && bytes > p.o.MaxBytes
		if !old && !over {
			break
		}
		bytes -= int64(size(r))
		k++
	}
	p.drop(k)
}

// dropBefore drops the records below offset. p.mu is held.
func (p *partition) dropBefore(offset int64) { p.drop(p.search(offset)) }

// drop removes the first k records.
func (p *partition) drop(k int) {
	for i := range k {
		p.bytes -= int64(size(&p.recs[i]))
		p.recs[i] = stream.Record{} // lets go of the bytes
	}
	p.recs = p.recs[k:]
}

// signal wakes the readers that wait.
func (p *partition) signal() {
	if p.wake != nil {
		close(p.wake)
		p.wake = nil
	}
}

func (p *partition) copyBytes(b []byte) []byte {
	if b == nil {
		return nil
	}
	if len(b) > chunkBytes/4 {
		return append(make([]byte, 0, len(b)), b...)
	}
	if len(b) > len(p.chunk) || p.chunk == nil {
		p.chunk = make([]byte, chunkBytes)
	}
	c := p.chunk[:len(b):len(b)]
	p.chunk = p.chunk[len(b):]
	copy(c, b)
	return c
}

// size is what a record counts against the limits, in bytes.
func size(r *stream.Record) int {
	n := len(r.Type) + len(r.Key) + len(r.Value)
	for _, h := range r.Headers {
		n += len(h.Key) + len(h.Value)
	}
	return n
}
