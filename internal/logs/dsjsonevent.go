package logs

import (
	"errors"
	"fmt"
	"math"

	"hindsight/internal/scan"
	"hindsight/pkg/codec"
)

var (
	errDrop        = errors.New("pdrop is not in [0, 1): an event that is always dropped cannot be there")
	errLaw         = errors.New("a and p differ in length")
	errProbability = errors.New("the probability of the action played is not in (0, 1]")
	errCost        = errors.New("the cost or reward is not a finite number")
)

// finish makes a record of what was read.
func (d *dsjson) finish(r *Record) (class, string, error) {
	e := &d.event
	switch {
	case e.continuous:
		return isSkipped, "continuous actions (_label_ca)", nil
	case e.slotIDs || e.outcomes && e.hasCost:
		return isSkipped, "slates (_outcomes)", nil
	case e.outcomes || e.slots:
		return d.ccb(r)
	case !e.hasContext && (e.hasReward || e.hasObservations):
		return d.dangling(r)
	case !e.hasContext:
		return isSkipped, "neither a context nor an observation", nil
	case e.label == 0 && e.index < 0 && len(d.ranked) == 0:
		return isSkipped, "no action was played", nil
	}
	return isEvent, "", d.decision(r)
}

// dangling makes an outcome.
func (d *dsjson) dangling(r *Record) (class, string, error) {
	e := &d.event
	if r.ID == "" {
		return 0, "", errors.New("an observation without EventId")
	}
	if err := (&codec.Context{ID: r.ID}).Validate(); err != nil {
		return 0, "", fmt.Errorf("EventId: %w", err)
	}
	id, line := r.ID, r.Line
	r.reset()
	r.Kind, r.ID, r.Line, r.OutcomeTime = Outcome, id, line, e.enqueued
	if e.active {
		r.Flags |= Activation
	}
	if e.hasReward {
		r.Outcome, r.Value = codec.Reward, e.reward
	}
	return isDangling, "", nil
}

// decision makes an event.
func (d *dsjson) decision(r *Record) error {
	e := &d.event
	if !(e.pdrop >= 0 && e.pdrop < 1) {
		return errDrop
	}
	r.Weight = 1 / (1 - e.pdrop)
	if err := d.law(r); err != nil {
		return err
	}
	for i := range r.Actions {
		if r.Actions[i].Name == "" {
			r.Actions[i].Name = ordinal(i + 1)
		}
	}
	r.Action = r.Actions[r.Chosen].Name
	for i, a := range r.Baseline {
		if a < 1 || a > len(r.Actions) {
			return errors.New("_ba names an action that _multi does not have")
		}
		r.Baseline[i] = a - 1
	}
	if e.hasCost {
		if math.IsInf(e.cost, 0) {
			return errCost
		}
		r.Outcome, r.Value = codec.Reward, 0-e.cost
		if !e.observed && e.cost == 0 {
			r.Flags |= Defaulted
		}
	}
	if e.skipLearn {
		r.Flags |= Inactive
		if e.hasOriginal {
			r.Value = 0 - e.original
		}
	}
	if r.OutcomeTime = e.last; r.Flags&Defaulted != 0 || r.Outcome == 0 {
		r.OutcomeTime = scan.NoTime
	}
	return validate(&d.ctx, r)
}

// law finds the action played and the whole law, if the line has it.
func (d *dsjson) law(r *Record) error {
	e := &d.event
	chosen := e.label - 1
	if e.label == 0 {
		chosen = e.index
	}
	if len(d.ranked) > 0 && chosen < 0 {
		chosen = d.ranked[0] - 1
	}
	if e.label != 0 && e.index >= 0 && e.index != e.label-1 || len(d.ranked) > 0 && d.ranked[0] != chosen+1 {
		return errors.New("_label_Action, _labelIndex and a[0] name different actions")
	}
	if !e.multi { // actions without features: as many as the law names
		for range min(max(len(d.ranked), chosen+1), codec.MaxActions) {
			r.another("")
		}
	}
	if chosen < 0 || chosen >= len(r.Actions) {
		return errors.New("the action played is none of those in _multi")
	}
	r.Chosen = chosen
	if len(d.probs) > 0 {
		if err := d.align(r); err != nil {
			return err
		}
	}
	if r.Propensity = e.probability; len(d.probs) > 0 {
		if e.hasProb && math.Abs(d.probs[0]-e.probability) > Printed {
			return errors.New("_label_probability and p[0] differ")
		} else if !e.hasProb {
			r.Propensity = d.probs[0]
		}
	}
	if (e.hasProb || len(d.probs) > 0) && !(r.Propensity > 0 && r.Propensity <= 1+1e-6) {
		return errProbability
	}
	r.Propensity = min(r.Propensity, 1)
	return nil
}

// align gives the law in the order of actions.
func (d *dsjson) align(r *Record) error {
	if len(d.ranked) != len(d.probs) {
		return errLaw
	}
	for range r.Actions {
		r.Propensities = append(r.Propensities, -1)
	}
	for i, a := range d.ranked {
		if a < 1 || a > len(r.Actions) || r.Propensities[a-1] >= 0 {
			return errors.New("a names an action that _multi does not have, or one twice")
		}
		if !(d.probs[i] >= 0 && d.probs[i] <= 1+1e-6) {
			return errors.New("p holds what is no probability")
		}
		r.Propensities[a-1] = d.probs[i]
	}
	if len(d.ranked) < len(r.Actions) { // of some actions the probability is not known
		r.Propensities = r.Propensities[:0]
	}
	return nil
}
