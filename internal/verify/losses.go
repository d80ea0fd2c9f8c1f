package verify

import (
	"context"
	"slices"

	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// losses is what the marks say of log tails that power failures took. Whoever opened
// after one wrote down what the other logs told of and what was gone.
type losses struct {
	feedback []lostFeedback
	outcomes []lostRange // at: the offset of the mark in feedback
	contexts []lostRange // at: the offset of the mark in its partition of decisions
	all      []loss
	last     int64         // log time of the last mark that tells of any
	data     map[int]int64 // log time of the last data record read of a partition of decisions, or of feedback: -1
}

// loss is one mark that tells of any. Whoever wrote it had opened its log after the loss,
// so that the data before it is from before: what other logs keep from before that data
// they had not lost, nor anything that lies before it there.
type loss struct {
	since   int64 // log time of the last data record before the mark; 0: none is kept
	time    int64 // log time of the mark
	rejects int64 // log time of the last reject that is older than since
}

// lostFeedback says that feedback behind from was learned, through to, and is gone.
type lostFeedback struct {
	partition      int // of the decisions that had; -1: any
	from, to, time int64
}

// lostRange says that records of a partition were passed to before an offset, when the
// log lost them from another on.
type lostRange struct {
	partition    int
	from, to, at int64
}

// readLosses looks over the decisions for marks that tell of losses. Those of feedback
// are read with the models.
func (v *verification) readLosses(ctx context.Context, lanes []*decisionLane) error {
	for p, l := range lanes {
		c := logCursor{log: v.Log, topic: v.topics.Decisions, partition: p, first: l.decisions.first, end: l.decisions.end}
		if err := c.walk(ctx, func(r *stream.Record) error { v.losses.readDecisions(p, r); return nil }); err != nil {
			return err
		}
	}
	return nil
}

// readDecisions takes a record of a partition of decisions.
func (l *losses) readDecisions(p int, r *stream.Record) {
	if r.Type == "" {
		l.saw(p, r.Time)
	}
	if r.Type != codec.TypeMark {
		return
	}
	m, err := codec.ParseDecisionMark(r.Value)
	if err != nil {
		return // reported where it is checked
	}
	if m.ContextsLost > 0 {
		l.contexts = append(l.contexts, lostRange{p, m.ContextsThrough, m.ContextsLost, r.Offset})
	}
	if m.LearnedLost > 0 {
		l.feedback = append(l.feedback, lostFeedback{p, m.LearnedThrough, m.LearnedLost, r.Time})
	}
	if m.ContextsLost+m.LearnedLost+m.GapFrom > 0 {
		l.note(p, r.Time)
	}
}

// readMark takes a mark of the feedback log.
func (l *losses) readMark(r *stream.Record) {
	m, err := codec.ParseFeedbackMark(r.Value)
	if err != nil {
		return // reported where it is checked
	}
	if m.Lost > 0 {
		l.feedback = append(l.feedback, lostFeedback{-1, m.N, m.Lost, r.Time})
	}
	told := m.Lost > 0
	for i := range m.Positions {
		if pos := &m.Positions[i]; pos.OutcomesLost > 0 {
			l.outcomes = append(l.outcomes, lostRange{pos.Partition, pos.OutcomesThrough, pos.OutcomesLost, r.Offset})
			told = true
		}
	}
	if told {
		l.note(-1, r.Time)
	}
}

// saw notes a data record of a log.
func (l *losses) saw(p int, time int64) {
	if l.data == nil {
		l.data = map[int]int64{}
	}
	l.data[p] = max(l.data[p], time)
}

func (l *losses) note(p int, time int64) {
	l.all, l.last = append(l.all, loss{since: l.data[p], time: time}), max(l.last, time)
}

// kept notes a record of the rejects.
func (l *losses) kept(time int64) {
	for i := range l.all {
		if m := &l.all[i]; time < m.since {
			m.rejects = max(m.rejects, time)
		}
	}
}

// between reports whether a loss was announced between two log times.
func (l *losses) between(from, to int64) bool {
	return slices.ContainsFunc(l.all, func(m loss) bool { return from <= m.time && m.time <= to })
}

// parts reports whether a loss may lie between two log times: what was done at the first
// may follow from what was gone at the second.
func (l *losses) parts(from, to int64) bool {
	return slices.ContainsFunc(l.all, func(m loss) bool { return from <= m.time && m.since <= to })
}

// rejects reports whether a loss may have taken a reject that was stored before the record
// of a log time, which passes what it tells of. Had that record been lost too, the reject
// would have been written again.
func (l *losses) rejects(passed int64) bool {
	return slices.ContainsFunc(l.all, func(m loss) bool { return m.rejects <= passed && passed <= m.time })
}

// any reports whether some log lost its tail.
func (l *losses) any() bool { return l.last > 0 }

// learned reports whether a record of decisions of a log time had learned feedback
// that is gone.
func (l *losses) learned(partition int, through, time int64) bool {
	for _, x := range l.feedback {
		if (x.partition < 0 || x.partition == partition) && x.from < through && through <= x.to && time < x.time {
			return true
		}
	}
	return false
}

// lostAfter returns the offset from which the records are gone that a record at an
// offset of the log with the marks told of; the largest number if they are there.
func lostAfter(list []lostRange, partition int, at int64) int64 {
	from := int64(1<<63 - 1)
	for _, x := range list {
		if x.partition == partition && x.at > at {
			from = min(from, x.from)
		}
	}
	return from
}
