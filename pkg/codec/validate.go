package codec

import (
	"unicode/utf8"
	"unsafe"
)

// CheckText checks that s is UTF-8 of at most most bytes without control characters.
func CheckText(s string, most int) error {
	if len(s) > most {
		return errLong
	}
	plain := 0
	for plain+8 <= len(s) && isPlain(word(s, plain)) {
		plain += 8
	}
	ascii := true
	for i := plain; i < len(s); i++ {
		switch c := s[i]; {
		case c < ' ' || c == 0x7f:
			return errControl
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	if ascii {
		return nil
	}
	if !utf8.ValidString(s) {
		return errUTF8
	}
	for _, u := range s {
		if u >= 0x80 && u < 0xa0 {
			return errControl
		}
	}
	return nil
}

// word returns eight bytes of s, the first of which is s[i] and the lowest.
func word(s string, i int) uint64 {
	_ = s[i+7]
	return uint64(s[i]) | uint64(s[i+1])<<8 | uint64(s[i+2])<<16 | uint64(s[i+3])<<24 | uint64(s[i+4])<<32 | uint64(
		s[i+5])<<40 | uint64(s[i+6])<<48 | uint64(s[i+7])<<56
}

// isPlain reports whether all bytes of x are ASCII and no control characters. A byte below 0x80 is below n where byte−n
// borrows, and is 0x7f where adding 1 carries; neither reaches the next byte before the first that is found.
func isPlain(x uint64) bool {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	return (x|(x-ones*' ')|(x+ones))&highs == 0
}

// checkName is CheckText for what must not be empty.
func checkName(s string, most int) error {
	if s == "" {
		return errEmpty
	}
	return CheckText(s, most)
}

func finite(x float64) bool { return x-x == 0 }

// Validate reports the first field that breaks a rule: an id or name that is too long, not UTF-8 or has control
// characters, an empty or repeated name, a number that is not finite, too many actions or features. An empty id is
// fine: one is minted; so is a nil list of actions, but not an empty one. It does not allocate unless it fails, meets
// more than 512 features in one place, or more actions than before.
func (c *Context) Validate() error { return c.ValidateFor(nil) }

// ValidateFor is [Context.Validate] for a model that declares some features as long texts or as vectors,
// which no other features may be. nil: none.
func (c *Context) ValidateFor(long func(name string) bool) error { return c.validate(long, 0) }

// validate is ValidateFor, where the features of the actions before checked are valid if those of the first are.
func (c *Context) validate(long func(name string) bool, checked int) error {
	if err := CheckText(c.ID, MaxIDBytes); err != nil {
		return wrong("context", "id", err)
	}
	if len(c.Features) > 0 && len(c.Vector) > 0 {
		return wrong("context", "features", errBoth)
	}
	for i, x := range c.Vector {
		if !finite(x) {
			return wrong("context", item("features", i), errNotFinite)
		}
	}
	n := len(c.Vector) + len(c.Features)
	if n > MaxFeatures {
		return wrong("context", "features", errManyFeatures)
	}
	if name, err := checkFeatures(c.Features, nil, long); err != nil {
		return wrong("context", "features."+label(name), err)
	}
	switch {
	case c.Actions != nil && len(c.Actions) == 0:
		return wrong("context", "actions", errNoActions)
	case len(c.Actions) > MaxActions:
		return wrong("context", "actions", errManyActions)
	}
	var known []Feature
	for i := range c.Actions {
		a := &c.Actions[i]
		if err := checkName(a.Name, MaxNameBytes); err != nil {
			return wrong("context", item("actions", i)+".name", err)
		}
		if n += len(a.Features); n > MaxFeatures {
			return wrong("context", item("actions", i)+".features", errManyFeatures)
		}
		if i > 0 && i < checked {
			continue
		}
		if name, err := checkFeatures(a.Features, known, long); err != nil {
			return wrong("context", item("actions", i)+".features."+label(name), err)
		}
		known = a.Features
	}
	if i := repeated(len(c.Actions), func(i int) string { return c.Actions[i].Name }, &c.seen); i != -1 {
		return wrong("context", item("actions", i)+".name", errDuplicate)
	}
	if !(c.LoggedPropensity >= 0 && c.LoggedPropensity <= 1) {
		return wrong("context", "logged_propensity", errProbability)
	}
	field, err := checkShares("baseline", c.Baseline)
	if err == nil {
		field, err = c.Assigned.check()
	}
	if err == nil {
		field, err = checkSlots(c.Slots)
	}
	return wrong("context", field, err)
}

// sameName reports whether two names are equal: those of actions mostly share their memory (shortNumbers).
func sameName(a, b string) bool {
	return len(a) == len(b) && unsafe.StringData(a) == unsafe.StringData(b) || a == b
}

// checkFeatures returns the name of a feature that breaks a rule, and the rule. The names of known ones were checked:
// actions mostly have the same.
func checkFeatures(features, known []Feature, long func(name string) bool) (string, error) {
	same := len(features) == len(known)
	for i := range features {
		f := &features[i]
		if i >= len(known) || !sameName(f.Name, known[i].Name) {
			same = false
			if err := checkName(f.Name, MaxNameBytes); err != nil {
				return f.Name, err
			}
		}
		var err error
		switch f.Kind {
		case Number:
			if !finite(f.Value) {
				err = errNotFinite
			}
		case Text:
			if len(f.Text) > MaxTextBytes && (long == nil || !long(f.Name)) {
				err = errLong
			} else if !utf8.ValidString(f.Text) {
				err = errUTF8
			}
		case Bool:
			if f.Value != 0 && f.Value != 1 {
				err = errBool
			}
		case Vector:
			if long == nil || !long(f.Name) {
				return f.Name, errVector
			}
			for j := range f.Len() {
				if !finite(f.At(j)) {
					return item(f.Name, j), errNotFinite
				}
			}
		default:
			err = errKind
		}
		if err != nil {
			return f.Name, err
		}
	}
	if same {
		return "", nil
	}
	if i := Repeated(len(features), func(i int) string { return features[i].Name }); i != -1 {
		return features[i].Name, errDuplicate
	}
	return "", nil
}

// Validate reports the first field that breaks a rule. Whether a loss is in the
// model's range is not known here. It does not allocate unless it fails.
func (o *Outcome) Validate() error {
	if o.Unit != "" && o.ID == "" {
		if err := CheckText(o.Unit, MaxIDBytes); err != nil {
			return wrong("outcome", "unit", err)
		}
	} else if err := checkName(o.ID, MaxIDBytes); err != nil {
		return wrong("outcome", "id", err)
	}
	switch o.Kind {
	case Loss, Reward:
		if !finite(o.Value) {
			return wrong("outcome", o.Kind.String(), errNotFinite)
		}
	case Withdrawn, Activated, Named:
		if o.Value != 0 {
			return wrong("outcome", o.Kind.String(), errValueless)
		}
	default:
		return wrong("outcome", "kind", errKind)
	}
	if field, err := checkValues(o.Values, o.Kind == Named); err != nil {
		return wrong("outcome", field, err)
	}
	if err := CheckText(o.Action, MaxNameBytes); err != nil {
		return wrong("outcome", "action", err)
	}
	return wrong("outcome", "outcome_id", CheckText(o.OutcomeID, MaxIDBytes))
}

// Validate reports the first field that breaks a rule: numbers out of range, a law that is not one propensity an
// action, multiples of 2^-53 that sum to exactly 1, or an action that this law never draws. It does not allocate unless
// it fails or there are more than 512 actions.
func (d *Decision) Validate() error {
	field, err := d.check()
	return wrong("decision", field, err)
}

func (d *Decision) check() (string, error) {
	if field, err := firstBelow([]bounded{{"n", d.N, 1}, {"partition", int64(d.Partition), 0}, {"epoch", d.Epoch, 1},
		{"learned_through", d.LearnedThrough, 0}, {"learned", d.Learned, 0}, {"time", d.Time, 0}, {"era", d.Era, 0},
		{"contexts_through", d.ContextsThrough, 0}, {"source", d.Source, -1}}); err != nil {
		return field, err
	}
	if field, err := checkRound(d.ID, d.Gamma, d.Context); err != nil {
		return field, err
	}
	if field, err := checkLaw(d.Actions, d.Propensities, d.Action); err != nil {
		return field, err
	}
	if field, err := checkMode(d.Mode, d.Unknown, d.Actions, d.Would); err != nil {
		return field, err
	}
	if field, err := checkPrices(d.Prices); err != nil {
		return field, err
	}
	return checkUnit(d.Unit, d.First, d.Partition, d.N)
}

// bounded is a number of a record with the least that it may be: 1, 0, or -1 where none is known.
type bounded struct {
	field        string
	value, least int64
}

// firstBelow returns the first of some numbers that is too small, and the rule that it breaks.
func firstBelow(numbers []bounded) (string, error) {
	for i := range numbers {
		if x := &numbers[i]; x.value < x.least {
			return x.field, [...]error{errSource, errNegative, errPositive}[x.least+1]
		}
	}
	return "", nil
}

// checkRound checks what a decision and its feedback have alike.
func checkRound(id string, gamma float64, context []byte) (string, error) {
	switch {
	case !finite(gamma):
		return "gamma", errNotFinite
	case gamma < 0:
		return "gamma", errNegative
	case len(context) > MaxRecordBytes:
		return "context", ErrTooLarge
	}
	return "id", checkName(id, MaxIDBytes)
}

// checkLaw checks what was drawn and from which law.
func checkLaw(actions []string, law []float64, drawn int) (string, error) {
	switch {
	case len(actions) == 0:
		return "propensities", errNoLaw
	case len(actions) > MaxActions:
		return "propensities", errManyActions
	case len(law) != len(actions):
		return "propensities", errLengths
	case drawn < 0 || drawn >= len(actions):
		return "action", errIndex
	}
	var sum uint64
	for i, p := range law {
		if err := checkName(actions[i], MaxNameBytes); err != nil {
			return item("propensities", i) + ".name", err
		}
		n, err := units(p)
		if err != nil {
			return "propensities." + label(actions[i]), err
		}
		if sum += n; sum > one { // before it can wrap
			return "propensities", errSum
		}
	}
	if sum != one {
		return "propensities", errSum
	}
	if law[drawn] == 0 {
		return "propensity", errNeverDrawn
	}
	if i := Repeated(len(actions), func(i int) string { return actions[i] }); i != -1 {
		return "propensities." + label(actions[i]), errDuplicate
	}
	return "", nil
}

// Validate reports the first field that breaks a rule, as for a decision, and of the end of the round: a known fate and
// reason, a loss in [0,1] that is 0 unless one was learned, and an outcome that is there or is not. It does not
// allocate unless it fails or there are more than 512 actions.
func (f *Feedback) Validate() error {
	field, err := firstBelow([]bounded{{"n", f.N, 1}, {"partition", int64(f.Partition), 0}, {"round", f.Round, 1},
		{"epoch", f.Epoch, 1}, {"learned_through", f.LearnedThrough, 0}, {"time", f.Time, 0},
		{"closed_at", f.ClosedAt, 0}})
	if err == nil {
		field, err = checkRound(f.ID, f.Gamma, f.Context)
	}
	if err == nil {
		field, err = f.checkFate()
	}
	if err == nil {
		field, err = checkLaw(f.Actions, f.Propensities, f.Action)
	}
	if err == nil {
		field, err = checkMode(f.Mode, f.Unknown, f.Actions, f.Would)
	}
	if err == nil {
		field, err = checkClosed(f.Outcomes, f.Stage)
	}
	if err == nil {
		field, err = checkUnit(f.Unit, f.First, f.Partition, f.Round)
	}
	return wrong("feedback", field, err)
}

func (f *Feedback) checkFate() (string, error) {
	switch {
	case f.Stage < 0:
		return "stage", errStage
	case f.Stage > 0 && (f.Fate != 0 || f.Reason != "" || f.Loss != 0 || f.OutcomePartition != -1 ||
		f.OutcomeOffset != -1):
		return "stage", errStageFate
	case f.Stage > 0 && len(f.Outcomes) == 0:
		return "outcomes", errMissing
	case f.Stage > 0:
		return "", nil
	case f.Fate < Observed || f.Fate > WithdrawnRound:
		return "fate", errUnknown
	case !(f.Loss >= 0 && f.Loss <= 1):
		return "loss", errProbability
	case f.Loss != 0 && f.Fate != Observed && f.Fate != Imputed:
		return "loss", errNoLoss
	case f.OutcomePartition < -1:
		return "outcome_partition", errSource
	case f.OutcomeOffset < -1:
		return "outcome_offset", errSource
	case (f.OutcomePartition < 0) != (f.OutcomeOffset < 0):
		return "outcome_offset", errHalfOutcome
	case f.Fate == Observed && f.OutcomeOffset < 0:
		return "outcome_offset", errNoOutcome
	}
	switch f.Reason {
	case "", ReasonOverflow, ReasonDuplicateID, ReasonInactive, ReasonLost, ReasonRepeat:
		return "", nil
	}
	return "reason", errUnknown
}
