package kafka

import (
	"context"
	"errors"
	"sync"
	"time"

	"hindsight/pkg/stream"
)

// maxNext is how many records one Next returns at most.
const maxNext = 1000

// reader decodes what its fetcher brings.
type reader struct {
	log   *Log
	p     place
	pos   int64
	high  int64    // the end of the partition as far as known
	lent  *chunk   // holds the bytes of what Next returned last
	chunk *chunk   // being decoded; may be lent
	undo  undone   // of chunk
	rest  []byte   // batches of chunk that are not decoded
	dec   decoder  // of the batch before rest
	times bool     // it was said that times are not the brokers'
	err   error    // what the next Next says: it came after good records
	f     *fetcher // nil: to be started

	ctx       context.Context
	cancel    context.CancelFunc
	closeOnce sync.Once
	mu        sync.Mutex // guards f against Close
}

// Read implements [stream.Log].
func (l *Log) Read(ctx context.Context, topic string, partition int, from int64) (_ stream.Reader, err error) {
	p, err := l.place(topic, partition)
	defer func() { p.Locate("read", from, &err) }()
	if err != nil {
		return nil, err
	}
	var at [3]int64
	err = l.c.atLeader(ctx, &p, func(cn *conn) (int16, error) {
		return cn.offsets(&p, []position{firstKept, nextReadable, nextStable}, at[:])
	})
	first, next, stable := at[0], at[1], at[2]
	switch {
	case err != nil:
	case from == stream.Earliest:
		from = first
	case from < first:
		err = stream.ErrTruncated
	case from > next:
		err = stream.ErrAhead
	}
	if err != nil {
		return nil, err
	}
	r := &reader{log: l, p: p, pos: from, high: stable}
	r.ctx, r.cancel = context.WithCancel(l.c.ctx)
	if err := l.register(r); err != nil {
		r.cancel()
		return nil, err
	}
	return r, nil
}

// Next implements [stream.Reader].
func (r *reader) Next(ctx context.Context, dst []stream.Record) ([]stream.Record, error) {
	r.giveBack()
	had, began := len(dst), r.pos
	for {
		switch {
		case r.ctx.Err() != nil:
			return dst, r.p.Fail("read", r.pos, stream.ErrClosed)
		case ctx.Err() != nil:
			return dst, ctx.Err()
		case r.err != nil:
			err := r.err
			r.err = nil
			return dst, r.p.Fail("read", r.pos, err)
		}
		var err error
		if dst, err = r.decode(dst, had+maxNext); err != nil {
			r.restart()
			if len(dst) == had {
				return dst, r.p.Fail("read", r.pos, err)
			}
			r.err = err
		}
		if len(dst) > had {
			r.lent = r.chunk
			return dst, nil
		}
		if r.pos > began {
			return dst, nil // markers, or aborted records: a caller that waits for the end needs the position
		}
		if err := r.advance(ctx, nil); err != nil {
			switch {
			case r.ctx.Err() != nil: // also if the closing of its connection was noticed first
				err = stream.ErrClosed
			case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
				return dst, err
			}
			return dst, r.p.Fail("read", r.pos, err)
		}
	}
}

// decode appends records of the chunk to dst until that is as long as limit, and moves
// pos on; after the last record also past what has none.
func (r *reader) decode(dst []stream.Record, limit int) ([]stream.Record, error) {
	for {
		for r.dec.left > 0 {
			if len(dst) >= limit {
				return dst, nil
			}
			dst = append(dst, stream.Record{})
			rec := &dst[len(dst)-1]
			if err := r.dec.record(rec); err != nil {
				return dst[:len(dst)-1], err
			}
			if rec.Offset < r.pos { // of a batch that began earlier
				dst = dst[:len(dst)-1]
				continue
			}
			r.pos = rec.Offset + 1
		}
		if more, err := r.nextBatch(); !more || err != nil {
			return dst, err
		}
	}
}

