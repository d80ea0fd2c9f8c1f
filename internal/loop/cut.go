package loop

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"hindsight/pkg/codec"
)

// ErrCut reports a cut that does not follow on the cuts before it.
var ErrCut = errors.New("the cut does not follow on those before it")

// turn is the place of a record in the order inside a cut.
type turn struct {
	time  int64 // log time, lifted so that it never goes back
	batch int32
	index int32
}

// Take gives the joiner what a cut takes, one Batch for each of its decisions and then of its
// outcomes. What it keeps it copies. The order inside the cut is a function of its records:
//
//   - what was forgotten before the cut is forgotten during all of it;
//   - all decisions come first, by (time, partition, offset). Their times are lifted to the time
//     that their partition has reached;
//   - then the outcomes, by (time, partition, offset). Their times are lifted to the log time
//     reached. An outcome of an unknown round is an orphan at once, since a cut takes an outcome
//     only after all decisions that may precede it. Before an outcome log time is that of the last
//     decision that is no later, of this cut or an earlier one: rounds are released as in a merge;
//   - then log time is that of the cut. If more rounds wait than the limits allow, the oldest are
//     closed.
//
// Rounds at the head of the line are closed as soon as log time is behind their deadline. An error changes nothing.
func (j *Joiner) Take(c *codec.Cut, b []Batch) error {
	if err := j.check(c, b); err != nil {
		return err
	}
	j.reuse()
	j.cut = c.Cut
	j.forget()
	j.takeDecisions(c.Decisions, b)
	j.takeOutcomes(c.Outcomes, b[len(c.Decisions):])
	j.passTold(max(j.now, c.Time))
	j.now = max(j.now, c.Time)
	j.settle()
	for j.past == nil && j.waiting > 0 && j.full() {
		j.close(j.queue.at(0).p, j.now, codec.ReasonOverflow)
		j.settle()
	}
	j.move(c)
	return nil
}

// check refuses a cut that is not the next, or whose decisions cannot be taken.
func (j *Joiner) check(c *codec.Cut, b []Batch) error {
	if c.Cut != j.cut+1 {
		return fmt.Errorf("cut %d after %d: %w", c.Cut, j.cut, ErrCut)
	}
	if len(b) != len(c.Decisions)+len(c.Outcomes) {
		return fmt.Errorf("cut %d has %d ranges and %d batches: %w", c.Cut, len(c.Decisions)+len(c.Outcomes), len(b),
			ErrCut)
	}
	for i := range c.Decisions {
		r := &c.Decisions[i]
		if err := j.checkRange(c, "decisions", r); err != nil {
			return err
		}
		if err := j.checkDecisions(r.Partition, b[i].Decisions); err != nil {
			return err
		}
	}
	for i := range c.Outcomes {
		if err := j.checkRange(c, "outcomes", &c.Outcomes[i]); err != nil {
			return err
		}
	}
	return nil
}

// checkRange checks that a range moves its partition on. While a joiner is restored it need not: a
// range may be cut off at a later loss.
func (j *Joiner) checkRange(c *codec.Cut, topic string, r *codec.Range) error {
	if r.Partition < 0 || r.Partition >= len(j.parts) {
		return fmt.Errorf("cut %d: there is no %s[%d]: %w", c.Cut, topic, r.Partition, ErrCut)
	}
	at := j.parts[r.Partition].decisions.next
	if topic == "outcomes" {
		at = j.parts[r.Partition].outcomes.next
	}
	if j.past == nil && r.Next <= at {
		return fmt.Errorf("cut %d reads %s[%d] up to offset %d, and an earlier one up to %d: %w",
			c.Cut, topic, r.Partition, r.Next, at, ErrCut)
	}
	return nil
}

