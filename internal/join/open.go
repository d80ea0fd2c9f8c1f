package join

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"

	"hindsight/internal/intake"
	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// ErrHistory reports a feedback log that does not follow from its cuts.
var ErrHistory = errors.New("the feedback log does not follow from its cuts")

// ErrLost reports records that a cut took and that the log does not hold as they were: it has lost its
// tail, and perhaps grown again.
var ErrLost = errors.New("the log no longer holds what a cut took")

// Open takes the feedback log over from any earlier owner and restores what that one knew: from the
// last mark, and by taking the cuts behind it again. What the last cut lacks it appends.
func Open(ctx context.Context, cfg Config) (*Core, error) {
	c := &Core{cfg: cfg, history: History{cfg.Log, cfg.Topics, cfg.Partitions, cfg.Seed, cfg.Epochs,
		cfg.Hooks.Again}}
	c.taker = taker{hooks: &c.cfg.Hooks, topics: &c.cfg.Topics}
	c.marks.dedup, c.encoder.Encoding = cfg.Limits.Dedup, cfg.Encoding
	var tail stream.Tail
	var err error
	c.feedback, tail, err = cfg.Log.Open(ctx, cfg.Topics.Feedback, 0, stream.OpenOptions{Owner: cfg.Owner, Ack: c.ack,
		Value: codec.OpenValue(cfg.Encoding)})
	if err != nil {
		cfg.Hooks.appended(cfg.Topics.Feedback, err)
		return nil, err
	}
	if err := c.open(ctx, tail); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func (c *Core) open(ctx context.Context, tail stream.Tail) error {
	var err error
	c.rejects, err = c.cfg.Log.Writer(ctx, c.cfg.Topics.Rejects, 0, func(_ uint64, offset int64, err error) {
		if err != nil {
			c.fail(c.cfg.Topics.Rejects, err)
			return
		}
		c.through = max(c.through, offset+1)
	})
	if err != nil {
		return err
	}
	c.heart = c.history.Heart(c.cfg.Limits)
	if err := c.recover(ctx, tail); err != nil {
		return err
	}
	inputs := make([]*intake.Input, 0, 2*c.cfg.Partitions)
	for i := range 2 * c.cfg.Partitions {
		in, err := c.openInput(ctx, i)
		if err != nil {
			return err
		}
		inputs = append(inputs, in)
	}
	c.chooser = newChooser(inputs, c.heart, c.cfg.Skew)
	c.chooser.patient = c.cfg.Patient
	c.chooser.told = c.heart.Now()
	return c.Stop(ctx)
}

// openInput opens an input where the heart reads it next.
func (c *Core) openInput(ctx context.Context, i int) (*intake.Input, error) {
	topic, p, from := c.history.Topic(i), i%c.cfg.Partitions, c.history.Position(c.heart, i)
	in, err := intake.Open(ctx, c.cfg.Log, topic, p, from)
	if errors.Is(err, stream.ErrTruncated) {
		what := "which waiting rounds may need"
		if i < c.cfg.Partitions {
			what = "of rounds that have no feedback yet"
		}
		err = MissingFrom(ctx, c.cfg.Log, topic, p, from, err, what)
		if c.cfg.AcceptLoss {
			c.cfg.Logger.Error(GoingOn, "error", err)
			in, err = intake.Open(ctx, c.cfg.Log, topic, p, 0)
		}
	}
	if err == nil && c.cfg.Believe != nil {
		in.Believe = func(r *stream.Record) bool { return c.cfg.Believe(topic, p, r) }
	}
	return in, err
}

// recover brings the heart to the end of the feedback log, and begins an era if inputs have lost what
// cuts took, or if other logs know of more than the feedback log has.
func (c *Core) recover(ctx context.Context, tail stream.Tail) error {
	at, m, err := LastMark(ctx, c.cfg.Log, c.cfg.Topics.Feedback)
	if err != nil {
		return err
	}
	if m != nil {
		if err := c.cfg.Epochs.Find(ctx, m.Epochs); err != nil {
			return err
		}
	}
	if m == nil || loop.WithoutCuts(m) {
		return c.openWithoutCuts(ctx, tail, at, m)
	}
	c.marked, c.through, c.eras = m.N, m.Rejects, m.Eras
	l := ledger{core: c, tail: tail, before: math.MaxInt64}
	lost, err := l.losses(ctx, at)
	if err != nil {
		return err
	}
	inputs := len(lost)
	// an era stands where all cuts can be taken again, or outcomes of rounds that are would be passed over
	if inputs > 0 {
		l.before = l.gone
		if lost, err = l.losses(ctx, at); err != nil {
			return err
		}
	}
	if !hangsOn(m, lost) {
		if err := c.restore(ctx, at, m, false); err != nil {
			return err
		}
		if err := c.replay(ctx, at+1, tail.Open); err != nil && (inputs == 0 || !errors.Is(err, ErrLost)) {
			return err
		}
	}
	if lost, err = c.lostRejects(ctx, m, lost); err != nil {
		return err
	}
	era, err := c.claimed(ctx, m.Era, max(l.n, c.heart.LastN()), l.cut, m.Cut)
	if err != nil || len(lost) == 0 && era < m.Era {
		return err
	}
	if inputs == 0 { // what the last cut lacked is there now
		if err := c.Flush(ctx); err != nil {
			return err
		}
		if _, l.tail.Open, err = c.cfg.Log.Bounds(ctx, c.cfg.Topics.Feedback, 0); err != nil {
			return err
		}
		if _, err := l.losses(ctx, at); err != nil {
			return err
		}
	}
	return c.openEra(ctx, &l, m, lost, max(era, m.Era)+1)
}

// begins restores nothing: there is no mark. A joiner's first record is one.
func (c *Core) begins(ctx context.Context, tail stream.Tail) error {
	if tail.First > LogStart {
		err := Dropped(c.cfg.Topics.Feedback, 0, 0, tail.First, "and with them what was joined and learned: going "+
			"on would begin anew")
		if !c.cfg.AcceptLoss {
			return err
		}
		c.cfg.Logger.Error(GoingOn, "error", err)
	}
	if err := c.replay(ctx, tail.First, tail.Open); err != nil {
		return err
	}
	if c.heart.LastCut() > 0 {
		return fmt.Errorf("%w: no mark is kept", ErrHistory)
	}
	era, err := c.claimed(ctx, 0, 0, 0, 0)
	if err != nil || era < 0 {
		return err
	}
	c.eras = []codec.EraStart{{Era: era + 1}}
	c.heart.BeginEra(era + 1)
	c.cfg.Logger.Error("the feedback log has lost all that other logs know of it: an era begins", "era", era+1)
	c.noteEra()
	return nil
}

// LastMark returns the last mark of a feedback log; nil if it has none.
func LastMark(ctx context.Context, log stream.Log, topic string) (at int64, m *codec.FeedbackMark, err error) {
	err = stream.ScanBack(ctx, log, topic, 0, math.MaxInt64, 1024, func(r *stream.Record) error {
		if r.Type != codec.TypeMark {
			return nil
		}
		x, err := codec.ParseFeedbackMark(r.Value)
		if err == nil {
			at, m = r.Offset, &x
		}
		return codec.UnlessForeign(err)
	}, func() bool { return m != nil })
	return at, m, err
}

// restore makes the heart what it was at a mark, or is at the one that opens an era.
func (c *Core) restore(ctx context.Context, at int64, m *codec.FeedbackMark, opens bool) (err error) {
	c.marks.marks = nil
	note := func(at int64, m *codec.FeedbackMark) {
		c.marks.marks = append(c.marks.marks, c.marks.markFrom(0, at, m))
	}
	if c.heart, err = c.history.Restore(ctx, at, m, opens, note); err == nil && !opens {
		note(at, m)
	}
	return err
}

// replay takes the cuts behind the last mark as they were taken first. The feedback that is stored
// must be what follows from them; what the last of them lacks is appended, and rejects are stored
// again.
func (c *Core) replay(ctx context.Context, from, end int64) error {
	r := replayed{core: c, spans: c.history.Spans(ctx, func(i int) int64 { return c.history.Position(c.heart, i) })}
	defer r.spans.Close()
	if err := stream.Scan(ctx, c.cfg.Log, c.cfg.Topics.Feedback, 0, from, end, r.record); err != nil {
		return err
	}
	for i := range r.due {
		if err := c.append(ctx, &stream.Record{Key: r.keys[i], Value: r.due[i]}); err != nil {
			return err
		}
	}
	return nil
}

// replayed compares the end of a feedback log with what follows from its cuts.
type replayed struct {
	core  *Core
	spans *Spans
	due   [][]byte // feedback of the last cut that was not met
	keys  [][]byte
}

func (r *replayed) record(rec *stream.Record) error {
	c := r.core
	switch rec.Type {
	case codec.TypeCut:
		if len(r.due) > 0 {
			return fmt.Errorf("%w: it has a cut where feedback is missing", ErrHistory)
		}
		return r.cut(rec)
	case "":
		if len(r.due) > 0 && bytes.Equal(codec.Like(rec.Value, r.due[0]), rec.Value) {
			r.due, r.keys = r.due[1:], r.keys[1:]
			return nil
		}
		if err := codec.ParseFeedback(new(codec.Feedback), rec.Value); err != nil {
			return codec.UnlessForeign(err)
		}
		return fmt.Errorf("%w: it has another feedback at offset %d", ErrHistory, rec.Offset)
	case codec.TypeClass, codec.TypeEpoch:
		if err := c.cfg.Epochs.Read(rec); err != nil {
			return err
		}
		return c.begin(rec)
	}
	return nil
}

func (r *replayed) cut(rec *stream.Record) error {
	c := r.core
	if err := codec.ParseCut(&c.cut, rec.Value); err != nil {
		return codec.UnlessForeign(err)
	}
	batches, err := r.spans.Take(&c.cut, nil)
	if err != nil {
		return err
	}
	if err := c.heart.Take(&c.cut, batches); err != nil {
		return err
	}
	c.heart.Ready(&c.ready)
	for i := range c.ready.Feedback {
		f := &c.ready.Feedback[i]
		r.due = append(r.due, codec.AppendFeedback(nil, f))
		r.keys = append(r.keys, []byte(f.ID))
	}
	return c.queueRejects(r.spans.ctx, 0)
}
