package loop

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"hindsight/pkg/codec"
	"hindsight/pkg/oracle"
)

// reader turns the bytes of a context into the input of a learner, under the rules of one epoch. Its results alias the
// bytes and its own scratch space, which the next call reuses.
type reader struct {
	rules   *Rules
	actions map[string]struct{}
	masked  map[string]struct{}
	ruled   map[string]FeatureRule // nil: any feature
	wide    *wide                  // nil: no feature has terms
	long    func(name string) bool // whether a feature may be a long text or a vector; nil: none
	strays  *codec.Names           // what nobody reads of a context is called; nil: nobody asks
	beyond  *codec.Names           // the features whose values lie outside their range; nil: nobody asks

	ctx      *codec.Context // own, or one that was given as it is
	own      codec.Context
	in       oracle.Input
	features []oracle.Feature
	listed   []oracle.Action // by the context
	fixed    []oracle.Action // by the model, without those that are masked
	all      []oracle.Action // and with them
	keys     int             // of the context that nobody reads
	unlisted int             // features of the context that the model does not list
	outside  int             // values outside the range that it states
	said     assigned        // by another system
	scratch  scratch         // of named outcomes
}

func newReader(rules *Rules) *reader {
	r := &reader{rules: rules}
	if rules.Actions != nil {
		r.actions = setOf(rules.Actions)
		for _, name := range rules.Actions {
			r.all = append(r.all, oracle.Action{Name: name})
			if !slices.Contains(rules.Masked, name) {
				r.fixed = append(r.fixed, oracle.Action{Name: name})
			}
		}
	}
	r.masked = setOf(rules.Masked)
	if rules.Features != nil {
		r.ruled = make(map[string]FeatureRule, len(rules.Features))
		for _, f := range rules.Features {
			r.ruled[f.Name] = f
		}
		r.wide, r.long = newWide(rules.Features), rules.Long
	}
	return r
}

func setOf(names []string) map[string]struct{} {
	set := make(map[string]struct{}, len(names))
	for _, name := range names {
		set[name] = struct{}{}
	}
	return set
}

var (
	errNoActions   = errors.New("no actions: the context lists none and the model has no list of its own")
	errManyActions = errors.New("too many actions")
	errAction      = errors.New("not an action of the model")
	errKind        = errors.New("wrong type of value")
	errLength      = errors.New("wrong length of a vector")
	errMasked      = errors.New("no action is left: the model masks all of them")
	errBaseline    = errors.New("the baseline's action is not among the actions")
	errNoBaseline  = errors.New("the context names no baseline, and the model says baseline: context")
	errOtherNames  = errors.New("the context does not have the actions of the propensities")
)

// Check returns what says why a context is refused under these rules, nil if it is not. It is
// not safe for concurrent use.
func (r *Rules) Check() func(raw []byte) error { return newReader(r).parse }

// parse reads and checks a context, and fills in the input that a learner sees. The error says which field is wrong.
func (r *reader) parse(raw []byte) error {
	r.ctx = &r.own
	var err error
	if r.keys, err = codec.ReadValid(r.ctx, raw, r.strays, r.long); err != nil {
		return err
	}
	return r.accept()
}

// accept checks a valid context, and fills in the input that a learner sees.
func (r *reader) accept() error {
	if err := r.check(); err != nil {
		return err
	}
	if r.rules.Sticky > 0 {
		if err := r.ctx.CheckUnit(); err != nil {
			return err
		}
	}
	if r.input(); len(r.in.Actions) == 0 {
		return codec.ContextError("actions", errMasked)
	}
	if r.ctx.Assigned.Action != "" {
		return r.assign()
	}
	return r.checkBaseline()
}

// parseAgain reads a context that was checked when it was decided.
func (r *reader) parseAgain(raw []byte) error {
	r.ctx = &r.own
	var err error
	r.keys, err = codec.ReadContext(r.ctx, raw, r.strays)
	return err
}

