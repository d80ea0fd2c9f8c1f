package verify

import (
	"context"
	"sync"

	"hindsight/pkg/stream"
)

// Both checks read decisions and feedback, and reading is most of the work. So the check of
// decisions hands on what it reads, one way. It waits while the other is too far behind,
// unless that one waits for it: then the other reads on by itself.

// pipeRoom is how many bytes are queued.
const pipeRoom = 64 << 20

// pipe is the log as the check of fates reads it.
type pipe struct {
	stream.Log
	mu      sync.Mutex
	changed sync.Cond
	room    int // bytes that are queued at most
	queues  map[stream.Place]*queue
	bytes   int  // in all queues
	starved bool // the reader of an empty queue waits
}

// queue holds records of one partition. Its fields are guarded by the pipe's mutex.
type queue struct {
	*pipe
	place   stream.Place
	batches []ownBatch
	ended   bool // no more is put
	joined  bool // it has had its reader
}

// ownBatch are records whose bytes are their own.
type ownBatch struct {
	records []stream.Record
	size    int
}

func newPipe(log stream.Log) *pipe {
	p := &pipe{Log: log, room: pipeRoom, queues: map[stream.Place]*queue{}}
	p.changed.L = &p.mu
	return p
}

// take has a cursor hand on what it reads.
func (p *pipe) take(c *logCursor) {
	c.to = &queue{pipe: p, place: stream.Place{Topic: c.topic, Partition: c.partition}}
	p.queues[c.to.place] = c.to
}

// handOn has the cursors of the one check hand on what they read, and returns the log for the other.
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
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.bytes >= q.room && !q.starved && !q.ended {
		q.changed.Wait()
	}
	if q.ended = q.ended || q.bytes >= q.room; !q.ended {
		b := copyBatch(batch)
		q.batches, q.bytes = append(q.batches, b), q.bytes+b.size
	}
	q.changed.Broadcast()
}

// end tells the reader that no more is put.
func (q *queue) end() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ended = true
	q.changed.Broadcast()
}

// pop returns the next records, nil if no more are queued.
func (q *queue) pop() []stream.Record {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.batches) == 0 && !q.ended {
		q.starved = true
		q.changed.Broadcast()
		q.changed.Wait()
	}
	q.starved = false
	if len(q.batches) == 0 {
		return nil
	}
	b := q.batches[0]
	q.batches, q.bytes = q.batches[1:], q.bytes-b.size
	q.changed.Broadcast()
	return b.records
}

// drop forgets what is queued.
func (q *queue) drop() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, b := range q.batches {
		q.bytes -= b.size
	}
	q.batches, q.ended = nil, true
	q.changed.Broadcast()
}

func copyBatch(batch []stream.Record) (own ownBatch) {
	for i := range batch {
		own.size += len(batch[i].Key) + len(batch[i].Value)
	}
	buf := make([]byte, 0, own.size)
	keep := func(b []byte) []byte {
		n := len(buf)
		buf = append(buf, b...)
		return buf[n:len(buf):len(buf)]
	}
	own.records = make([]stream.Record, len(batch))
	for i := range batch {
		r := &batch[i]
		own.records[i] = stream.Record{Offset: r.Offset, Time: r.Time, Type: r.Type, Key: keep(r.Key), Value: keep(r.Value)}
	}
	return own
}

// leave has nothing queued any more.
func (p *pipe) leave() {
	for _, q := range p.queues {
		q.drop()
	}
}

// Read returns a reader of a queue to the first who reads its partition, to others one of the log.
func (p *pipe) Read(ctx context.Context, topic string, partition int, from int64) (stream.Reader, error) {
	p.mu.Lock()
	q := p.queues[stream.Place{Topic: topic, Partition: partition}]
	first := q != nil && !q.joined
	if first {
		q.joined = true
	}
	p.mu.Unlock()
	if first {
		return &queueReader{queue: q, at: from}, nil
	}
	return p.Log.Read(ctx, topic, partition, from)
}

// queueReader reads a queue, and then the log.
type queueReader struct {
	*queue
	at   int64
	rest stream.Reader
}

func (r *queueReader) Next(ctx context.Context, dst []stream.Record) ([]stream.Record, error) {
	if r.rest != nil {
		return r.rest.Next(ctx, dst)
	}
	batch := r.pop()
	if batch == nil {
		var err error
		r.rest, err = r.Log.Read(ctx, r.place.Topic, r.place.Partition, r.at)
		return dst, err
	}
	for i := range batch {
		if batch[i].Offset >= r.at {
			dst, r.at = append(dst, batch[i]), batch[i].Offset+1
		}
	}
	return dst, nil
}

func (r *queueReader) Position() int64 {
	if r.rest != nil {
		return r.rest.Position()
	}
	return r.at
}

func (r *queueReader) Close() error {
	r.drop()
	if r.rest != nil {
		return r.rest.Close()
	}
	return nil
}
