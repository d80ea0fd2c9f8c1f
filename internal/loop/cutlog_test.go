package loop

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"hindsight/pkg/codec"
)

// cutLog is a feedback log in memory with the inputs that its cuts take: decisions 0..P-1, then
// outcomes. The offset of an entry is its index.
type cutLog struct {
	partitions int
	rules      func(int64) *Rules
	inputs     [][]record
	entries    []cutEntry
}

// cutEntry is a cut, a mark or a feedback.
type cutEntry struct {
	cut      *codec.Cut
	prev     []int64 // positions before the cut, by input
	mark     *codec.FeedbackMark
	feedback []byte
	n        int64 // of the feedback
}

// span returns the records of an input between two offsets.
func (l *cutLog) span(q int, from, to int64) (out []record) {
	for _, r := range l.inputs[q] {
		if r.at.Offset >= from && r.at.Offset < to {
			out = append(out, r)
		}
	}
	return out
}

func cutSum(recs []record) (sum uint32) {
	for _, r := range recs {
		kind := fmt.Sprint(r.pass, r.ceID, r.from, r.to)
		sum = codec.Sum(sum, r.at.Offset, r.time, kind, r.raw)
	}
	return sum
}

// batch parses records as a shell does. The joiner must not keep the bytes: they are cleared by the
// function returned.
func cutBatch(recs []record, outcomes bool) (b Batch, done func()) {
	var raws [][]byte
	for _, r := range recs {
		raw := slices.Clone(r.raw)
		raws = append(raws, raw)
		kind := ""
		if r.pass {
			kind = codec.TypeOpen
		}
		if outcomes {
			e := OutcomeEvent{Offset: r.at.Offset, Time: r.time}
			e.Parse(kind, raw, r.ceID)
			b.Outcomes = append(b.Outcomes, e)
			continue
		}
		e := DecisionEvent{Offset: r.at.Offset, Time: r.time}
		if r.from > 0 {
			kind, raw = codec.TypeMark, codec.AppendDecisionMark(nil, &codec.DecisionMark{GapFrom: r.from, GapTo: r.to})
		}
		if err := e.Parse(kind, raw); err != nil {
			panic(err)
		}
		b.Decisions = append(b.Decisions, e)
	}
	return b, func() {
		for _, raw := range raws {
			clear(raw)
		}
	}
}

// cut makes a cut that moves the inputs from prev to next.
func (l *cutLog) cut(number, time int64, prev, next []int64) *codec.Cut {
	c := &codec.Cut{Cut: number, Time: time}
	for q := range l.inputs {
		if next[q] <= prev[q] {
			continue
		}
		r := codec.Range{Partition: q % l.partitions, Next: next[q], Sum: cutSum(l.span(q, prev[q], next[q]))}
		if q < l.partitions {
			c.Decisions = append(c.Decisions, r)
		} else {
			c.Outcomes = append(c.Outcomes, r)
		}
	}
	return c
}

// ranges are the ranges of a cut with their inputs.
func (l *cutLog) ranges(c *codec.Cut) iter.Seq2[int, codec.Range] {
	return func(yield func(int, codec.Range) bool) {
		for _, r := range c.Decisions {
			if !yield(r.Partition, r) {
				return
			}
		}
		for _, r := range c.Outcomes {
			if !yield(l.partitions+r.Partition, r) {
				return
			}
		}
	}
}

// batches returns what an entry's cut takes, of each input no record from its limit on.
func (l *cutLog) batches(e *cutEntry, limit func(q int) int64) (b []Batch, done func()) {
	var clears []func()
	for q, r := range l.ranges(e.cut) {
		one, clear := cutBatch(l.span(q, e.prev[q], min(r.Next, limit(q))), q >= l.partitions)
		b, clears = append(b, one), append(clears, clear)
	}
	return b, func() {
		for _, clear := range clears {
			clear()
		}
	}
}

func noLimit(int) int64 { return End }

// take gives a joiner the cut of an entry.
func (l *cutLog) take(j *Joiner, e *cutEntry) error {
	b, done := l.batches(e, noLimit)
	defer done()
	return j.Take(e.cut, b)
}

// positions returns the offsets from which a joiner is to read.
func (l *cutLog) positions(j *Joiner) []int64 {
	next := make([]int64, 2*l.partitions)
	for p := range l.partitions {
		next[p], next[l.partitions+p] = j.Next(p)
	}
	return next
}

// lostBefore returns the offset of an input from which a mark says that its tail was lost.
func (l *cutLog) lostBefore(m *codec.FeedbackMark, q int) int64 {
	for _, x := range m.LostTails {
		if x.Partition == q%l.partitions && (x.Topic == "outcomes") == (q >= l.partitions) {
			return x.Offset
		}
	}
	return End
}

// limit returns the offset of an input from which records that a cut took are gone, by the marks
// behind it up to mark m, which lies at an index.
func (l *cutLog) limit(cut, q int, m *codec.FeedbackMark, at int) int64 {
	limit := l.lostBefore(m, q)
	for i := cut + 1; i < at; i++ {
		if x := l.entries[i].mark; x != nil {
			limit = min(limit, l.lostBefore(x, q))
		}
	}
	return limit
}

