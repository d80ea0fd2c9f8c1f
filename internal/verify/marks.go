package verify

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"hindsight/internal/follow"
	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// takeMark compares a mark with what the heart says of itself, or restores the heart there.
func (f *fateCheck) takeMark(ctx context.Context, r *stream.Record) error {
	v := f.v
	v.count(&v.report.Marks, Tally{Records: 1})
	m, err := codec.ParseFeedbackMark(r.Value)
	if err != nil {
		return v.unread(f.feedback, r, "bytes", "a mark", err, 0)
	}
	if loop.WithoutCuts(&m) {
		if f.begun {
			f.wrong(r, "v", "4 or more behind cuts", m.V)
		}
		f.marks[r.Offset] = markPlace{loop.CutOf(&m), m.N, 0}
		v.count(&v.report.Marks, Tally{TooOld: 1})
		return nil
	}
	f.marks[r.Offset] = markPlace{m.Cut, m.N, m.Remembers}
	opens := len(m.LostTails) > 0 || f.begun && m.Era != f.mark.Era
	if len(m.Positions) != v.partitions {
		f.wrong(r, "positions", v.partitions, len(m.Positions))
		return nil
	}
	if f.heart == nil || opens {
		return f.restore(ctx, r, &m, opens)
	}
	f.complete(r)
	f.compare(r, &m)
	return f.accept(ctx, r, &m, opens)
}

// accept takes over what a mark says, behind the checks of what it refers to.
func (f *fateCheck) accept(ctx context.Context, r *stream.Record, m *codec.FeedbackMark, opens bool) error {
	f.v.count(&f.v.report.Marks, Tally{Checked: 1})
	f.refers(r, m, opens)
	if f.begun && !opens && !slices.Equal(m.Eras, f.mark.Eras) {
		f.wrong(r, "eras", f.mark.Eras, m.Eras)
	}
	if !f.begun {
		f.rejects.void(m.Era, m.Cut)
	}
	if err := f.rejects.mark(ctx, f.feedback, r, m, f.begun); err != nil {
		return err
	}
	f.begun, f.mark, f.n, f.cut = true, *m, m.N, m.Cut
	if err := f.heart.SetLimits(m); err != nil {
		return f.feedback.failed(r.Offset, err)
	}
	return nil
}

// restore has the replay go on at a mark, if it can.
func (f *fateCheck) restore(ctx context.Context, r *stream.Record, m *codec.FeedbackMark, opens bool) error {
	if opens {
		f.opens(r, m)
	}
	if f.begun {
		f.mark.Era, f.mark.Eras = m.Era, m.Eras
	}
	f.lose()
	if !f.begun && f.forgot(m) {
		f.v.count(&f.v.report.Marks, Tally{TooOld: 1})
		return nil
	}
	heart, err := f.history.Restore(ctx, r.Offset, m, opens, nil)
	if f.ruleless && err == nil {
		f.ruleless = false
		f.v.count(&f.v.report.Marks, Tally{TooOld: 1})
		return nil
	}
	if err != nil {
		f.v.count(&f.v.report.Marks, Tally{TooOld: 1})
		if !follow.Newer(err) && f.gone(ctx, m) || f.lost && !opens { // of the same
			return nil
		}
		return f.fail(ctx, r, err)
	}
	f.heart, f.lost, f.met = heart, false, m.Cut
	f.copies.close()
	if f.spans != nil {
		f.spans.Close()
	}
	inputs := f.history
	inputs.Log = f.log
	f.spans = inputs.Spans(ctx, func(i int) int64 { return f.history.Position(f.heart, i) })
	f.legal.restart(f.heart.Now())
	f.rejects.resume(m.Cut)
	if opens {
		f.compare(r, m)
		f.survives(r, m)
	}
	return f.accept(ctx, r, m, opens)
}

// forgot reports whether the log keeps too little feedback before a mark to know the ids that the
// joiner remembered there.
func (f *fateCheck) forgot(m *codec.FeedbackMark) bool {
	least := m.Remembers
	if from, known := f.marks[m.From]; known && from.remembers > 0 {
		least = from.remembers
	}
	return f.feedback.cut() && m.N >= least && (f.first == 0 || f.first > least)
}

// gone reports whether retention has dropped what a mark goes back to.
func (f *fateCheck) gone(ctx context.Context, m *codec.FeedbackMark) bool {
	from, err := f.history.From(ctx, m)
	if f.feedback.cut() && (err != nil || m.Memory < f.feedback.first) {
		return true
	}
	for i := range 2 * f.v.partitions {
		if err == nil && f.dropped(ctx, i, f.history.Offset(from, i)) {
			return true
		}
	}
	return false
}

