package verify

import (
	"bytes"
	"context"
	"strconv"

	"hindsight/internal/latelosses"
	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// fateCheck recomputes the feedback log: each record is its decision's copy with the
// fate that the decision has by definition, from the log times of decisions and
// outcomes and the rules of its epoch. What a joiner does to get there, and when,
// does not enter, but for the order of rounds across partitions, which the feedback
// log itself records.
type fateCheck struct {
	v        *verification
	feedback *logCursor
	lanes    []*roundLane
	outs     []*outcomeLane
	ids      map[string]*heldID
	memory   []*heldRound // judged, oldest first
	missing  []missingReject
	newer    *heldOutcome // the first that only a newer program can read, and that was not rejected
	forgot   bool         // some round was forgotten
	losses   loop.LateLosses
	guard    guardCheck

	n      int64 // of the last feedback; -1: none was read
	unread int64 // records since then that could not be read: each is a feedback, or somebody else's
	epoch  int64

	got  codec.Feedback
	dec  codec.Decision
	want codec.Feedback
	buf  []byte
}

func (v *verification) openFates(ctx context.Context) (*fateCheck, error) {
	c, err := v.openCursor(ctx, v.topics.Feedback, 0)
	if err != nil {
		return nil, err
	}
	c.read = v.step
	f := &fateCheck{v: v, feedback: c, ids: map[string]*heldID{}, n: -1}
	if !c.cut() {
		f.n = 0
	}
	return f, nil
}

func (f *fateCheck) cursor() *logCursor         { return f.feedback }
func (f *fateCheck) decisions(p int) *logCursor { return f.lanes[p].c }
func (f *fateCheck) outcomes(p int) *logCursor  { return f.outs[p].c }

func (f *fateCheck) close() {
	f.feedback.close()
	for _, l := range f.lanes {
		l.c.close()
	}
	for _, l := range f.outs {
		l.c.close()
	}
}

func (f *fateCheck) run(ctx context.Context) error {
	for {
		r, err := f.feedback.head(ctx)
		if err != nil {
			return err
		}
		if r == nil {
			break
		}
		if err := f.take(ctx, r); err != nil {
			return err
		}
		f.feedback.take()
	}
	f.v.report.LateLosses = latelosses.Compare(&f.losses)
	return f.finish(ctx)
}

func (f *fateCheck) take(ctx context.Context, r *stream.Record) error {
	v := f.v
	if r.Type != "" {
		f.feedback.keyless(v, r)
	}
	switch r.Type {
	case "":
		v.count(&v.report.Feedback, Tally{Records: 1})
		if err := codec.ParseFeedback(&f.got, r.Value); err != nil {
			if err := v.unread(f.feedback, r, "bytes", "a feedback", err, max(f.n, 0)+1); err != nil {
				return err
			}
			f.unread++
			f.guard.known = false
			return nil
		}
		f.guard.guard.Add(&f.got)
		v.late.AddFeedback(&f.losses, &f.got, v.rules(f.got.Epoch))
		return f.round(ctx, r)
	case codec.TypeMark:
		v.count(&v.report.Marks, Tally{Records: 1, Checked: 1})
		return f.mark(ctx, r)
	case codec.TypeEpoch:
		if rec, err := codec.ParseEpoch(r.Value); err == nil {
			if f.n >= 0 && !f.reach(rec.Through) {
				v.differ(at(f.feedback, r, "through", f.n, rec.Through))
			}
			f.epoch = max(f.epoch, rec.Epoch)
			f.guard.begin(f, r, &rec)
		}
	case codec.TypeClass, codec.TypeOpen:
	default:
		v.stray(at(f.feedback, r, "type", "none, open, epoch, class or mark", r.Type))
	}
	return nil
}

// due reports whether n may be the number of what comes next after so many records that
// could not be read.
func due(next, unread, n int64) bool { return n >= next && n <= next+unread }

// reach notes that a record says which feedback came last. It reports false if it cannot be
// that one.
func (f *fateCheck) reach(n int64) bool {
	if !due(f.n, f.unread, n) {
		return false
	}
	f.n, f.unread = n, f.unread-(n-f.n)
	return true
}

// wrong notes a difference in the feedback at the head.
func (f *fateCheck) wrong(r *stream.Record, field string, want, got any) {
	f.v.differ(at(f.feedback, r, field, want, got).in(f.got.N, f.got.ID))
}

// round checks one feedback.
func (f *fateCheck) round(ctx context.Context, r *stream.Record) error {
	v, got := f.v, &f.got
	if f.n >= 0 && !due(f.n+1, f.unread, got.N) {
		f.wrong(r, "n", f.n+1, got.N)
	}
	f.n, f.unread = got.N, 0
	if got.LearnedThrough >= got.N && !v.losses.learned(got.Partition, got.LearnedThrough, got.Time) {
		f.wrong(r, "learned_through", "less than "+i64(got.N), got.LearnedThrough)
	}
	if string(r.Key) != got.ID {
		f.wrong(r, "key", got.ID, string(r.Key))
	}
	if got.Partition < 0 || got.Partition >= v.partitions {
		f.wrong(r, "partition", "less than "+strconv.Itoa(v.partitions), got.Partition)
		return nil
	}
	l := f.lanes[got.Partition]
	if err := f.readRounds(ctx, got.Partition, func(l *roundLane, _ int64) bool { return l.next <= got.Round }); err != nil {
		return err
	}
	h := l.round(got.Round)
	again := f.turn(r, l, h)
	switch {
	case again:
		return nil
	case h == nil && l.c.cut() && (l.next == 0 || got.Round < l.base):
		v.count(&v.report.Feedback, Tally{TooOld: 1})
		f.id(string([]byte(got.ID))).unsure = true
		return nil
	case h == nil:
		f.wrong(r, "round", "a decision of partition "+strconv.Itoa(got.Partition), got.Round)
		return nil
	case h.lost || h.raw == nil:
		if h.lost {
			v.count(&v.report.Feedback, Tally{TooOld: 1})
		}
		h.judged = true
		f.id(string([]byte(got.ID))).unsure = true
		return nil // announced, or reported with the decisions
	}
	err := f.judge(ctx, r, h)
	f.keep(h, got.N)
	return err
}

// turn checks that it is a round's turn, and reports whether it had its feedback.
func (f *fateCheck) turn(r *stream.Record, l *roundLane, h *heldRound) (again bool) {
	n := f.got.Round
	if !l.begun { // a mark will tell which rounds had theirs in what is gone
		again := l.ahead[n]
		if again {
			f.wrong(r, "round", "a round without feedback", n)
		}
		l.ahead[n] = true
		return again
	}
	l.settle()
	switch {
	case h != nil && h.lost && !h.judged:
		return false
	case n <= l.judged || l.ahead[n]:
		f.wrong(r, "round", "a round without feedback", n)
		return true
	case n == l.judged+1:
		l.judged = n
	default:
		if rules := f.rulesOf(h); rules != nil && rules.Waits(n, f.got.LearnedThrough) || h == nil && !l.c.cut() {
			f.wrong(r, "round", l.judged+1, n)
		}
		l.ahead[n] = true
	}
	l.settle()
	return false
}

// rulesOf returns the rules of a round, nil if they are gone.
func (f *fateCheck) rulesOf(h *heldRound) *loop.Rules {
	if h == nil || h.raw == nil {
		return nil
	}
	return f.v.rules(h.epoch)
}

// settle moves past the rounds that have feedback, or are lost.
func (l *roundLane) settle() {
	for {
		n := l.judged + 1
		if l.ahead[n] {
			delete(l.ahead, n)
		} else if h := l.round(n); h == nil || !h.lost {
			return
		}
		l.judged = n
	}
}

// judge compares a feedback with what it should be.
func (f *fateCheck) judge(ctx context.Context, r *stream.Record, h *heldRound) error {
	v, got := f.v, &f.got
	rules := v.rules(h.epoch)
	if codec.ParseDecision(&f.dec, h.raw) != nil || rules == nil {
		if rules == nil && f.feedback.cut() {
			v.count(&v.report.Feedback, Tally{TooOld: 1})
		}
		f.id(h.id).unsure = true
		return nil
	}
	for p := range f.lanes {
		if err := f.readRounds(ctx, p, func(_ *roundLane, t int64) bool { return t <= h.time }); err != nil {
			return err
		}
	}
	d := &f.dec
	f.want = codec.Feedback{
		N: got.N, Partition: d.Partition, Round: d.N, ID: d.ID, Epoch: d.Epoch, LearnedThrough: d.LearnedThrough,
		Gamma: d.Gamma, Time: h.time, Actions: d.Actions, Propensities: d.Propensities, Action: d.Action, Context: d.Context, Mode: d.Mode, Would: d.Would,
		Fate: got.Fate, Reason: got.Reason, Loss: got.Loss, OutcomePartition: got.OutcomePartition, OutcomeOffset: got.OutcomeOffset, ClosedAt: got.ClosedAt,
	}
	if f.lanes[h.partition].c.cut() && got.Time > h.time {
		f.want.Time = got.Time // the running maximum may have begun with a record that is gone
	}
	known, err := f.fate(ctx, r, h, rules)
	if err != nil {
		return err
	}
	if known {
		v.count(&v.report.Feedback, Tally{Checked: 1})
	} else {
		v.count(&v.report.Feedback, Tally{TooOld: 1})
	}
	f.buf = codec.AppendFeedback(f.buf[:0], &f.want)
	if bytes.Equal(f.buf, r.Value) {
		return nil
	}
	if f.newer != nil {
		return f.guess(f.newer)
	}
	field, want, have := feedbackField(&f.want, got)
	if field == "" {
		field, want, have = bytesField(f.buf, r.Value)
	}
	f.wrong(r, field, want, have)
	return nil
}

// fate fills in the fate that a round has by definition. It reports false if that
// cannot be known, since outcomes or earlier rounds are gone.
func (f *fateCheck) fate(ctx context.Context, r *stream.Record, h *heldRound, rules *loop.Rules) (known bool, err error) {
	w, got := &f.want, &f.got
	id := f.id(h.id)
	if f.repeats(id, h) {
		if got.Reason != codec.ReasonDuplicateID && f.v.losses.any() {
			id.unsure = true // what the earlier round repeated may be gone
			return false, nil
		}
		w.Fate, w.Reason, w.Loss, w.OutcomePartition, w.OutcomeOffset, w.ClosedAt = codec.Skipped, codec.ReasonDuplicateID, 0, -1, -1, h.time
		return true, nil
	}
	if got.Reason == codec.ReasonDuplicateID && f.anyCut() {
		return false, nil
	}
	t := trial{rules: rules, action: f.dec.Actions[f.dec.Action], time: h.time, overflow: -1, named: place{got.OutcomePartition, got.OutcomeOffset}}
	if t.deadline, t.known, err = f.window(ctx, h, rules); err != nil {
		return false, err
	}
	through := int64(loop.End)
	if t.known {
		through = t.deadline
	} else if got.ClosedAt == loop.End { // the end of a file
		t.deadline, t.known = loop.End, true
	}
	if err := f.readOutcomes(ctx, through); err != nil {
		return false, err
	}
	if got.Reason == codec.ReasonOverflow {
		if t.overflow = got.ClosedAt; t.known && t.deadline < got.ClosedAt {
			t.overflow = -1
		} else if ok, err := f.decidedAt(ctx, got.ClosedAt); err != nil {
			return false, err
		} else if !ok {
			f.wrong(r, "closed_at", "the log time of a decision", got.ClosedAt)
		}
	}
	lost, err := f.lost(ctx, r, id, rules, t.deadline)
	if err != nil {
		return false, err
	}
	if id.unsure = id.unsure || f.unsure(h, id) || lost; id.unsure {
		return false, nil
	}
	verdict := t.judge(id.outcomes)
	for i, o := range id.outcomes {
		f.settle(o, verdict.outcomes[i])
	}
	id.outcomes, id.verdict, id.time = nil, &verdict, h.time
	if verdict.open && f.newer != nil {
		return false, f.guess(f.newer)
	}
	if verdict.open {
		f.wrong(r, "fate", "none: its window has not ended", got.Fate)
		return true, nil
	}
	w.Fate, w.Reason, w.Loss, w.ClosedAt, w.OutcomePartition, w.OutcomeOffset = verdict.fate, verdict.reason, verdict.loss, verdict.closedAt, -1, -1
	if verdict.by != nil {
		w.OutcomePartition, w.OutcomeOffset = verdict.by.partition, verdict.by.offset
	}
	if t.known && t.deadline != loop.End && t.overflow < 0 && !verdict.outcome {
		return true, f.ended(ctx, r, t.deadline)
	}
	return true, nil
}

// lost reports whether what a feedback follows from was lost after it: its outcome, or
// one of several, or the decision that ended its window, whose number another has now. The
// outcomes in time were read.
func (f *fateCheck) lost(ctx context.Context, r *stream.Record, id *heldID, rules *loop.Rules, deadline int64) (bool, error) {
	for _, o := range id.outcomes { // rejected for the sake of one that is gone
		if o.info != nil && f.v.losses.between(o.info.time, f.feedback.logTime(r)) {
			return true, nil
		}
	}
	several := rules.Outcomes != loop.First || rules.Activation
	for p := range f.outs {
		from := lostAfter(f.v.losses.outcomes, p, r.Offset)
		if f.got.OutcomePartition == p && f.got.OutcomeOffset >= from {
			return true, nil
		}
		if !several || from == loop.End {
			continue
		}
		if late, err := f.outs[p].c.head(ctx); err != nil || late == nil || late.Offset >= from { // else all in time lie before it
			return true, err
		}
	}
	written := f.feedback.logTime(r)
	return rules.Window.Rounds > 0 && (several || f.got.OutcomeOffset < 0) && (deadline == 0 || deadline > written) && f.v.losses.between(written, loop.End), nil
}

// ended checks that log time had passed a deadline somewhere.
func (f *fateCheck) ended(ctx context.Context, r *stream.Record, deadline int64) error {
	if f.feedback.logTime(r) > deadline {
		return nil
	}
	past := func(c *logCursor) (bool, error) {
		h, err := c.head(ctx)
		return err == nil && (c.time > deadline || h != nil && c.logTime(h) > deadline), err
	}
	for p, l := range f.lanes {
		if err := f.readRounds(ctx, p, func(_ *roundLane, t int64) bool { return t <= deadline }); err != nil {
			return err
		}
		for _, c := range []*logCursor{l.c, f.outs[p].c} {
			if ok, err := past(c); ok || err != nil {
				return err
			}
		}
	}
	f.wrong(r, "closed_at", "a round whose window has ended", "log time had not passed "+i64(deadline))
	return nil
}
