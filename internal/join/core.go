package join

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"hindsight/internal/envelope"
	"hindsight/internal/intake"
	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// Core owns the feedback log of a model: it writes cuts, feedback, rejects and marks. One goroutine
// uses it.
type Core struct {
	cfg      Config
	history  History
	heart    *loop.Joiner
	feedback stream.Appender
	rejects  stream.Appender
	chooser  *chooser
	taker    taker

	failed  atomic.Pointer[error]
	acked   atomic.Uint64 // seq of the last acknowledged append to feedback
	awaited atomic.Uint64 // seq whose acknowledgement is to wake the owner; 0: none
	sent    uint64        // seq of the last append
	marks   markLog
	queue   []rejected
	queued  int   // bytes in queue
	through int64 // offset behind the last own reject that was acknowledged
	marked  int64 // N of the last mark
	records int   // taken since the last mark
	eras    []codec.EraStart
	cutSeq  uint64    // of the last cut
	cutAt   time.Time // when it was written
	since   time.Time // when the oldest decision in hand came; zero: none
	outcome time.Time // when one was last in hand
	tickAt  time.Time

	ready   loop.Ready
	cut     codec.Cut
	buf     []byte
	encoder envelope.Encoder
}

// The pace of cuts. With an outcome in hand a cut is written at once if the one before it is
// acknowledged, so that a loop of one round at a time does not wait.
const (
	cutEvery       = 5 * time.Millisecond // otherwise
	decisionsEvery = 100 * time.Millisecond
	manyDecisions  = 1000
	markRecords    = 10_000      // taken between marks
	maxQueued      = 16 << 20    // bytes of rejects that wait
	calm           = time.Second // without outcomes, after which decisions are no longer sent ahead
)

// fail notes the first error of an append to a topic. From then on the core is dead.
func (c *Core) fail(topic string, err error) {
	c.cfg.Hooks.appended(topic, err)
	if c.failed.CompareAndSwap(nil, &err) {
		c.cfg.Wake()
	}
}

// ack is the AckFunc of feedback.
func (c *Core) ack(seq uint64, offset int64, err error) {
	if err != nil {
		c.fail(c.cfg.Topics.Feedback, err)
		return
	}
	c.acked.Store(seq)
	c.marks.ack(seq, offset)
	if n := c.awaited.Load(); n != 0 && seq >= n {
		c.awaited.Store(0)
		c.cfg.Wake()
	}
}

// Heart returns the heart, for figures.
func (c *Core) Heart() *loop.Joiner { return c.heart }

// Start has the inputs read ahead in goroutines.
func (c *Core) Start(ctx context.Context) {
	for _, in := range c.chooser.inputs {
		in.Start(ctx, c.cfg.Wake)
	}
}

// Close releases everything. What was not acknowledged is unknown.
func (c *Core) Close() {
	if c.chooser != nil {
		for _, in := range c.chooser.inputs {
			in.Close()
		}
	}
	if c.feedback != nil {
		c.feedback.Close()
	}
	if c.rejects != nil {
		c.rejects.Close()
	}
}

// Step writes a cut if it is time for one, with what follows from it. It reports whether it did
// anything, and otherwise how long it may wait if nothing wakes it; 0: for ever. After an error the
// core is dead.
func (c *Core) Step(ctx context.Context, now time.Time) (busy bool, wait time.Duration, err error) {
	if e := c.failed.Load(); e != nil {
		return false, 0, *e
	}
	outcomes, decisions, err := c.chooser.poll(ctx)
	if err != nil {
		return false, 0, err
	}
	c.sendAhead(outcomes, now)
	if wait = c.pace(outcomes, decisions, now); wait != 0 {
		return false, max(wait, 0), c.rest(ctx)
	}
	busy, err = c.chooser.choose(ctx)
	if errors.Is(err, intake.ErrHeld) {
		return false, intake.HeldWait, c.rest(ctx)
	}
	if err != nil {
		return false, 0, err
	}
	if busy {
		if err := c.write(ctx, now); err != nil {
			return true, 0, err
		}
	}
	if err := c.storeRejects(ctx); err != nil {
		return busy, 0, err
	}
	if e := c.failed.Load(); e != nil {
		return busy, 0, *e
	}
	if c.heart.LastN()-c.marked >= c.cfg.MarkEvery || c.records >= markRecords {
		return true, 0, c.Mark(ctx)
	}
	return busy, 0, nil
}

// sendAhead has decisions sent as they are stored while outcomes come, which need them at once, and otherwise when the
// joiner reads them: sending each takes processors from the request that it answers.
func (c *Core) sendAhead(outcomes int, now time.Time) {
	if outcomes > 0 {
		c.outcome = now
	}
	for _, in := range c.chooser.inputs[:c.chooser.partitions] {
		in.OnDemand(now.Sub(c.outcome) > calm)
	}
}

