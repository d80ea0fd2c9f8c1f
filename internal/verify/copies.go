package verify

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// copyCheck checks feedback that lies before the first mark at which the heart can be restored, and so that of a
// joiner that did not log its cuts: it is a copy of its decision, one for each round, and in order where the model
// asks for that. Records of a round's stages, which come before it, are copies too.
type copyCheck struct {
	f     *fateCheck
	lanes []copyLane
	dec   codec.Decision
	want  codec.Feedback
	buf   []byte
}

// copyLane is one partition of decisions, read as far as its feedback.
type copyLane struct {
	c           *logCursor
	first, next int64 // N of the first decision kept, and of the next; 0: none was read
	lost        []codec.Run
	waiting     []copied // that have no feedback yet
}

// copied is a decision.
type copied struct {
	n, time int64
	raw     []byte
}

func (k *copyCheck) open(ctx context.Context, f *fateCheck) error {
	k.f, k.lanes = f, make([]copyLane, f.v.partitions)
	for p := range k.lanes {
		c, err := f.v.openCursor(ctx, f.v.topics.Decisions, p)
		if err != nil {
			return err
		}
		c.log, k.lanes[p].c = f.log, c
	}
	return nil
}

func (k *copyCheck) close() {
	for i := range k.lanes {
		if c := k.lanes[i].c; c != nil {
			c.close()
		}
	}
	k.lanes = nil
}

// read reads decisions up to a round.
func (l *copyLane) read(ctx context.Context, d *codec.Decision, round int64) error {
	for l.next <= round {
		r, err := l.c.head(ctx)
		if err != nil || r == nil {
			return err
		}
		switch m, err := codec.ParseDecisionMark(r.Value); {
		case r.Type == codec.TypeMark && err == nil && m.GapFrom > 0:
			l.lost, l.next = append(l.lost, codec.Run{From: m.GapFrom, To: m.GapTo}), m.GapTo+1
		case r.Type == "" && codec.ParseDecision(d, r.Value) == nil:
			if l.first == 0 {
				l.first = d.N
			}
			l.next = d.N + 1
			l.waiting = append(l.waiting, copied{d.N, l.c.logTime(r), bytes.Clone(r.Value)})
		}
		l.c.take()
	}
	return nil
}

// check checks a feedback.
func (k *copyCheck) check(ctx context.Context, r *stream.Record, got *codec.Feedback,
	wrong func(field string, want, have any)) error {
	if string(r.Key) != got.ID {
		wrong("key", got.ID, string(r.Key))
	}
	if got.Partition < 0 || got.Partition >= len(k.lanes) {
		wrong("partition", "less than "+i64(int64(len(k.lanes))), got.Partition)
		return nil
	}
	l := &k.lanes[got.Partition]
	if err := l.read(ctx, &k.dec, got.Round); err != nil {
		return err
	}
	i, found := slices.BinarySearchFunc(l.waiting, got.Round,
		func(c copied, n int64) int { return cmp.Compare(c.n, n) })
	if !found {
		gone := slices.ContainsFunc(l.lost, func(x codec.Run) bool { return x.From <= got.Round && got.Round <= x.To })
		if old := k.f.feedback.cut() && (l.first == 0 || got.Round < l.first); !gone && !old {
			wrong("round", "a decision of its partition that has no feedback yet", got.Round)
		}
		return nil
	}
	d, c := &k.dec, l.waiting[i]
	if err := codec.ParseDecision(d, c.raw); err != nil {
		return err
	}
	if got.Stage == 0 {
		if first := l.done(i, k.f.rules(d.Epoch), d); first != got.Round && !k.f.feedback.cut() {
			wrong("round", first, got.Round)
		}
	}
	if l.c.cut() && got.Time > c.time {
		c.time = got.Time // the running maximum may have begun with a record that is gone
	}
	k.want = *got
	w := &k.want
	w.ID, w.Epoch, w.LearnedThrough, w.Gamma, w.Time = d.ID, d.Epoch, d.LearnedThrough, d.Gamma, c.time
	w.Actions, w.Propensities, w.Action, w.Context = d.Actions, d.Propensities, d.Action, d.Context
	w.Mode, w.Would, w.Unknown, w.Unit, w.First = d.Mode, d.Would, d.Unknown, d.Unit, d.First
	if k.buf = codec.Like(r.Value, codec.AppendFeedback(k.buf[:0], w)); !bytes.Equal(k.buf, r.Value) {
		field, want, have := differs(w, got, k.buf, r.Value)
		wrong(field, want, have)
	}
	return nil
}

// done takes out the decision that has its feedback, and returns the round whose turn it was.
func (l *copyLane) done(i int, rules *loop.Rules, d *codec.Decision) (turn int64) {
	turn = d.N
	if rules != nil && rules.Waits(d.N, d.LearnedThrough) {
		turn = l.waiting[0].n
		l.waiting, i = l.waiting[i:], 0 // those before it had theirs in what is gone
	}
	if i == 0 {
		l.waiting = l.waiting[1:]
		return turn
	}
	l.waiting = slices.Delete(l.waiting, i, i+1)
	return turn
}
