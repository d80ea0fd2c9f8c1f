package codec

import "fmt"

// outcomeKeys are the keys of the kinds.
var outcomeKeys = [...]string{Loss: "loss", Reward: "reward", Withdrawn: "withdrawn", Activated: "activated",
	Named: "outcomes"}

// String returns the kind's key on the wire.
func (k OutcomeKind) String() string {
	if k == 0 || int(k) >= len(outcomeKeys) {
		return "unknown"
	}
	return outcomeKeys[k]
}

// AppendOutcome appends o as MessagePack. o is valid ([Outcome.Validate]).
func AppendOutcome(dst []byte, o *Outcome) []byte {
	head, version := len(dst), int64(Version)
	if o.Kind == Named {
		version = saysMore
	}
	key, whose := "id", o.ID
	if o.ID == "" && o.Unit != "" {
		key, whose, version = "unit", o.Unit, saysMore
	}
	dst = appendInt(appendKey(appendMap(dst, 3), "v"), version)
	dst = appendText(appendKey(dst, key), whose)
	dst = appendKey(dst, o.Kind.String())
	switch o.Kind {
	case Loss, Reward:
		dst = appendFloat(dst, o.Value)
	case Named:
		dst = appendValues(dst, o.Values)
	default:
		dst = appendBool(dst, true)
	}
	if o.Action != "" {
		dst = appendText(another(dst, head, "action"), o.Action)
	}
	if o.OutcomeID != "" {
		dst = appendText(another(dst, head, "outcome_id"), o.OutcomeID)
	}
	return dst
}

// AppendOutcomeJSON appends o as JSON. o is valid ([Outcome.Validate]).
func AppendOutcomeJSON(dst []byte, o *Outcome) []byte { return asJSON(AppendOutcome(dst, o), len(dst)) }

// ParseOutcome parses an outcome from MessagePack, JSON or the JSON of a CloudEvent, whose id is the outcome_id when
// its data has none. It refuses what is not such a record, an outcome that says nothing or several things (null and
// false say nothing), and losses that are not finite; the rest is for [Outcome.Validate].
func ParseOutcome(dst *Outcome, b []byte) error {
	if n := len(b); n > MaxOutcomeBytes {
		return wrong("outcome", "", fmt.Errorf("%w: %d bytes, at most %d are taken", ErrTooLarge, n, MaxOutcomeBytes))
	}
	return ParseLargeOutcome(dst, b)
}

// ParseLargeOutcome is [ParseOutcome] of what an earlier program may have taken, which is up to [MaxRecordBytes].
func ParseLargeOutcome(dst *Outcome, b []byte) error {
	if len(b) > MaxRecordBytes {
		return wrong("outcome", "", ErrTooLarge)
	}
	r := newReader(b)
	r.outcome(dst)
	if !r.isCloudEvent() {
		return r.end("outcome")
	}
	r, id := openCloudEvent(b)
	r.outcome(dst)
	if dst.OutcomeID == "" {
		dst.OutcomeID = id
	}
	return r.end("outcome")
}

func (r *reader) outcome(o *Outcome) {
	*o = Outcome{Values: o.Values[:0]}
	var seen uint32
	var otherUnit bool
	s := r.entries()
	for r.entry(&s) {
		switch s.key {
		case "v":
			r.once(&seen, 0).version()
		case "loss":
			r.once(&seen, int(Loss)).worth(o, Loss)
		case "reward":
			r.once(&seen, int(Reward)).worth(o, Reward)
		case "withdrawn":
			r.once(&seen, int(Withdrawn)).said(o, Withdrawn)
		case "activated":
			r.once(&seen, int(Activated)).said(o, Activated)
		case "outcomes":
			if o.Values = r.once(&seen, 8).values(o.Values); len(o.Values) > 0 {
				r.kindOnce(o, Named)
			}
		case "id":
			o.ID = r.once(&seen, 5).text()
		case "action":
			o.Action = r.once(&seen, 6).textOrNull()
		case "outcome_id":
			o.OutcomeID = r.once(&seen, 7).textOrNull()
		case "unit":
			o.Unit, otherUnit = r.once(&seen, 9).contextUnit()
		default:
			if s.key == cloudMark && r.json && !r.inner {
				r.cloud = true
				return
			}
			r.skip()
		}
	}
	if seen&(1<<5) != 0 {
		o.Unit = "" // of an outcome that names its round it says nothing
	}
	if o.Unit == "" {
		if otherUnit && seen&(1<<5) == 0 && r.err == nil {
			r.fail(errUnitText)
			r.in("unit")
		}
		r.require(seen>>5, idKeys)
	}
	if o.Kind == 0 {
		r.fail(errSilent)
	}
}

var idKeys = []string{"id"}

// worth reads a loss or a reward.
func (r *reader) worth(o *Outcome, kind OutcomeKind) {
	if r.null() {
		return
	}
	o.Value = r.finite()
	r.kindOnce(o, kind)
}

// said reads whether the decision was withdrawn or activated.
func (r *reader) said(o *Outcome, kind OutcomeKind) {
	if !r.null() && r.bool() {
		r.kindOnce(o, kind)
	}
}

func (r *reader) kindOnce(o *Outcome, kind OutcomeKind) {
	if o.Kind != 0 {
		r.fail(errSeveral)
	}
	o.Kind = kind
}