// from returns the index of the mark from which mark m at an index is restored.
func (l *cutLog) from(m *codec.FeedbackMark, at int) (int, *codec.FeedbackMark) {
	if m.From < 0 {
		return at, m
	}
	return int(m.From), l.entries[m.From].mark
}

// history is what a joiner reads to be restored at mark m, which lies, or is to lie, at an index.
func (l *cutLog) history(m *codec.FeedbackMark, at int, opens bool) *History {
	start, from := l.from(m, at)
	return &History{From: from, Mark: m, Opens: opens,
		Feedback: func(yield func(*codec.Feedback, error) bool) {
			for i := range min(at, len(l.entries)) {
				if e := &l.entries[i]; e.feedback != nil {
					raw := slices.Clone(e.feedback)
					var f codec.Feedback
					err := codec.ParseFeedback(&f, raw)
					if !yield(&f, err) {
						return
					}
					clear(raw)
				}
			}
		},
		Steps: func(yield func(*Step, error) bool) {
			n := from.N
			for i := start + 1; i < min(at, len(l.entries)); i++ {
				e := &l.entries[i]
				s := Step{N: n, Cut: e.cut, Mark: e.mark}
				if e.feedback != nil {
					n = e.n
					continue
				}
				done := func() {}
				if e.cut != nil {
					s.Batches, done = l.batches(e, func(q int) int64 { return l.limit(i, q, m, at) })
				}
				ok := yield(&s, nil)
				done()
				if !ok {
					return
				}
			}
		}}
}

// restore makes the joiner that stood at a mark.
func (l *cutLog) restore(m *codec.FeedbackMark, at int, opens bool) (*Joiner, error) {
	j := NewJoiner(l.partitions, codec.Limits{}, 1, l.rules)
	return j, j.Restore(l.history(m, at, opens))
}

// mark makes the mark of a joiner; its limits are in force from here on.
func (l *cutLog) mark(j *Joiner, limits codec.Limits) error {
	m := new(codec.FeedbackMark)
	j.Mark(m)
	m.Limits = limits
	m.From, m.FromCut = -1, m.Cut
	if oldest := j.OldestCut(); oldest <= m.Cut {
		for i := range l.entries {
			if x := l.entries[i].mark; x != nil && x.Cut < oldest {
				m.From, m.FromCut = int64(i), x.Cut
			}
		}
	}
	if last, _ := l.last(); last != nil {
		m.Eras = last.Eras
	}
	return l.write(j, m)
}

// write appends a mark.
func (l *cutLog) write(j *Joiner, m *codec.FeedbackMark) error {
	read, err := codec.ParseFeedbackMark(codec.AppendFeedbackMark(nil, m))
	if err != nil {
		return err
	}
	l.entries = append(l.entries, cutEntry{mark: &read})
	return j.SetLimits(&read)
}

// last returns the last mark and its index.
func (l *cutLog) last() (*codec.FeedbackMark, int) {
	for i := len(l.entries) - 1; i >= 0; i-- {
		if m := l.entries[i].mark; m != nil {
			return m, i
		}
	}
	return nil, -1
}

// sums reports whether the records are there that a cut took of each of its inputs.
func (l *cutLog) sums(e *cutEntry, limit func(q int) int64) bool {
	for q, r := range l.ranges(e.cut) {
		if limit(q) >= r.Next && cutSum(l.span(q, e.prev[q], r.Next)) != r.Sum {
			return false
		}
	}
	return true
}

// ends reports whether the last range of each input is there that a mark tells of.
func (l *cutLog) ends(m *codec.FeedbackMark) bool {
	for i := range m.Positions {
		p := &m.Positions[i]
		if cutSum(l.span(i, p.DecisionsSince, p.Decisions)) != p.DecisionsSum ||
			cutSum(l.span(l.partitions+i, p.OutcomesSince, p.Outcomes)) != p.OutcomesSum {
			return false
		}
	}
	return true
}

// intact reports whether all is there that restoring a mark at an index reads.
func (l *cutLog) intact(m *codec.FeedbackMark, at int) bool {
	start, _ := l.from(m, at)
	for i := start + 1; i < at; i++ {
		e := &l.entries[i]
		if e.cut != nil && !l.sums(e, func(q int) int64 { return l.limit(i, q, m, at) }) {
			return false
		}
	}
	return l.ends(m)
}

var errAudit = errors.New("the log does not follow from its cuts")

// audit replays the log as it is. It returns how many feedbacks were compared, and what each round
// of which the inputs tell had.
func (l *cutLog) audit() (compared int, err error) {
	a := cutAudit{l: l, j: NewJoiner(l.partitions, codec.Limits{}, 2, l.rules), seen: map[Place]int{}}
	for i := range l.entries {
		e := &l.entries[i]
		switch {
		case e.cut != nil:
			err = a.cut(e)
		case e.mark != nil:
			err = a.mark(e.mark, i)
		default:
			err = a.feedback(e)
		}
		if err != nil {
			return a.compared, fmt.Errorf("entry %d: %w", i, err)
		}
	}
	if a.skips || len(a.due) > 0 {
		return a.compared, fmt.Errorf("%w: it ends, and %d feedbacks are missing", errAudit, len(a.due))
	}
	return a.compared, a.once()
}

