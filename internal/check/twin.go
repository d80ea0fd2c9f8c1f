package check

import (
	"slices"

	"hindsight/pkg/codec"
)

// twin joins again what cuts took, naively: it keeps every round for ever, and looks at each that waits.
type twin struct {
	c         *checker
	n         int64 // of the last feedback
	now       int64 // log time reached
	cut, era  int64
	eraN      int64   // feedback before this era
	forgotten int64   // rounds with feedback up to this N are not remembered
	finals    []int64 // N of the feedbacks of rounds; others are records of stages
	limits    codec.Limits
	parts     []twinPart
	line      []*waiting // in the order in which their decisions were taken
	rounds    map[string]*waiting
	told      []told           // log times that decisions told, behind now
	delays    map[bool][]int64 // of outcomes where rounds tell something provisional, true: in rounds
	due       []codec.Feedback // that follows from the last cut and was not met
	// past is not nil while the twin goes back to where an era begins: the rounds that have their feedback.
	// Then it closes, releases and rejects nothing.
	past map[place]bool
}

// twinPart is a partition.
type twinPart struct {
	next                int64 // N of the next decision
	time                int64
	times               map[int64]int64 // N of a decision → its log time
	done                []codec.Run     // rounds that have their feedback, and whose decisions were lost
	again               int64           // outcomes before this offset were taken in an earlier era
	decisions, outcomes stretch
}

// stretch is the last range that moved an input.
type stretch struct {
	since, next int64
	sum         uint32
}

// waiting is a round that was taken.
type waiting struct {
	*round
	rules     *Rules // nil: the record of its epoch was lost
	time, cut int64
	fate      *codec.Feedback     // nil: it has none yet
	n         int64               // of its feedback; 0: it waits
	outs      []out               // of a model that names outcomes
	told      int                 // stages that were told
	guess     float64             // the loss of the last provisional record
	counts    map[string][]string // by outcome, the ids of records that count
	ends      func(*Named) int64
	draw      *waiting // that it repeats
}

// told is a log time, and the cut that took the decision.
type told struct{ time, cut int64 }

// moment is a record in its place in the order of a cut.
type moment struct {
	time      int64 // lifted
	partition int
	record    *record
}

func newTwin(c *checker) *twin {
	t := &twin{c: c, parts: make([]twinPart, c.n), rounds: map[string]*waiting{}, delays: map[bool][]int64{}}
	for p := range t.parts {
		t.parts[p] = twinPart{next: 1, times: map[int64]int64{}}
	}
	return t
}

// take takes what a cut takes: decisions by (time, partition, offset), then outcomes, then time. Before log
// time moves on, rounds are closed by the log times of decisions that are no later.
func (t *twin) take(cut *codec.Cut, ranges []taken) {
	t.cut = cut.Cut
	t.forget()
	for _, m := range order(ranges, false, func(p int) int64 { return t.parts[p].time }) {
		t.tell(m.time)
		t.decision(&m)
	}
	for _, m := range order(ranges, true, func(int) int64 { return t.now }) {
		t.pass(m.time)
		t.now = m.time
		if m.record.said != nil {
			t.outcome(&m)
		}
		t.settle()
	}
	t.pass(cut.Time)
	t.now = max(t.now, cut.Time)
	t.settle()
	for t.past == nil && int64(len(t.line)) > t.limits.Pending {
		t.line[0].close(t.now, codec.ReasonOverflow)
		t.settle()
	}
	for i := range ranges {
		x := &ranges[i]
		if x.outcomes {
			t.parts[x.partition].outcomes = x.stretch
		} else {
			t.parts[x.partition].decisions = x.stretch
		}
	}
}

// order merges one kind of records, whose times never go back in a partition.
func order(ranges []taken, outcomes bool, reached func(partition int) int64) (all []moment) {
	for i := range ranges {
		x := &ranges[i]
		if x.outcomes != outcomes {
			continue
		}
		time := reached(x.partition)
		for k := range x.records {
			time = max(time, x.records[k].Time)
			all = append(all, moment{time, x.partition, &x.records[k]})
		}
	}
	slices.SortFunc(all, func(a, b moment) int {
		return compare(a.time, b.time, int64(a.partition), int64(b.partition), a.record.Offset, b.record.Offset)
	})
	return all
}

