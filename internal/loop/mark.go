package loop

import (
	"cmp"
	"fmt"
	"slices"

	"hindsight/pkg/codec"
)

// Mark sets dst to where the joiner stands. The caller adds the offsets (From, FromCut, Memory,
// Rejects), Eras and Epochs, and may change Limits and raise Remembers.
func (j *Joiner) Mark(dst *codec.FeedbackMark) {
	*dst = codec.FeedbackMark{V: codec.Version, N: j.n, Cut: j.cut, Time: j.now, Era: j.era, Remembers: j.forgotten + 1,
		Limits: j.limits, Positions: dst.Positions[:0], Guard: j.guard.Append(nil),
		Candidates: j.judge.Append(nil), Delays: j.delays.append(nil)}
	for i := range j.parts {
		q := &j.parts[i]
		pos := codec.Position{Partition: i, Round: q.next - 1, Time: q.time,
			Decisions: q.decisions.next, DecisionsSince: q.decisions.since, DecisionsSum: q.decisions.sum,
			Outcomes: q.outcomes.next, OutcomesSince: q.outcomes.since, OutcomesSum: q.outcomes.sum,
			Done: q.doneBehind()}
		if q.again > q.outcomes.next {
			pos.Again = q.again
		}
		dst.Positions = append(dst.Positions, pos)
	}
}

// SetLimits puts the limits of a mark in force, from that mark on. The joiner that wrote the mark
// calls it, and so does every one that replays its log. An error changes nothing.
func (j *Joiner) SetLimits(m *codec.FeedbackMark) error {
	if m.Limits.Heart < 1 || m.Limits.Heart > Heart {
		return fmt.Errorf("the mark is of version %d of the joiner's rules, this program knows those up to %d: %w",
			m.Limits.Heart, Heart, codec.ErrVersion)
	}
	j.limits = m.Limits
	j.forgotten = max(j.forgotten, m.Remembers-1)
	return nil
}

// A joiner that logged no cuts left marks up to version 3. The first joiner behind it begins era 1 with a
// mark whose older mark is the last of those. What was taken at that one counts as one cut of the quiet
// pass, in order of time. Cuts are counted from 1, so that cut has the number 0 and the mark stands
// behind cut -1.

// WithoutCuts reports whether a mark is of a joiner that logged no cuts.
func WithoutCuts(m *codec.FeedbackMark) bool { return m.Limits.Heart == 0 }

// CutOf returns the last cut before a mark, -1 if it is of a joiner that logged none.
func CutOf(m *codec.FeedbackMark) int64 {
	if WithoutCuts(m) {
		return -1
	}
	return m.Cut
}

// beginWithoutCuts puts the joiner where such a mark stands, without rounds.
func (j *Joiner) beginWithoutCuts(m *codec.FeedbackMark) {
	j.n, j.cut = m.N, -1
	for i := range m.Positions {
		pos, q := &m.Positions[i], &j.parts[i]
		q.next, q.first, q.time = pos.Released+1, pos.Released+1, pos.DecisionsTime
		j.past.released[i] = slices.Clone(pos.Ahead)
	}
	j.past.open = map[Place]bool{}
}

// beginCutZero puts the limits in force that held there, and gives the outcomes that a joiner without cuts had
// taken the log times they had there, and leaves to the quiet pass those that may count: what was rejected stays
// rejected. Outcomes that had no fate at the mark get one now, and rejects that were only announced are made
// ([Joiner.Unfinished]).
func (j *Joiner) beginCutZero(h *History, s *Step) {
	j.limits = s.Mark.Limits
	for i, r := range s.Cut.Outcomes {
		pos := &h.From.Positions[r.Partition]
		events, time := s.Batches[len(s.Cut.Decisions)+i].Outcomes, pos.OutcomesTime
		for k := range events {
			e, at := &events[k], Place{r.Partition, events[k].Offset}
			time = max(time, e.Time)
			e.Time = time
			if _, open := slices.BinarySearch(pos.Parked, e.Offset); open {
				j.past.open[at] = true
			}
			x, announced := slices.BinarySearchFunc(pos.Refused, e.Offset,
				func(x codec.Refusal, offset int64) int { return cmp.Compare(x.Offset, offset) })
			if stored, known := h.Rejected[at]; known && stored == time {
				e.Pass = true
			} else if announced && !e.Pass {
				j.now, e.Pass = time, true
				j.reject(r.Partition, e, pos.Refused[x].Reason, e.Err, e.O.ID)
			}
		}
	}
	j.now = 0
}

// Unfinished returns the rejects that a joiner without cuts had still to make at its last mark, if this
// one was restored from that. The caller stores them behind the mark of the era.
func (j *Joiner) Unfinished() []codec.Reject { return j.unfinished }
