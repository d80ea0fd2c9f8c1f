package loop

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"hindsight/pkg/codec"
)

// Heart is the version of what records mean to a joiner: of the rules in this file, of the order
// inside a cut, and of how records are parsed. A change of any of them raises it, so that feedback
// is always joined again by the rules it was joined by. A joiner knows all versions up to its own, goes on by
// that of the last mark, and writes its own from its first mark on.
//
// Version 2: no outcome is taken without a trace. Version 1 passed over outcomes that an era takes again and that
// are no later than the closing of their round, whether they had counted or not.
const Heart = 2

// roundFate is what outcomes and time have made of a round so far: the one statement of the rule
// that turns outcomes into a fate and a loss.
type roundFate struct {
	ready    bool // the round has its fate, which is final
	fate     codec.Fate
	reason   string
	loss     float64
	outPart  int // of the outcome that decided the fate; -1: none
	outOff   int64
	closedAt int64

	activated bool
	count     int     // outcomes that count
	value     float64 // their aggregate as a loss in [0,1]
	total     float64 // Mean: the sum of losses in [0,1]; Sum: the sum on the scale of kind
	kind      codec.OutcomeKind
	ids       []string            // of outcomes that count: the first few,
	more      map[string]struct{} // and the others
	idBytes   int                 // that these take
}

// outPos is where an outcome lies, and its log time.
type outPos struct {
	partition int
	offset    int64
	time      int64
}

var (
	errRange    = errors.New("out of the model's range")
	errInfinite = errors.New("the sum of outcomes is infinite")
	errUseless  = errors.New("the model does not ask for activations")
	errManyIDs  = fmt.Errorf("%d outcomes of its round with ids of their own count already", MaxOutcomeIDs)
)

