package codec

import (
	"errors"
	"math"
	"slices"
	"time"
)

// NoTime is the time of a [Round] that says none.
const NoTime int64 = math.MinInt64

// Round is one line of a file of events: what was asked, what was decided and what came
// of it, or a part of that. No topic holds rounds; they are how logs are exchanged. A
// context, a decision, an outcome and a feedback are rounds that leave keys out.
//
// JSON and MessagePack: the keys of [Context], then {"time", "action", "propensity", "propensities": {name: p}, one of
// "loss" | "reward" | "withdrawn": true, "outcome_time", "weight", "baseline": [name…], "inactive": true, "defaulted":
// true, "activated": true}. Times are RFC 3339 in JSON, ns since 1970 in MessagePack; all keys are optional. Of
// feedback "fate", "closed_at", "stage" and "context" are read, too. A round with named outcomes is of version 4 and
// ends with {"outcomes": {name: x | null | {"value": x | null, "time"}}, "arms": {action: {name: x}}}.
type Round struct {
	Context
	Decided bool // features, actions, time, weight, propensity or propensities are there beside an action

	Time         int64 // of the decision, ns; [NoTime]
	Action       string
	Propensity   float64 // 0: not said
	LawActions   []string
	Propensities []float64 // aligned with LawActions; empty: not all are known
	Unsaid       bool      // propensities are there, and that of the action is unknown

	Kind        OutcomeKind // 0: no outcome
	Value       float64
	OutcomeTime int64 // ns; [NoTime]

	Weight    float64 // 0: not said
	Baseline  []string
	Inactive  bool // not activated
	Defaulted bool // the value stands for silence
	Activated bool

	Values []TimedValue // named outcomes that came, in the order of the bytes
	Arms   []Arm        // what each action would have brought, of a log that knows it
	Stage  int          // of feedback that is not the round's last; else 0
	Repeat bool         // of feedback: of a decision that repeats the draw of its unit
}

// TimedValue is one named outcome of a [Round].
type TimedValue struct {
	Value
	Time int64 // when it was known, ns; [NoTime]: when the round's outcome was
}

// Arm is one action with the named outcomes that it would have had.
type Arm struct {
	Action string
	Values []Value
}

var (
	errRoundTime = errors.New("a time is RFC 3339 in JSON, of the years 1700 to 2200, and a whole number of ns in " +
		"MessagePack")
	errTwoWorth = errors.New("one of loss, reward and withdrawn is enough, and one value for each name")
)

// ParseRound parses a round from MessagePack, JSON or the JSON of a CloudEvent, whose id
// and time are the round's where its data has none. It reuses all memory of dst.
func ParseRound(dst *Round, b []byte) error {
	r := newReader(b)
	r.round(dst)
	if !r.isCloudEvent() {
		return r.end("round")
	}
	at := cloudTime(b)
	r, id := openCloudEvent(b)
	r.round(dst)
	if dst.ID == "" {
		dst.ID = id
	}
	if at != NoTime && dst.Time == NoTime && dst.OutcomeTime == NoTime {
		if dst.Decided || dst.Kind == 0 {
			dst.Time = at
		} else {
			dst.OutcomeTime = at
		}
	}
	return r.end("round")
}

// cloudTime returns the time of a CloudEvent.
func cloudTime(b []byte) int64 {
	r := newReader(b)
	if s := r.open(tokMap); r.find(&s, "time") && r.kind() == tokText {
		return r.roundTime()
	}
	return NoTime
}

