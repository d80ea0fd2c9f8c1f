package check

import (
	"fmt"
	"math"
	"slices"

	"hindsight/pkg/codec"
)

// readRejects checks the rejects and keeps the first of each record.
func (c *checker) readRejects() {
	for i := range c.rejects {
		r := &c.rejects[i]
		if r.Type != "" {
			c.fail("rejects@%d: a record of type %q", r.Offset, r.Type)
			continue
		}
		rej, err := codec.ParseReject(r.Value)
		if err != nil {
			c.fail("rejects@%d: %v", r.Offset, err)
			continue
		}
		var of []record
		if rej.Partition >= 0 && rej.Partition < c.n {
			switch rej.Topic {
			case "contexts":
				of = c.contexts[rej.Partition]
			case "outcomes":
				of = c.outcomes[rej.Partition]
			}
		}
		k, ok := slices.BinarySearchFunc(of, rej.Offset, func(r record, offset int64) int { return compare(r.Offset, offset) })
		if !ok || of[k].Type != "" || !rej.Tells(of[k].Value) {
			c.fail("rejects@%d: there is no such record at %s[%d]@%d", r.Offset, rej.Topic, rej.Partition, rej.Offset)
			continue
		}
		at := place{rej.Topic, rej.Partition, rej.Offset}
		if c.refused[at] != nil {
			c.r.Repeated++
			continue
		}
		c.refused[at] = &refusal{rej, r.at}
		reason := rej.Reason
		if rej.Topic == "contexts" {
			reason = "contexts/" + reason
		}
		c.r.Rejects[reason]++
	}
}

// said is an outcome of a round.
type said struct {
	codec.Outcome
	place place
	at    int64
}

// checkFates recomputes the fates of rounds and outcomes from the logs alone.
func (c *checker) checkFates() {
	outcomes := map[string][]*said{}
	for p := range c.n {
		for i := range c.outcomes[p] {
			r := &c.outcomes[p][i]
			if r.Type != "" {
				continue
			}
			c.r.Outcomes++
			s := &said{place: place{"outcomes", p, r.Offset}, at: r.at}
			err := codec.ParseOutcome(&s.Outcome, r.Value)
			if err == nil {
				err = s.Validate()
			}
			switch {
			case err != nil:
				c.wants[s.place] = codec.ReasonMalformed
			case c.ghosts[s.ID]: // the decision that it is about may be lost
				c.wants[s.place] = "?"
			case len(c.byID[s.ID]) == 0:
				c.wants[s.place] = codec.ReasonOrphan
			default:
				outcomes[s.ID] = append(outcomes[s.ID], s)
			}
		}
	}
	for id, rounds := range c.byID {
		if c.ghosts[id] {
			continue
		}
		list := outcomes[id]
		c.sortSaid(list)
		first := c.firstOf(rounds)
		for _, d := range rounds {
			if d != first {
				c.checkRepeated(d)
			}
		}
		c.checkRound(first, list)
	}
}

// firstOf returns the round that has an id first. Of equal log times it is the one that
// was read first, which its feedback tells.
func (c *checker) firstOf(rounds []*round) *round {
	for _, d := range rounds {
		if !c.o.LooseTime && d.at > rounds[0].at {
			break
		}
		if d.f == nil || d.f.Reason != codec.ReasonDuplicateID {
			return d
		}
	}
	return rounds[0]
}

func (c *checker) checkRepeated(d *round) {
	d.late = true
	if f := d.f; f != nil && (f.Fate != codec.Skipped || f.Reason != codec.ReasonDuplicateID || f.OutcomeOffset >= 0) {
		c.fail("round %d of partition %d repeats the id %q, and is %s %q", d.N, d.Partition, d.ID, f.Fate, f.Reason)
	}
}

// fate is what a feedback must say.
type fate struct {
	fate   codec.Fate
	loss   float64
	place  place
	closed int64
}

// checkRound recomputes the fate of a round from its outcomes, in the order of log
// time: the first valid one in time counts.
func (c *checker) checkRound(d *round, list []*said) {
	e := c.epochs[d.Epoch]
	if e == nil || e.rules == nil || e.rules.Several || c.o.LooseTime || c.endLost(d, e.rules) {
		c.checkLoosely(d, list)
		return
	}
	rules := e.rules
	deadline := c.deadline(d, rules)
	if d.f != nil && d.f.Reason == codec.ReasonOverflow {
		if d.f.ClosedAt > deadline {
			c.fail("round %d of partition %d overflowed at %d, after its deadline %d", d.N, d.Partition, d.f.ClosedAt, deadline)
		}
		deadline = d.f.ClosedAt - 1 // of equal times decisions come first
	}
	var got *fate
	for _, o := range list {
		if c.guessed(d, o) {
			continue
		}
		reason := ""
		switch {
		case got != nil:
			reason = codec.ReasonDuplicate
		case o.at > deadline:
			reason = codec.ReasonLate
		case o.Action != "" && o.Action != d.Actions[d.Action]:
			reason = codec.ReasonMismatch
		default:
			got, reason = rules.take(o)
		}
		c.wants[o.place] = reason
	}
	if d.f == nil {
		return
	}
	if got == nil {
		got = &fate{codec.Skipped, 0, place{"", -1, -1}, deadline}
		if d.f.Reason == codec.ReasonOverflow {
			got.closed = d.f.ClosedAt
		}
		if rules.Impute {
			got.fate, got.loss = codec.Imputed, rules.DefaultLoss
		}
		if deadline == math.MaxInt64 {
			c.fail("round %d of partition %d is %s before its window is over", d.N, d.Partition, d.f.Fate)
		}
	}
	f := d.f
	if is := (fate{f.Fate, f.Loss, place{got.place.topic, f.OutcomePartition, f.OutcomeOffset}, f.ClosedAt}); is != *got {
		c.fail("round %d of partition %d (%q), of %d, deadline %d: its feedback says %+v, the logs say %+v", d.N, d.Partition, d.ID, d.at, deadline, is, *got)
	}
	if f.Reason != "" && f.Reason != codec.ReasonOverflow {
		c.fail("round %d of partition %d: its feedback gives the reason %q", d.N, d.Partition, f.Reason)
	}
}

