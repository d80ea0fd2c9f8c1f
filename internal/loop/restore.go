package loop

import (
	"errors"
	"fmt"
	"slices"

	"hindsight/pkg/codec"
)

// ErrHistory reports a log whose cuts do not lead to its mark.
var ErrHistory = errors.New("the mark does not follow from the cuts before it")

// History is what a joiner is restored from: a mark, and what lies between it and an older mark, at
// which no round waited that waits at the newer one.
type History struct {
	From *codec.FeedbackMark // the older mark; nil: the logs' beginning
	Mark *codec.FeedbackMark
	// Opens says that Mark is about to open an era. Rounds, times, Done and Remembers of it are not
	// set: they follow from the records that are left, and [Joiner.Mark] tells them.
	Opens bool
	// Feedback are the feedbacks up to Mark, ascending, from N = From.Remembers on or before it, and from
	// [Joiner.OldestTold] on.
	Feedback func(yield func(*codec.Feedback, error) bool)
	// Steps are the cuts and marks between From and Mark, in their order. Where a later mark, up to
	// and with Mark, says that a log lost its tail, the cuts before that mark have no records of it
	// from there on. If From is of a joiner that logged no cuts, the first is cut 0.
	Steps func(yield func(*Step, error) bool)
}

// Step is a cut or a mark of a [History].
type Step struct {
	N       int64      // feedbacks before it
	Cut     *codec.Cut // nil: a mark
	Batches []Batch    // of the cut
	Mark    *codec.FeedbackMark
}

// past are the rounds that were released behind the older mark, by partition, ascending. It is not
// nil while a joiner is restored: then the joiner neither closes nor releases nor rejects.
type past struct {
	released [][]int64
}

func (p *past) has(partition int, n int64) bool {
	if p == nil {
		return false
	}
	_, found := slices.BinarySearch(p.released[partition], n)
	return found
}

// Restore makes a new joiner the one that stood at a mark. A mark has no rounds. Those that wait at
// it were all taken behind the older mark, as were their outcomes: the cuts between the two give
// them again, in a quiet pass that passes over what was released. An error leaves a joiner that is
// of no use.
func (j *Joiner) Restore(h *History) error {
	j.past = &past{released: make([][]int64, len(j.parts))}
	if h.From != nil {
		if err := j.begin(h); err != nil {
			return err
		}
	}
	if err := j.recall(h); err != nil {
		return err
	}
	if err := j.restoreGuard(h.Mark); err != nil { // the quiet pass asks it which epoch is at work
		return err
	}
	era, err := j.passAgain(h)
	if err != nil {
		return err
	}
	j.retellAll()
	if err := j.arrive(h, era); err != nil {
		return err
	}
	j.past = nil
	return j.restoreMark(h.Mark)
}

// begin puts the joiner where the older mark stands, without rounds.
func (j *Joiner) begin(h *History) error {
	m := h.From
	if len(m.Positions) != len(j.parts) {
		return fmt.Errorf("a mark of %d partitions where there are %d: %w", len(m.Positions), len(j.parts),
			codec.ErrCorrupt)
	}
	j.n, j.cut, j.now, j.era = m.N, CutOf(m), m.Time, m.Era
	for i := range m.Positions {
		pos, q := &m.Positions[i], &j.parts[i]
		q.next, q.first, q.time, q.done = pos.Round+1, pos.Round+1, pos.Time, slices.Clone(pos.Done)
	}
	if WithoutCuts(m) { // no cut was taken there
		return nil
	}
	return j.SetLimits(m)
}

// recall learns of all feedback what rounds it is of. That of later rounds is known beforehand in
// the quiet pass. It is right that an id there counts as known as soon as it would after its
// release: a round that has the same id and still waits at the mark was taken while this one waited.
func (j *Joiner) recall(h *History) error {
	j.counted = map[Place]int64{}
	for f, err := range h.Feedback {
		if err != nil {
			return err
		}
		if f.Partition < 0 || f.Partition >= len(j.parts) {
			return fmt.Errorf("feedback %d is of partition %d: %w", f.N, f.Partition, codec.ErrCorrupt)
		}
		if f.Stage > 0 {
			j.recallStage(f)
			continue
		}
		if f.N > j.n {
			j.past.released[f.Partition] = append(j.past.released[f.Partition], f.Round)
		}
		if f.N > j.forgotten && f.Reason != codec.ReasonDuplicateID {
			known := knownRound{n: f.N, fate: f.Fate, reason: ownReason(f.Reason), epoch: f.Epoch, closedAt: f.ClosedAt}
			j.remember(j.rounds.put(f.ID, knownRound{}), known)
			if f.Unit != "" && f.First.N == 0 && f.Mode != codec.External {
				slot, _ := j.rounds.add(j.unitName(f.Unit), knownRound{})
				j.remember(slot, known)
			}
			j.recallOutcome(f, h.Mark)
		}
	}
	for _, rounds := range j.past.released {
		slices.Sort(rounds)
	}
	return nil
}

