package verify

import (
	"errors"
	"math"

	"hindsight/internal/loop"
	"hindsight/pkg/codec"
)

// heldOutcome is an outcome of a round.
type heldOutcome struct {
	codec.Outcome             // its strings are its own
	partition     int         // of outcomes
	offset        int64       // in it
	logTime       int64       // of the record
	time          int64       // log time, made monotone
	info          *rejectInfo // its reject, nil if there is none
	newer         error       // why only a newer program can read it; nil otherwise
}

// orphaned reports whether it was rejected as an orphan.
func (o *heldOutcome) orphaned() bool {
	return o.info != nil && o.info.reasons() == orphan
}

// before is the order of the joiner: log time, then lower partitions.
func (o *heldOutcome) before(p *heldOutcome) int {
	for _, d := range [...]int64{o.time - p.time, int64(o.partition - p.partition), o.offset - p.offset} {
		if d != 0 {
			return int(max(-1, min(1, d)))
		}
	}
	return 0
}

// verdict is the fate of a round by definition, and of each of its outcomes.
type verdict struct {
	fate     codec.Fate
	reason   string
	loss     float64
	by       *heldOutcome // that decided the fate; nil: none
	closedAt int64
	outcomes []reasons // 0: it counted
	open     bool      // nothing has ended the wait
	outcome  bool      // an outcome ended it, not the window
}

// place is where an outcome lies; offset -1: nowhere.
type place struct {
	partition int
	offset    int64
}

// trial is a round that is judged by what its model says, from all of its
// outcomes, whatever order they were read in.
type trial struct {
	rules    *loop.Rules
	action   string
	time     int64 // log time of the decision
	deadline int64 // last log time at which an outcome is in time
	known    bool  // there is a deadline already
	overflow int64 // log time at which it was closed to make room; -1: it was not
	named    place // of the outcome that its feedback names

	count     int
	activated bool
	ids       map[string]bool // of outcomes that count
	value     float64
	total     float64
	kind      codec.OutcomeKind
	v         verdict
}

// judge returns the verdict. outs is sorted in place.
func (t *trial) judge(outs []*heldOutcome) verdict {
	t.sortOutcomes(outs)
	limit := int64(math.MaxInt64)
	if t.known {
		limit = t.deadline
	}
	if t.overflow >= 0 {
		// The decision that made it overflow comes before outcomes of its time.
		limit = min(limit, t.overflow-1)
	}
	t.v = verdict{open: true}
	for _, o := range outs {
		var r reasons
		switch {
		case o.orphaned() && o.time <= t.time: // it came before its decision, and was not found then
			r = orphan
		case !t.v.open:
			r = duplicate
		case o.time > limit:
			r = late
		default:
			r = t.take(o)
		}
		t.v.outcomes = append(t.v.outcomes, r)
	}
	if t.v.open && (t.known || t.overflow >= 0) {
		t.close()
	}
	return t.v
}

// take gives an open round an outcome that is in time.
func (t *trial) take(o *heldOutcome) reasons {
	if o.Action != "" && o.Action != t.action {
		return mismatch
	}
	switch o.Kind {
	case codec.Withdrawn:
		t.end(codec.WithdrawnRound, "", 0, o, o.time)
		t.v.outcome = true
		return 0
	case codec.Activated:
		switch {
		case !t.rules.Activation:
			return malformed
		case t.activated:
			return duplicate
		}
		t.activated, t.v.by = true, o
	default:
		loss, ok := lossOf(&t.rules.Range, o.Kind, o.Value)
		if !ok {
			return malformed
		}
		if t.rules.Outcomes == loop.First && t.count > 0 {
			return duplicate
		}
		if t.rules.Outcomes == loop.First {
			t.value = loss
		} else if r := t.aggregate(o, loss); r != 0 {
			return r
		}
		t.count++
		t.v.by = o
	}
	if t.rules.Outcomes == loop.First && t.count > 0 && (t.activated || !t.rules.Activation) {
		t.end(codec.Observed, "", t.value, t.v.by, o.time)
		t.v.outcome = true
	}
	return 0
}

// lossOf maps a loss or reward of the user's scale to [0,1].
func lossOf(r *loop.Range, kind codec.OutcomeKind, x float64) (float64, bool) {
	if (x < r.Min || x > r.Max) && !r.Clip {
		return 0, false
	}
	x = min(max(x, r.Min), r.Max)
	if kind == codec.Reward {
		return min(max((r.Max-x)/(r.Max-r.Min), 0), 1), true
	}
	return min(max((x-r.Min)/(r.Max-r.Min), 0), 1), true
}

// aggregate adds one of several outcomes.
func (t *trial) aggregate(o *heldOutcome, loss float64) reasons {
	if t.ids[o.OutcomeID] {
		return duplicate
	}
	if o.OutcomeID != "" && len(t.ids) >= loop.MaxOutcomeIDs {
		return malformed
	}
	switch t.rules.Outcomes {
	case loop.Sum:
		if err := t.add(o); err != nil {
			return malformed
		}
	case loop.Mean:
		t.total += loss
		t.value = t.total / float64(t.count+1)
	case loop.Max:
		t.value = max(t.value, loss)
	case loop.Min:
		if t.count == 0 || loss < t.value {
			t.value = loss
		}
	default:
		t.value = loss
	}
	if o.OutcomeID != "" {
		if t.ids == nil {
			t.ids = map[string]bool{}
		}
		t.ids[o.OutcomeID] = true
	}
	return 0
}

var errSum = errors.New("out of range")

// add adds to a sum on the user's scale; a reward x is the loss Min+Max−x.
func (t *trial) add(o *heldOutcome) error {
	r, total := &t.rules.Range, t.total
	if t.count > 0 && o.Kind != t.kind {
		total = r.Min + r.Max - total
	}
	total += o.Value
	loss, ok := lossOf(r, o.Kind, total)
	if !ok || math.IsInf(total, 0) {
		return errSum
	}
	t.total, t.kind, t.value = total, o.Kind, loss
	return nil
}

// close ends a round by its window, or to make room.
func (t *trial) close() {
	at, reason := t.deadline, ""
	if t.overflow >= 0 {
		at, reason = t.overflow, codec.ReasonOverflow
	}
	switch {
	case t.rules.Activation && !t.activated:
		if reason == "" {
			reason = codec.ReasonInactive
		}
		t.end(codec.WithdrawnRound, reason, 0, nil, at)
	case t.count > 0:
		t.end(codec.Observed, reason, t.value, t.v.by, at)
	case t.rules.Impute:
		t.end(codec.Imputed, reason, t.rules.DefaultLoss, nil, at)
	default:
		t.end(codec.Skipped, reason, 0, nil, at)
	}
}

func (t *trial) end(fate codec.Fate, reason string, loss float64, by *heldOutcome, at int64) {
	t.v.fate, t.v.reason, t.v.loss, t.v.by, t.v.closedAt, t.v.open = fate, reason, loss, by, at, false
}
