package verify

import (
	"context"
	"sync"
	"sync/atomic"

	"hindsight/pkg/stream"
)

// Both checks read decisions and feedback, and reading is most of the work. So the check of decisions
// hands on what it reads, one way, and never waits: of a partition of which the other check is too far
// behind, that one reads the rest by itself.

// pipeRoom is how many bytes are queued.
const pipeRoom = 64 << 20

// pipe is the log as the check of fates reads it.
type pipe struct {
	stream.Log
	room   int64
	bytes  atomic.Int64 // in all queues
	mu     sync.Mutex
	queues map[stream.Place]*queue // that have no reader yet
}

// queue holds records of one partition, whose bytes are their own.
type queue struct {
	*pipe
	place   stream.Place
	batches chan ownBatch
	ended   bool // batches is closed; of the check of decisions
	left    atomic.Bool
}

type ownBatch struct {
	records []stream.Record
	size    int64
}

func newPipe(log stream.Log) *pipe {
	return &pipe{Log: log, room: pipeRoom, queues: map[stream.Place]*queue{}}
}

// take has a cursor hand on what it reads.
func (p *pipe) take(c *logCursor) {
	c.to = &queue{pipe: p, place: stream.Place{Topic: c.topic, Partition: c.partition},
		batches: make(chan ownBatch, 1<<13)}
	p.queues[c.to.place] = c.to
}

// handOn has the check of decisions hand on what it reads, and returns the log for the other.
func (v *verification) handOn(d *decisionCheck, feedback *logCursor) *pipe {
	p := newPipe(v.Log)
	for _, l := range d.lanes {
		p.take(l.decisions)
		v.total += l.decisions.end - l.decisions.first
	}
	p.take(d.feedback)
	v.total += feedback.end - feedback.first
	return p
}

// put queues a copy of a batch.
func (q *queue) put(batch []stream.Record) {
	if q.ended || q.left.Load() || q.bytes.Load() >= q.room || len(q.batches) == cap(q.batches) {
		q.end()
		return
	}
	b := copyBatch(batch)
	q.bytes.Add(b.size)
	q.batches <- b
}

// end tells the reader that no more is put.
func (q *queue) end() {
	if !q.ended {
		q.ended = true
		close(q.batches)
	}
}

func copyBatch(batch []stream.Record) (own ownBatch) {
	size := 0
	for i := range batch {
		size += len(batch[i].Key) + len(batch[i].Value)
	}
	buf := make([]byte, 0, size)
	keep := func(b []byte) []byte {
		n := len(buf)
		buf = append(buf, b...)
		return buf[n:len(buf):len(buf)]
	}
	own.records, own.size = make([]stream.Record, len(batch)), int64(size)
	for i := range batch {
		r := &batch[i]
		own.records[i] = stream.Record{Offset: r.Offset, Time: r.Time, Type: r.Type, Key: keep(r.Key),
			Value: keep(r.Value)}
	}
	return own
}

// Read returns a reader of a queue to the first who reads its partition, to others one of the log.
func (p *pipe) Read(ctx context.Context, topic string, partition int, from int64) (stream.Reader, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	place := stream.Place{Topic: topic, Partition: partition}
	if q := p.queues[place]; q != nil {
		delete(p.queues, place)
		return &queueReader{queue: q, at: from}, nil
	}
	return p.Log.Read(ctx, topic, partition, from)
}

// queueReader reads a queue, and then the log.
type queueReader struct {
	*queue
	at   int64
	rest stream.Reader // once the queue has ended
}

func (r *queueReader) Next(ctx context.Context, dst []stream.Record) (_ []stream.Record, err error) {
	if r.rest != nil {
		return r.rest.Next(ctx, dst)
	}
	select {
	case b, ok := <-r.batches:
		if !ok {
			r.rest, err = r.Log.Read(ctx, r.place.Topic, r.place.Partition, r.at)
			return dst, err
		}
		r.bytes.Add(-b.size)
		for i := range b.records {
			if x := &b.records[i]; x.Offset >= r.at {
				dst, r.at = append(dst, *x), x.Offset+1
			}
		}
		return dst, nil
	case <-ctx.Done():
		return dst, ctx.Err()
	}
}

func (r *queueReader) Position() int64 {
	if r.rest != nil {
		return r.rest.Position()
	}
	return r.at
}

func (r *queueReader) Close() error {
	r.left.Store(true)
	if r.rest != nil {
		return r.rest.Close()
	}
	return nil
}