// rest does what need not be done at once, and has the last cut's acknowledgement wake the owner.
func (c *Core) rest(ctx context.Context) error {
	if c.acked.Load() < c.cutSeq {
		c.awaited.Store(c.cutSeq)
		if c.acked.Load() >= c.cutSeq { // it came meanwhile
			c.awaited.Store(0)
			c.cfg.Wake()
		}
	}
	return c.storeRejects(ctx)
}

// pace returns how long to wait before the next cut; 0: it is time, below 0: there is nothing to take.
// It only chooses: a zero now, of a simulation, never waits.
func (c *Core) pace(outcomes, decisions int, now time.Time) time.Duration {
	if decisions == 0 {
		c.since = time.Time{}
	} else if c.since.IsZero() {
		c.since = now
	}
	switch {
	case outcomes == 0 && decisions == 0 && !c.chooser.due():
		return -1
	case now.IsZero() || decisions >= manyDecisions:
		return 0
	case outcomes > 0 || c.chooser.due():
		if c.acked.Load() >= c.cutSeq {
			return 0
		}
		return max(0, cutEvery-now.Sub(c.cutAt))
	}
	return max(0, decisionsEvery-now.Sub(c.since))
}

// write takes the cut that was chosen, and appends it and what follows from it.
func (c *Core) write(ctx context.Context, now time.Time) error {
	batches, n, err := c.taker.take(&c.cut, c.heart.LastCut()+1, c.chooser)
	if err != nil {
		return err
	}
	if err := c.heart.Take(&c.cut, batches); err != nil {
		return err
	}
	c.chooser.taken()
	c.records += n
	c.since = time.Time{}
	return c.follow(ctx, now)
}

// follow appends the cut that was taken, and what follows from it.
func (c *Core) follow(ctx context.Context, now time.Time) error {
	if c.cfg.Hooks.Cut != nil {
		c.cfg.Hooks.Cut()
	}
	c.buf = codec.AppendCut(c.buf[:0], &c.cut)
	if err := c.append(ctx, &stream.Record{Type: codec.TypeCut, Value: c.buf}); err != nil {
		return err
	}
	c.cutSeq, c.cutAt = c.sent, now
	c.heart.Ready(&c.ready)
	for i := range c.ready.Feedback {
		if err := c.appendFeedback(ctx, &c.ready.Feedback[i]); err != nil {
			return err
		}
	}
	return c.queueRejects(ctx, c.cutSeq)
}

func (c *Core) append(ctx context.Context, r *stream.Record) (err error) {
	c.encoder.Encode(r)
	c.sent, err = c.feedback.Append(ctx, r)
	c.cfg.Hooks.appended(c.cfg.Topics.Feedback, err)
	return err
}

func (c *Core) appendFeedback(ctx context.Context, f *codec.Feedback) error {
	c.buf = codec.AppendFeedback(c.buf[:0], f)
	if err := c.append(ctx, &stream.Record{Key: []byte(f.ID), Value: c.buf}); err != nil {
		return err
	}
	if c.cfg.Hooks.Feedback != nil {
		c.cfg.Hooks.Feedback(f)
	}
	return nil
}

// Consumed returns the lowest offset of an input that was not taken.
func (c *Core) Consumed(input int) int64 {
	return c.chooser.inputs[input].Consumed()
}

// Flush waits until all that follows from the cuts so far is stored.
func (c *Core) Flush(ctx context.Context) error {
	if err := c.feedback.Flush(ctx); err != nil {
		return err
	}
	if err := c.storeRejects(ctx); err != nil {
		return err
	}
	return c.rejects.Flush(ctx)
}

// Mark appends a mark, once all that follows from the cuts before it is stored.
func (c *Core) Mark(ctx context.Context) error {
	if err := c.Flush(ctx); err != nil {
		return err
	}
	var m codec.FeedbackMark
	c.heart.Mark(&m)
	m.Limits, m.Eras, m.Rejects, m.Epochs = c.cfg.Limits, c.eras, c.through, c.cfg.Epochs.Refs()
	c.marks.refer(&m, c.heart.OldestCut(), c.heart.OldestTold())
	if err := c.appendMark(ctx, &m); err != nil {
		return err
	}
	c.marked, c.records = m.N, 0
	return c.heart.SetLimits(&m)
}

// appendMark has the mark known before it is acknowledged, which may be before Append returns.
func (c *Core) appendMark(ctx context.Context, m *codec.FeedbackMark) error {
	c.marks.add(c.sent+1, m)
	return c.append(ctx, &stream.Record{Type: codec.TypeMark, Value: codec.AppendFeedbackMark(nil, m)})
}

// Stop stores the joiner's position, so that the next one starts there.
func (c *Core) Stop(ctx context.Context) error {
	if err := c.Mark(ctx); err != nil {
		return err
	}
	return c.feedback.Flush(ctx)
}

