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
	c := &Core{cfg: cfg}
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
	c.heart = loop.NewCutJoiner(c.cfg.Partitions, c.cfg.Limits, c.cfg.Seed, c.cfg.Epochs.Rules)
	if err := c.recover(ctx, tail); err != nil {
		return err
	}
	inputs := make([]*input, 0, 2*c.cfg.Partitions)
	for i := range 2 * c.cfg.Partitions {
		in, err := openInput(ctx, c.cfg.Log, c.topic(i), i%c.cfg.Partitions, c.position(i))
		if err != nil {
			return err
		}
		inputs = append(inputs, in)
	}
	c.chooser = newChooser(inputs, c.heart, c.cfg.Skew)
	c.chooser.told = c.heart.Now()
	return c.Stop(ctx)
}

func (c *Core) topic(i int) string {
	if i < c.cfg.Partitions {
		return c.cfg.Topics.Decisions
	}
	return c.cfg.Topics.Outcomes
}

// input returns the index of an input by what a mark calls its topic.
func (c *Core) input(topic string, partition int) int {
	if topic == lostOutcomes {
		return c.cfg.Partitions + partition
	}
	return partition
}

// position returns where an input is to be read from.
func (c *Core) position(i int) int64 {
	decisions, outcomes := c.heart.Next(i % c.cfg.Partitions)
	if i < c.cfg.Partitions {
		return decisions
	}
	return outcomes
}

// recover brings the heart to the end of the feedback log, and begins an era if inputs have lost what
// cuts took.
func (c *Core) recover(ctx context.Context, tail stream.Tail) error {
	at, m, err := lastMark(ctx, c.cfg.Log, c.cfg.Topics.Feedback, tail)
	if err != nil {
		return err
	}
	if m == nil {
		return c.replay(ctx, tail.First, tail.Open)
	}
	if m.Limits.Heart == 0 {
		return fmt.Errorf("%s[0]@%d: a mark of a joiner without cuts: %w", c.cfg.Topics.Feedback, at, codec.ErrVersion)
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
		if err := c.replay(ctx, at+1, tail.Open); err != nil && (len(lost) == 0 || !errors.Is(err, ErrLost)) {
			return err
		}
	}
	if len(lost) == 0 {
		return nil
	}
	return c.openEra(ctx, &l, m, lost)
}

