package verify

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"hindsight/internal/loop"
	"hindsight/internal/recent"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

func i64(n int64) string { return strconv.FormatInt(n, 10) }

// decisionLane is one partition of decisions, with the contexts that it decides.
type decisionLane struct {
	v         *verification
	check     *decisionCheck
	partition int
	decisions *logCursor
	contexts  *logCursor

	heart *loop.Decider
	next  int64 // N of the next decision; 0: not known
	// records since the last that could not be read: each is a decision, or somebody else's
	unread  int64
	through int64                 // contexts before it are dealt with
	known   bool                  // through is known
	passed  int64                 // offset behind the last context taken
	counted int64                 // contexts before it are in the report
	time    int64                 // log time that contexts had reached at the last decision of one
	since   int64                 // log time of the last decision
	at      place                 // of the last decision or mark
	lost    []codec.DecisionMark  // that say that contexts, their rejects, rounds or feedback are gone
	refuses bool                  // marks say where the rejects of contexts lie
	ids     *recent.Memory[int64] // of the last rounds
	units   *loop.Units           // draws that may hold
	firstN  int64                 // of the first decision that was read; 0: none was
	holes   bool                  // records could not be read
	grown   bool                  // there are decisions or feedback behind the ends
	ruled   *loop.Decider         // decides by the rules of ruledBy alone
	ruledBy *epochInfo

	head codec.Decision // the decision at the head, if ready
	rec  *stream.Record
	want codec.Decision
	buf  []byte
	raw  []byte // of the context, when it comes from its topic
}

// used returns the round that has an id, if it is one of the last.
func (l *decisionLane) used(id string) (round int64, ok bool) { return l.ids.Get(0, []byte(id)) }

func (v *verification) openLane(ctx context.Context, d *decisionCheck, p int) (l *decisionLane, err error) {
	l = &decisionLane{v: v, check: d, partition: p, ids: recent.New[int64](cmp.Or(v.Dedup, loop.DefaultDedup)),
		units: loop.NewUnits(loop.TableSeed(v.Seed))}
	if l.decisions, err = v.openCursor(ctx, v.topics.Decisions, p); err != nil {
		return nil, err
	}
	l.decisions.read = v.step
	if !l.decisions.cut() {
		l.next, l.known = 1, true
	}
	return l, nil
}

func (l *decisionLane) close() {
	l.decisions.close()
	if l.contexts != nil {
		l.contexts.close()
	}
}

// place returns where the decision at the head was made.
func (l *decisionLane) place() place { return place{l.head.Era, l.head.LearnedThrough, l.head.Epoch} }

// wrong notes a difference in the decision at the head.
func (l *decisionLane) wrong(field string, want, got any) {
	d := &l.head
	l.heart = nil // its memory may be of another context
	l.suspect(at(l.decisions, l.rec, field, want, got).in(d.N, d.ID), &l.v.report.Decisions,
		max(d.Source, d.ContextsThrough-1), d.LearnedThrough, func() bool { return false })
}

// suspect notes a difference that excused may excuse, or a later mark of this partition: a context, or
// feedback that was learned, was lost behind the record at the head.
func (l *decisionLane) suspect(d Difference, kind *Tally, context, learned int64, excused func() bool) {
	behind := len(l.lost)
	l.v.suspect(d, kind, func() bool {
		return excused() || slices.ContainsFunc(l.lost[behind:], func(m codec.DecisionMark) bool {
			return m.ContextsThrough <= context && context < m.ContextsLost ||
				m.LearnedThrough < learned && learned <= m.LearnedLost
		})
	})
}

// advance moves to the next decision, past control records and what is none. It reports false at the end.
func (l *decisionLane) advance(ctx context.Context) (bool, error) {
	for l.rec == nil {
		r, err := l.decisions.head(ctx)
		if err != nil || r == nil {
			return false, err
		}
		if r.Type != "" {
			l.decisions.keyless(l.v, r)
		}
		switch r.Type {
		case "":
			l.v.count(&l.v.report.Decisions, Tally{Records: 1})
			err := codec.ParseDecision(&l.head, r.Value)
			if err == nil {
				l.rec, l.firstN = r, cmp.Or(l.firstN, l.head.N)
				return true, nil
			}
			if err := l.v.unread(l.decisions, r, "bytes", "a decision", err, l.next); err != nil {
				return false, err
			}
			l.unread++
			l.holes = true
			l.known = false
		case codec.TypeMark:
			if err := l.mark(ctx, r); err != nil {
				return false, err
			}
		case codec.TypeOpen:
		default:
			l.v.stray(at(l.decisions, r, "type", "none, open or mark", r.Type))
		}
		l.decisions.take()
	}
	return true, nil
}

