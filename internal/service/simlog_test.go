package service

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"

	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/mem"
)

// errKilled is what a killed process gets from its log.
var errKilled = errors.New("killed")

// process is one simulated process: it sees the log through a view of its own, in
// which acknowledgements come late and appends are on their way for a while, and it
// can be killed between any two operations on the log, or in the middle of one.
type process struct {
	w         *wire
	name      string
	dead      bool
	fuse      int // operations until it is killed; 0: none
	appenders []*simAppender
	cuts      bool // the process is a joiner that may cut, and does not recover
}

// wire is what lies between the processes and the log.
type wire struct {
	log    *mem.Log
	rng    *rand.Rand
	late   float64 // share of appends that are stored later than sent
	prompt float64 // share of appends that are acknowledged at once
	strays []*simAppender
	stored int // records
	fatal  func(format string, args ...any)
	plant  planted

	reached [2]map[int]int64 // where cuts have left decisions and outcomes, by partition
	last    *codec.Feedback  // of a stage, of those spoilt
}

func (p *process) op() error {
	if p.dead {
		return errKilled
	}
	if p.fuse > 0 {
		if p.fuse--; p.fuse == 0 {
			p.kill()
			return errKilled
		}
	}
	return nil
}

// kill ends a process: what it had sent may still arrive, in order, up to some
// point.
func (p *process) kill() {
	p.dead = true
	for _, a := range p.appenders {
		a.leave()
	}
}

// deliver acknowledges at most n appends of each appender.
func (p *process) deliver(n int) {
	for _, a := range p.appenders {
		for i := 0; i < n && len(a.queue) > 0; i++ {
			a.deliver()
		}
	}
}

// simLog is the view of a process.
type simLog struct{ p *process }

var _ stream.Log = simLog{}

func (l simLog) Create(ctx context.Context, topic string, partitions int, o stream.TopicOptions) error {
	return l.p.w.log.Create(ctx, topic, partitions, o)
}

func (l simLog) Partitions(ctx context.Context, topic string) (int, error) {
	return l.p.w.log.Partitions(ctx, topic)
}

func (l simLog) Close() error { return nil }

func (l simLog) Open(ctx context.Context, topic string, partition int, o stream.OpenOptions) (stream.Appender,
	stream.Tail, error) {
	if err := l.p.op(); err != nil {
		return nil, stream.Tail{}, err
	}
	a := &simAppender{p: l.p, topic: topic, user: o.Ack, owned: true}
	o.Ack, o.Owner = a.acknowledged, l.p.name
	inner, tail, err := l.p.w.log.Open(ctx, topic, partition, o)
	if err != nil {
		return nil, tail, err
	}
	a.inner = inner
	if l.p.w.plant.unfenced {
		a.inner, _ = l.p.w.log.Writer(ctx, topic, partition, a.acknowledged)
	}
	l.p.appenders = append(l.p.appenders, a)
	return a, tail, nil
}

func (l simLog) Writer(ctx context.Context, topic string, partition int, ack stream.AckFunc) (stream.Appender, error) {
	if err := l.p.op(); err != nil {
		return nil, err
	}
	a := &simAppender{p: l.p, topic: topic, user: ack}
	inner, err := l.p.w.log.Writer(ctx, topic, partition, a.acknowledged)
	a.inner = inner
	l.p.appenders = append(l.p.appenders, a)
	return a, err
}

func (l simLog) Read(ctx context.Context, topic string, partition int, from int64) (stream.Reader, error) {
	if err := l.p.op(); err != nil {
		return nil, err
	}
	r, err := l.p.w.log.Read(ctx, topic, partition, from)
	if err != nil {
		return nil, err
	}
	return &simReader{Reader: r, p: l.p, topic: topic, partition: partition}, nil
}

func (l simLog) Bounds(ctx context.Context, topic string, partition int) (first, next int64, err error) {
	if err := l.p.op(); err != nil {
		return 0, 0, err
	}
	first, next, err = l.p.w.log.Bounds(ctx, topic, partition)
	if topic == l.p.w.plant.stale && l.p.cuts && first < next && l.p.w.rng.IntN(2) == 0 {
		next--
	}
	return first, next, err
}

func (l simLog) Trim(ctx context.Context, topic string, partition int, before int64) error {
	if err := l.p.op(); err != nil {
		return err
	}
	return l.p.w.log.Trim(ctx, topic, partition, before)
}

// simReader fails where a read would wait for ever: the simulation has one
// goroutine.
type simReader struct {
	stream.Reader
	p         *process
	topic     string
	partition int
}

func (r *simReader) Next(ctx context.Context, dst []stream.Record) ([]stream.Record, error) {
	if err := r.p.op(); err != nil {
		return nil, err
	}
	_, next, err := r.p.w.log.Bounds(ctx, r.topic, r.partition)
	if err != nil {
		return nil, err
	}
	if r.Position() >= next {
		r.p.w.fatal("%s waits for records of %s[%d]@%d, and the log ends at %d", r.p.name, r.topic, r.partition,
			r.Position(), next)
		return nil, errKilled
	}
	dst, err = r.Reader.Next(ctx, dst)
	for i := range dst {
		if r.p.w.plant.ahead && r.p.cuts && r.topic == "m.feedback" {
			dst[i].Time += 1000 * millisecond
		}
	}
	return dst, err
}

// simAppender keeps appends on their way, and acknowledgements back.
type simAppender struct {
	p      *process
	topic  string
	inner  stream.Appender
	user   stream.AckFunc
	owned  bool
	queue  []sent
	seq    uint64
	err    error // the first that was delivered
	closed bool
	held   stream.Record // planted: a record that is overtaken

	offset int64 // of the last append that was stored, and its error
	failed error
}