// Append appends records of an epoch behind all that follows from the cuts so far, and returns the
// offset of the first. They are stored when it returns.
func (c *Core) Append(ctx context.Context, records []stream.Record) (first int64, err error) {
	if err := c.feedback.Flush(ctx); err != nil {
		return 0, err
	}
	if _, first, err = c.cfg.Log.Bounds(ctx, c.cfg.Topics.Feedback, 0); err != nil {
		return 0, err
	}
	for i := range records {
		if err := c.append(ctx, &records[i]); err != nil {
			return 0, err
		}
		if err := c.begin(&records[i]); err != nil {
			return 0, err
		}
	}
	return first, c.feedback.Flush(ctx)
}

// begin tells the guard of an epoch whose record has its place in the log, and which is known.
func (c *Core) begin(r *stream.Record) error {
	if r.Type != codec.TypeEpoch {
		return nil
	}
	rec, err := codec.ParseEpoch(r.Value)
	if err == nil {
		rules := c.cfg.Epochs.Rules(rec.Epoch)
		c.heart.Guard().Begin(rec.Epoch, rec.Continues > 0, rules)
		c.heart.Judge().Begin(rec.Epoch, rec.Continues > 0, rules)
	}
	return codec.UnlessForeign(err)
}

// Told returns the latest log time that a record told.
func (c *Core) Told() int64 { return max(c.heart.Now(), c.chooser.told) }

// Tick moves log time on where no record does: it appends an empty cut, reads back its log time, and
// the next cut may close by that. clock is the log time of now as far as the process can tell, which
// only triggers it.
func (c *Core) Tick(ctx context.Context, now time.Time, clock int64) error {
	due, known := c.heart.Due()
	if !known || due > clock || now.Sub(c.tickAt) < time.Second {
		return nil
	}
	c.tickAt = now
	if err := c.feedback.Flush(ctx); err != nil {
		return err
	}
	c.cut = codec.Cut{Cut: c.heart.LastCut() + 1, Time: c.heart.Now()}
	if err := c.heart.Take(&c.cut, nil); err != nil {
		return err
	}
	_, offset, err := c.cfg.Log.Bounds(ctx, c.cfg.Topics.Feedback, 0)
	if err != nil {
		return err
	}
	if err := c.follow(ctx, now); err != nil { // where an era has just begun, some may
		return err
	}
	if err := c.feedback.Flush(ctx); err != nil {
		return err
	}
	err = stream.Scan(ctx, c.cfg.Log, c.cfg.Topics.Feedback, 0, offset, offset+1<<20, func(r *stream.Record) error {
		if c.cfg.Believe == nil || c.cfg.Believe(c.cfg.Topics.Feedback, 0, r) {
			c.chooser.told = max(c.chooser.told, r.Time)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("reading back log time: %w", err)
	}
	return nil
}

// markLog knows where marks lie to which a restart may go back.
type markLog struct {
	mu    sync.Mutex
	marks []markAt // ascending; those that no mark will refer to are dropped
	dedup int64
}

type markAt struct {
	seq    uint64
	offset int64 // -1: not yet acknowledged
	cut, n int64
	forgot int64 // the last feedback that need not be remembered there
}

// markFrom returns what a mark log keeps of a mark.
func (l *markLog) markFrom(seq uint64, offset int64, m *codec.FeedbackMark) markAt {
	return markAt{seq, offset, loop.CutOf(m), m.N, l.forgot(m)}
}

// forgot returns the last feedback that need not be remembered at a mark. One of a joiner without cuts does not say it.
func (l *markLog) forgot(m *codec.FeedbackMark) int64 {
	n := m.N - l.dedup
	if !loop.WithoutCuts(m) {
		n = min(n, m.Remembers-1)
	}
	return n
}

func (l *markLog) add(seq uint64, m *codec.FeedbackMark) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.marks = append(l.marks, l.markFrom(seq, -1, m))
}

func (l *markLog) ack(seq uint64, offset int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := len(l.marks) - 1; i >= 0; i-- {
		if l.marks[i].seq == seq && l.marks[i].offset < 0 {
			l.marks[i].offset = offset
			return
		}
	}
}

// refer fills in From, FromCut and Memory of a new mark. A restart from it needs the cuts from oldest on, and the
// feedback that is remembered and from told on.
func (l *markLog) refer(m *codec.FeedbackMark, oldest, told int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	forgot := l.forgot(m)
	m.From, m.FromCut, m.Memory = -1, m.Cut, -1
	if oldest <= m.Cut {
		m.FromCut, forgot = -1, -l.dedup // the logs' beginning, unless there is a mark
		for i := range l.marks {
			if x := &l.marks[i]; x.offset >= 0 && x.cut < oldest {
				m.From, m.FromCut, forgot = x.offset, x.cut, x.forgot
			}
		}
	}
	memory := -1
	for i := range l.marks {
		if x := &l.marks[i]; x.offset >= 0 && x.n <= forgot && x.n < told && (m.From < 0 || x.offset <= m.From) {
			memory, m.Memory = i, x.offset
		}
	}
	if memory > 0 { // From is not older
		l.marks = l.marks[memory:]
	}
}