// lastMark returns the last mark of a feedback log, nil if it has none.
func lastMark(ctx context.Context, log stream.Log, topic string, tail stream.Tail) (at int64, m *codec.FeedbackMark, err error) {
	for back := int64(1024); ; back *= 8 {
		from := max(tail.First, tail.Open-back)
		err := stream.Scan(ctx, log, topic, 0, from, tail.Open, func(r *stream.Record) error {
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
		if err != nil || m != nil || from == tail.First {
			return at, m, err
		}
	}
}

// restore makes the heart what it was at a mark, or is at the one that opens an era.
func (c *Core) restore(ctx context.Context, at int64, m *codec.FeedbackMark, opens bool) error {
	c.heart = loop.NewCutJoiner(c.cfg.Partitions, c.cfg.Limits, c.cfg.Seed, c.cfg.Epochs.Rules)
	c.marks.marks = nil
	h := &past{core: c, ctx: ctx, at: at, from: m, fromAt: at}
	if m.From >= 0 {
		if err := h.findFrom(m); err != nil {
			return err
		}
	}
	h.spans = newSpans(ctx, c, func(i int) int64 { return c.rangeAt(h.from, i).next })
	defer h.spans.close()
	return c.heart.Restore(&loop.History{From: h.from, Mark: m, Opens: opens, Feedback: h.feedback(m, opens), Steps: h.steps(m)})
}

// past reads the stretch of the feedback log from which a heart is restored.
type past struct {
	core   *Core
	ctx    context.Context
	at     int64               // of the mark
	from   *codec.FeedbackMark // the older mark
	fromAt int64
	passed []loop.Step // cuts and marks between the two
	spans  *spans
}

// findFrom reads the older mark.
func (h *past) findFrom(m *codec.FeedbackMark) error {
	value, err := stream.Get(h.ctx, h.core.cfg.Log, h.core.cfg.Topics.Feedback, 0, m.From)
	if err != nil {
		return err
	}
	from, err := codec.ParseFeedbackMark(value)
	if err != nil {
		return err
	}
	if from.Cut != m.FromCut {
		return fmt.Errorf("%s[0]@%d: the mark says cut %d, and the last mark says %d: %w", h.core.cfg.Topics.Feedback, m.From, from.Cut, m.FromCut, ErrHistory)
	}
	h.from, h.fromAt = &from, m.From
	return nil
}

// feedback reads the log from Memory to the mark. On the way it notes cuts and marks, and epochs.
func (h *past) feedback(m *codec.FeedbackMark, opens bool) func(func(*codec.Feedback, error) bool) {
	return func(yield func(*codec.Feedback, error) bool) {
		c := h.core
		from := m.Memory
		if from < 0 {
			from = stream.Earliest
		}
		var f codec.Feedback
		n := h.from.N
		err := stream.Scan(h.ctx, c.cfg.Log, c.cfg.Topics.Feedback, 0, from, h.at, func(r *stream.Record) error {
			switch r.Type {
			case "":
				if err := codec.ParseFeedback(&f, r.Value); err != nil {
					return err
				}
				if n = f.N; f.N >= h.from.Remembers && !yield(&f, nil) {
					return stream.ErrStop
				}
			case codec.TypeMark:
				x, err := codec.ParseFeedbackMark(r.Value)
				if err != nil {
					return err
				}
				c.marks.marks = append(c.marks.marks, markAt{0, r.Offset, x.Cut, x.N})
				if r.Offset > h.fromAt {
					h.passed = append(h.passed, loop.Step{N: n, Mark: &x})
				}
			case codec.TypeCut:
				if r.Offset < h.fromAt {
					return nil
				}
				x := new(codec.Cut)
				if err := codec.ParseCut(x, r.Value); err != nil {
					return err
				}
				h.passed = append(h.passed, loop.Step{N: n, Cut: x})
			case codec.TypeClass, codec.TypeEpoch:
				return c.cfg.Epochs.Read(r)
			}
			return nil
		})
		if err != nil {
			yield(nil, err)
		}
		if !opens {
			c.marks.marks = append(c.marks.marks, markAt{0, h.at, m.Cut, m.N})
		}
	}
}

// steps takes the cuts and marks that were noted, with the records of the cuts. What a later mark says
// is lost, its cuts have no more.
func (h *past) steps(m *codec.FeedbackMark) func(func(*loop.Step, error) bool) {
	return func(yield func(*loop.Step, error) bool) {
		for k := range h.passed {
			s := &h.passed[k]
			var err error
			if s.Cut != nil {
				s.Batches, err = h.spans.take(s.Cut, h.limits(k+1, m))
			} else {
				err = h.spans.goBack(s.Mark)
			}
			if !yield(s, err) || err != nil {
				return
			}
		}
	}
}

// limits returns, by input, the offset from which marks behind a step say that records are lost.
func (h *past) limits(behind int, m *codec.FeedbackMark) map[int]int64 {
	limits := map[int]int64{}
	add := func(m *codec.FeedbackMark) {
		for _, x := range m.LostTails {
			i := h.core.input(x.Topic, x.Partition)
			if at, ok := limits[i]; !ok || x.Offset < at {
				limits[i] = x.Offset
			}
		}
	}
	add(m)
	for _, s := range h.passed[behind:] {
		if s.Mark != nil {
			add(s.Mark)
		}
	}
	return limits
}

// replay takes the cuts behind the last mark as they were taken first. The feedback that is stored
// must be what follows from them; what the last of them lacks is appended, and rejects are stored
// again.
func (c *Core) replay(ctx context.Context, from, end int64) error {
	r := replayed{core: c, spans: newSpans(ctx, c, c.position)}
	defer r.spans.close()
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
	spans *spans
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
	batches, err := r.spans.take(&c.cut, nil)
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
