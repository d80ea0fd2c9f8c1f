package join

import (
	"bytes"
	"context"
	"errors"
	"fmt"

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
	c := &Core{cfg: cfg, history: History{cfg.Log, cfg.Topics, cfg.Partitions, cfg.Seed, cfg.Epochs}}
	c.taker = taker{hooks: &c.cfg.Hooks, topics: &c.cfg.Topics}
	c.marks.dedup = cfg.Limits.Dedup
	var tail stream.Tail
	var err error
	c.feedback, tail, err = cfg.Log.Open(ctx, cfg.Topics.Feedback, 0, stream.OpenOptions{Owner: cfg.Owner, Ack: c.ack})
	if err != nil {
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
			c.fail(err)
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
	inputs := make([]*input, 0, 2*c.cfg.Partitions)
	for i := range 2 * c.cfg.Partitions {
		in, err := openInput(ctx, c.cfg.Log, c.history.Topic(i), i%c.cfg.Partitions, c.history.Position(c.heart, i))
		if err != nil {
			return err
		}
		inputs = append(inputs, in)
	}
	c.chooser = newChooser(inputs, c.heart, c.cfg.Skew)
	c.chooser.told = c.heart.Now()
	return c.Stop(ctx)
}

// recover brings the heart to the end of the feedback log, and begins an era if inputs have lost what
// cuts took.
func (c *Core) recover(ctx context.Context, tail stream.Tail) error {
	at, m, err := lastMark(ctx, c.cfg.Log, c.cfg.Topics.Feedback, tail.First, tail.Open)
	if err != nil {
		return err
	}
	if m == nil || loop.WithoutCuts(m) {
		return c.openWithoutCuts(ctx, tail, at, m)
	}
	c.marked, c.through, c.eras = m.N, m.Rejects, m.Eras
	l := ledger{core: c, tail: tail}
	lost, err := l.losses(ctx, at)
	if err != nil {
		return err
	}
	if !hangsOn(m, lost) {
		if err := c.restore(ctx, at, m, false); err != nil {
			return err
		}
		if m.Cut == 0 {
			c.queueUnfinished()
		}
		if err := c.replay(ctx, at+1, tail.Open); err != nil && (len(lost) == 0 || !errors.Is(err, ErrLost)) {
			return err
		}
	}
	if len(lost) == 0 {
		return nil
	}
	return c.openEra(ctx, &l, m, lost)
}

// lastMark returns the last mark of a feedback log, which begins and ends at offsets; nil if it has none.
func lastMark(ctx context.Context, log stream.Log, topic string, first, end int64) (at int64, m *codec.FeedbackMark,
	err error) {
	for back := int64(1024); ; back *= 8 {
		from := max(first, end-back)
		err := stream.Scan(ctx, log, topic, 0, from, end, func(r *stream.Record) error {
			if r.Type != codec.TypeMark {
				return nil
			}
			x, err := codec.ParseFeedbackMark(r.Value)
			if err != nil {
				return err
			}
			at, m = r.Offset, &x
			return nil
		})
		if err != nil || m != nil || from == first {
			return at, m, err
		}
	}
}

// restore makes the heart what it was at a mark, or is at the one that opens an era.
func (c *Core) restore(ctx context.Context, at int64, m *codec.FeedbackMark, opens bool) (err error) {
	c.marks.marks = nil
	note := func(at int64, m *codec.FeedbackMark) {
		c.marks.marks = append(c.marks.marks, markAt{0, at, loop.CutOf(m), m.N})
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
		if len(r.due) == 0 || !bytes.Equal(r.due[0], rec.Value) {
			return fmt.Errorf("%w: it has another feedback", ErrHistory)
		}
		r.due, r.keys = r.due[1:], r.keys[1:]
	case codec.TypeClass, codec.TypeEpoch:
		return c.cfg.Epochs.Read(rec)
	}
	return nil
}

func (r *replayed) cut(rec *stream.Record) error {
	c := r.core
	if err := codec.ParseCut(&c.cut, rec.Value); err != nil {
		return err
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
