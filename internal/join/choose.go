package join

import (
	"context"
	"math"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"hindsight/internal/intake"
	"hindsight/internal/loop"
)

// ClockSkew is by how much the log times of two partitions may differ, in ns: they are of the clocks
// of servers of one cluster, which no cluster that works has seconds apart.
const ClockSkew = int64(10 * time.Second)

// maxLead and maxLeadBytes are how many decisions are read ahead of an outcome of an unknown round before
// it is taken, if its decision may lie further ahead as far as log time tells.
const (
	maxLead      = 50_000
	maxLeadBytes = 64 << 20
)

// chooser chooses what the next cut takes. These rules make it legal, whatever the clocks say:
//
//   - Nothing is left out: of each input all is in hand that the log held when its end was fetched, or
//     else log time stops at the last record in hand.
//   - Decisions are read to ends that are fetched when the outcomes are in hand, with those of outcomes
//     unless more come. An outcome of an unknown round then has no round. One whose round is known need
//     not wait for decisions behind it.
//   - Log time is told by a record: one that the cut takes, or an earlier one of the feedback log.
type chooser struct {
	inputs     []*intake.Input // decisions by partition, then outcomes
	partitions int
	heart      *loop.Joiner
	skew       int64
	patient    bool  // [Config.Patient]
	told       int64 // the largest log time that a taken record or the feedback log has told
	lead       int   // decisions taken while an outcome waits for its own
	leadBytes  int   // that they have

	take  []int  // by input: records in hand that the cut takes
	short []bool // by partition: more decisions than those in hand lie before the end
	time  int64  // that the cut reaches
	ahead bool   // the cut takes decisions ahead of an outcome of an unknown round
	probe loop.OutcomeEvent
}

func newChooser(inputs []*intake.Input, heart *loop.Joiner, skew int64) *chooser {
	n := len(inputs) / 2
	return &chooser{inputs: inputs, partitions: n, heart: heart, skew: skew, take: make([]int, 2*n),
		short: make([]bool, n)}
}

// reached returns the log time to which the records of an input are lifted.
func (c *chooser) reached(i int) int64 {
	if i >= c.partitions {
		return c.heart.Now()
	}
	_, t := c.heart.Reached(i)
	return t
}

// poll puts in hand what has come, and reports whether a cut has anything to take or to close.
func (c *chooser) poll(ctx context.Context) (outcomes, decisions int, err error) {
	for i, in := range c.inputs {
		if err := in.Poll(ctx); err != nil {
			return 0, 0, err
		}
		if i < c.partitions {
			decisions += len(in.Batch)
		} else {
			outcomes += len(in.Batch)
		}
	}
	// With no outcome to take only a window in rounds may end, by decisions that would wait behind those in hand.
	p, missing := c.heart.Missing()
	if in := c.inputs[p]; outcomes == 0 && missing > int64(len(in.Batch)) {
		decisions -= len(in.Batch)
		err = in.More(ctx)
		decisions += len(in.Batch)
	}
	return outcomes, decisions, err
}

// due reports whether a round is due by a log time that a record has told, or may be by the decisions in hand.
func (c *chooser) due() bool {
	if p, missing := c.heart.Missing(); missing > 0 && int64(len(c.inputs[p].Batch)) >= missing {
		return true
	}
	at, known := c.heart.Due()
	return known && at < c.latest()
}

// latest returns the largest log time that was told, or is in hand.
func (c *chooser) latest() int64 {
	latest := c.told
	for i, in := range c.inputs {
		if t, ok := in.Last(c.reached(i)); ok {
			latest = max(latest, t)
		}
	}
	return latest
}

// choose fills in take and time. It reports false if nothing can be taken and nothing is due.
func (c *chooser) choose(ctx context.Context) (bool, error) {
	now := c.heart.Now()
	limit := max(now, c.latest())
	if err := fetchEnds(ctx, c.inputs); err != nil {
		return false, err
	}
	limit, came, err := c.completeOutcomes(ctx, limit)
	if err != nil {
		return false, err
	}
	if limit, err = c.completeDecisions(ctx, limit, came); err != nil {
		return false, err
	}
	c.takeDecisions(now)
	c.takeOutcomes(limit)
	c.tell()
	c.time = max(now, min(limit, c.told))
	at, known := c.heart.Due()
	return slices.Max(c.take) > 0 || known && at < c.time, nil
}

// manyOutcomes is how many outcomes the log holds behind those in hand from which on a cut waits for more: live they
// are taken as they come, and a backlog is taken in few cuts.
const manyOutcomes = 1000

// completeOutcomes makes sure that no outcome up to the limit is left out, which it lowers to the last
// one in hand of a partition that holds more. It reports whether any came.
func (c *chooser) completeOutcomes(ctx context.Context, limit int64) (_ int64, came bool, err error) {
	for _, in := range c.inputs[c.partitions:] {
		had := len(in.Batch)
		if err := in.Expect(ctx); err != nil {
			return 0, false, err
		}
		if in.Behind() > manyOutcomes {
			if err := in.Fill(ctx); err != nil {
				return 0, false, err
			}
		}
		if t, ok := in.Last(c.heart.Now()); ok && !in.Complete() {
			limit = min(limit, t)
		}
		came = came || len(in.Batch) > had
	}
	return limit, came, nil
}