func (r *reader) round(o *Round) {
	actions := o.Actions[:0]
	*o = Round{
		Context: Context{Features: o.Features[:0], Vector: o.Vector[:0], numbers: o.numbers[:0]},
		Time:    NoTime, OutcomeTime: NoTime,
		LawActions: o.LawActions[:0], Propensities: o.Propensities[:0], Baseline: o.Baseline[:0],
		Values: o.Values[:0], Arms: o.Arms[:0],
	}
	r.numbers = &o.numbers
	asked := false
	var seen uint32
	s := r.entries()
	for r.entry(&s) {
		switch s.key {
		case "v":
			r.once(&seen, 0).version()
		case "id":
			o.ID = r.once(&seen, 1).textOrNull()
		case "features":
			r.once(&seen, 2)
			asked = true
			r.contextFeatures(&o.Context)
		case "actions":
			r.once(&seen, 3)
			if asked = true; !r.null() {
				o.Actions = r.actions(actions)
			}
		case "context": // of feedback and decisions
			r.once(&seen, 4)
			asked = true
			r.roundContext(&o.Context, actions)
			o.ownBaseline()
		case "unit":
			o.Unit, o.unitOther = r.once(&seen, 30).contextUnit()
		case "first":
			if r.kind() == tokMap {
				o.Repeat = r.once(&seen, 31).roundRef().N > 0
			} else {
				r.skip()
			}
		default:
			if s.key == cloudMark && r.json && !r.inner {
				r.cloud = true
				o.Actions = actions
				return
			}
			if !r.decided(o, s.key, &seen) && !r.came(o, s.key, &seen) && !r.named(o, s.key, &seen) {
				r.skip()
			}
		}
	}
	if o.Kind == noOutcome {
		o.Kind = 0
	}
	if slices.Contains(o.Propensities, -1) {
		o.Propensities, o.Unsaid = o.Propensities[:0], o.Propensity == 0
	}
	if o.Kind == 0 && len(o.Values) > 0 {
		o.Kind = Named
	}
	o.Decided = o.Action != "" && (asked || o.Propensity != 0 || len(o.LawActions) > 0 || o.Time != NoTime ||
		o.Weight != 0)
}

// roundContext reads the context that a feedback or a decision carries as bytes.
func (r *reader) roundContext(c *Context, actions []Action) {
	if r.json {
		r.skip()
		return
	}
	id := c.ID
	inner := Context{Features: c.Features[:0], Vector: c.Vector[:0], Actions: actions, numbers: c.numbers[:0]}
	if err := ParseContext(&inner, r.bytes()); err != nil && r.err == nil {
		r.fail(err)
		return
	}
	if id != "" {
		inner.ID = id
	}
	inner.Assigned = Assigned{} // the round's own keys say it
	*c = inner
}

// ownBaseline makes the baseline of a context that of the round, which has names.
func (o *Round) ownBaseline() {
	if oneAction(o.Context.Baseline) && len(o.Baseline) == 0 {
		o.Baseline = append(o.Baseline, o.Context.Baseline[0].Name)
	}
	o.Context.Baseline = nil
}

// decided reads a key that tells of the decision, and reports whether it was one.
func (r *reader) decided(o *Round, key string, seen *uint32) bool {
	switch key {
	case "time":
		o.Time = r.once(seen, 5).roundTime()
	case "action":
		o.Action = r.once(seen, 6).textOrNull()
	case "propensity":
		if !r.once(seen, 7).null() {
			if o.Propensity = r.float(); o.Propensity == 0 {
				r.fail(errPossible)
			}
		}
	case "propensities":
		if !r.once(seen, 8).null() {
			for s := r.open(tokMap); r.more(&s); {
				o.LawActions = append(o.LawActions, r.key())
				o.Propensities = append(o.Propensities, r.known())
			}
		}
	case "weight":
		if o.Weight = r.once(seen, 9).float(); o.Weight == 0 { // which means here that nothing was said
			r.fail(errPositive)
		}
	case "baseline":
		r.once(seen, 10)
		for s := r.open(tokList); r.more(&s); {
			o.Baseline = append(o.Baseline, r.text())
		}
	case "inactive":
		o.Inactive = r.once(seen, 11).bool()
	default:
		return false
	}
	return true
}

// came reads a key that tells of the outcome, and reports whether it was one.
func (r *reader) came(o *Round, key string, seen *uint32) bool {
	switch key {
	case "loss":
		r.roundWorth(o, Loss, *seen)
	case "reward":
		r.roundWorth(o, Reward, *seen)
	case "withdrawn":
		if !r.null() && r.bool() {
			r.roundKind(o, Withdrawn)
		}
	case "activated":
		o.Activated = !r.once(seen, 12).null() && r.bool()
	case "outcome_time", "closed_at":
		o.OutcomeTime = r.once(seen, 13).roundTime()
	case "defaulted":
		o.Defaulted = r.once(seen, 14).bool()
	case "fate":
		r.once(seen, fated).roundFate(o)
	default:
		return false
	}
	return true
}

