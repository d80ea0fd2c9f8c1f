package service

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"hindsight/internal/envelope"
	"hindsight/internal/follow"
	"hindsight/internal/front"
	"hindsight/internal/intake"
	"hindsight/internal/join"
	"hindsight/internal/loop"
	"hindsight/internal/topics"
	"hindsight/internal/trace"
	"hindsight/internal/watch"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// Decider owns one partition of decisions. It decides what is in contexts of that partition and what is asked by
// request, and learns from the feedback log between decisions. All its work is done under mu.
type Decider struct {
	cfg    SystemConfig
	topics join.Topics

	mu       sync.Mutex
	follower *follow.Follower
	heart    *loop.Decider
	contexts *intake.Input
	out      stream.Appender
	rejects  stream.Appender
	flight   *flight
	gate     *front.Gate // takes requests from the bus; nil: none do come
	recent   recent
	old      readBacks
	dec      codec.Decision
	buf      []byte
	brief    *front.Brief // of appends for requests
	encoder  envelope.Encoder
	carry    []byte // of carried
	unread   unread
	outside  unread
	strange  map[string]int64 // costs that were warned of, by budget
	unmarked bool             // contexts were rejected that no record in decisions tells of
	refused  int64            // offset behind the last reject that was acknowledged; 0: none is known
	seen     tail
	reached  int64 // log time that any of the logs has reached
	refit    refit
	closed   bool

	failed   atomic.Pointer[error]
	wakeup   chan struct{} // contexts, room, or an epoch
	feedback chan struct{} // feedback
	snapshot chan *follow.Snapshot
	snapped  int64 // feedback through which the last snapshot was taken
	snapAt   time.Time
	stops    []func() // of what was served
	ready    func()   // called once, when there is a model to decide with
	spawn    func(func())

	slice time.Duration // most that contexts are decided at once; 0: no limit

	m       *watch.DeciderMetrics
	part    *watch.Part // of the process's health; may be nil
	batchAt time.Time   // when the contexts at work were taken up
	at      struct {
		contexts, feedback atomic.Int64                      // next unread offsets
		definition         atomic.Pointer[follow.Definition] // of the epoch at work; nil: none
	}
}