func (t *twin) decision(m *moment) {
	q := &t.parts[m.partition]
	q.time = m.time
	for q.next <= m.record.gapTo {
		q.times[q.next] = m.time
		q.next++
	}
	d := m.record.round
	if d == nil || d.N < q.next {
		return
	}
	if d.N > q.next {
		t.c.fail("cut %d takes round %d of partition %d where %d is due", t.cut, d.N, m.partition, q.next)
	}
	if t.past == nil && t.era == 0 && d.LearnedThrough > t.n {
		t.c.fail("cut %d takes round %d of partition %d, which had learned feedback %d, behind feedback %d", t.cut, d.N,
			m.partition, d.LearnedThrough, t.n)
	}
	q.times[d.N], q.next = m.time, d.N+1
	if t.past[roundAt(m.partition, d.N)] || q.isDone(d.N) {
		return
	}
	w := &waiting{round: d, time: m.time, cut: t.cut}
	if e := t.c.epochs[d.Epoch]; e != nil {
		w.rules = e.rules
	}
	t.name(w)
	t.line = append(t.line, w)
	switch {
	case t.known(d.ID) != nil:
		w.end(codec.Skipped, codec.ReasonDuplicateID, 0, m.time)
	case w.rules == nil:
		t.rounds[d.ID] = w
		t.nameUnit(w)
		w.end(codec.Skipped, codec.ReasonLost, 0, m.time)
	case d.First.N > 0:
		t.rounds[d.ID] = w
		w.end(codec.Skipped, codec.ReasonRepeat, 0, m.time)
		if first := t.rounds[ofUnit(d.Unit)]; first != nil && first.n == 0 && first.N == d.First.N {
			w.draw = first
		}
	default:
		t.rounds[d.ID] = w
		t.nameUnit(w)
		return
	}
	t.finish(w)
}

// nameUnit notes a draw as the last of its unit.
func (t *twin) nameUnit(w *waiting) {
	if w.Unit != "" && w.First.N == 0 && w.Mode != codec.External {
		t.rounds[ofUnit(w.Unit)] = w
	}
}

func (q *twinPart) isDone(n int64) bool {
	return slices.ContainsFunc(q.done, func(r codec.Run) bool { return r.From <= n && n <= r.To })
}

// known returns the round that an id means: one that waits, or that is remembered.
func (t *twin) known(id string) *waiting {
	if w := t.rounds[id]; w != nil && (w.n == 0 || w.n > t.forgotten) {
		return w
	}
	return nil
}

func (t *twin) outcome(m *moment) {
	s := m.record.said
	if s.err != nil {
		t.reject(m, codec.ReasonMalformed)
		return
	}
	w := t.known(s.ID)
	if s.ID == "" {
		w = t.known(ofUnit(s.Unit))
	}
	if w != nil && w.draw != nil && w.draw.n == 0 {
		w = w.draw
	}
	switch {
	case w == nil:
		t.reject(m, codec.ReasonOrphan)
	case w.n > 0 && w.fate.Reason == codec.ReasonRepeat && t.counted(m): // for the draw, in an earlier era
	case w.n > 0 && w.n <= t.eraN && m.record.Offset < t.parts[m.partition].again && m.record.Time <= w.fate.ClosedAt:
		if !w.counted(m) {
			t.reject(m, codec.ReasonDuplicate) // it may have been rejected in an earlier era
		}
	case w.fate != nil:
		t.reject(m, reasonAfter(w.fate, w.rules))
	case w.outs != nil && (s.Kind == codec.Named || s.Kind == codec.Loss || s.Kind == codec.Reward):
		if reason := t.takeNamed(w, s, m); reason != "" {
			t.reject(m, reason)
		}
	case t.now > t.deadline(w), w.outs != nil && !slices.ContainsFunc(w.outs, func(x out) bool {
		return x.end == nil && t.now <= w.ends(x.rule)
	}):
		t.reject(m, codec.ReasonLate)
	default:
		if reason := w.take(s, m); reason != "" {
			t.reject(m, reason)
			return
		}
		t.noteDelay(w)
		t.finish(w)
	}
}