func (r *reader) check() error {
	c := r.ctx
	if len(c.Slots) > 0 {
		return codec.ContextError("slots", ErrSlots)
	}
	if len(c.Actions) == 0 && r.actions == nil {
		return codec.ContextError("actions", errNoActions)
	}
	if len(c.Actions) > r.rules.MaxActions {
		return codec.ContextError("actions", fmt.Errorf("%w: %d, and the model's max_actions is %d", errManyActions,
			len(c.Actions), r.rules.MaxActions))
	}
	if r.actions != nil {
		for i := range c.Actions {
			if _, ok := r.actions[c.Actions[i].Name]; !ok {
				return codec.ContextError(fmt.Sprintf("actions[%d]", i), fmt.Errorf("%w: %q", errAction,
					c.Actions[i].Name))
			}
		}
	}
	if r.ruled == nil {
		return nil
	}
	for i := range c.Features {
		f := &c.Features[i]
		if rule, ok := r.ruled[f.Name]; ok {
			if err := rule.check(f); err != nil {
				return codec.ContextError("features."+f.Name, err)
			}
		}
	}
	if r.wide == nil {
		return nil
	}
	for i := range c.Actions {
		if err := r.wide.checkAction(&c.Actions[i]); err != nil {
			return err
		}
	}
	return nil
}

// check reports whether a value is what the model says.
func (f *FeatureRule) check(v *codec.Feature) error {
	switch {
	case f.Kind.wire() != v.Kind:
		return fmt.Errorf("%w: the model says %s", errKind, f.Kind)
	case f.Kind == VectorFeature && f.Length() != v.Len():
		return fmt.Errorf("%w: it has %d numbers, and the model says %d", errLength, v.Len(), f.Length())
	}
	return nil
}

// recordOverhead is more than what the keys and numbers of a decision or feedback take.
const recordOverhead = 1024

// fits checks that the decision and the feedback of the parsed context, which carry
// its bytes, will not be too large for the log: a round must never be lost to that.
func (r *reader) fits(raw []byte, id string) error {
	const perAction = 5 + 9 + 9 // the heads of a name, of a propensity and of one that would have been
	size := recordOverhead + len(raw) + 2*len(id)
	if len(r.ctx.Actions) == 0 {
		for i := range r.in.Actions {
			size += perAction + len(r.in.Actions[i].Name)
		}
	}
	for i := range r.ctx.Actions {
		size += perAction + len(r.ctx.Actions[i].Name)
	}
	if size > codec.MaxRecordBytes {
		return codec.ContextError("", fmt.Errorf("%w: its decision would take %d bytes, the limit is %d",
			codec.ErrTooLarge,
			size, codec.MaxRecordBytes))
	}
	return nil
}

// input returns the parsed context as a learner sees it. Features that the model
// does not list are left out: unknown reads as 0. What the model masks another system may have played.
func (r *reader) input() *oracle.Input {
	c := r.ctx
	r.context()
	others := c.Assigned.Action != ""
	if len(c.Actions) == 0 {
		if r.in.Actions = r.fixed; others {
			r.in.Actions = r.all
		}
		return &r.in
	}
	if len(r.masked) == 0 && r.wide == nil {
		r.in.Actions = unsafe.Slice((*oracle.Action)(unsafe.Pointer(unsafe.SliceData(c.Actions))), len(c.Actions))
		return &r.in
	}
	r.listed = r.listed[:0]
	for i := range c.Actions {
		a := &c.Actions[i]
		if _, masked := r.masked[a.Name]; !masked || others {
			r.listed = append(r.listed, r.action(a))
		}
	}
	r.in.Actions = r.listed
	r.ownTerms()
	return &r.in
}

// context fills in what a learner sees of the parsed context but for its actions.
func (r *reader) context() {
	r.in.Features, r.in.Vector = r.known(r.ctx.Features), r.ctx.Vector
	if r.wide != nil {
		r.in.Terms, r.in.ActionTerms = r.wide.terms, nil
	}
}

// action returns what a learner sees of an action; ownTerms fills in the terms of those that were listed.
func (r *reader) action(a *codec.Action) oracle.Action {
	if r.wide == nil {
		return oracle.Action{Name: a.Name, Features: asOracle(a.Features)}
	}
	return oracle.Action{Name: a.Name, Features: r.wide.action(a.Features)}
}

func (r *reader) ownTerms() {
	if r.wide != nil && len(r.wide.own) == len(r.listed) {
		r.in.ActionTerms = r.wide.own
	}
}

