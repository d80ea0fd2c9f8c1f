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

// outcomeFate is what outcomes and time have made of one outcome so far: of the loss of a model that has one, or of an
// outcome that the model names.
type outcomeFate struct {
	ready    bool // it has its fate, which is final
	fate     codec.Fate
	outPart  int // of the record that decided the fate; -1: none
	outOff   int64
	closedAt int64

	count   int     // records that count
	value   float64 // their aggregate: a loss in [0,1], or a named outcome on its own scale
	total   float64 // Mean: the sum of values; Sum: the sum on the scale of kind
	kind    codec.OutcomeKind
	ids     []string            // of records that count: the first few,
	more    map[string]struct{} // and the others
	idBytes int                 // that these take
}

// roundFate is the one statement of the rule that turns outcomes into a fate and a loss. If the model names its
// outcomes, the outcome that it has is none: only its fate and place are those of the round.
type roundFate struct {
	outcomeFate
	reason    string
	loss      float64
	activated bool
	named     []namedFate // in the order of the names
	told      int         // stages of which a record told
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
	errUnnamed  = errors.New("the model has one loss, and names no outcomes")
	errUseless  = errors.New("the model does not ask for activations")
	errManyIDs  = fmt.Errorf("%d outcomes of its round with ids of their own count already", MaxOutcomeIDs)
)

// take gives a round that is neither ready nor past its deadline an outcome. It returns the reason
// and the detail if the outcome is rejected. played is the action of the decision.
func (f *roundFate) take(r *Rules, played string, o *codec.Outcome, at outPos) (reason string, err error) {
	if err := matches(o, played); err != nil {
		return codec.ReasonMismatch, err
	}
	switch o.Kind {
	case codec.Withdrawn:
		f.set(codec.WithdrawnRound, "", 0, at)
		return "", nil
	case codec.Activated:
		return f.activate(r, at)
	case codec.Named:
		return codec.ReasonMalformed, errUnnamed
	}
	reason, err = f.outcomeFate.take(&r.Range, r.Outcomes, o.Kind, o.Value, o.OutcomeID, at)
	if reason == "" && r.Outcomes == First && (!r.Activation || f.activated) {
		f.settle(at.time)
	}
	return reason, err
}

// matches refuses an outcome of another action than was played.
func matches(o *codec.Outcome, played string) error {
	if o.Action == "" || o.Action == played {
		return nil
	}
	return fmt.Errorf("the outcome is for action %q, the decision was %q", o.Action, played)
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

// take adds a record to those that count, or returns why it does not.
func (f *outcomeFate) take(r *Range, how Aggregate, kind codec.OutcomeKind, x float64, id string,
	at outPos) (reason string, err error) {
	value, total, reason, err := f.with(r, how, kind, x, id)
	if reason != "" {
		return reason, err
	}
	f.count++
	f.value, f.total, f.kind = value, total, kind
	f.outPart, f.outOff = at.partition, at.offset
	if how != First && id != "" {
		f.note(strings.Clone(id))
	}
	return "", nil
}

// with returns the aggregate and the total with one record more, or why it does not count. It changes nothing.
func (f *outcomeFate) with(r *Range, how Aggregate, kind codec.OutcomeKind, x float64, id string) (value, total float64,
	reason string, err error) {
	if value, err = r.scale(kind, x); err != nil {
		return 0, 0, codec.ReasonMalformed, err
	}
	switch {
	case how == First && f.count > 0, how != First && id != "" && f.met(id):
		return 0, 0, codec.ReasonDuplicate, nil
	case how != First && id != "" && len(f.ids)+len(f.more) >= MaxOutcomeIDs:
		return 0, 0, codec.ReasonMalformed, errManyIDs
	}
	switch how {
	case Sum:
		if value, total, err = f.add(r, kind, x); err != nil {
			return 0, 0, codec.ReasonMalformed, err
		}
	case Mean:
		total = f.total + value
		value = total / float64(f.count+1)
	case Max:
		if f.count > 0 {
			value = max(f.value, value)
		}
	case Min:
		if f.count > 0 {
			value = min(f.value, value)
		}
	}
	return value, total, "", nil
}

// MaxOutcomeIDs is how many outcomes of a round may count that have ids of their own: their
// ids are kept while the round waits. Those without are not bounded.
const MaxOutcomeIDs = 10_000

// fewIDs is how many ids a round's outcomes have where they have few: to look at each is
// quick, and takes no memory but what the round before had.
const fewIDs = 8

// met reports whether a record with that id counts.
func (f *outcomeFate) met(id string) bool {
	if slices.Contains(f.ids, id) {
		return true
	}
	_, met := f.more[id]
	return met
}

// note keeps the id of a record that counts. A restart gives the outcomes again.
func (f *outcomeFate) note(id string) {
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

// add adds to a sum on the user's scale, so that a sum of rewards is the reward of the sum; x as a reward and Min+Max−x
// as a loss are the same. A range that clips clips the sum, not its terms.
func (f *outcomeFate) add(r *Range, kind codec.OutcomeKind, x float64) (value, total float64, err error) {
	total = f.total
	if f.count > 0 && kind != f.kind {
		total = r.Min + r.Max - total
	}
	if total += x; math.IsInf(total, 0) {
		return 0, 0, errInfinite
	}
	if value, err = r.scale(kind, total); err != nil {
		return 0, 0, fmt.Errorf("the sum of outcomes is %w", err)
	}
	return value, total, nil
}

// settle makes an observed round ready.
func (f *roundFate) settle(at int64) {
	f.ready, f.fate, f.loss, f.closedAt = true, codec.Observed, f.value, at
}

func (f *roundFate) set(fate codec.Fate, reason string, loss float64, at outPos) {
	f.ready, f.fate, f.reason, f.loss = true, fate, reason, loss
	f.outPart, f.outOff, f.closedAt = at.partition, at.offset, at.time
}

// close ends the wait of a round that is not ready: what counts so far, else what the model says of silence.
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
// ended the round, or its window did. rules are those of the round, nil if they are not known.
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
		return rules == nil || rules.first()
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