// recallOutcome notes the outcomes that a feedback names if they are taken again behind a mark.
func (j *Joiner) recallOutcome(f *codec.Feedback, m *codec.FeedbackMark) {
	note := func(p int, offset int64) {
		if 0 <= p && p < len(m.Positions) {
			if pos := &m.Positions[p]; pos.Outcomes <= offset && offset < pos.Again {
				j.counted[Place{p, offset}] = f.N
			}
		}
	}
	note(f.OutcomePartition, f.OutcomeOffset)
	for i := range f.Outcomes {
		note(f.Outcomes[i].Partition, f.Outcomes[i].Offset)
	}
}

// ownReason returns a reason of a feedback as text that does not alias its record.
func ownReason(reason string) string {
	known := []string{"", codec.ReasonOverflow, codec.ReasonInactive, codec.ReasonLost, codec.ReasonRepeat}
	return known[max(0, slices.Index(known, reason))]
}

// passAgain takes the cuts between the marks again. It reports whether an era began between them.
func (j *Joiner) passAgain(h *History) (era bool, err error) {
	for s, err := range h.Steps {
		switch {
		case err != nil:
			return era, err
		case s.Cut != nil:
			j.n = s.N
			if err := j.Take(s.Cut, s.Batches); err != nil {
				return era, err
			}
		default:
			if s.Mark.Era > j.era {
				j.era, era = s.Mark.Era, true
				for i := range s.Mark.Positions {
					j.parts[i].goBack(&s.Mark.Positions[i])
				}
			}
			j.now = max(j.now, s.Mark.Time)
			if err := j.SetLimits(s.Mark); err != nil {
				return era, err
			}
		}
	}
	return era, nil
}

// goBack takes a partition to where an era begins. The older mark may lie behind that: then nothing
// of the partition waits, and the cuts behind the era mark give it again from there.
func (q *joinPart) goBack(to *codec.Position) {
	if q.next-1 > to.Round {
		q.next, q.first, q.times.n = to.Round+1, to.Round+1, 0
	}
	q.time = min(q.time, to.Time)
	q.done = append(slices.Clone(to.Done), q.done...)
}

// arrive puts the joiner at the newer mark, after checking that the cuts lead there. Behind an era
// log time may be later than the records that are left tell.
func (j *Joiner) arrive(h *History, era bool) error {
	m := h.Mark
	if len(m.Positions) != len(j.parts) {
		return fmt.Errorf("a mark of %d partitions where there are %d: %w", len(m.Positions), len(j.parts),
			codec.ErrCorrupt)
	}
	era = era || m.Era > j.era
	if j.cut != m.Cut || j.now > m.Time || !era && j.now < m.Time {
		return fmt.Errorf("mark behind cut %d at log time %d, and the cuts lead to %d at %d: %w",
			m.Cut, m.Time, j.cut, j.now, ErrHistory)
	}
	for i := range m.Positions {
		pos, q := &m.Positions[i], &j.parts[i]
		switch {
		case h.Opens:
			q.done = q.doneWith(j.past.released[i])
		case q.next-1 != pos.Round || q.time != pos.Time:
			return fmt.Errorf("mark behind round %d of partition %d at log time %d, and the cuts lead to %d at %d: %w",
				pos.Round, i, pos.Time, q.next-1, q.time, ErrHistory)
		default:
			q.done = slices.Clone(pos.Done)
		}
		q.decisions = cutRange{pos.Decisions, pos.DecisionsSince, pos.DecisionsSum}
		q.outcomes = cutRange{pos.Outcomes, pos.OutcomesSince, pos.OutcomesSum}
		q.again = pos.Again
	}
	return nil
}

// doneBehind returns the rounds behind the last one taken of which a mark says that they have their feedback.
func (q *joinPart) doneBehind() (runs []codec.Run) {
	for _, r := range q.done {
		if r.To >= q.next {
			runs = append(runs, codec.Run{From: max(r.From, q.next), To: r.To})
		}
	}
	return runs
}

// doneWith returns those and the rounds behind the last one taken that were released since that mark.
func (q *joinPart) doneWith(released []int64) (runs []codec.Run) {
	rounds := q.doneBehind()
	for _, n := range released {
		if n >= q.next {
			rounds = append(rounds, codec.Run{From: n, To: n})
		}
	}
	slices.SortFunc(rounds, func(a, b codec.Run) int { return int(a.From - b.From) })
	for _, r := range rounds {
		if k := len(runs) - 1; k >= 0 && r.From <= runs[k].To+1 {
			runs[k].To = max(runs[k].To, r.To)
		} else {
			runs = append(runs, r)
		}
	}
	return runs
}

// restoreMark sets what a mark says of the joiner as a whole.
func (j *Joiner) restoreMark(m *codec.FeedbackMark) error {
	j.n, j.now, j.era, j.eraN = m.N, m.Time, m.Era, 0
	for j.ahead.len() > 0 && j.ahead.at(0).time <= j.now {
		j.ahead.pop()
	}
	if k := len(m.Eras); k > 0 {
		j.eraN = m.Eras[k-1].N
	}
	if err := j.delays.read(m.Delays); err != nil {
		return err
	}
	return j.SetLimits(m)
}

func (j *Joiner) restoreGuard(m *codec.FeedbackMark) error {
	k := len(m.Epochs)
	if k == 0 {
		return nil
	}
	epoch := m.Epochs[k-1].Epoch
	if err := j.guard.Restore(m.Guard, epoch, j.rules(epoch)); err != nil {
		return err
	}
	return j.judge.Restore(m.Candidates, epoch, j.rules(epoch))
}