// named reads a key of named outcomes, and reports whether it was one.
func (r *reader) named(o *Round, key string, seen *uint32) bool {
	switch key {
	case "outcomes":
		r.once(seen, 16)
		for s := r.open(tokMap); r.more(&s); {
			v := TimedValue{Value: Value{Name: r.key()}, Time: NoTime}
			if !r.timedValue(&v) {
				continue
			}
			for i := range o.Values {
				if o.Values[i].Name == v.Name {
					r.fail(errTwoWorth)
				}
			}
			o.Values = append(o.Values, v)
		}
	case "arms":
		r.once(seen, 17)
		for s := r.open(tokMap); r.more(&s); {
			o.Arms = append(o.Arms, Arm{Action: r.key()})
			a := &o.Arms[len(o.Arms)-1]
			for s := r.open(tokMap); r.more(&s); {
				name := r.key()
				if r.kind() != tokNum { // what else a file tells of it
					r.skip()
					continue
				}
				a.Values = append(a.Values, Value{Name: name, X: r.finite()})
			}
		}
	case "stage":
		o.Stage = int(r.once(seen, 18).int())
	default:
		return false
	}
	return true
}

// timedValue reads a named outcome: a number, null, an object of value and time, or what a feedback says
// of it. It reports whether it came: what a feedback imputed or skipped did not.
func (r *reader) timedValue(v *TimedValue) bool {
	if r.kind() != tokMap {
		if v.Withdrawn = r.null(); !v.Withdrawn {
			v.X = r.finite()
		}
		return true
	}
	fate := Observed
	for s := r.open(tokMap); r.more(&s); {
		switch r.key() {
		case "value":
			if v.Withdrawn = r.null(); !v.Withdrawn {
				v.X = r.finite()
			}
		case "time", "closed_at":
			v.Time = r.roundTime()
		case "fate":
			fate = r.fate()
		default:
			r.skip()
		}
	}
	if v.Withdrawn = v.Withdrawn || fate == WithdrawnRound; v.Withdrawn {
		v.X = 0
	}
	return fate == Observed || v.Withdrawn
}

// finite reads a number that is neither infinite nor NaN.
func (r *reader) finite() float64 {
	v := r.float()
	if !finite(v) {
		r.fail(errRange)
	}
	return v
}

// roundFate reads the fate of a feedback, which says whether its loss counts. The loss comes behind it.
func (r *reader) roundFate(o *Round) {
	switch r.fate() {
	case Imputed:
		o.Defaulted = true
	case WithdrawnRound:
		r.roundKind(o, Withdrawn)
	case Skipped:
		r.roundKind(o, noOutcome)
	}
}

// fated is the bit of fate in the keys seen.
const fated = 15

// noOutcome stands, while a feedback is read, for an outcome that never came.
const noOutcome OutcomeKind = 255

func (r *reader) roundWorth(o *Round, kind OutcomeKind, seen uint32) {
	if r.null() {
		return
	}
	v := r.finite()
	if seen&(1<<fated) != 0 && o.Kind != 0 { // of a feedback, which has a loss of 0 then
		return
	}
	o.Value = v
	r.roundKind(o, kind)
}

func (r *reader) roundKind(o *Round, kind OutcomeKind) {
	if o.Kind != 0 {
		r.fail(errTwoWorth)
	}
	o.Kind = kind
}

// roundTime reads a time; null is none.
func (r *reader) roundTime() int64 {
	switch {
	case r.null():
		return NoTime
	case !r.json:
		return r.int()
	}
	t, err := time.Parse(time.RFC3339, r.text())
	if y := t.Year(); err != nil || y < 1700 || y > 2200 {
		r.fail(errRoundTime)
		return NoTime
	}
	return t.UnixNano()
}

// RecordLength returns the length of the first MessagePack map in b. incomplete says that it may end behind b; the
// error, that b begins with none. Rounds follow one another in a file without anything between.
func RecordLength(b []byte) (n int, incomplete bool, err error) {
	r := reader{b: b}
	if r.kind() != tokMap {
		return 0, len(b) == 0, wrong("round", "", errWantMap)
	}
	r.skip()
	if r.err != nil {
		return 0, errors.Is(r.err, errTruncated), wrong("round", "", r.err)
	}
	return r.i, false, nil
}