// ToLoss maps a loss or reward of the user's scale to [0,1].
func (r *Range) ToLoss(kind codec.OutcomeKind, x float64) (float64, error) {
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

// take gives a round that is neither ready nor past its deadline an outcome. It returns the reason
// and the detail if the outcome is rejected. played is the action of the decision.
func (f *roundFate) take(r *Rules, played string, o *codec.Outcome, at outPos) (reason string, err error) {
	if o.Action != "" && o.Action != played {
		return codec.ReasonMismatch, fmt.Errorf("the outcome is for action %q, the decision was %q", o.Action, played)
	}
	switch o.Kind {
	case codec.Withdrawn:
		f.set(codec.WithdrawnRound, "", 0, at)
		return "", nil
	case codec.Activated:
		return f.activate(r, at)
	}
	loss, err := r.Range.ToLoss(o.Kind, o.Value)
	if err != nil {
		return codec.ReasonMalformed, err
	}
	if r.Outcomes == First {
		return f.takeFirst(r, loss, at)
	}
	return f.aggregate(r, o, loss, at)
}

func (f *roundFate) activate(r *Rules, at outPos) (string, error) {
	if !r.Activation {
		return codec.ReasonMalformed, errUseless
	}
	if f.activated {
		return codec.ReasonDuplicate, nil
	}
	f.activated = true
	f.outPart, f.outOff = at.partition, at.offset
	if r.Outcomes == First && f.count > 0 {
		f.settle(at.time)
	}
	return "", nil
}

func (f *roundFate) takeFirst(r *Rules, loss float64, at outPos) (string, error) {
	if f.count > 0 {
		return codec.ReasonDuplicate, nil
	}
	f.count, f.value = 1, loss
	f.outPart, f.outOff = at.partition, at.offset
	if !r.Activation || f.activated {
		f.settle(at.time)
	}
	return "", nil
}

// aggregate adds one of several outcomes.
func (f *roundFate) aggregate(r *Rules, o *codec.Outcome, loss float64, at outPos) (string, error) {
	if o.OutcomeID != "" && f.met(o.OutcomeID) {
		return codec.ReasonDuplicate, nil
	}
	if o.OutcomeID != "" && len(f.ids)+len(f.more) >= MaxOutcomeIDs {
		return codec.ReasonMalformed, errManyIDs
	}
	if err := f.combine(r, o, loss); err != nil {
		return codec.ReasonMalformed, err
	}
	f.count++
	if o.OutcomeID != "" {
		f.note(strings.Clone(o.OutcomeID))
	}
	f.outPart, f.outOff = at.partition, at.offset
	return "", nil
}

// MaxOutcomeIDs is how many outcomes of a round may count that have ids of their own: their
// ids are kept while the round waits. Those without are not bounded.
const MaxOutcomeIDs = 10_000

// fewIDs is how many ids a round's outcomes have where they have few: to look at each is
// quick, and takes no memory but what the round before had.
const fewIDs = 8

// met reports whether an outcome with that id counts.
func (f *roundFate) met(id string) bool {
	if slices.Contains(f.ids, id) {
		return true
	}
	_, met := f.more[id]
	return met
}

// note keeps the id of an outcome that counts. A restart gives the outcomes again.
func (f *roundFate) note(id string) {
	f.idBytes += nameBytes + len(id)
	if len(f.ids) < fewIDs {
		f.ids = append(f.ids, id)
		return
	}
	if f.more == nil {
		f.more = map[string]struct{}{}
	}
	f.more[id] = struct{}{}
}

func (f *roundFate) combine(r *Rules, o *codec.Outcome, loss float64) error {
	switch r.Outcomes {
	case Sum:
		return f.add(&r.Range, o)
	case Mean:
		f.total += loss
		f.value = f.total / float64(f.count+1)
	case Max:
		f.value = max(f.value, loss) // 0 at first
	case Min:
		if f.count == 0 || loss < f.value {
			f.value = loss
		}
	default: // Last
		f.value = loss
	}
	return nil
}

// add adds to a sum on the user's scale, so that a sum of rewards is the reward of
// the sum; x as a reward and Min+Max−x as a loss are the same. A range that clips
// clips the sum, not its terms.
func (f *roundFate) add(r *Range, o *codec.Outcome) error {
	total := f.total
	if f.count > 0 && o.Kind != f.kind {
		total = r.Min + r.Max - total
	}
	if total += o.Value; math.IsInf(total, 0) {
		return errInfinite
	}
	loss, err := r.ToLoss(o.Kind, total)
	if err != nil {
		return fmt.Errorf("the sum of outcomes is %w", err)
	}
	f.total, f.kind, f.value = total, o.Kind, loss
	return nil
}

// settle makes an observed round ready.
func (f *roundFate) settle(at int64) {
	f.ready, f.fate, f.loss, f.closedAt = true, codec.Observed, f.value, at
}

func (f *roundFate) set(fate codec.Fate, reason string, loss float64, at outPos) {
	f.ready, f.fate, f.reason, f.loss = true, fate, reason, loss
	f.outPart, f.outOff, f.closedAt = at.partition, at.offset, at.time
}

// close ends the wait of a round that is not ready: what counts so far, else what
// the model says of silence.
func (f *roundFate) close(r *Rules, at int64, reason string) {
	none := outPos{partition: -1, offset: -1, time: at}
	switch {
	case r.Activation && !f.activated:
		if reason == "" {
			reason = codec.ReasonInactive
		}
		f.set(codec.WithdrawnRound, reason, 0, none)
	case f.count > 0:
		f.settle(at)
		f.reason = reason
	case r.Impute:
		f.set(codec.Imputed, reason, r.DefaultLoss, none)
	default:
		f.set(codec.Skipped, reason, 0, none)
	}
}

// reasonAfter is the reason for which an outcome of a round with a fate is rejected: an outcome
// ended the round, or its window did. rules are those of the round, nil if nobody knows them.
func reasonAfter(fate codec.Fate, reason string, rules *Rules) string {
	if endedByOutcome(fate, reason, rules) {
		return codec.ReasonDuplicate
	}
	return codec.ReasonLate
}

// endedByOutcome reports whether an outcome ended a round, not its window or the limit on
// waiting rounds. Rounds of an epoch that is not known any more count as by outcome.
func endedByOutcome(fate codec.Fate, reason string, rules *Rules) bool {
	switch fate {
	case codec.WithdrawnRound:
		return reason == ""
	case codec.Observed:
		return rules == nil || rules.Outcomes == First
	}
	return false
}

// addTime adds a span to a time without overflow.
func addTime(t, span int64) int64 {
	if t > math.MaxInt64-span {
		return math.MaxInt64
	}
	return t + span
}
