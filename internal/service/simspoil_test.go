package service

import (
	"context"
	"slices"

	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// spoil changes what a joiner writes to the feedback log, as a planted fault says.
func (w *wire) spoil(r *stream.Record) {
	if w.plant.cut == nil && w.plant.mark == nil && w.plant.feedback == nil {
		return
	}
	switch r.Type {
	case "":
		var f codec.Feedback
		if w.plant.feedback != nil && codec.ParseFeedback(&f, slices.Clone(r.Value)) == nil && len(f.Outcomes) > 0 &&
			w.rng.IntN(8) == 0 {
			w.plant.feedback(w, &f)
			r.Value = codec.AppendFeedback(nil, &f)
		}
	case codec.TypeMark:
		m, err := codec.ParseFeedbackMark(r.Value)
		if err != nil {
			w.fatal("%v", err)
			return
		}
		for _, p := range m.Positions {
			w.reached[0][p.Partition], w.reached[1][p.Partition] = p.Decisions, p.Outcomes
		}
		if w.plant.mark != nil && w.plant.mark(w, &m) {
			r.Value = codec.AppendFeedbackMark(nil, &m)
		}
	case codec.TypeCut:
		var was, c codec.Cut
		if err := codec.ParseCut(&was, r.Value); err != nil {
			w.fatal("%v", err)
			return
		}
		codec.ParseCut(&c, r.Value)
		if w.plant.cut != nil && w.rng.IntN(8) == 0 {
			w.plant.cut(w, &c)
			r.Value = codec.AppendCut(nil, &c)
		}
		for i, ranges := range [][]codec.Range{was.Decisions, was.Outcomes} {
			for _, x := range ranges {
				w.reached[i][x.Partition] = x.Next
			}
		}
	}
}

// stageAgain writes a record of a stage in place of the next feedback, so that it is there twice.
func stageAgain(w *wire, f *codec.Feedback) {
	if last := w.last; last != nil && f.Stage == 0 {
		n := f.N
		*f = *last
		f.N = n
	}
	if f.Stage > 0 {
		w.last = f
	}
}

// stageAhead has a round's feedback be that of its second stage.
func stageAhead(_ *wire, f *codec.Feedback) {
	if f.Stage == 0 {
		f.Stage, f.Fate, f.Reason, f.Loss, f.OutcomePartition, f.OutcomeOffset = 2, 0, "", 0, -1, -1
		for i := range f.Outcomes {
			f.Outcomes[i].Stage = 0
		}
	} else {
		f.Stage++
	}
}

// dropOutcome leaves the last outcome out.
func dropOutcome(_ *wire, f *codec.Feedback) {
	if len(f.Outcomes) > 1 {
		f.Outcomes = f.Outcomes[:len(f.Outcomes)-1]
	}
}

// normalise writes the value of an outcome as a learner sees it, not on its own scale.
func normalise(_ *wire, f *codec.Feedback) {
	for i := range f.Outcomes {
		f.Outcomes[i].Value /= 4
	}
}

// repeatCut uses the number of a cut twice.
func repeatCut(_ *wire, c *codec.Cut) { c.Cut = max(1, c.Cut-1) }

// goBack has the outcomes of a cut end before they begin.
func goBack(w *wire, c *codec.Cut) {
	for i := range c.Outcomes {
		if x := &c.Outcomes[i]; w.reached[1][x.Partition] > 0 {
			x.Next, x.Sum = w.reached[1][x.Partition]-1, 0
			return
		}
	}
}

// sumShort sums all records of the decisions of a cut but the last.
func sumShort(w *wire, c *codec.Cut) {
	for i := range c.Decisions {
		x, last := &c.Decisions[i], uint32(0)
		err := stream.Scan(context.Background(), w.log, "m.decisions", x.Partition, w.reached[0][x.Partition], x.Next,
			func(r *stream.Record) error {
				x.Sum, last = last, codec.Sum(last, r.Offset, r.Time, r.Type, r.Value)
				return nil
			})
		if err != nil {
			w.fatal("%v", err)
		}
	}
}

// fromTooNew has a restart read from the newest mark, whatever waits since an older one.
func fromTooNew(w *wire, m *codec.FeedbackMark) (spoilt bool) {
	if m.From < 0 && m.FromCut == m.Cut {
		return false // nothing waits
	}
	err := stream.Scan(context.Background(), w.log, "m.feedback", 0, stream.Earliest, 1<<40,
		func(r *stream.Record) error {
			x, err := codec.ParseFeedbackMark(r.Value)
			if r.Type == codec.TypeMark && err == nil && r.Offset > m.From {
				m.From, m.FromCut, spoilt = r.Offset, x.Cut, true
			}
			return nil
		})
	if err != nil {
		w.fatal("%v", err)
	}
	return spoilt
}

// withoutDone begins an era, and does not tell of the rounds that have their feedback.
func withoutDone(_ *wire, m *codec.FeedbackMark) (spoilt bool) {
	for i := range m.Positions {
		if p := &m.Positions[i]; len(m.LostTails) > 0 && len(p.Done) > 0 {
			p.Done, spoilt = nil, true
		}
	}
	return spoilt
}

// limit has a joiner go by limits that no mark tells of.
func (w *simJoiner) limit() {
	if w.s.plant.limits && w.s.rng.IntN(8) == 0 {
		m := codec.FeedbackMark{Limits: codec.Limits{Heart: loop.Heart, Pending: 2, Dedup: 1000}}
		w.s.check(w.p.name, "is given limits", w.j.Heart().SetLimits(&m))
	}
}
