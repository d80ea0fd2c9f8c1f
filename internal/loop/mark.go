package loop

import (
	"fmt"

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

// WithoutCuts reports whether a mark is of a joiner that logged no cuts.
func WithoutCuts(m *codec.FeedbackMark) bool { return m.Limits.Heart == 0 }

// CutOf returns the last cut before a mark, -1 if it is of a joiner that logged none. Cuts are counted from 1;
// cut 0 is what lies between such a mark and that of era 1.
func CutOf(m *codec.FeedbackMark) int64 {
	if WithoutCuts(m) {
		return -1
	}
	return m.Cut
}

// BeginEra has a joiner at the start of its logs begin in an era, behind those of a feedback log that is
// gone.
func (j *Joiner) BeginEra(era int64) { j.era = era }