// opens takes note of a new era: differences that it tells of are none.
func (f *fateCheck) opens(r *stream.Record, m *codec.FeedbackMark) {
	f.tails = append(f.tails, m.LostTails...)
	f.legal.lose(m, &f.history)
	if f.n >= 0 && m.N != f.n {
		f.wrong(r, "n", f.n, m.N)
	}
	if f.cut > 0 && m.Cut != f.cut {
		f.wrong(r, "cut", f.cut, m.Cut)
	}
	eras := append(slices.Clone(f.mark.Eras), codec.EraStart{Era: m.Era, N: m.N})
	if f.begun && (m.Era <= f.mark.Era || !slices.Equal(m.Eras, eras)) {
		f.wrong(r, "eras", eras, m.Eras)
	}
	f.rejects.void(m.Era, m.Cut)
	for _, x := range m.LostTails {
		if x.Topic == "rejects" {
			f.rejects.tails = append(f.rejects.tails, x.Offset)
			f.rejects.own, f.rejects.last = min(f.rejects.own, x.Offset), min(f.rejects.last, x.Offset)
			continue
		}
		f.rejects.again = true
		if f.history.Input(x.Topic, x.Partition) < 0 {
			f.wrong(r, "lost", "a partition of decisions or outcomes, or rejects", x)
		}
	}
}

// survives checks where the mark of an era stands in the inputs that have lost their tails.
func (f *fateCheck) survives(r *stream.Record, m *codec.FeedbackMark) {
	for _, x := range m.LostTails {
		i := f.history.Input(x.Topic, x.Partition)
		if i < 0 { // rejects, or none
			continue
		}
		if next := f.history.Position(f.heart, i); x.Offset != next || x.Was <= x.Offset {
			f.wrong(r, "lost", fmt.Sprintf("from offset %d on", next), x)
		}
	}
}

// compare compares what a mark says with what the heart says of itself.
func (f *fateCheck) compare(r *stream.Record, m *codec.FeedbackMark) {
	var own codec.FeedbackMark
	f.heart.Mark(&own)
	own.V, own.Eras, own.From, own.FromCut, own.Memory, own.Rejects = m.V, m.Eras, m.From, m.FromCut,
		m.Memory, m.Rejects
	own.Limits, own.Epochs, own.LostTails = m.Limits, m.Epochs, m.LostTails
	if own.Remembers > own.N { // nothing is remembered
		own.Remembers = max(own.Remembers, m.Remembers)
	}
	if f.buf = codec.AppendFeedbackMark(f.buf[:0], &own); bytes.Equal(f.buf, r.Value) {
		return
	}
	if field, want, got := unequal(&own, m); field != "" {
		f.wrong(r, field, want, got)
	}
}

// refers checks that what a mark refers to is what it says.
func (f *fateCheck) refers(r *stream.Record, m *codec.FeedbackMark, opens bool) {
	oldest := f.heart.OldestCut()
	from, known := f.marks[m.From]
	switch {
	case m.From < 0 && m.FromCut < 0: // the logs' beginning
		from = markPlace{cut: -1}
	case m.From < 0:
		from = markPlace{m.Cut, m.N, m.Remembers}
		if oldest <= m.Cut {
			f.wrong(r, "from", "a mark before cut "+i64(oldest), m.From)
		}
	case m.From >= r.Offset, !known && m.From >= f.feedback.first:
		f.wrong(r, "from", "the offset of a mark before it", m.From)
	case known && from.cut >= oldest && !opens:
		f.wrong(r, "from", "a mark before cut "+i64(oldest), fmt.Sprintf("%d, behind cut %d", m.From, from.cut))
	}
	if (known || m.From < 0) && m.FromCut != from.cut {
		f.wrong(r, "from_cut", from.cut, m.FromCut)
	}
	memory, met := f.marks[m.Memory]
	least := from.remembers - 1
	if from.remembers == 0 { // it does not say
		least = max(0, from.n-m.Limits.Dedup)
	}
	switch {
	case m.Memory < 0:
	case !met && m.Memory >= f.feedback.first:
		f.wrong(r, "memory", "the offset of a mark before it", m.Memory)
	case met && known && memory.n > least && !opens:
		f.wrong(r, "memory", "a mark behind feedback "+i64(least)+" or earlier",
			fmt.Sprintf("%d, behind feedback %d", m.Memory, memory.n))
	}
	f.refersEpochs(r, m)
}

func (f *fateCheck) refersEpochs(r *stream.Record, m *codec.FeedbackMark) {
	k := len(m.Epochs)
	if k == 0 && f.epoch == 0 && m.N == 0 {
		return // none has begun
	}
	if k == 0 || f.epoch > 0 && m.Epochs[k-1].Epoch != f.epoch {
		f.wrong(r, "epochs", "the last is "+i64(f.epoch), m.Epochs)
		return
	}
	for _, e := range m.Epochs {
		if f.epoch > 0 && e.Offset >= f.feedback.first && !f.epochs[e.Offset] {
			f.wrong(r, "epochs", "the offset of epoch "+i64(e.Epoch), e.Offset)
		}
	}
}