// OpenDecider takes a partition of decisions over from any earlier owner and recovers from the logs: the ids and
// positions in the tail of decisions, the learner from the last snapshot and the feedback behind it.
func OpenDecider(ctx context.Context, cfg SystemConfig) (*Decider, error) {
	d := &Decider{cfg: cfg, topics: join.TopicsOf(cfg.Name), brief: front.NewBrief(), wakeup: make(chan struct{}, 1),
		feedback: make(chan struct{}, 1), snapshot: make(chan *follow.Snapshot, 1), strange: map[string]int64{}}
	d.spawn = func(f func()) { go f() }
	d.cfg.complete()
	d.m = d.cfg.Metrics.Decider(cfg.Partition)
	d.flight = newFlight(d)
	d.encoder.Encoding = cfg.Encoding
	d.recent.init(cfg.Dedup, cfg.recentShare())
	out, tail, err := cfg.Log.Open(ctx, d.topics.Decisions, cfg.Partition,
		stream.OpenOptions{Owner: cfg.Owner, Ack: d.flight.ack, Value: codec.OpenValue(cfg.Encoding)})
	if err != nil {
		d.cfg.Metrics.AppendError(watch.DecisionsKind, err)
		d.m.Close()
		return nil, err
	}
	d.out = out
	d.cfg.wrote.offset.Store(tail.Open)
	d.flight.fit(out)
	if err := d.recover(ctx, tail); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

func (d *Decider) recover(ctx context.Context, tail stream.Tail) (err error) {
	c := &d.cfg
	d.follower, err = follow.Open(ctx, follow.Config{Log: c.Log, Name: c.Name, Partitions: c.Partitions, Build: c.Build,
		Logger: c.Logger, Metrics: c.Metrics, Warns: c.Partition == 0, Encoding: c.Encoding})
	if err != nil {
		return err
	}
	d.follower.Apart = d.unlocked
	d.snapped, d.snapAt = d.follower.Replica().LearnedThrough(), time.Now()
	damaged, size, at := d.follower.Found()
	d.m.Snapshots[watch.SnapshotDamaged].Add(float64(damaged))
	if err := d.readTail(ctx, tail); err != nil {
		return err
	}
	if k := len(d.seen.refused); k > 0 {
		d.refused = d.seen.refused[k-1].Rejects
	}
	if d.rejects, err = c.Log.Writer(ctx, d.topics.Rejects, 0, d.rejectAck); err != nil {
		return err
	}
	if err := d.announceLosses(ctx); err != nil {
		return err
	}
	if err := d.markEpoch(ctx); err != nil {
		return err
	}
	from := d.heart.ContextsThrough()
	if from == 0 {
		from = stream.Earliest
	}
	if err := d.openContexts(ctx, from); err != nil {
		return err
	}
	d.at.contexts.Store(d.contexts.Consumed())
	d.show()
	if at > 0 && c.SnapshotEvery > 0 {
		d.m.Snapshot(size, time.Unix(0, at))
	}
	return nil
}

// mark appends the decider's positions, so that the log's tail tells them.
func (d *Decider) mark(ctx context.Context, m codec.DecisionMark) error {
	m.N, m.ContextsThrough = d.heart.Next()-1, d.heart.ContextsThrough()
	return d.appendMark(ctx, m)
}

// appendMark appends a mark behind a decision and contexts, once the rejects of those are stored.
func (d *Decider) appendMark(ctx context.Context, m codec.DecisionMark) error {
	if d.unmarked {
		err := d.rejects.Flush(ctx)
		if d.fail(err); err != nil {
			return err
		}
	}
	m.V, m.LearnedThrough, m.Time = codec.Version, d.follower.Replica().LearnedThrough(), d.seen.time
	m.Era, m.Rejects = d.follower.Replica().Era(), d.refused
	d.unmarked = false
	return d.append(ctx, &stream.Record{Type: codec.TypeMark, Value: codec.AppendDecisionMark(nil, &m)}, ticket{})
}

// append sends one record of decisions, with what is to be done at its acknowledgement.
func (d *Decider) append(ctx context.Context, r *stream.Record, t ticket) error {
	if err := d.Err(); err != nil { // a round that got its number may be missing
		return err
	}
	d.flight.add(t)
	d.encoder.Encode(r)
	_, err := d.out.Append(ctx, r)
	d.cfg.Metrics.AppendError(watch.DecisionsKind, err)
	d.fail(err)
	return err
}

// rejectAck is the AckFunc of rejects.
func (d *Decider) rejectAck(_ uint64, offset int64, err error) {
	d.cfg.Metrics.AppendError(watch.RejectsKind, err)
	if d.fail(err); err == nil {
		d.refused = max(d.refused, offset+1) // read behind a Flush alone
	}
}

func (d *Decider) fail(err error) {
	if err != nil {
		first := err // err itself would be on the heap at every call
		d.failed.CompareAndSwap(nil, &first)
		front.Signal(d.wakeup)
		front.Signal(d.feedback)
		front.Signal(d.flight.freed)
	}
}

func (d *Decider) wake() { front.Signal(d.wakeup) }

// Err returns the error that ended the decider, nil while it lives.
func (d *Decider) Err() error {
	if e := d.failed.Load(); e != nil {
		return *e
	}
	return nil
}

// StepContexts decides contexts that are there, at most n, and reports whether
// there were any. Rejects are stored, and a mark says where, before the first decision that passes them.
func (d *Decider) StepContexts(ctx context.Context, n int) (busy bool, err error) {
	if err := d.contexts.Poll(ctx); err != nil {
		return false, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.decides() == nil {
		return false, d.Err()
	}
	d.batchAt = time.Now()
	for ; n > 0 && len(d.contexts.Batch) > 0 && d.flight.topicRoom() && d.Err() == nil; n-- {
		if busy && d.slice > 0 && time.Since(d.batchAt) > d.slice { // one at least, or nothing would go on
			break
		}
		r := &d.contexts.Batch[0]
		d.seen.time = max(d.seen.time, r.Time)
		d.reached = max(d.reached, r.Time)
		if err := d.decideRecord(ctx, r, d.seen.time); err != nil {
			return true, err
		}
		d.contexts.Batch = d.contexts.Batch[1:]
		busy = true
	}
	d.at.contexts.Store(d.contexts.Consumed())
	return busy, d.Err()
}

func (d *Decider) decideRecord(ctx context.Context, r *stream.Record, logTime int64) error {
	if r.Type != "" {
		d.heart.Pass(r.Offset + 1)
		return nil
	}
	passed := d.heart.ContextsThrough()
	res := d.decide(r.Value, join.CloudEventID(r), loop.Source{Offset: r.Offset, Through: r.Offset + 1, Time: logTime})
	if res.Verdict != loop.Decided {
		return d.reject(ctx, r, res)
	}
	if d.unmarked {
		if err := d.appendMark(ctx, codec.DecisionMark{N: d.dec.N - 1, ContextsThrough: passed}); err != nil {
			return err
		}
	}
	return d.appendDecision(ctx, ticket{n: d.dec.N, at: d.batchAt, parent: trace.Of(r.Headers)})
}

// decide lets the heart decide a context.
func (d *Decider) decide(raw []byte, id string, src loop.Source) loop.Result {
	res := d.heart.Decide(&d.dec, raw, id, src)
	if res.Unread > 0 {
		d.noteUnread(raw, &res, time.Now())
	}
	if res.Outside > 0 {
		d.noteOutside(raw, &res, time.Now())
	}
	return res
}

func (d *Decider) appendDecision(ctx context.Context, t ticket) error {
	d.buf = codec.AppendDecision(d.buf[:0], &d.dec)
	d.recent.put(d.dec.N, d.buf)
	if t.external = d.dec.Mode == codec.External; !t.external {
		d.m.Gamma.Set(d.dec.Gamma)
	}
	d.cfg.Metrics.Scope().Decision(&d.dec)
	d.showOutstanding()
	if d.cfg.Trace != nil {
		t.span = d.cfg.Trace.Decided(t.parent, t.at, &d.dec)
		t.parent = t.span.Parent()
	}
	r := &stream.Record{Key: []byte(d.dec.ID), Value: d.buf}
	if t.parent != "" {
		r.Headers = []stream.Header{{Key: trace.Header, Value: t.parent}}
	}
	return d.append(ctx, r, t)
}

func (d *Decider) reject(ctx context.Context, r *stream.Record, res loop.Result) error {
	rej := codec.Reject{V: codec.Version, Topic: "contexts", Partition: d.cfg.Partition, Offset: r.Offset, Time: r.Time,
		Reason: codec.ReasonMalformed, Bytes: r.Value}
	if res.Verdict == loop.Invalid {
		rej.Detail = res.Err.Error()
	} else {
		// Until that round is stored it may never have been.
		if d.flight.has(res.N) {
			if err := d.out.Flush(ctx); err != nil {
				return err
			}
		}
		if err := d.Err(); err != nil {
			return err
		}
		rej.Reason = codec.ReasonDuplicateID
		rej.Detail = fmt.Sprintf("the id was used by round %d of partition %d", res.N, d.cfg.Partition)
	}
	d.heart.Pass(r.Offset + 1)
	d.unmarked = true
	rej.Fit()
	rec := stream.Record{Value: codec.AppendReject(nil, &rej)}
	d.encoder.Encode(&rec)
	_, err := d.rejects.Append(ctx, &rec)
	d.cfg.Metrics.AppendError(watch.RejectsKind, err)
	if err == nil {
		d.cfg.Metrics.NoteReject(&rej)
	}
	return err
}

// StepFeedback learns from the feedback that is there, for at most about limit (0: no limit), and reports whether there
// was any. Where an epoch begins whose learner is to be taught earlier feedback first, which takes longer, others
// decide on in the old epoch until that is done.
func (d *Decider) StepFeedback(ctx context.Context, limit time.Duration) (busy bool, err error) {
	in := d.follower.In
	if err := in.Poll(ctx); err != nil {
		return false, err
	}
	if len(in.Batch) == 0 {
		return false, d.Err()
	}
	start := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(in.Batch) > 0 {
		d.reached = max(d.reached, in.Batch[0].Time)
		if err := d.sameEncoding(&in.Batch[0]); err != nil {
			return true, err
		}
		if err := d.follower.TakeHead(ctx); err != nil {
			return true, err
		}
		if err := d.markEpoch(ctx); err != nil {
			return true, err
		}
		d.takeSnapshot()
		if limit > 0 && time.Since(start) > limit {
			break
		}
	}
	d.goOn()
	d.show()
	return true, d.Err()
}

// sameEncoding refuses to decide beside a joiner that began the model in another encoding: it may have begun after this
// process looked, and before it decides anything it reads the joiner's open record.
func (d *Decider) sameEncoding(r *stream.Record) error {
	if r.Type != stream.TypeOpen || d.decides() != nil || codec.EncodingOf(r.Value) == d.cfg.Encoding {
		return nil
	}
	return topics.OtherEncoding(d.cfg.Name, codec.EncodingOf(r.Value), d.cfg.Encoding)
}

// takeSnapshot hands the state to the writer when it is time for a snapshot: after so many feedbacks, or so long, for
// retention may drop what a restart would have to learn. If the writer is still busy with the last one it is left out.
func (d *Decider) takeSnapshot() {
	through, now := d.follower.Replica().LearnedThrough(), time.Now()
	old := through > d.snapped && now.Sub(d.snapAt) >= markInterval
	if d.cfg.SnapshotEvery > 0 && (d.follower.Warmed || old || through >= d.snapped+d.cfg.SnapshotEvery) {
		d.follower.Warmed = false
		if len(d.snapshot) > 0 {
			d.snapped, d.snapAt = through, now
		} else if s := d.follower.Snapshot(); s != nil {
			d.snapped, d.snapAt = through, now
			d.snapshot <- s
		}
	}
}

// WriteSnapshots writes the snapshots that wait.
func (d *Decider) WriteSnapshots(ctx context.Context) error {
	for {
		select {
		case s := <-d.snapshot:
			err := d.writeSnapshot(ctx, s)
			size := len(s.Bytes)
			s = nil
			if follow.FreeSnapshot(size); err != nil {
				return err
			}
		default:
			return nil
		}
	}
}

// Close releases everything. What was not acknowledged is unknown; requests that wait for it are told so.
func (d *Decider) Close() {
	d.unserve()
	for _, a := range []stream.Appender{d.out, d.rejects} {
		if a != nil {
			a.Close()
		}
	}
	d.leave()
	d.flight.abandon()
	d.m.Close()
	if d.contexts != nil {
		d.contexts.Close()
	}
	if d.follower != nil {
		d.follower.Close()
	}
}

// AppendState appends the bytes of a snapshot taken now.
func (d *Decider) AppendState(dst []byte) ([]byte, error) { return d.follower.AppendState(dst) }

// Replica returns the decider's learner at work, to look at.
func (d *Decider) Replica() *loop.Replica { return d.follower.Replica() }
