package embedded

import (
	"cmp"
	"context"
	"hash"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"hindsight/pkg/stream"
	"hindsight/pkg/stream/nats"
)

// Nothing is written to a view, so its records are read from their blocks, which costs less than the way through the
// server. Whatever is not as the server writes it, damage and gaps among them, is left to the server's own reader.

// blockBytes is how much of a block is read at once, unless a record is larger.
const blockBytes = 256 << 10

// readView is [nats.Options].Direct of a view.
func (e *Engine) readView(ctx context.Context, l *nats.Log, topic string, partition int, from int64) (stream.Reader,
	error) {
	name := nats.StreamName(topic, partition)
	blocks, err := streamBlocks(e.view, name)
	if err != nil || len(blocks) == 0 {
		return l.ReadServed(ctx, topic, partition, from)
	}
	first, next, err := l.Bounds(ctx, topic, partition)
	if from == stream.Earliest {
		from = first
	}
	if err != nil || from < first || from >= next {
		return l.ReadServed(ctx, topic, partition, from)
	}
	b := &blockReader{Place: stream.Place{Topic: topic, Partition: partition}, log: l, name: name, blocks: blocks,
		pos: from}
	b.skip()
	return b, nil
}

// streamBlocks returns the blocks of a stream from which no single record can be deleted, in order.
func streamBlocks(dir, name string) ([]string, error) {
	config, err := Config(dir, name)
	if err != nil || config["deny_delete"] != true {
		return nil, err
	}
	blocks, err := filepath.Glob(filepath.Join(dir, storeFolder, "*", streamsFolder, name, blocksFolder,
		"*"+blockEnding))
	slices.SortFunc(blocks, func(a, b string) int { return cmp.Compare(blockNumber(a), blockNumber(b)) })
	return blocks, err
}

// blockReader reads blocks, and leaves what they do not tell to the server's reader.
type blockReader struct {
	stream.Place
	log    *nats.Log
	name   string // of the stream
	blocks []string
	pos    int64

	sum  hash.Hash64 // of records of the first block
	at   int64       // where in that block buf begins
	buf  []byte      // records, and a part of one
	done int         // bytes of buf that were returned

	mu     sync.Mutex
	rest   stream.Reader // the server's, where the blocks end; nil: not yet
	closed bool
}

// skip leaves out the blocks before the one with the position.
func (r *blockReader) skip() {
	for i, name := range slices.Backward(r.blocks) {
		var head [recordHead]byte
		if n, err := readAt(name, head[:], 0); err == nil && n == recordHead && sequence(head[:]) <= r.pos {
			r.blocks = r.blocks[i:]
			return
		}
	}
}

// readAt reads what a file has at an offset. It is not kept open: a view that is closed is removed.
func readAt(name string, buf []byte, at int64) (int, error) {
	f, err := os.Open(name)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	n, err := f.ReadAt(buf, at)
	if err == io.EOF {
		err = nil
	}
	return n, err
}

// Next implements [stream.Reader].
func (r *blockReader) Next(ctx context.Context, dst []stream.Record) ([]stream.Record, error) {
	had, pos := len(dst), r.pos
	for r.rest == nil && ctx.Err() == nil && !r.isClosed() {
		if dst = r.take(dst); len(dst) > had || r.pos > pos {
			return dst, nil
		}
		if !r.fill() {
			if err := r.leave(ctx); err != nil {
				return dst, err
			}
		}
	}
	if r.rest != nil {
		return r.rest.Next(ctx, dst)
	}
	return dst, r.Fail("read", r.pos, cmp.Or(ctx.Err(), stream.ErrClosed))
}

// take appends the whole records of the buffer.
func (r *blockReader) take(dst []stream.Record) []stream.Record {
	for end := len(dst) + nats.DefaultMaxBatch; len(dst) < end; {
		s, ok := cutStored(r.buf[r.done:], r.sum)
		if !ok || s.sequence > r.pos {
			break
		}
		if s.sequence == r.pos {
			rec := stream.Record{Offset: s.sequence, Time: s.time, Value: s.data}
			shown, err := nats.Stored(&rec, s.headers)
			if err != nil {
				break
			}
			if shown {
				dst = append(dst, rec)
			}
			r.pos++
		}
		r.done += s.length
	}
	return dst
}

// fill reads on, in the next block at the end of one. It reports false where the blocks end, or are not
// as they must be.
func (r *blockReader) fill() bool {
	if len(r.blocks) == 0 {
		return false
	}
	if r.sum == nil {
		r.sum = checksum(blockName(r.name, blockNumber(r.blocks[0])))
	}
	left := r.buf[r.done:]
	if len(left) >= max(recordHead, recordLength(left)) { // it is whole, and was not taken
		return false
	}
	size := max(blockBytes, recordLength(left))
	if size > maxRecordBytes {
		return false
	}
	if cap(r.buf) < size {
		r.buf = make([]byte, size)
	}
	r.buf = r.buf[:size]
	r.at, r.done = r.at+int64(r.done), 0
	kept := copy(r.buf, left)
	n, err := readAt(r.blocks[0], r.buf[kept:], r.at+int64(kept))
	r.buf = r.buf[:kept+n]
	if err != nil || n == 0 && kept > 0 {
		return false
	}
	if n == 0 {
		r.blocks, r.sum, r.at = r.blocks[1:], nil, 0
	}
	return true
}

// leave goes on with the server's reader.
func (r *blockReader) leave(ctx context.Context) error {
	rest, err := r.log.ReadServed(ctx, r.Topic, r.Partition, r.pos)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rest, r.buf = rest, nil
	if r.closed {
		return rest.Close()
	}
	return nil
}

func (r *blockReader) isClosed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.closed
}

// Position implements [stream.Reader].
func (r *blockReader) Position() int64 {
	if r.rest != nil {
		return r.rest.Position()
	}
	return r.pos
}

// Close implements [stream.Reader].
func (r *blockReader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	if r.rest != nil {
		return r.rest.Close()
	}
	return nil
}
