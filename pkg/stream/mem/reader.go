package mem

import (
	"context"

	"hindsight/pkg/stream"
)

// reader reads one partition.
type reader struct {
	p       *partition
	pos     int64
	ctx     context.Context // ends with Close, and with the log
	cancel  context.CancelFunc
	scratch []byte
}

// Read implements [stream.Log].
func (l *Log) Read(_ context.Context, topic string, partition int, from int64) (stream.Reader, error) {
	p, err := l.find("read", topic, partition)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case from == stream.Earliest:
		from = p.first()
	case from < p.first():
		return nil, p.Fail("read", from, stream.ErrTruncated)
	case from > p.next:
		return nil, p.Fail("read", from, stream.ErrAhead)
	}
	if p.search(from) == len(p.recs) {
		from = p.next // passes a hole at the end
	}
	r := &reader{p: p, pos: from}
	r.ctx, r.cancel = context.WithCancel(l.ctx)
	return r, nil
}

// Next implements [stream.Reader].
func (r *reader) Next(ctx context.Context, dst []stream.Record) ([]stream.Record, error) {
	p := r.p
	for {
		if r.ctx.Err() != nil {
			return dst, p.Fail("read", r.pos, stream.ErrClosed)
		}
		if err := ctx.Err(); err != nil {
			return dst, err
		}
		p.mu.Lock()
		if r.pos > p.next {
			p.mu.Unlock()
			return dst, p.Fail("read", r.pos, stream.ErrAhead)
		}
		if r.pos < p.first() {
			p.mu.Unlock()
			return dst, p.Fail("read", r.pos, stream.ErrTruncated)
		}
		if i := p.search(r.pos); i < len(p.recs) {
			dst = r.take(dst, p.recs[i:min(len(p.recs), i+p.log.o.MaxBatch)])
			p.mu.Unlock()
			return dst, nil
		}
		if p.wake == nil {
			p.wake = make(chan struct{})
		}
		wake := p.wake
		p.mu.Unlock()
		select {
		case <-wake:
		case <-r.ctx.Done():
		case <-ctx.Done():
		}
	}
}

// take appends records to dst and moves on. p.mu is held.
func (r *reader) take(dst, recs []stream.Record) []stream.Record {
	r.pos = r.p.next // passes holes
	if i := r.p.search(recs[len(recs)-1].Offset + 1); i < len(r.p.recs) {
		r.pos = r.p.recs[i].Offset
	}
	if !r.p.log.o.StrictBytes {
		return append(dst, recs...)
	}
	clear(r.scratch)
	need := 0
	for i := range recs {
		need += len(recs[i].Key) + len(recs[i].Value)
	}
	r.scratch = make([]byte, 0, need) // each time: what was returned keeps the bytes that were overwritten
	for _, c := range recs {
		c.Key, c.Value = r.own(c.Key), r.own(c.Value)
		dst = append(dst, c)
	}
	return dst
}

func (r *reader) own(b []byte) []byte {
	if b == nil {
		return nil
	}
	n := len(r.scratch)
	r.scratch = append(r.scratch, b...)
	return r.scratch[n:len(r.scratch):len(r.scratch)]
}

// Position implements [stream.Reader].
func (r *reader) Position() int64 { return r.pos }

// Close implements [stream.Reader].
func (r *reader) Close() error {
	r.cancel()
	return nil
}
