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
	waits := true
	if e := c.epochs[d.Epoch]; e != nil && e.rules != nil {
		outstanding := d.N - 1 - d.LearnedThrough
		waits = !e.rules.Arrival && !(e.rules.Early && 3*outstanding > d.N-1)
	}
	rounds := c.rounds[f.Partition]
	for next[f.Partition] < len(rounds) && rounds[next[f.Partition]].f != nil && rounds[next[f.Partition]] != d {
		next[f.Partition]++
	}
	if want := rounds[next[f.Partition]]; want != d && waits {
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
