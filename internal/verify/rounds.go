package verify

import (
	"context"
	"hindsight/internal/join"
	"slices"
	"strings"

	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// heldRound is a decision that was read and not forgotten.
type heldRound struct {
	partition int
	n         int64
	time      int64 // log time, made monotone
	offset    int64
	raw       []byte // until it has its feedback; nil: lost, or cannot be read
	id        string
	epoch     int64
	lost      bool // in an announced gap
	judged    bool
	second    bool  // another of the same id and log time was read first
	feedback  int64 // N of its feedback, once judged
}

// heldID is what is known of a round id.
type heldID struct {
	rounds   []*heldRound   // of this id, in the order of log time; more than one only where a promise was broken or forgotten
	outcomes []*heldOutcome // not judged yet
	verdict  *verdict       // of the last round judged
	time     int64          // of that round's decision
	unsure   bool           // what its outcomes were judged by is gone
}

// roundLane is one partition of decisions, read ahead of its feedback.
type roundLane struct {
	c      *logCursor
	held   []*heldRound // rounds base, base+1, …
	base   int64
	next   int64        // N of the next decision; 0: none was read
	unread []*heldRound // records since the last that could not be read: each is a decision, or somebody else's
	head   codec.Decision
	judged int64 // rounds up to here have their feedback
	ahead  map[int64]bool
	begun  bool // judged is known
}

// round returns a round that is held.
func (l *roundLane) round(n int64) *heldRound {
	if i := n - l.base; i >= 0 && i < int64(len(l.held)) {
		return l.held[i]
	}
	return nil
}

// openInputs fetches the ends of decisions and outcomes.
func (f *fateCheck) openInputs(ctx context.Context) error {
	v := f.v
	for p := range v.partitions {
		d, err := v.openCursor(ctx, v.topics.Decisions, p)
		if err != nil {
			return err
		}
		o, err := v.openCursor(ctx, v.topics.Outcomes, p)
		if err != nil {
			return err
		}
		o.watch(&v.losses)
		f.lanes = append(f.lanes, &roundLane{c: d, ahead: map[int64]bool{}, begun: !f.feedback.cut()})
		f.outs = append(f.outs, &outcomeLane{c: o})
	}
	return nil
}

// readRounds reads a partition of decisions while more says so. It reports false at
// the end.
func (f *fateCheck) readRounds(ctx context.Context, p int, more func(l *roundLane, logTime int64) bool) error {
	l := f.lanes[p]
	for {
		r, err := l.c.head(ctx)
		if err != nil || r == nil || !more(l, l.c.logTime(r)) {
			return err
		}
		f.readRound(p, l, r)
		l.c.take()
	}
}

func (f *fateCheck) readRound(p int, l *roundLane, r *stream.Record) {
	logTime := l.c.logTime(r)
	switch r.Type {
	case "":
		h := &heldRound{partition: p, time: logTime, offset: r.Offset}
		if codec.ParseDecision(&l.head, r.Value) != nil { // reported with the decisions
			l.unread = append(l.unread, h)
			return
		}
		d := &l.head
		if l.next > 0 && d.N != l.next { // reported with the decisions; what is not there is lost
			for n := l.next; n < d.N && d.N-n < 1<<20; n++ {
				f.hold(l, l.missing(&heldRound{partition: p, n: n, time: logTime, lost: true}))
			}
			if d.N < l.next {
				return
			}
		}
		l.unread = nil
		h.n, h.id, h.epoch = d.N, strings.Clone(d.ID), d.Epoch
		h.raw = append([]byte(nil), r.Value...)
		f.hold(l, h)
		id := f.id(h.id)
		id.rounds = append(id.rounds, h)
	case codec.TypeMark:
		m, err := codec.ParseDecisionMark(r.Value)
		if err != nil || m.GapFrom <= 0 {
			return
		}
		from := m.GapFrom
		if l.next > 0 {
			from = l.next
		}
		for n := from; n <= m.GapTo && m.GapTo-n < 1<<20; n++ {
			f.hold(l, &heldRound{partition: p, n: n, time: logTime, lost: true})
		}
	}
}

// missing returns a round that is missing: one of the records that could not be read, if there
// are any, or else the one given.
func (l *roundLane) missing(lost *heldRound) *heldRound {
	if len(l.unread) == 0 {
		return lost
	}
	h := l.unread[0]
	h.n, l.unread = lost.n, l.unread[1:]
	return h
}

func (f *fateCheck) hold(l *roundLane, h *heldRound) {
	if len(l.held) == 0 {
		l.base = h.n
	}
	l.held = append(l.held, h)
	l.next = h.n + 1
}

// id returns what is known of an id.
func (f *fateCheck) id(id string) *heldID {
	e := f.ids[id]
	if e == nil {
		e = &heldID{}
		f.ids[id] = e
	}
	return e
}

// outcomeLane is one partition of outcomes.
type outcomeLane struct {
	c       *logCursor
	outcome codec.Outcome
	since   int64 // log time of the first one kept
	any     bool
	passage
	passages []passage // of all marks, if logs have lost their tails
}

// passage is what a mark says of a partition of outcomes.
type passage struct {
	through int64          // before it every outcome has its fate
	parked  map[int64]bool // but for these
	time    int64          // log time of the mark
}

// has reports whether an outcome has its fate.
func (p *passage) has(offset int64) bool { return offset < p.through && !p.parked[offset] }

// pass takes what the next mark says. again is where it says that outcomes are new from
// there on, since a log has lost its tail; else it is the largest number.
func (l *outcomeLane) pass(p passage, again int64, remember bool) {
	l.passage = p
	if remember {
		l.passages = append(slices.DeleteFunc(l.passages, func(o passage) bool { return o.through > again }), p)
	}
}

// passed returns the log time of the mark that told first that an outcome has its fate, the
// largest number if none did.
func (l *outcomeLane) passed(offset int64) int64 {
	for i := range l.passages {
		if l.passages[i].has(offset) {
			return l.passages[i].time
		}
	}
	return loop.End
}

// readOutcomes reads all outcomes up to a log time.
func (f *fateCheck) readOutcomes(ctx context.Context, through int64) error {
	for p, l := range f.outs {
		for {
			r, err := l.c.head(ctx)
			if err != nil {
				return err
			}
			if r == nil || l.c.logTime(r) > through {
				break
			}
			if r.Type == "" {
				if err := f.readOutcome(p, l, r); err != nil {
					return err
				}
			}
			l.c.take()
		}
	}
	return nil
}

func (f *fateCheck) readOutcome(p int, l *outcomeLane, r *stream.Record) error {
	v := f.v
	v.count(&v.report.Outcomes, Tally{Records: 1})
	logTime := l.c.logTime(r)
	if !l.any {
		l.any, l.since = true, logTime
	}
	h := &heldOutcome{partition: p, offset: r.Offset, time: logTime, logTime: r.Time}
	h.info = v.rejects.reject(rejectKey{true, p, r.Offset}, logTime)
	err := codec.ParseLargeOutcome(&l.outcome, r.Value)
	if err == nil {
		if l.outcome.OutcomeID == "" {
			l.outcome.OutcomeID = join.CloudEventID(r)
		}
		err = l.outcome.Validate()
	}
	if err == nil && len(r.Value) > codec.MaxOutcomeBytes && h.info != nil && v.rejects.unread(h.info) {
		err = codec.ErrTooLarge // without such a reject it was an earlier program that took it
	}
	h.Outcome = l.outcome
	h.ID, h.Action, h.OutcomeID = strings.Clone(h.ID), strings.Clone(h.Action), strings.Clone(h.OutcomeID)
	if err != nil {
		h.ID = ""
	}
	if newer(err) {
		h.newer = err
		if h.info != nil && !v.rejects.unread(h.info) {
			return f.guess(h)
		}
		if h.info == nil && f.newer == nil {
			f.newer = h
		}
	}
	if h.info != nil {
		of := logTime
		if l.c.cut() && h.info.of > of {
			of = h.info.of // the running maximum may have begun with a record that is gone
		}
		v.checkReject(h.info, r, of, h.ID)
	}
	if err != nil {
		f.settle(h, malformed)
		return nil
	}
	e := f.id(h.ID)
	e.outcomes = append(e.outcomes, h)
	return nil
}

// guess returns the error that ends a verification where an outcome that cannot be read would
// have to be guessed.
func (f *fateCheck) guess(o *heldOutcome) error {
	return f.outs[o.partition].c.failed(o.offset, o.newer)
}

// settle compares the fate of an outcome with its reject; want 0 means that it
// counted.
func (f *fateCheck) settle(o *heldOutcome, want reasons) {
	v := f.v
	if o.info == nil && want != 0 {
		f.missing = append(f.missing, missingReject{o, want})
		return
	}
	v.count(&v.report.Outcomes, Tally{Checked: 1})
	switch {
	case o.info != nil && want == 0:
		v.wrongReject(o.info, o.ID, "reason", want.String()+": the outcome counted", o.info.reasons().String())
	case o.info != nil:
		v.checkReason(o.info, o.ID, want)
	}
}

// missingReject is an outcome that should have a reject, if the joiner came so far.
type missingReject struct {
	*heldOutcome
	want reasons
}

// finishOutcomes looks at what has no reject: that is a difference if a mark says
// that the joiner was past it, or one of a newer program, which could read it.
func (f *fateCheck) finishOutcomes() error {
	for _, m := range f.missing {
		l := f.outs[m.partition]
		waits := !l.has(m.offset)
		if !waits && (f.v.rejects.dropped(m.logTime) || f.v.losses.rejects(l.passed(m.offset))) {
			f.v.count(&f.v.report.Outcomes, Tally{TooOld: 1}) // its reject may be gone
			continue
		}
		f.v.count(&f.v.report.Outcomes, Tally{Checked: 1})
		if waits {
			continue
		}
		if m.newer != nil {
			return f.guess(m.heldOutcome)
		}
		f.v.differ(Difference{Topic: l.c.topic, Partition: m.partition, Offset: m.offset, Time: m.logTime, ID: m.ID,
			Field: "fate", Want: m.want.String(), Got: "no reject"})
	}
	return nil
}

// window returns the last log time at which an outcome of a round is in time, if
// that is known.
func (f *fateCheck) window(ctx context.Context, h *heldRound, rules *loop.Rules) (deadline int64, known bool, err error) {
	if rules.Window.Rounds == 0 {
		return addTime(h.time, rules.Window.Nanos), true, nil
	}
	end := addTime(h.n, rules.Window.Rounds)
	if err := f.readRounds(ctx, h.partition, func(l *roundLane, _ int64) bool { return l.next <= end }); err != nil {
		return 0, false, err
	}
	if e := f.lanes[h.partition].round(end); e != nil {
		return e.time, true, nil
	}
	return 0, false, nil
}

// addTime adds without overflow.
func addTime(t, span int64) int64 {
	if t > loop.End-span {
		return loop.End
	}
	return t + span
}
