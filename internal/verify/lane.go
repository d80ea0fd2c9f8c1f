package verify

import (
	"context"
	"hash/maphash"
	"hindsight/internal/join"
	"strconv"

	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

func i64(n int64) string { return strconv.FormatInt(n, 10) }

// decisionLane is one partition of decisions, with the contexts that it decides.
type decisionLane struct {
	v         *verification
	partition int
	decisions *logCursor
	contexts  *logCursor

	heart   *loop.Decider
	next    int64 // N of the next decision; 0: not known
	unread  int64 // records since the last that could not be read: each is a decision, or somebody else's
	through int64 // contexts before it are dealt with
	known   bool  // through is known
	last    int64 // offset behind the last context taken
	time    int64 // log time that contexts had reached at the last decision of one
	tau     int64 // learned through, so far
	marked  int64 // the most that a mark says was learned
	epoch   int64
	ids     idMemory
	grown   bool          // there are decisions or feedback behind the ends
	ruled   *loop.Decider // decides by the rules of ruledBy alone
	ruledBy *epochInfo

	head codec.Decision // the decision at the head, if ready
	rec  *stream.Record
	want codec.Decision
	buf  []byte
	raw  []byte // of the context, when it comes from its topic
}

// idMemory remembers the last rounds' ids.
type idMemory struct {
	seed   maphash.Seed
	rounds map[uint64]int64
	ring   []uint64
	n      int
	most   int
}

func newIDMemory(most int) idMemory {
	return idMemory{seed: maphash.MakeSeed(), rounds: map[uint64]int64{}, most: most}
}

// round returns the last round of an id.
func (m *idMemory) round(id string) (int64, bool) {
	n, ok := m.rounds[maphash.String(m.seed, id)]
	return n, ok
}

func (m *idMemory) add(id string, round int64) {
	h := maphash.String(m.seed, id)
	if len(m.ring) < m.most {
		m.ring = append(m.ring, h)
	} else {
		delete(m.rounds, m.ring[m.n])
		m.ring[m.n] = h
		m.n = (m.n + 1) % m.most
	}
	m.rounds[h] = round
}

func (v *verification) openLane(ctx context.Context, p int) (l *decisionLane, err error) {
	l = &decisionLane{v: v, partition: p, ids: newIDMemory(2 * v.Dedup)}
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

// advance moves to the next decision, past control records and what is none. It
// reports false at the end.
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
			if err := codec.ParseDecision(&l.head, r.Value); err != nil {
				if err := l.v.unread(l.decisions, r, "bytes", "a decision", err, l.next); err != nil {
					return false, err
				}
				l.skip()
				break
			}
			l.rec = r
			return true, nil
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

// skip passes over a decision that cannot be read.
func (l *decisionLane) skip() {
	l.unread++
	l.known = false
}

// done takes the decision at the head.
func (l *decisionLane) done() {
	l.ids.add(l.head.ID, l.head.N)
	l.next, l.unread, l.through, l.known = l.head.N+1, 0, l.head.ContextsThrough, true
	l.tau, l.epoch = max(l.tau, l.head.LearnedThrough), max(l.epoch, l.head.Epoch)
	l.rec = nil
	l.decisions.take()
}

// mark checks a decider's mark.
func (l *decisionLane) mark(ctx context.Context, r *stream.Record) error {
	v := l.v
	v.count(&v.report.Marks, Tally{Records: 1, Checked: 1})
	m, err := codec.ParseDecisionMark(r.Value)
	if err != nil {
		return v.unread(l.decisions, r, "bytes", "a mark", err, 0)
	}
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
	if m.ContextsLost > 0 {
		l.through = min(l.through, m.ContextsThrough)
	}
	if m.LearnedLost > 0 {
		l.tau = min(l.tau, m.LearnedThrough)
	}
	if v.losses.learned(l.partition, m.LearnedThrough, r.Time) {
		l.tau = m.LearnedThrough
	} else if s := v.survey.now(); m.LearnedThrough < l.tau || !v.once && m.LearnedThrough > s.lastN && s.lastN > 0 {
		v.differ(at(l.decisions, r, "learned_through", "at least "+i64(l.tau)+" and at most "+i64(s.lastN), m.LearnedThrough))
	} else {
		l.tau, l.marked = m.LearnedThrough, max(l.marked, m.LearnedThrough)
	}
	if l.known && m.ContextsThrough < l.through {
		v.differ(at(l.decisions, r, "contexts_through", "at least "+i64(l.through), m.ContextsThrough))
		return nil
	}
	epoch := l.epoch
	for _, e := range v.survey.now().starts { // no decision tells of an epoch in which all contexts were refused
		if e.through <= m.LearnedThrough {
			epoch = max(epoch, e.epoch)
		}
	}
	if err := l.pass(ctx, min(m.ContextsThrough, l.lost()), epoch); err != nil {
		return err
	}
	l.through = max(l.through, m.ContextsThrough)
	return nil
}

// lost returns the offset from which the contexts are gone that the record at the
// head was made from.
func (l *decisionLane) lost() int64 {
	return lostAfter(l.v.losses.contexts, l.partition, l.decisions.offset())
}

// pass sees to the contexts before an offset that were not decided: each has its
// reject. epoch is the one of the decision that comes next.
func (l *decisionLane) pass(ctx context.Context, before, epoch int64) error {
	for {
		r, err := l.contexts.head(ctx)
		if err != nil {
			return err
		}
		if r == nil || r.Offset >= before {
			break
		}
		var t Tally
		switch {
		case r.Type != "":
		case l.known && r.Offset < l.through: // passed by a decision whose own context was lost
			t.TooOld = 1
		default:
			if t, err = l.refused(r, epoch, l.decisions.batch[l.decisions.i].Time); err != nil {
				return err
			}
		}
		l.takeContext(r, t)
	}
	l.through, l.known = max(l.through, before), true
	return nil
}

// takeContext moves behind a context; t says whether it was checked.
func (l *decisionLane) takeContext(r *stream.Record, t Tally) {
	if r.Type == "" {
		t.Records = 1
		l.v.count(&l.v.report.Contexts, t)
	}
	l.last = r.Offset + 1
	l.contexts.take()
}

// refused checks that a context without a decision was rejected, and for a reason
// that holds. passed is the log time of the record that passes it, the largest number
// if none does: then it may wait.
func (l *decisionLane) refused(r *stream.Record, epoch, passed int64) (Tally, error) {
	v := l.v
	info := v.rejects.reject(rejectKey{false, l.partition, r.Offset}, r.Time)
	switch {
	case info != nil:
	case passed == loop.End:
		return Tally{}, nil
	case !l.known || v.rejects.dropped(r.Time) || v.losses.rejects(passed):
		return Tally{TooOld: 1}, nil // its decision or its reject may be gone
	default:
		v.differ(at(l.contexts, r, "decision", "a decision or a reject", "neither"))
		return Tally{Checked: 1}, nil
	}
	id := join.CloudEventID(r)
	var c codec.Context
	err := codec.ParseContext(&c, r.Value)
	if newer(err) && info.reasons() != malformed { // somebody could read it
		return Tally{}, l.contexts.failed(r.Offset, err)
	}
	if err == nil && c.ID != "" {
		id = c.ID
	}
	if id == "" {
		id = strconv.Itoa(l.partition) + "-" + i64(r.Offset)
	}
	var ok reasons
	if _, used := l.ids.round(id); used || l.decisions.cut() || v.losses.parts(info.time, passed) { // perhaps by a round that is gone
		ok |= duplicateID
	}
	if passed == loop.End && l.grown { // rejects were read later: perhaps by a round, or a model, behind the ends
		ok |= duplicateID | malformed
	}
	for e := max(l.epoch, 1); e <= max(epoch, l.epoch, 1); e++ {
		if l.invalid(r, e) {
			ok |= malformed
		}
	}
	v.checkReject(info, r, r.Time, "")
	v.checkReason(info, id, ok)
	return Tally{Checked: 1}, nil
}

// minted returns the id that the decision at the head has, if that is one that is minted for
// the context at an offset when those before it are taken, as they are or may be; else "",
// and the heart mints one.
func (l *decisionLane) minted(offset int64) string {
	for try := range loop.Mints {
		id := string(loop.AppendMinted(nil, l.v.Seed, l.v.Name, l.partition, l.head.N, offset, try))
		if id == l.head.ID {
			return id
		}
		if _, used := l.ids.round(id); !used && !l.decisions.cut() {
			break
		}
	}
	return ""
}

// invalid reports whether a context breaks the rules of an epoch.
func (l *decisionLane) invalid(r *stream.Record, epoch int64) bool {
	e := l.v.epochs.get(epoch)
	if e == nil {
		if l.v.once {
			l.v.again()
		}
		return true // its rules are gone
	}
	return e.check.Decide(&l.want, r.Value, join.CloudEventID(r), loop.Source{Offset: r.Offset}).Verdict == loop.Invalid
}
