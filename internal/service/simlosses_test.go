package service

import (
	"fmt"
	"slices"

	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// verifyPower checks what must hold whatever was lost.
func (s *sim) verifyPower() {
	if len(s.broken) > 0 {
		return
	}
	v := newPowerCheck(s)
	for p := range s.o.partitions {
		v.decisions(p)
	}
	v.feedback()
	v.readRejects()
	v.findEarly()
	for p := range s.o.partitions {
		v.contexts(p)
		v.outcomes(p)
	}
	v.recompute()
	s.verifyOwners()
	s.verifyStored()
	s.verifyReplicas()
}

func newPowerCheck(s *sim) *powerCheck {
	return &powerCheck{sim: s, rounds: map[place]*powerRound{}, gaps: map[place]bool{}, rejects: map[place][]codec.Reject{}, epochs: map[int64]bool{}, early: map[string]bool{}}
}

// place is a round, or a record of contexts or outcomes.
type place struct {
	topic     string
	partition int
	n         int64
}

type powerRound struct {
	codec.Decision
	at  int64 // log time of the decision
	fed bool
}

type powerCheck struct {
	*sim
	rounds  map[place]*powerRound
	order   []*powerRound
	gaps    map[place]bool // rounds that are announced as lost
	lost    []lostFeedback
	fed     []codec.Feedback
	rejects map[place][]codec.Reject
	epochs  map[int64]bool
	early   map[string]bool // rounds with outcomes that are older than their decision
}

// lostFeedback is an announcement that feedback behind from was learned, through to,
// by decisions before a time, and is gone.
type lostFeedback struct {
	partition    int // -1: all
	from, to, at int64
}

func (v *powerCheck) decisions(p int) {
	var n, tau, through int64
	v.records(v.topics.Decisions, p, func(r *stream.Record) {
		where := fmt.Sprintf("decisions[%d]@%d", p, r.Offset)
		switch r.Type {
		case "":
			d := &powerRound{at: r.Time}
			if err := codec.ParseDecision(&d.Decision, slices.Clone(r.Value)); err != nil {
				v.fatal("%s: %v", where, err)
				return
			}
			if d.N != n+1 || d.LearnedThrough < tau || d.ContextsThrough < through {
				v.fatal("%s: round %d after %d, learned %d after %d, contexts %d after %d", where, d.N, n, d.LearnedThrough, tau, d.ContextsThrough, through)
			}
			n, tau, through = d.N, d.LearnedThrough, d.ContextsThrough
			v.rounds[place{"", p, d.N}] = d
			v.order = append(v.order, d)
			if f := v.floor(p, r.Time); d.N <= f {
				v.fatal("%s: round %d is used again: %d was known after the power loss", where, d.N, f)
			}
		case codec.TypeMark:
			m, err := codec.ParseDecisionMark(r.Value)
			if err != nil {
				v.fatal("%s: %v", where, err)
				return
			}
			if m.GapFrom > 0 {
				v.counted["gaps of rounds"]++
				if m.GapFrom != n+1 || m.GapTo < m.GapFrom {
					v.fatal("%s: a gap of %d to %d after round %d", where, m.GapFrom, m.GapTo, n)
				}
				for n < m.GapTo {
					n++
					v.gaps[place{"", p, n}] = true
				}
			}
			if m.N != n || m.LearnedThrough < tau && m.LearnedLost < tau || m.ContextsThrough < through && m.ContextsLost < through {
				v.fatal("%s: after round %d, learned %d, contexts %d: %+v", where, n, tau, through, m)
			}
			if m.LearnedLost > 0 {
				v.counted["learned less again"]++
			}
			if m.ContextsLost > 0 {
				v.counted["contexts announced lost"]++
			}
			if m.LearnedLost > 0 {
				v.lost = append(v.lost, lostFeedback{p, m.LearnedThrough, m.LearnedLost, r.Time})
			}
			tau, through = m.LearnedThrough, m.ContextsThrough
		}
	})
}

// floor returns the largest round of a partition that any log told of after the last
// power loss before a time.
func (v *powerCheck) floor(p int, time int64) (n int64) {
	for _, f := range v.power.floors {
		if f.partition == p && f.at < time {
			n = f.n
		}
	}
	return n
}

func (v *powerCheck) feedback() {
	var n int64
	v.records(v.topics.Feedback, 0, func(r *stream.Record) {
		where := fmt.Sprintf("feedback@%d", r.Offset)
		switch r.Type {
		case codec.TypeEpoch:
			if e, err := codec.ParseEpoch(r.Value); err == nil {
				v.epochs[e.Epoch] = true
			}
		case codec.TypeMark:
			m, err := codec.ParseFeedbackMark(r.Value)
			if err != nil || m.N != n {
				v.fatal("%s: after feedback %d: %+v, %v", where, n, m, err)
			}
			if m.Lost > 0 {
				v.counted["feedback announced lost"]++
				v.lost = append(v.lost, lostFeedback{-1, m.N, m.Lost, r.Time})
				v.counted["void snapshots"] += len(m.Void)
			}
			for i := range m.Positions {
				if m.Positions[i].OutcomesLost > 0 {
					v.counted["outcomes announced lost"]++
				}
			}
		case "":
			var f codec.Feedback
			if err := codec.ParseFeedback(&f, slices.Clone(r.Value)); err != nil {
				v.fatal("%s: %v", where, err)
				return
			}
			if n++; f.N != n {
				v.fatal("%s: feedback %d where %d was due", where, f.N, n)
			}
			v.fed = append(v.fed, f)
			at := place{"", f.Partition, f.Round}
			d := v.rounds[at]
			switch {
			case d == nil && v.gaps[at]:
				v.counted["rounds without decisions"]++
				v.gaps[at] = false
			case d == nil:
				v.fatal("%s: round %d of partition %d does not exist, or had its feedback", where, f.Round, f.Partition)
			case d.fed:
				v.fatal("%s: round %d of partition %d had its feedback", where, f.Round, f.Partition)
			case f.ID != d.ID || f.Time != d.at && !v.power.back || f.LearnedThrough != d.LearnedThrough || f.Action != d.Action || string(f.Context) != string(d.Context):
				v.fatal("%s: feedback %d differs from its decision", where, f.N)
			}
			if d != nil {
				d.fed = true
			}
		}
	})
	for _, d := range v.order {
		if !d.fed {
			v.fatal("round %d of partition %d (%s) has no feedback", d.N, d.Partition, d.ID)
		}
	}
}

func (v *powerCheck) readRejects() {
	add := func(r *stream.Record) {
		x, err := codec.ParseReject(r.Value)
		if err != nil {
			v.fatal("rejects@%d: %v", r.Offset, err)
		}
		at := place{x.Topic, x.Partition, x.Offset}
		v.rejects[at] = append(v.rejects[at], x)
	}
	v.records(v.topics.Rejects, 0, add)
	for i := range v.power.gone { // what lost its reject has no other fate
		add(&v.power.gone[i])
	}
}

// rejected returns the reason for which a record was rejected, "" if it was not.
func (v *powerCheck) rejected(topic string, p int, r *stream.Record) string {
	for _, x := range v.rejects[place{topic, p, r.Offset}] {
		if x.Time == r.Time && x.Tells(r.Value) {
			return x.Reason
		}
	}
	return ""
}

// contexts checks that each is decided once, or rejected.
func (v *powerCheck) contexts(p int) {
	decided := map[int64][]*powerRound{}
	for _, d := range v.order {
		if d.Partition == p {
			decided[d.Source] = append(decided[d.Source], d)
		}
	}
	ids := map[string]int{}
	v.records(v.topics.Contexts, p, func(r *stream.Record) {
		n := 0
		for _, d := range decided[r.Offset] {
			if d.at >= r.Time && string(d.Context) == string(r.Value) {
				n++
				if ids[d.ID]++; ids[d.ID] > 1 {
					v.fatal("contexts[%d]@%d: the id %q was decided before", p, r.Offset, d.ID)
				}
			}
		}
		switch rejected := v.rejected("contexts", p, r) != ""; {
		case n > 1:
			v.fatal("contexts[%d]@%d was decided %d times", p, r.Offset, n)
		case n == 0 && !rejected:
			v.fatal("contexts[%d]@%d of %d was neither decided nor rejected; the last power loss was at %d", p, r.Offset, r.Time, v.power.at)
		case n == 1 && rejected && r.Time > v.power.at:
			v.fatal("contexts[%d]@%d was decided and rejected", p, r.Offset)
		}
	})
}

// outcomes checks that each has one fate. An outcome of a round that was lost and is
// decided again is older than its decision: it may be an orphan at first, and count
// after a restart, so that for the others of such a round anything goes.
func (v *powerCheck) outcomes(p int) {
	used := map[int64]*codec.Feedback{}
	for i := range v.fed {
		if f := &v.fed[i]; f.OutcomePartition == p && f.OutcomeOffset >= 0 {
			used[f.OutcomeOffset] = f // the last one, if outcomes were lost
		}
	}
	v.records(v.topics.Outcomes, p, func(r *stream.Record) {
		var o codec.Outcome
		err := codec.ParseOutcome(&o, r.Value)
		if err == nil && v.early[string([]byte(o.ID))] {
			v.counted["outcomes of rounds decided again"]++
			return
		}
		f := used[r.Offset]
		counts := err == nil && f != nil && f.ID == o.ID && f.ClosedAt == r.Time
		if reason := v.rejected("outcomes", p, r); reason == "" && !counts {
			v.fatal("outcomes[%d]@%d of %d (%q) has no fate; the last power loss was at %d", p, r.Offset, r.Time, r.Value, v.power.at)
		} else if reason != "" && counts && r.Time > v.power.at {
			v.fatal("outcomes[%d]@%d (%q) was used and rejected: %s", p, r.Offset, r.Value, reason)
		}
	})
}

// findEarly finds the rounds with outcomes that are older than their decision.
func (v *powerCheck) findEarly() {
	decided := map[string]int64{}
	for _, d := range v.order {
		decided[d.ID] = max(decided[d.ID], d.at)
	}
	for p := range v.o.partitions {
		v.records(v.topics.Outcomes, p, func(r *stream.Record) {
			var o codec.Outcome
			if codec.ParseOutcome(&o, r.Value) == nil && r.Time < decided[o.ID] {
				v.early[string([]byte(o.ID))] = true
			}
		})
	}
}

// recompute makes each decision again. One that differs had learned feedback that is
// announced as lost.
func (v *powerCheck) recompute() {
	byState := map[int64][]*powerRound{}
	for _, d := range v.order {
		if n, ok := v.counts(d.ID); ok && n > 1 {
			v.counted["rounds decided again"]++
		}
		byState[d.LearnedThrough<<8|d.Epoch] = append(byState[d.LearnedThrough<<8|d.Epoch], d)
	}
	audit := NewAudit(v.log, "m", v.build, v.o.partitions)
	v.records(v.topics.Feedback, 0, func(r *stream.Record) {
		if r.Type != "" && r.Type != codec.TypeEpoch && r.Type != codec.TypeClass {
			return
		}
		if err := audit.Take(v.ctx, r); err != nil {
			v.fatal("replay of feedback@%d: %v", r.Offset, err)
			return
		}
		ep := audit.Replica().Epoch()
		if ep == nil {
			return
		}
		key := audit.Replica().LearnedThrough()<<8 | ep.Number
		for _, d := range byState[key] {
			v.again(audit, d)
		}
		delete(byState, key)
	})
	for _, rounds := range byState {
		for _, d := range rounds {
			v.unlearned(d, "is of a state that the feedback log does not have")
		}
	}
}

// counts returns how many feedbacks there are of an id.
func (v *powerCheck) counts(id string) (n int, ok bool) {
	for i := range v.fed {
		if v.fed[i].ID == id {
			n++
		}
	}
	return n, n > 0
}

func (v *powerCheck) again(audit *Audit, d *powerRound) {
	h := loop.NewDecider(audit.Replica(), simKey, "m", d.Partition, 1)
	h.Resume(d.N, 0)
	h.Pass(d.ContextsThrough)
	var want codec.Decision
	res := h.Decide(&want, d.Context, d.ID, loop.Source{Offset: d.Source, Through: d.ContextsThrough, Time: d.Time})
	if res.Verdict != loop.Decided || string(codec.AppendDecision(nil, &want)) != string(codec.AppendDecision(nil, &d.Decision)) {
		v.unlearned(d, "differs when it is made again")
		return
	}
	v.counted["decisions recomputed"]++
}

// unlearned notes a decision that cannot be made again.
func (v *powerCheck) unlearned(d *powerRound, what string) {
	for _, l := range v.lost {
		if (l.partition < 0 || l.partition == d.Partition) && l.from < d.LearnedThrough && d.LearnedThrough <= l.to && d.at < l.at {
			v.counted["decisions of lost feedback"]++
			return
		}
	}
	if !v.epochs[d.Epoch] {
		v.counted["decisions of lost epochs"]++
		return
	}
	v.fatal("round %d of partition %d, learned through %d in epoch %d, %s", d.N, d.Partition, d.LearnedThrough, d.Epoch, what)
}