// played returns the parsed context of a round as it was decided: with the actions that
// were eligible then, by their names, whatever the model lists and masks now.
func (r *reader) played(names []string) (*oracle.Input, error) {
	c := r.ctx
	r.context()
	if r.in.Actions = r.fixed; len(c.Actions) == 0 && sameNames(r.fixed, names) {
		return &r.in, nil
	}
	r.listed = r.listed[:0]
	if len(c.Actions) == 0 {
		for _, name := range names {
			r.listed = append(r.listed, oracle.Action{Name: name})
		}
	}
	for i := range c.Actions { // masked ones are left out, the rest is in their order
		a := &c.Actions[i]
		if n := len(r.listed); n < len(names) && a.Name == names[n] {
			r.listed = append(r.listed, r.action(a))
		}
	}
	r.in.Actions = r.listed
	r.ownTerms()
	if len(r.listed) != len(names) {
		return nil, fmt.Errorf("%w: %w", errOtherNames, codec.ErrCorrupt)
	}
	return &r.in, nil
}

// sameNames copies no action: it is asked of every round.
func sameNames(actions []oracle.Action, names []string) bool {
	for i := range actions {
		if i >= len(names) || !equalText(actions[i].Name, names[i]) {
			return false
		}
	}
	return len(actions) == len(names)
}

// known returns the features that the model lists.
func (r *reader) known(fs []codec.Feature) []oracle.Feature {
	if r.ruled == nil {
		return asOracle(fs)
	}
	r.features, r.outside, r.unlisted = r.features[:0], 0, 0
	if r.wide != nil {
		r.wide.begin()
	}
	for i := range fs {
		if rule, ok := r.ruled[fs[i].Name]; ok {
			if rule.places() > 0 {
				r.features = r.wide.append(r.features, &fs[i])
				continue
			}
			if v := fs[i].Value; rule.Bounded && !(rule.Lo <= v && v <= rule.Hi) {
				r.outside++
				if r.beyond != nil {
					r.beyond.Add(fs[i].Name)
				}
			}
			r.features = append(r.features, asOracle(fs[i : i+1])[0])
			continue
		}
		if r.unlisted++; r.strays != nil {
			r.strays.Add(fs[i].Name)
		}
	}
	return r.features
}

// The features and actions of both packages have the same layout: neither may import the other,
// and copying them took a tenth of a backtest. It does not compile unless all are 0.
const _ = -(unsafe.Sizeof(codec.Feature{}) ^ unsafe.Sizeof(oracle.Feature{})) -
	(unsafe.Offsetof(codec.Feature{}.Kind) ^ unsafe.Offsetof(oracle.Feature{}.Kind)) -
	(unsafe.Offsetof(codec.Feature{}.Value) ^ unsafe.Offsetof(oracle.Feature{}.Value)) -
	(unsafe.Offsetof(codec.Feature{}.Text) ^ unsafe.Offsetof(oracle.Feature{}.Text)) -
	(unsafe.Sizeof(codec.Action{}) ^ unsafe.Sizeof(oracle.Action{})) -
	(unsafe.Offsetof(codec.Action{}.Features) ^ unsafe.Offsetof(oracle.Action{}.Features))

func asOracle(fs []codec.Feature) []oracle.Feature {
	return unsafe.Slice((*oracle.Feature)(unsafe.Pointer(unsafe.SliceData(fs))), len(fs))
}

// unread returns how much of the parsed context nobody reads.
func (r *reader) unread() int {
	n := r.keys + r.unlisted
	if r.idleUnit() {
		n++
	}
	return n
}

// idleUnit reports whether the parsed context has a unit that the model does not ask for.
func (r *reader) idleUnit() bool {
	return r.rules.Sticky == 0 && (r.ctx.Unit != "" || r.ctx.CheckUnit() != nil)
}

// Outside names the features of a context whose values lie outside the range that the rules
// state. [Result] has the number.
func Outside(rules *Rules, raw []byte) (names codec.Names) {
	r := newReader(rules)
	r.beyond = &names
	if r.parseAgain(raw) == nil {
		r.known(r.ctx.Features)
	}
	return names
}

// Unread tells what nobody reads of a context that can be parsed: features that the rules do
// not list, if they list any, and keys that no context and no action has. What only some
// learners read counts as read. It takes memory and time: [Result] has the number.
func Unread(rules *Rules, raw []byte) (n int, names codec.Names) {
	if rules == nil {
		rules = &Rules{} // not known: any feature is read
	}
	r := newReader(rules)
	r.strays = &names
	if r.parseAgain(raw) != nil {
		return 0, codec.Names{}
	}
	if r.known(r.ctx.Features); r.idleUnit() {
		names.Add("unit")
	}
	return r.unread(), names
}