// counted reports whether a feedback of an earlier era names an outcome that is taken again.
func (t *twin) counted(m *moment) bool {
	for _, f := range t.c.fed {
		w := waiting{fate: f}
		if f.N <= t.eraN && m.record.Offset < t.parts[m.partition].again && w.counted(m) {
			return true
		}
	}
	return false
}

// deadline is the last log time at which an outcome is in time.
func (t *twin) deadline(w *waiting) int64 {
	if w.rules.WindowNanos > 0 {
		return w.time + w.rules.WindowNanos
	}
	if end, ok := t.parts[w.Partition].times[w.N+w.rules.WindowRounds]; ok {
		return end
	}
	return 1<<63 - 1
}

// finish releases a round that need not wait for others.
func (t *twin) finish(w *waiting) {
	if t.past == nil && !w.waits() {
		t.leave(w)
	}
}

// tell notes that a decision is later than log time.
func (t *twin) tell(time int64) {
	if time > t.now {
		t.told = append(t.told, told{time, t.cut})
		slices.SortStableFunc(t.told, func(a, b told) int { return compare(a.time, b.time) })
	}
}

// pass moves log time on to the last decision that is no later than a time.
func (t *twin) pass(time int64) {
	for len(t.told) > 0 && t.told[0].time <= time {
		t.now = max(t.now, t.told[0].time)
		t.told = t.told[1:]
		t.settle()
	}
}

func (t *twin) settle() {
	t.settleStages()
	t.release()
	t.settleSoon()
}

// release closes rounds at the head of the line whose windows are over, and releases those with a fate.
func (t *twin) release() {
	for t.past == nil && len(t.line) > 0 {
		w := t.line[0]
		if w.fate == nil {
			end := t.deadline(w)
			if end >= t.now {
				return
			}
			w.close(end, "")
		}
		t.leave(w)
	}
}

func (t *twin) leave(w *waiting) {
	if t.line[0] == w {
		t.line = t.line[1:]
	} else {
		k := slices.Index(t.line, w)
		t.line = slices.Delete(t.line, k, k+1)
	}
	t.n++
	w.n = t.n
	f := *w.fate
	w.fill(&f)
	f.N, f.Time = t.n, w.time
	f.Outcomes = w.closed(0)
	t.due = append(t.due, f)
	t.finals = append(t.finals, t.n)
}

// reject notes that an outcome must be rejected.
func (t *twin) reject(m *moment, reason string) {
	if t.past != nil {
		return
	}
	at := place{"outcomes", m.partition, m.record.Offset}
	t.c.expected[at] = append(t.c.expected[at], &expected{era: t.era, cut: t.cut, time: t.now, reason: reason})
}

// set puts what a mark says in force.
func (t *twin) set(m *codec.FeedbackMark) {
	t.limits = m.Limits
	t.forgotten = max(t.forgotten, m.Remembers-1)
}

// mark makes the mark of where the twin stands.
func (t *twin) mark() (m codec.FeedbackMark) {
	m.N, m.Cut, m.Time, m.Era, m.Remembers = t.n, t.cut, t.now, t.era, t.forgotten+1
	for p := range t.parts {
		q := &t.parts[p]
		pos := codec.Position{Partition: p, Round: q.next - 1, Time: q.time,
			Decisions: q.decisions.next, DecisionsSince: q.decisions.since, DecisionsSum: q.decisions.sum,
			Outcomes: q.outcomes.next, OutcomesSince: q.outcomes.since, OutcomesSum: q.outcomes.sum}
		for _, r := range q.done {
			if r.To >= q.next {
				pos.Done = append(pos.Done, codec.Run{From: max(r.From, q.next), To: r.To})
			}
		}
		if q.again > q.outcomes.next {
			pos.Again = q.again
		}
		m.Positions = append(m.Positions, pos)
	}
	return m
}