// checkDecisions checks that the decisions of a partition are its next, and have rules.
func (j *Joiner) checkDecisions(partition int, events []DecisionEvent) error {
	part := &j.parts[partition]
	next := part.next
	for i := range events {
		e := &events[i]
		switch d := &e.D; {
		case e.through() < next:
			continue // passed
		case d.N > next:
			return fmt.Errorf("decision %d of partition %d where %d was due: %w", d.N, partition, next, ErrGap)
		case e.GapTo > 0:
		case d.Partition != partition:
			return &codec.Error{Event: "decision", Field: "partition",
				Err: fmt.Errorf("%w: %d, in partition %d of the log", codec.ErrCorrupt, d.Partition, partition)}
		case j.past == nil && j.rules(d.Epoch) == nil && d.Epoch >= j.guard.epoch && !j.has(partition, d.N):
			return fmt.Errorf("decision %d of partition %d is of epoch %d: %w", d.N, partition, d.Epoch, ErrNoEpoch)
		}
		next = e.through() + 1
	}
	return nil
}

// sortTurns sorts the turns of several partitions; those of one are in order.
func (j *Joiner) sortTurns(ranges []codec.Range) []turn {
	if len(ranges) > 1 {
		slices.SortFunc(j.turns, func(a, b turn) int {
			return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(a.batch, b.batch), cmp.Compare(a.index, b.index))
		})
	}
	return j.turns
}

func (j *Joiner) takeDecisions(ranges []codec.Range, b []Batch) {
	j.turns = j.turns[:0]
	for i := range ranges {
		time := j.parts[ranges[i].Partition].time
		for k := range b[i].Decisions {
			time = max(time, b[i].Decisions[k].Time)
			j.turns = append(j.turns, turn{time, int32(i), int32(k)})
		}
	}
	for _, t := range j.sortTurns(ranges) {
		j.takeDecision(ranges[t.batch].Partition, &b[t.batch].Decisions[t.index], t.time)
	}
}

func (j *Joiner) takeOutcomes(ranges []codec.Range, b []Batch) {
	j.turns = j.turns[:0]
	for i := range ranges {
		time := j.now
		for k := range b[i].Outcomes {
			time = max(time, b[i].Outcomes[k].Time)
			j.turns = append(j.turns, turn{time, int32(i), int32(k)})
		}
	}
	for _, t := range j.sortTurns(ranges) {
		j.takeOutcomeAt(ranges[t.batch].Partition, &b[t.batch].Outcomes[t.index], t.time)
	}
}

func (j *Joiner) takeOutcomeAt(partition int, e *OutcomeEvent, time int64) {
	j.passTold(time)
	j.now = time
	if !e.Pass {
		j.takeOutcome(partition, e)
	}
	j.settle()
}

// told is a log time that a decision has told and that log time has not reached: decisions are read ahead.
type told struct{ time, cut int64 }

// tell notes the log time of a decision. They nearly always ascend.
func (j *Joiner) tell(time int64) {
	if time <= j.now {
		return
	}
	j.ahead.push(told{time, j.cut})
	for i := j.ahead.len() - 1; i > 0 && j.ahead.at(i-1).time > time; i-- {
		*j.ahead.at(i), *j.ahead.at(i - 1) = *j.ahead.at(i - 1), *j.ahead.at(i)
	}
}

// passTold closes what is due by decisions that are no later than a log time.
func (j *Joiner) passTold(time int64) {
	now := j.now
	for j.ahead.len() > 0 && j.ahead.at(0).time <= time {
		if j.now = max(j.now, j.ahead.pop().time); (len(j.lines) > 0 || j.soon.len() > 0) && j.now > now {
			j.settle() // where there are several lines their order among each other is that of time, too
			now = j.now
		}
	}
	if j.now > now {
		j.settle()
	}
}

// move notes what the cut has taken, for marks.
func (j *Joiner) move(c *codec.Cut) {
	for _, r := range c.Decisions {
		j.parts[r.Partition].decisions.move(r)
	}
	for _, r := range c.Outcomes {
		j.parts[r.Partition].outcomes.move(r)
	}
}