// done takes the decision at the head.
func (l *decisionLane) done() {
	l.ids.Put(0, []byte(l.head.ID), l.head.N)
	l.units.Remember(&l.head)
	l.next, l.unread, l.through, l.known = l.head.N+1, 0, l.head.ContextsThrough, true
	if p := l.place(); l.at.before(p) {
		l.at = p
	}
	l.since = l.rec.Time
	l.rec = nil
	l.decisions.take()
}

// due reports whether n may be the number of what comes next after so many records that could not be read.
func due(next, unread, n int64) bool { return n >= next && n <= next+unread }

// follows checks that a decision had not learned less than the one before it.
func (l *decisionLane) follows(p place) bool {
	switch was := l.at; {
	case p.era < was.era:
		l.wrong("era", "at least "+i64(was.era), p.era)
	case p.era == was.era && p.through < was.through:
		l.wrong("learned_through", "at least "+i64(was.through), p.through)
	case p.era == was.era && p.epoch < was.epoch:
		l.wrong("epoch", "at least "+i64(was.epoch), p.epoch)
	default:
		return true
	}
	return false
}

// relearns reports whether what the decision at the head had learned was learned again: an earlier
// decision had learned more, which was lost, in a log without eras.
func (l *decisionLane) relearns(through int64) bool {
	return l.head.LearnedThrough < through &&
		slices.ContainsFunc(l.lost, func(m codec.DecisionMark) bool { return m.LearnedLost > l.head.LearnedThrough })
}

// mark checks a decider's mark.
func (l *decisionLane) mark(ctx context.Context, r *stream.Record) error {
	v := l.v
	v.count(&v.report.Marks, Tally{Records: 1, Checked: 1})
	m, err := codec.ParseDecisionMark(r.Value)
	if err != nil {
		return v.unread(l.decisions, r, "bytes", "a mark", err, 0)
	}
	l.number(r, &m)
	if m.ContextsLost+m.LearnedLost+m.GapFrom > 0 {
		v.losses.add(l.since, r.Time)
	}
	if m.ContextsLost+m.LearnedLost+m.GapFrom+m.RejectsTo > 0 {
		l.lost = append(l.lost, m)
	}
	l.refuses = l.refuses || m.Rejects > 0
	if m.ContextsLost > 0 {
		l.contexts.seek(m.ContextsThrough)
		l.through, l.passed = m.ContextsThrough, m.ContextsThrough
	}
	l.checkLearned(r, &m)
	if l.known && m.ContextsThrough < l.through {
		v.differ(at(l.decisions, r, "contexts_through", "at least "+i64(l.through), m.ContextsThrough))
		return nil
	}
	// No decision tells of an epoch in which all contexts were refused.
	return l.pass(ctx, m.ContextsThrough, func() int64 { return v.models.begun(m.LearnedThrough) })
}

// number checks the numbers of decisions that a mark tells of.
func (l *decisionLane) number(r *stream.Record, m *codec.DecisionMark) {
	v := l.v
	if m.GapFrom > 0 {
		if l.next > 0 && !due(l.next, l.unread, m.GapFrom) || m.GapTo < m.GapFrom {
			v.differ(at(l.decisions, r, "gap_from", l.next, m.GapFrom))
		}
		l.next, l.unread = m.GapTo+1, 0
	}
	if l.next == 0 {
		l.next = m.N + 1
	}
	if !due(l.next-1, l.unread, m.N) {
		v.differ(at(l.decisions, r, "n", l.next-1, m.N))
	} else {
		l.next, l.unread = m.N+1, l.unread-(m.N+1-l.next)
	}
}

// checkLearned checks how much a mark says was learned: no less than before, and what the log holds, or
// held before an era began.
func (l *decisionLane) checkLearned(r *stream.Record, m *codec.DecisionMark) {
	d, is := l.check, place{m.Era, m.LearnedThrough, l.at.epoch}
	if m.LearnedLost == 0 && is.before(l.at) {
		l.v.differ(at(l.decisions, r, "learned_through", "at least "+l.at.String(), is))
		return
	}
	l.at = is
	l.v.suspect(at(l.decisions, r, "learned_through", "the number of a feedback in the log", m.LearnedThrough), nil,
		func() bool {
			last := max(l.v.models.lastN, d.audit.Replica().LearnedThrough())
			return is.through <= last || last == 0 || d.hungry(is) || d.eras.Voids(is.era, is.through)
		})
}
