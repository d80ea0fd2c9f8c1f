package verify

import (
	"context"
	"maps"
	"math"
	"strconv"

	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// mark checks a mark of the joiner against what the feedback before it says.
func (f *fateCheck) mark(ctx context.Context, r *stream.Record) error {
	v := f.v
	m, err := codec.ParseFeedbackMark(r.Value)
	if err != nil {
		return v.unread(f.feedback, r, "bytes", "a mark", err, 0)
	}
	if f.n < 0 {
		f.n = m.N
	}
	if !f.reach(m.N) {
		v.differ(at(f.feedback, r, "n", f.n, m.N))
	}
	f.guard.mark(f, r, &m)
	if len(m.Positions) != v.partitions {
		v.differ(at(f.feedback, r, "positions", v.partitions, len(m.Positions)))
		return nil
	}
	if n := len(m.Epochs); n == 0 || (f.epoch > 0 || !f.feedback.cut()) && m.Epochs[n-1].Epoch != f.epoch {
		v.differ(at(f.feedback, r, "epochs", "the last is "+i64(f.epoch), m.Epochs))
	}
	for i := range m.Positions {
		if err := f.position(ctx, r, i, &m.Positions[i]); err != nil {
			return err
		}
	}
	return nil
}

// position checks where a mark says that the joiner is in one partition.
func (f *fateCheck) position(ctx context.Context, r *stream.Record, p int, pos *codec.Position) error {
	v, l, out := f.v, f.lanes[p], f.outs[p]
	wrong := func(field string, want, got any) {
		v.differ(at(f.feedback, r, "positions["+strconv.Itoa(p)+"]."+field, want, got))
	}
	if pos.Partition != p {
		wrong("partition", p, pos.Partition)
		return nil
	}
	if !l.begun {
		l.begun, l.judged = true, pos.Released
		for _, n := range pos.Ahead {
			l.ahead[n] = true
		}
		maps.DeleteFunc(l.ahead, func(n int64, _ bool) bool { return n <= pos.Released })
	}
	if err := f.readRounds(ctx, p, func(l *roundLane, _ int64) bool { return l.next <= pos.Released+1 }); err != nil {
		return err
	}
	l.settle()
	if pos.Released != l.judged {
		if h := l.round(pos.Released + 1); pos.Released > l.judged || h == nil || !h.lost {
			wrong("released", l.judged, pos.Released)
		}
	}
	if h := l.round(l.judged + 1); h != nil && pos.DecisionsFrom > h.offset && (h.time <= f.feedback.logTime(r) || !v.losses.any()) {
		wrong("decisions_from", "at most "+i64(h.offset), pos.DecisionsFrom)
	}
	if pos.OutcomesFrom > pos.OutcomesThrough {
		wrong("outcomes_from", "at most "+i64(pos.OutcomesThrough), pos.OutcomesFrom)
	}
	again := int64(math.MaxInt64)
	if pos.OutcomesLost > 0 { // a log lost its tail, and what lies there from here on is new
		again = pos.OutcomesThrough
		out.through = min(out.through, again)
	}
	if pos.OutcomesThrough < out.through || pos.OutcomesThrough > out.c.end && lostAfter(v.losses.outcomes, p, r.Offset) >= pos.OutcomesThrough {
		wrong("outcomes_through", "at least "+i64(out.through)+" and at most "+i64(out.c.end), pos.OutcomesThrough)
		return nil
	}
	next := passage{pos.OutcomesThrough, make(map[int64]bool, len(pos.Parked)), r.Time}
	for _, n := range pos.Parked {
		next.parked[n] = true
	}
	out.pass(next, again, v.losses.any())
	return nil
}