type sent struct {
	seq    uint64
	r      *stream.Record // nil: stored, or not, already
	offset int64
	err    error
}

// ownerHeader says who sent a record, orderHeader the how manieth it is of all that processes wrote.
const ownerHeader, orderHeader = "sim-owner", "sim-order"

func (a *simAppender) acknowledged(_ uint64, offset int64, err error) {
	a.offset, a.failed = offset, err
}

func (a *simAppender) Append(ctx context.Context, r *stream.Record) (uint64, error) {
	w := a.p.w
	last := a.p.fuse == 1 && w.rng.IntN(2) == 0 // killed after it sent this one
	if !last {
		if err := a.p.op(); err != nil {
			return 0, err
		}
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if a.closed {
		return 0, stream.ErrClosed
	}
	if a.err != nil {
		return 0, a.err
	}
	a.seq++
	c := &stream.Record{Type: r.Type, Key: slices.Clone(r.Key), Value: slices.Clone(r.Value),
		Headers: slices.Clone(r.Headers)}
	if a.owned {
		c.Headers = append(c.Headers, stream.Header{Key: ownerHeader, Value: a.p.name})
	}
	if a.owned && a.topic == "m.feedback" {
		w.spoil(c)
	}
	late := w.rng.Float64() < w.late || len(a.queue) > 0 && a.queue[len(a.queue)-1].r != nil
	a.queue = append(a.queue, sent{seq: a.seq, r: c})
	if !late {
		s := &a.queue[len(a.queue)-1]
		s.offset, s.err = a.store(c)
		s.r = nil
	}
	if last {
		a.p.op()
		return 0, errKilled
	}
	if w.rng.Float64() < w.prompt {
		for len(a.queue) > 0 {
			a.deliver()
		}
	}
	if w.plant.hasty && a.topic == "m.feedback" && a.user != nil && len(a.queue) > 0 {
		a.user(a.seq, a.offset+1, nil)
	}
	return a.seq, nil
}

// store puts a record into the log.
func (a *simAppender) store(r *stream.Record) (int64, error) {
	if a.p.w.plant.overtake && r.Type == "" && a.owned && a.held.Value == nil && a.p.w.rng.IntN(10) == 0 {
		a.held = *r // a log that lets the next record overtake this one
		return a.offset, a.failed
	}
	a.p.w.stored++
	r.Headers = append(r.Headers, stream.Header{Key: orderHeader, Value: strconv.Itoa(a.p.w.stored)})
	if _, err := a.inner.Append(context.Background(), r); err != nil {
		return 0, err
	}
	offset, err := a.offset, a.failed
	if a.held.Value != nil {
		a.inner.Append(context.Background(), &a.held)
		a.held = stream.Record{}
	}
	return offset, err
}

// deliver stores the oldest append on its way, and acknowledges it to who lives.
func (a *simAppender) deliver() {
	s := a.queue[0]
	a.queue = a.queue[1:]
	if s.r != nil {
		s.offset, s.err = a.store(s.r)
	}
	if a.closed || a.p.dead {
		return
	}
	if a.err != nil {
		s.err = a.err
	}
	a.err = s.err
	if a.user != nil {
		a.user(s.seq, s.offset, s.err)
	}
}

func (a *simAppender) Flush(ctx context.Context) error {
	if err := a.p.op(); err != nil {
		return err
	}
	if a.p.w.plant.flushLies && !a.owned {
		return a.err
	}
	for len(a.queue) > 0 && a.err == nil {
		a.deliver()
		if err := a.p.op(); err != nil {
			return err
		}
	}
	return a.err
}

func (a *simAppender) Close() error {
	a.closed = true
	a.leave()
	return nil
}

// leave loses the last of what is on its way; the rest may arrive at any time.
func (a *simAppender) leave() {
	if len(a.queue) == 0 {
		return
	}
	a.queue = a.queue[:a.p.w.rng.IntN(len(a.queue)+1)]
	if !slices.Contains(a.p.w.strays, a) {
		a.p.w.strays = append(a.p.w.strays, a)
	}
}

// stray lets some records of the dead arrive.
func (w *wire) stray(all bool) {
	for i := 0; i < len(w.strays); {
		a := w.strays[i]
		for len(a.queue) > 0 && (all || w.rng.IntN(3) > 0) {
			a.deliver()
		}
		if len(a.queue) > 0 {
			i++
			continue
		}
		w.strays = append(w.strays[:i], w.strays[i+1:]...)
	}
}

// planted are faults that the simulation must find.
type planted struct {
	unfenced  bool // earlier owners can go on writing
	flushLies bool // Flush of rejects returns before they are stored
	overtake  bool // records overtake each other
	forget    bool // ids are forgotten
	arrival   bool // feedback is released in the order of arrival
	window    bool // windows are one round or nanosecond too long
	silence   bool // silence is learned as another loss
	soon      bool // silence is learned early as another loss
	seed      bool // deciders draw with another seed
	sticky    bool // draws of units hold for too long
	hasty     bool // appends of feedback are acknowledged before they are stored
	// to a joiner the ends of this topic are those before its last record, now and then
	stale  string
	ahead  bool                                      // a joiner's ticks go by a clock that is ahead of the log's
	limits bool                                      // a joiner goes by limits that no mark tells of
	cut    func(w *wire, c *codec.Cut)               // spoils some cuts on their way
	mark   func(w *wire, m *codec.FeedbackMark) bool // spoils a joiner's mark; false: it is as it was
	// spoils some of the feedback of models that name outcomes
	feedback func(w *wire, f *codec.Feedback)
}
