package loop

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"hindsight/pkg/codec"
)

// pending is a round that waits for its outcome, or for the rounds before it. It
// owns the bytes that its decision aliases.
type pending struct {
	rules  *Rules
	raw    []byte
	d      codec.Decision
	offset int64 // of the decision
	time   int64 // log time of the decision, monotone in its partition
	slot   int32 // in the table of rounds; -1 for a repeated id

	ready    bool
	released bool
	fate     codec.Fate
	reason   string
	loss     float64
	outPart  int
	outOff   int64
	closedAt int64

	activated bool
	count     int     // outcomes that count
	value     float64 // their aggregate, on the user's scale
	ids       []string
	outs      []outPos // the oldest outcome that it needs, a partition
}

type outPos struct {
	partition int
	offset    int64
	time      int64
}

// reset makes p a fresh round, keeping its memory.
func (p *pending) reset() {
	*p = pending{raw: p.raw[:0], d: codec.Decision{Actions: p.d.Actions[:0], Propensities: p.d.Propensities[:0]},
		outPart: -1, outOff: -1, ids: p.ids[:0], outs: p.outs[:0]}
}

var (
	errRange   = errors.New("out of the model's range")
	errUseless = errors.New("the model does not ask for activations")
)

// toLoss maps a loss or reward of the user's scale to [0,1].
func (r *Range) toLoss(kind codec.OutcomeKind, x float64) (float64, error) {
	if x < r.Min || x > r.Max {
		if !r.Clip {
			return 0, fmt.Errorf("%w: %v is not in [%v, %v]", errRange, x, r.Min, r.Max)
		}
		x = min(max(x, r.Min), r.Max)
	}
	if kind == codec.Reward {
		return clip01((r.Max - x) / (r.Max - r.Min)), nil
	}
	return clip01((x - r.Min) / (r.Max - r.Min)), nil
}

func clip01(x float64) float64 { return min(max(x, 0), 1) }

// toRaw maps a loss in [0,1] back to the scale of losses.
func (r *Range) toRaw(loss float64) float64 { return r.Min + float64(loss*(r.Max-r.Min)) }

// take gives a round that is neither ready nor past its deadline an outcome. It
// returns the reason and detail if the outcome is rejected.
func (p *pending) take(o *codec.Outcome, at outPos) (reason string, err error) {
	if o.Action != "" && o.Action != p.d.Actions[p.d.Action] {
		return codec.ReasonMismatch, fmt.Errorf("the outcome is for action %q, the decision was %q", o.Action, p.d.Actions[p.d.Action])
	}
	switch o.Kind {
	case codec.Withdrawn:
		p.set(codec.WithdrawnRound, "", 0, at)
		return "", nil
	case codec.Activated:
		return p.activate(at)
	}
	loss, err := p.rules.Range.toLoss(o.Kind, o.Value)
	if err != nil {
		return codec.ReasonMalformed, err
	}
	if p.rules.Outcomes == First {
		return p.takeFirst(loss, at)
	}
	return p.aggregate(o, loss, at)
}

func (p *pending) activate(at outPos) (string, error) {
	if !p.rules.Activation {
		return codec.ReasonMalformed, errUseless
	}
	if p.activated {
		return codec.ReasonDuplicate, nil
	}
	p.activated = true
	p.outPart, p.outOff = at.partition, at.offset
	p.need(at)
	if p.rules.Outcomes == First && p.count > 0 {
		p.settle(at.time)
	}
	return "", nil
}

func (p *pending) takeFirst(loss float64, at outPos) (string, error) {
	if p.count > 0 {
		return codec.ReasonDuplicate, nil
	}
	p.count, p.value = 1, loss
	p.outPart, p.outOff = at.partition, at.offset
	p.need(at)
	if !p.rules.Activation || p.activated {
		p.settle(at.time)
	}
	return "", nil
}

// aggregate adds one of several outcomes. Losses and rewards are aggregated as
// losses on the user's scale, so that a sum of rewards is the reward of the sum:
// sum is over losses for outcomes given as losses, over rewards for rewards.
func (p *pending) aggregate(o *codec.Outcome, loss float64, at outPos) (string, error) {
	if o.OutcomeID != "" && slices.Contains(p.ids, o.OutcomeID) {
		return codec.ReasonDuplicate, nil
	}
	next, err := p.combine(o, loss)
	if err != nil {
		return codec.ReasonMalformed, err
	}
	p.value = next
	p.count++
	if o.OutcomeID != "" {
		p.ids = append(p.ids, strings.Clone(o.OutcomeID))
	}
	p.outPart, p.outOff = at.partition, at.offset
	p.need(at)
	return "", nil
}

func (p *pending) combine(o *codec.Outcome, loss float64) (float64, error) {
	if p.count == 0 {
		return loss, nil
	}
	switch p.rules.Outcomes {
	case Max:
		return max(p.value, loss), nil
	case Min:
		return min(p.value, loss), nil
	case Mean:
		return p.value + float64((loss-p.value)/float64(p.count+1)), nil
	case Sum:
		r := &p.rules.Range
		sum := r.toRaw(p.value) + o.Value
		if o.Kind == codec.Reward {
			sum = r.Max - float64(p.value*(r.Max-r.Min)) + o.Value
		}
		loss, err := r.toLoss(o.Kind, sum)
		if err != nil {
			return 0, fmt.Errorf("the sum of outcomes is %w", err)
		}
		return loss, nil
	}
	return loss, nil // Last
}

// need notes that a restart must read this outcome again while the round waits.
func (p *pending) need(at outPos) {
	for i := range p.outs {
		if p.outs[i].partition == at.partition {
			return
		}
	}
	p.outs = append(p.outs, at)
}

// settle makes an observed round ready.
func (p *pending) settle(at int64) {
	p.ready, p.fate, p.loss, p.closedAt = true, codec.Observed, p.value, at
}

func (p *pending) set(fate codec.Fate, reason string, loss float64, at outPos) {
	p.ready, p.fate, p.reason, p.loss = true, fate, reason, loss
	p.outPart, p.outOff, p.closedAt = at.partition, at.offset, at.time
	if at.partition >= 0 {
		p.need(at)
	}
}

// close ends the wait of a round that is not ready: what counts so far, else what
// the model says of silence.
func (p *pending) close(at int64, reason string) {
	none := outPos{partition: -1, offset: -1, time: at}
	switch {
	case p.rules.Activation && !p.activated:
		if reason == "" {
			reason = codec.ReasonInactive
		}
		p.set(codec.WithdrawnRound, reason, 0, none)
	case p.count > 0:
		p.settle(at)
		p.reason = reason
	case p.rules.Impute:
		p.set(codec.Imputed, reason, p.rules.DefaultLoss, none)
	default:
		p.set(codec.Skipped, reason, 0, none)
	}
}

// addTime adds a span to a time without overflow.
func addTime(t, span int64) int64 {
	if t > math.MaxInt64-span {
		return math.MaxInt64
	}
	return t + span
}