// completeDecisions makes sure that all decisions are in hand which may precede an outcome up to the
// limit; came says that outcomes came after the ends were fetched. Where more lie before the end than
// those in hand, it lowers the limit to these, and further if the round of an outcome is unknown: decisions
// are read ahead of it, and when those are far ahead, log time follows them at a distance.
func (c *chooser) completeDecisions(ctx context.Context, limit int64, came bool) (int64, error) {
	inputs := c.inputs[:c.partitions]
	if err := c.fill(ctx, inputs, came); err != nil {
		return 0, err
	}
	horizon, room := int64(math.MaxInt64), c.lead < maxLead && c.leadBytes < maxLeadBytes
	for i, in := range inputs {
		t, ok := in.Last(c.reached(i))
		if c.short[i] = ok && !in.Complete(); c.short[i] {
			horizon, room = min(horizon, t), room && c.heart.Room() > len(in.Batch)
		}
	}
	limit = min(limit, horizon)
	at, unknown := int64(0), false
	if horizon < math.MaxInt64 {
		at, unknown = c.firstUnknown(limit)
	}
	c.ahead = unknown && room
	switch {
	case c.ahead:
		limit = at - 1
	case unknown:
		limit = min(limit, max(at-1, horizon-c.skew-1))
	}
	return limit, nil
}

// firstUnknown returns the log time of the first outcome in hand up to a limit whose decision was not taken, if
// there is one. An outcome of a unit is one: a later draw of the unit may precede it.
func (c *chooser) firstUnknown(limit int64) (at int64, found bool) {
	for i := c.partitions; i < len(c.inputs); i++ {
		reached := c.heart.Now()
		for k := range c.inputs[i].Batch {
			r := &c.inputs[i].Batch[k]
			if reached = max(reached, r.Time); reached > limit {
				break
			}
			if c.probe.Parse(r.Type, r.Value, ""); !c.heart.Knows(&c.probe) {
				at, found, limit = reached, true, reached
				break
			}
		}
	}
	return at, found
}

// fill reads on to the ends of partitions, which it fetches again if they are stale, and until that brings
// nothing into hand: another partition may hold an earlier record than the one that came. Where they never
// cease to come that need not be known; an injection expects the order of log time.
func (c *chooser) fill(ctx context.Context, inputs []*intake.Input, stale bool) error {
	for pass := 0; pass < 4 || c.patient; pass++ {
		if stale {
			if err := fetchEnds(ctx, inputs); err != nil {
				return err
			}
		}
		stale = false
		for _, in := range inputs {
			had := len(in.Batch)
			if err := in.Fill(ctx); err != nil {
				return err
			}
			stale = stale || len(inputs) > 1 && len(in.Batch) > had
		}
		if !stale {
			return nil
		}
	}
	return nil
}

// takeDecisions takes all decisions in hand. While a partition holds more, those of the others wait
// for it: decisions are taken in the order of log time, as far as that is known. What is no later than
// the log time reached is not left out.
func (c *chooser) takeDecisions(now int64) {
	until := int64(math.MaxInt64)
	for i, in := range c.inputs[:c.partitions] {
		if t, _ := in.Last(c.reached(i)); c.short[i] {
			until = min(until, t)
		}
	}
	for i, in := range c.inputs[:c.partitions] {
		c.take[i] = in.Before(c.reached(i), max(until, now))
	}
}

func (c *chooser) takeOutcomes(limit int64) {
	for i, in := range c.inputs[c.partitions:] {
		c.take[c.partitions+i] = in.Before(c.heart.Now(), limit)
	}
}

// tell notes the log times of what the cut takes.
func (c *chooser) tell() {
	for i, in := range c.inputs {
		for k := range c.take[i] {
			c.told = max(c.told, in.Batch[k].Time)
		}
	}
}

// taken notes that the cut was taken.
func (c *chooser) taken() {
	if !c.ahead {
		c.lead, c.leadBytes = 0, 0
	}
	for i, in := range c.inputs {
		if c.ahead && i < c.partitions {
			c.lead += c.take[i]
			for k := range c.take[i] {
				c.leadBytes += len(in.Batch[k].Value)
			}
		}
		in.Batch = in.Batch[c.take[i]:]
	}
}

// fetchEnds fetches the ends of partitions, at once where the inputs have pumps.
func fetchEnds(ctx context.Context, inputs []*intake.Input) error {
	if len(inputs) == 1 || !inputs[0].Pumped() {
		for _, in := range inputs {
			if err := in.FetchEnd(ctx); err != nil {
				return err
			}
		}
		return nil
	}
	var group errgroup.Group
	for _, in := range inputs {
		group.Go(func() error { return in.FetchEnd(ctx) })
	}
	return group.Wait()
}