type cutAudit struct {
	l        *cutLog
	j        *Joiner
	due      [][]byte
	n        int64
	skips    bool // to the next mark that can be restored
	compared int
	seen     map[Place]int
	told     map[Place][]codec.Closed // by records of stages
}

func (a *cutAudit) cut(e *cutEntry) error {
	if a.skips {
		return nil
	}
	if !a.l.sums(e, noLimit) {
		a.skips = true
		return nil
	}
	if err := a.l.take(a.j, e); err != nil {
		return fmt.Errorf("%w: %w", errAudit, err)
	}
	var r Ready
	a.j.Ready(&r)
	for i := range r.Feedback {
		a.due = append(a.due, codec.AppendFeedback(nil, &r.Feedback[i]))
	}
	return nil
}

func (a *cutAudit) feedback(e *cutEntry) error {
	var f codec.Feedback
	if err := codec.ParseFeedback(&f, slices.Clone(e.feedback)); err != nil {
		return err
	}
	a.n++
	if err := a.inOrder(&f); err != nil {
		return err
	}
	switch {
	case f.N != a.n:
		return fmt.Errorf("%w: feedback %d, where %d is due", errAudit, f.N, a.n)
	case a.skips:
		return nil
	case len(a.due) == 0 || string(a.due[0]) != string(e.feedback):
		return fmt.Errorf("%w: feedback %d differs:\nis   %s\nwant %s", errAudit, f.N, print(e.feedback),
			printAt(a.due, 0))
	}
	a.due = a.due[1:]
	a.compared++
	return nil
}

func (a *cutAudit) mark(m *codec.FeedbackMark, at int) (err error) {
	if m.Era > a.j.era {
		if a.due, a.skips = nil, !a.l.intact(m, at); !a.skips {
			a.j, err = a.l.restore(m, at, false)
		}
		return err
	}
	if a.skips {
		return nil
	}
	var own codec.FeedbackMark
	a.j.Mark(&own)
	own.Eras, own.From, own.FromCut, own.Limits, own.LostTails = m.Eras, m.From, m.FromCut, m.Limits, m.LostTails
	if at > 0 && (len(a.due) > 0 || !bytes.Equal(codec.AppendFeedbackMark(nil, &own), codec.AppendFeedbackMark(nil,
		m))) {
		return fmt.Errorf("%w: mark %+v\nwant %+v, %d feedbacks missing", errAudit, m, own, len(a.due))
	}
	return a.j.SetLimits(m)
}

// inOrder fails unless the records of a round are those of its stages, ascending, and then its feedback.
func (a *cutAudit) inOrder(f *codec.Feedback) error {
	at := Place{f.Partition, f.Round}
	if f.Stage == 0 {
		a.seen[at]++
	}
	if err := f.Validate(); err != nil {
		return fmt.Errorf("%w: %w", errAudit, err)
	}
	if a.told == nil {
		a.told = map[Place][]codec.Closed{}
	}
	told := a.told[at]
	if f.Stage > 0 && (a.seen[at] > 0 || len(told) > 0 && told[len(told)-1].Stage >= f.Stage) {
		return fmt.Errorf("%w: round %v has stage %d behind %v", errAudit, at, f.Stage, told)
	}
	for _, c := range f.Outcomes {
		if f.Stage > 0 {
			c.Stage, c.Name = f.Stage, strings.Clone(c.Name)
			a.told[at] = append(a.told[at], c)
		} else if was := slices.IndexFunc(told, func(x codec.Closed) bool { return x.Name == c.Name }); (was >= 0) !=
			(c.Stage > 0) || was >= 0 && told[was] != c {
			return fmt.Errorf("%w: feedback %d says %+v of an outcome, and the records of stages %v", errAudit,
				f.N, c, told)
		}
	}
	return nil
}

// once fails unless every decision has one feedback.
func (a *cutAudit) once() error {
	for at, n := range a.seen {
		if n > 1 {
			return fmt.Errorf("%w: round %v has %d feedbacks", errAudit, at, n)
		}
	}
	for p := range a.l.partitions {
		for i := range a.l.inputs[p] {
			r := &a.l.inputs[p][i]
			if n := lastRound(r); n > 0 && r.from == 0 && a.seen[Place{p, n}] != 1 {
				return fmt.Errorf("%w: round %d of %d has %d feedbacks", errAudit, n, p, a.seen[Place{p, n}])
			}
		}
	}
	return nil
}

// lastRound returns the last round that a record of decisions tells of, 0: none.
func lastRound(r *record) int64 {
	var d codec.Decision
	switch {
	case r.from > 0:
		return r.to
	case r.pass || codec.ParseDecision(&d, r.raw) != nil:
		return 0
	}
	return d.N
}
