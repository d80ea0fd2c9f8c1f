package verify

import (
	"context"
	"fmt"
	"slices"

	"hindsight/internal/join"
	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// legality checks, from the logs alone, that cuts took what they had to take:
//
//   - a cut leaves nothing out whose log time is before its own. Log times of two partitions may
//     differ by the skew, and where the clock of a log ran through a stretch twice, nobody can tell;
//   - its time was told by a record that was taken, or that lay in the feedback log;
//   - a decision that it takes has learned from no feedback that comes later.
type legality struct {
	v      *verification
	skew   int64
	seen   []int64 // by input, feedback last: records before it were passed
	clocks []int64 // and their largest log time
	twice  []stretch
	told   int64   // the largest log time that was told
	was    []int64 // by input: what lies before it was taken in an earlier era
}

// stretch is one of log time.
type stretch struct{ from, to int64 }

func newLegality(v *verification, inputs int) legality {
	return legality{v: v, skew: int64(v.Skew), seen: make([]int64, inputs+1), clocks: make([]int64, inputs+1),
		was: make([]int64, inputs)}
}

// pass takes note of a record's log time.
func (l *legality) pass(i int, offset, t int64) {
	if offset < l.seen[i] {
		return
	}
	l.seen[i], l.told = offset+1, max(l.told, t)
	if t >= l.clocks[i] {
		l.clocks[i] = t
		return
	}
	if k := len(l.twice) - 1; k >= 0 && t <= l.twice[k].to && l.clocks[i] >= l.twice[k].from {
		l.twice[k] = stretch{min(t, l.twice[k].from), max(l.clocks[i], l.twice[k].to)}
		return
	}
	l.twice = append(l.twice, stretch{t, l.clocks[i]})
}

// restart goes on at a log time.
func (l *legality) restart(now int64) { l.told = max(l.told, now) }

// lose takes note of what the mark of an era says is taken again.
func (l *legality) lose(m *codec.FeedbackMark, h *join.History) {
	for _, x := range m.LostTails {
		i := h.Input(x.Topic, x.Partition)
		if i < 0 {
			continue
		}
		l.was[i], l.seen[i] = max(l.was[i], x.Was), min(l.seen[i], x.Offset)
	}
}

// check checks a cut before the heart takes it.
func (l *legality) check(c *logCursor, r *stream.Record, cut *codec.Cut, batches []loop.Batch, heart *loop.Joiner) {
	wrong := func(field string, want, got any) Difference { return at(c, r, field, want, got) }
	for k, x := range cut.Decisions {
		for i := range batches[k].Decisions {
			e := &batches[k].Decisions[i]
			l.take(x.Partition, i == 0, e.Offset, e.Time, heart, wrong)
			if d := &e.D; d.N > 0 && e.GapTo == 0 && d.LearnedThrough > heart.LastN() && d.Era >= heart.Era() {
				l.v.differ(wrong("decisions.learned_through", "at most "+i64(heart.LastN()), d.LearnedThrough).in(d.N,
					d.ID))
			}
		}
	}
	for k, x := range cut.Outcomes {
		for i := range batches[len(cut.Decisions)+k].Outcomes {
			e := &batches[len(cut.Decisions)+k].Outcomes[i]
			l.take(l.v.partitions+x.Partition, i == 0, e.Offset, e.Time, heart, wrong)
		}
	}
	if latest := max(l.told, heart.Now()); cut.Time > latest || cut.Time < heart.Now() {
		l.v.differ(wrong("time", fmt.Sprintf("%d to %d, which a record told", heart.Now(), latest), cut.Time))
	}
}

// take takes note of a record of an input. It suspects the first of a cut if the cut before should have taken it.
func (l *legality) take(i int, first bool, offset, t int64, heart *loop.Joiner,
	wrong func(field string, want, got any) Difference) {
	if first && t+l.skew < heart.Now() && offset >= l.was[i] {
		field := fmt.Sprintf("%s[%d]", [...]string{"decisions", "outcomes"}[i/l.v.partitions], i%l.v.partitions)
		d := wrong(field, fmt.Sprintf("no record older than %d, to which cut %d has come", heart.Now(),
			heart.LastCut()), fmt.Sprintf("one at %d, at offset %d", t, offset))
		l.v.suspect(d, nil, func() bool {
			return slices.ContainsFunc(l.twice, func(x stretch) bool { return x.from-l.skew <= t && t <= x.to+l.skew })
		})
	}
	l.pass(i, offset, t)
}

// finish looks at what was not taken.
func (l *legality) finish(ctx context.Context, h *join.History, heart *loop.Joiner) error {
	if heart == nil {
		return nil
	}
	for i := range l.was {
		topic, p, first := h.Topic(i), i%h.Partitions, true
		err := stream.Scan(ctx, h.Log, topic, p, h.Position(heart, i), loop.End, func(r *stream.Record) error {
			l.take(i, first, r.Offset, r.Time, heart, func(_ string, want, got any) Difference {
				return at(&logCursor{topic: topic, partition: p}, r, "cut", want, got)
			})
			first = false
			if i < h.Partitions && r.Type == "" {
				l.v.report.Pending++
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	l.v.report.Pending += int64(heart.Pending())
	return nil
}
