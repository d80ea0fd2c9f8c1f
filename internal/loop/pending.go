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
	seq    int64 // in the line
	size   int   // bytes that it counts for while it waits
	slot   int32 // in the table of rounds; -1 for a repeated id

	ready    bool
	held     bool // it has its fate and waits for its turn
	late     bool // a loss came after its window
	over     bool // no outcome is to come any more
	fate     codec.Fate
	reason   string
	loss     float64
	outPart  int
	outOff   int64
	closedAt int64

	activated bool
	count     int     // outcomes that count
	value     float64 // their aggregate as a loss in [0,1]
	total     float64 // Mean: the sum of losses in [0,1]; Sum: the sum on the scale of kind
	kind      codec.OutcomeKind
	ids       []string            // of outcomes that count: the first few,
	more      map[string]struct{} // and the others
	outs      []outPos            // the oldest outcome that it needs, a partition
}

type outPos struct {
	partition int
	offset    int64
	time      int64
}

// reset makes p a fresh round, keeping its memory.
func (p *pending) reset() {
	*p = pending{raw: p.raw[:0], d: codec.Decision{Actions: p.d.Actions[:0], Propensities: p.d.Propensities[:0], Would: p.d.Would[:0]},
		outPart: -1, outOff: -1, ids: p.ids[:0], outs: p.outs[:0]}
}

var (
	errRange    = errors.New("out of the model's range")
	errInfinite = errors.New("the sum of outcomes is infinite")
	errUseless  = errors.New("the model does not ask for activations")
	errManyIDs  = fmt.Errorf("%d outcomes of its round with ids of their own count already", MaxOutcomeIDs)
)

// toLoss maps a loss or reward of the user's scale to [0,1].
func (r *Range) toLoss(kind codec.OutcomeKind, x float64) (float64, error) {
	if (x < r.Min || x > r.Max) && !r.Clip {
		return 0, fmt.Errorf("%w: %v is not in [%v, %v]", errRange, x, r.Min, r.Max)
	}
	if kind == codec.Reward {
		return clip01((r.Max - x) / (r.Max - r.Min)), nil
	}
	return clip01((x - r.Min) / (r.Max - r.Min)), nil
}

// FromLoss returns the loss on the user's scale that reads as the given loss in
// [0,1].
func (r *Range) FromLoss(loss float64) float64 {
	return min(max(r.Min+float64(loss*(r.Max-r.Min)), r.Min), r.Max)
}

func clip01(x float64) float64 { return min(max(x, 0), 1) }

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

// aggregate adds one of several outcomes.
func (p *pending) aggregate(o *codec.Outcome, loss float64, at outPos) (string, error) {
	if o.OutcomeID != "" && p.met(o.OutcomeID) {
		return codec.ReasonDuplicate, nil
	}
	if o.OutcomeID != "" && len(p.ids)+len(p.more) >= MaxOutcomeIDs {
		return codec.ReasonMalformed, errManyIDs
	}
	if err := p.combine(o, loss); err != nil {
		return codec.ReasonMalformed, err
	}
	p.count++
	if o.OutcomeID != "" {
		p.note(strings.Clone(o.OutcomeID))
	}
	p.outPart, p.outOff = at.partition, at.offset
	p.need(at)
	return "", nil
}

// MaxOutcomeIDs is how many outcomes of a round may count that have ids of their own: their
// ids are kept while the round waits. Those without are not bounded.
const MaxOutcomeIDs = 10_000

// fewIDs is how many ids a round's outcomes have where they have few: to look at each is
// quick, and takes no memory but what the round before had.
const fewIDs = 8

// met reports whether an outcome with that id counts.
func (p *pending) met(id string) bool {
	if slices.Contains(p.ids, id) {
		return true
	}
	_, met := p.more[id]
	return met
}

// note keeps the id of an outcome that counts. A restart gives the outcomes again.
func (p *pending) note(id string) {
	p.size += nameBytes + len(id)
	if len(p.ids) < fewIDs {
		p.ids = append(p.ids, id)
		return
	}
	if p.more == nil {
		p.more = map[string]struct{}{}
	}
	p.more[id] = struct{}{}
}

func (p *pending) combine(o *codec.Outcome, loss float64) error {
	switch p.rules.Outcomes {
	case Sum:
		return p.add(o)
	case Mean:
		p.total += loss
		p.value = p.total / float64(p.count+1)
	case Max:
		p.value = max(p.value, loss) // 0 at first
	case Min:
		if p.count == 0 || loss < p.value {
			p.value = loss
		}
	default: // Last
		p.value = loss
	}
	return nil
}

// add adds to a sum on the user's scale, so that a sum of rewards is the reward of
// the sum; x as a reward and Min+Max−x as a loss are the same. A range that clips
// clips the sum, not its terms.
func (p *pending) add(o *codec.Outcome) error {
	r, total := &p.rules.Range, p.total
	if p.count > 0 && o.Kind != p.kind {
		total = r.Min + r.Max - total
	}
	if total += o.Value; math.IsInf(total, 0) {
		return errInfinite
	}
	loss, err := r.toLoss(o.Kind, total)
	if err != nil {
		return fmt.Errorf("the sum of outcomes is %w", err)
	}
	p.total, p.kind, p.value = total, o.Kind, loss
	return nil
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