// nextBatch begins the next batch of the chunk. What precedes it has been decoded.
func (r *reader) nextBatch() (more bool, err error) {
	r.pos = max(r.pos, r.dec.s.next)
	r.dec.s.next = 0
	if len(r.rest) == 0 {
		return false, nil
	}
	s, rest, ok, err := cutBatch(r.rest)
	if err != nil || !ok {
		r.rest = nil
		return false, err
	}
	r.rest = rest
	r.lookAtTime(&s)
	if r.undo.skips(&s) || s.isControl() {
		s.count = 0
	}
	var large bool
	if s.count > 0 {
		err := s.inflate()
		if large = errors.Is(err, errInflated); err != nil && !large {
			return false, err
		}
	}
	r.dec.start(s)
	r.dec.large = large
	if s.count > 0 {
		r.pos = max(r.pos, s.base)
	}
	return true, nil
}

// mostSkew is by how much a time may be ahead that is not the brokers' before that is said.
const mostSkew = time.Minute

// lookAtTime tells of a batch with the time of its producer that is ahead: the topic's settings were changed.
func (r *reader) lookAtTime(s *stored) {
	if s.attrs&appendTimeBit != 0 || r.times || time.Until(time.UnixMilli(s.maxTime)) < mostSkew {
		return
	}
	r.times = true
	r.log.c.o.Logger.Error("a record has its producer's time, which is ahead: is message.timestamp.type still "+
		"LogAppendTime?",
		"topic", r.p.Topic, "partition", r.p.Partition, "offset", s.base, "time", time.UnixMilli(s.maxTime).UTC())
}

// advance takes the next chunk, waiting for it, but no longer than limit.
func (r *reader) advance(ctx context.Context, limit <-chan time.Time) error {
	if r.chunk != r.lent {
		r.recycle(r.chunk)
	}
	r.chunk = nil
	f, err := r.fetcher()
	if err != nil {
		return err
	}
	select {
	case c := <-f.full:
		r.chunk, r.rest, r.undo = c, c.batches, undone{coming: c.aborted}
		if c.err != nil {
			err := c.err
			r.restart()
			return err
		}
		r.high = max(r.high, c.high)
		return nil
	case <-limit:
		return errLimit
	case <-ctx.Done():
		return ctx.Err()
	case <-r.ctx.Done():
		return stream.ErrClosed
	}
}

var errLimit = errors.New("nothing yet")

// fetcher returns the fetcher, starting one if there is none.
func (r *reader) fetcher() (*fetcher, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ctx.Err() != nil {
		return nil, stream.ErrClosed
	}
	if r.f == nil {
		r.f = startFetcher(r.ctx, &leaderSource{line: line{c: r.log.c, p: r.p}}, r.pos)
	}
	return r.f, nil
}

// restart gives up the fetcher: the next one starts at pos.
func (r *reader) restart() {
	r.mu.Lock()
	f := r.f
	r.f = nil
	r.mu.Unlock()
	if f != nil {
		f.close()
	}
	r.chunk, r.rest = nil, nil
	r.dec.left, r.dec.s.next = 0, 0
}

// giveBack lets the memory of what was returned be used again.
func (r *reader) giveBack() {
	if r.lent != r.chunk {
		r.recycle(r.lent)
	}
	r.lent = nil
}

func (r *reader) recycle(c *chunk) {
	if c != nil && c.of == r.f {
		r.f.empty <- c // there is room for all
	}
}

// peekLimit bounds how long Position waits to see whether what is left holds records.
const peekLimit = time.Second

// Position implements [stream.Reader]. Where the log goes on after the last record
// returned, markers of transactions may be all there is; so it looks what comes next.
func (r *reader) Position() int64 {
	if r.dec.left > 0 || r.err != nil || r.pos >= r.high {
		return r.pos
	}
	limit := time.NewTimer(peekLimit)
	defer limit.Stop()
	for r.dec.left == 0 && r.pos < r.high {
		more, err := r.nextBatch()
		if err == nil && !more && r.pos < r.high {
			err = r.advance(context.Background(), limit.C)
			if errors.Is(err, errLimit) {
				break
			}
		}
		if err != nil {
			r.restart()
			r.err = err
			break
		}
	}
	return r.pos
}

// Close implements [stream.Reader].
func (r *reader) Close() error {
	r.closeOnce.Do(func() {
		r.mu.Lock()
		r.cancel()
		f := r.f
		r.mu.Unlock()
		if f != nil {
			f.close()
		}
		r.log.unregister(r)
	})
	return nil
}

func (r *reader) logClosed() { _ = r.Close() }