// guessed reports whether an outcome was written before its decision and found no
// round then. Outcomes follow their decisions; for one that does not it is a matter of
// timing whether it counts. Once it is rejected it does not.
func (c *checker) guessed(d *round, o *said) bool {
	r := c.refused[o.place]
	if r == nil || r.Reason != codec.ReasonOrphan || o.at > d.at {
		return false
	}
	c.wants[o.place] = codec.ReasonOrphan
	return true
}

// endLost reports whether the decision that ended a round's window may be lost: where
// it was there is none, or one that is younger than the feedback.
func (c *checker) endLost(d *round, rules *Rules) bool {
	if c.r.Gaps == 0 || rules.WindowRounds == 0 || d.f == nil {
		return false
	}
	end := c.byN[d.Partition][d.N+rules.WindowRounds]
	return end == nil || end.at > d.closed
}

// deadline is the last log time at which an outcome is in time.
func (c *checker) deadline(d *round, rules *Rules) int64 {
	if rules.WindowNanos > 0 {
		return d.at + rules.WindowNanos
	}
	if last := c.byN[d.Partition][d.N+rules.WindowRounds]; last != nil {
		return last.at
	}
	return math.MaxInt64
}

// take says what an outcome makes of a round that waits, or why it is refused.
func (r *Rules) take(o *said) (*fate, string) {
	switch o.Kind {
	case codec.Withdrawn:
		return &fate{codec.WithdrawnRound, 0, o.place, o.at}, ""
	case codec.Activated:
		return nil, codec.ReasonMalformed
	}
	x := o.Value
	if x < r.Min || x > r.Max {
		if !r.Clip {
			return nil, codec.ReasonMalformed
		}
		x = math.Min(math.Max(x, r.Min), r.Max)
	}
	loss := (x - r.Min) / (r.Max - r.Min)
	if o.Kind == codec.Reward {
		loss = (r.Max - x) / (r.Max - r.Min)
	}
	return &fate{codec.Observed, math.Min(math.Max(loss, 0), 1), o.place, o.at}, ""
}

// checkLoosely checks what holds whatever the rules and the times: the outcome of a
// feedback is one of its round, and was not rejected.
func (c *checker) checkLoosely(d *round, list []*said) {
	for _, o := range list {
		c.wants[o.place] = "?"
	}
	f := d.f
	if f == nil || f.OutcomeOffset < 0 {
		return
	}
	for _, o := range list {
		if o.place.partition != f.OutcomePartition || o.place.offset != f.OutcomeOffset {
			continue
		}
		c.wants[o.place] = "" // checkOutcomes tells if it was rejected
		return
	}
	c.fail("feedback %d of round %d of partition %d names outcomes[%d]@%d, which is none of its round",
		f.N, d.N, d.Partition, f.OutcomePartition, f.OutcomeOffset)
}

// checkOutcomes checks that every outcome has the one fate that it must have.
func (c *checker) checkOutcomes() {
	for p := range c.n {
		for i := range c.outcomes[p] {
			r := &c.outcomes[p][i]
			if r.Type != "" {
				continue
			}
			at := place{"outcomes", p, r.Offset}
			c.checkOutcome(fmt.Sprintf("outcomes[%d]@%d of %d", p, r.Offset, r.at), r, c.wants[at], c.refused[at])
		}
	}
}

func (c *checker) checkOutcome(where string, r *record, want string, got *refusal) {
	d := c.roundOf(r)
	switch {
	case want == "?" && got == nil && (d != nil && c.ghosts[d.ID] || d == nil || d.f == nil || c.several(d)):
	case want == "?" && got != nil:
	case want == "" && got == nil:
		if d == nil || d.f == nil {
			c.r.Unread++ // the round is told of by checkFeedback
		}
	case got == nil && c.o.Unfinished:
		c.r.Unread++
	case got == nil:
		c.fail("%s has no fate: it must be %q", where, want)
	case want == "":
		c.fail("%s made its round's feedback, and was rejected: %s", where, got.Reason)
	case got.Reason != want:
		c.fail("%s was rejected as %q, and is %q", where, got.Reason, want)
	}
}

// several reports whether a round may have used outcomes that its feedback does
// not name.
func (c *checker) several(d *round) bool {
	e := c.epochs[d.Epoch]
	return e == nil || e.rules == nil || e.rules.Several
}
