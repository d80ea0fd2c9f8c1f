package check

import (
	"fmt"
	"math"
	"slices"

	"hindsight/pkg/codec"
)

// checkMarks checks the joiner's marks against what was done before them.
func (c *checker) checkMarks() {
	var n, epoch int64
	var read []codec.Position
	done := c.doneOutcomes()
	for i := range c.feedback {
		r := &c.feedback[i]
		where := fmt.Sprintf("feedback@%d", r.Offset)
		switch r.Type {
		case "":
			var f codec.Feedback
			if codec.ParseFeedback(&f, r.Value) == nil {
				n = max(n, f.N)
			}
		case codec.TypeMark:
			m, err := codec.ParseFeedbackMark(r.Value)
			if err != nil {
				c.fail("%s: %v", where, err)
				continue
			}
			if m.N != n {
				c.fail("%s: a mark after feedback %d where %d was the last", where, m.N, n)
			}
			if len(m.Positions) != c.n {
				c.fail("%s: a mark with %d positions", where, len(m.Positions))
				continue
			}
			for i := range m.Positions {
				c.checkPosition(where, &m.Positions[i], m.N, r.at, done[m.Positions[i].Partition])
				if read == nil {
					continue
				}
				is, was := &m.Positions[i], &read[i]
				if is.Released < was.Released || is.OutcomesThrough < was.OutcomesThrough && c.r.Lost == 0 {
					c.fail("%s: a mark goes back in partition %d: round %d after %d, outcomes %d after %d", where, i, is.Released, was.Released,
						is.OutcomesThrough, was.OutcomesThrough)
				}
			}
			read = m.Positions
			if last := len(m.Epochs) - 1; last < 0 || m.Epochs[last].Epoch != epoch {
				c.fail("%s: a mark of epochs %v in epoch %d", where, m.Epochs, epoch)
			}
		case codec.TypeEpoch:
			if x, err := codec.ParseEpoch(r.Value); err == nil {
				epoch = x.Epoch
			}
		}
	}
}

// doneOutcome is what is known of an outcome to which a mark may refer.
type doneOutcome struct {
	refused *refusal // nil: none
	by      int64    // the feedback with which nothing is left to do for it; 0: nothing ever was
}

// doneOutcomes looks up each outcome once: there may be as many marks as outcomes.
func (c *checker) doneOutcomes() [][]doneOutcome {
	all := make([][]doneOutcome, c.n)
	for p := range all {
		all[p] = make([]doneOutcome, len(c.outcomes[p]))
		for i := range c.outcomes[p] {
			o := &c.outcomes[p][i]
			done := &all[p][i]
			done.refused = c.refused[place{"outcomes", p, o.Offset}]
			if done.refused != nil || o.Type != "" || c.ofGhost(o) {
				continue
			}
			done.by = math.MaxInt64
			if d := c.roundOf(o); d != nil && d.f != nil {
				done.by = d.f.N
			}
		}
	}
	return all
}

// checkPosition checks that nothing before a position still needs doing.
func (c *checker) checkPosition(where string, pos *codec.Position, n, at int64, done []doneOutcome) {
	p := pos.Partition
	ahead := map[int64]bool{}
	for _, a := range pos.Ahead {
		ahead[a] = true
	}
	for _, d := range c.rounds[p] {
		if d.at > at && d.offset >= pos.DecisionsFrom {
			break // both grow
		}
		done := d.f != nil && d.f.N <= n
		if said := d.N <= pos.Released || ahead[d.N]; said != done && d.at <= at {
			c.fail("%s: the mark says that round %d of partition %d has its feedback: %v, before it: %v", where, d.N, p, said, done)
		}
		if !done && d.offset < pos.DecisionsFrom && (c.r.Lost == 0 || d.at <= at) {
			c.fail("%s: a restart reads decisions[%d] from %d, and round %d at %d has no feedback", where, p, pos.DecisionsFrom, d.N, d.offset)
		}
	}
	if c.o.LooseTime {
		return
	}
	for i := range c.outcomes[p] {
		o := &c.outcomes[p][i]
		if o.Offset >= pos.OutcomesThrough && o.Offset >= pos.OutcomesFrom {
			break
		}
		r := done[i].refused
		if o.Offset < pos.OutcomesThrough && r != nil && r.at > at && !slices.Contains(pos.Parked, o.Offset) {
			c.fail("%s: the mark passes outcomes[%d]@%d, whose reject was stored after it", where, p, o.Offset)
		}
		if o.Offset < pos.OutcomesFrom && done[i].by > n {
			c.fail("%s: a restart reads outcomes[%d] from %d, and @%d has no fate before it", where, p, pos.OutcomesFrom, o.Offset)
		}
	}
}
