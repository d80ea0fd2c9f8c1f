package check

import (
	"bytes"
	"fmt"
	"slices"

	"hindsight/pkg/codec"
)

// checkFeedback checks the feedback log by itself and against the decisions.
func (c *checker) checkFeedback() {
	next := make([]int, c.n) // in rounds, for FIFO
	for i := range c.feedback {
		r := &c.feedback[i]
		where := fmt.Sprintf("feedback@%d", r.Offset)
		switch r.Type {
		case codec.TypeOpen:
			c.r.Openings++
		case codec.TypeClass, codec.TypeMark:
		case codec.TypeEpoch:
			if e, err := codec.ParseEpoch(r.Value); err == nil && e.Through != c.total {
				c.fail("%s: epoch %d says that %d feedbacks lie before it, it is %d", where, e.Epoch, e.Through, c.total)
			}
		case "":
			f := new(codec.Feedback)
			if err := codec.ParseFeedback(f, r.Value); err != nil {
				c.fail("%s: %v", where, err)
				continue
			}
			c.feed(where, f, r, next)
		default:
			c.fail("%s: a record of type %q", where, r.Type)
		}
	}
	for _, rounds := range c.rounds {
		for _, d := range rounds {
			if d.f != nil {
				continue
			}
			c.r.Waiting++
			if !c.o.Unfinished {
				c.fail("round %d of partition %d (%q) has no feedback", d.N, d.Partition, d.ID)
			}
		}
	}
}

// feed checks one feedback against its decision.
func (c *checker) feed(where string, f *codec.Feedback, r *record, next []int) {
	if err := f.Validate(); err != nil {
		c.fail("%s: %v", where, err)
	}
	if f.N != c.total+1 {
		c.fail("%s: feedback %d after %d", where, f.N, c.total)
	}
	c.total = max(c.total, f.N)
	if f.LearnedThrough >= f.N {
		c.fail("%s: feedback %d is of a decision that had learned through %d", where, f.N, f.LearnedThrough)
	}
	var d *round
	if f.Partition < c.n {
		d = c.byN[f.Partition][f.Round]
	}
	switch {
	case d == nil && f.Partition < c.n && c.gaps[f.Partition][f.Round]:
		delete(c.gaps[f.Partition], f.Round)
		c.ghosts[f.ID] = true
		c.r.Lost++
		return
	case d == nil:
		c.fail("%s: feedback %d is of round %d of partition %d, which does not exist", where, f.N, f.Round, f.Partition)
		return
	case d.f != nil:
		c.fail("%s: round %d of partition %d had feedback %d before", where, f.Round, f.Partition, d.f.N)
		return
	}
	d.f, d.closed = f, r.at
	c.r.Fates[f.Fate.String()]++
	arrival := false
	if e := c.epochs[d.Epoch]; e != nil && e.rules != nil {
		arrival = e.rules.Arrival
	}
	rounds := c.rounds[f.Partition]
	for next[f.Partition] < len(rounds) && rounds[next[f.Partition]].f != nil && rounds[next[f.Partition]] != d {
		next[f.Partition]++
	}
	if want := rounds[next[f.Partition]]; want != d && !arrival {
		c.fail("%s: feedback of round %d of partition %d before that of round %d", where, f.Round, f.Partition, want.N)
	}
	if f.ID != d.ID || f.Epoch != d.Epoch || f.LearnedThrough != d.LearnedThrough || f.Gamma != d.Gamma || f.Action != d.Action || f.Mode != d.Mode ||
		!slices.Equal(f.Actions, d.Actions) || !slices.Equal(f.Propensities, d.Propensities) || !slices.Equal(f.Would, d.Would) || !bytes.Equal(f.Context, d.Context) {
		c.fail("%s: feedback %d differs from its decision, round %d of partition %d", where, f.N, f.Round, f.Partition)
	}
	if f.Time != d.at && !c.o.LooseTime {
		c.fail("%s: feedback %d says that its round is of %d, its decision is of %d", where, f.N, f.Time, d.at)
	}
	if !c.o.LooseTime && r.at < d.at {
		c.fail("%s: feedback %d was written before its decision", where, f.N)
	}
}

// checkMarks checks the joiner's marks against what was done before them.
func (c *checker) checkMarks() {
	var n int64
	var read []codec.Position
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
				c.checkPosition(where, &m.Positions[i], m.N, r.at)
				if read != nil && m.Positions[i].Released < read[i].Released {
					c.fail("%s: a mark goes back in partition %d: round %d after %d", where, i, m.Positions[i].Released, read[i].Released)
				}
			}
			read = m.Positions
		}
	}
}

// checkPosition checks that nothing before a position still needs doing.
func (c *checker) checkPosition(where string, pos *codec.Position, n, at int64) {
	p := pos.Partition
	ahead := map[int64]bool{}
	for _, a := range pos.Ahead {
		ahead[a] = true
	}
	for _, d := range c.rounds[p] {
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
		r := c.refused[place{"outcomes", p, o.Offset}]
		if o.Offset < pos.OutcomesThrough && r != nil && r.at > at && !slices.Contains(pos.Parked, o.Offset) {
			c.fail("%s: the mark passes outcomes[%d]@%d, whose reject was stored after it", where, p, o.Offset)
		}
		if o.Offset < pos.OutcomesFrom && r == nil && o.Type == "" && !c.ofGhost(o) {
			if d := c.roundOf(o); d == nil || d.f == nil || d.f.N > n {
				c.fail("%s: a restart reads outcomes[%d] from %d, and @%d has no fate before it", where, p, pos.OutcomesFrom, o.Offset)
			}
		}
	}
}

// ofGhost reports whether an outcome is about a round whose decision may be lost.
func (c *checker) ofGhost(r *record) bool {
	var o codec.Outcome
	return len(c.ghosts) > 0 && codec.ParseOutcome(&o, r.Value) == nil && c.ghosts[o.ID]
}

// roundOf returns the round that an outcome is about, nil if there is none.
func (c *checker) roundOf(r *record) *round {
	var o codec.Outcome
	if codec.ParseOutcome(&o, r.Value) != nil || len(c.byID[o.ID]) == 0 {
		return nil
	}
	return c.byID[o.ID][0]
}
