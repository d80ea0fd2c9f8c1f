package loop

import (
	"errors"
	"fmt"

	"hindsight/pkg/codec"
	"hindsight/pkg/oracle"
)

// reader turns the bytes of a context into the input of a learner, under the
// rules of one epoch. Its results alias the bytes and its own scratch space,
// which the next call reuses.
type reader struct {
	rules   *Rules
	actions map[string]struct{}
	kinds   map[string]FeatureKind

	ctx      codec.Context
	in       oracle.Input
	features []oracle.Feature
	fixed    []oracle.Action // the model's own list
}

func newReader(rules *Rules) *reader {
	r := &reader{rules: rules}
	if rules.Actions != nil {
		r.actions = make(map[string]struct{}, len(rules.Actions))
		for _, name := range rules.Actions {
			r.actions[name] = struct{}{}
			r.fixed = append(r.fixed, oracle.Action{Name: name})
		}
	}
	if rules.Features != nil {
		r.kinds = make(map[string]FeatureKind, len(rules.Features))
		for _, f := range rules.Features {
			r.kinds[f.Name] = f.Kind
		}
	}
	return r
}

var (
	errNoActions   = errors.New("no actions: the context lists none and the model has no list of its own")
	errManyActions = errors.New("too many actions")
	errAction      = errors.New("not an action of the model")
	errKind        = errors.New("wrong type of value")
)

// parse reads and checks a context. The error says which field is wrong.
func (r *reader) parse(raw []byte) error {
	if err := codec.ParseContext(&r.ctx, raw); err != nil {
		return err
	}
	if err := r.ctx.Validate(); err != nil {
		return err
	}
	return r.check()
}

func (r *reader) check() error {
	c := &r.ctx
	if len(c.Actions) == 0 && len(r.fixed) == 0 {
		return &codec.Error{Event: "context", Field: "actions", Err: errNoActions}
	}
	if len(c.Actions) > r.rules.MaxActions {
		return &codec.Error{Event: "context", Field: "actions",
			Err: fmt.Errorf("%w: %d, and the model's max_actions is %d", errManyActions, len(c.Actions), r.rules.MaxActions)}
	}
	if r.actions != nil {
		for i := range c.Actions {
			if _, ok := r.actions[c.Actions[i].Name]; !ok {
				return &codec.Error{Event: "context", Field: fmt.Sprintf("actions[%d]", i),
					Err: fmt.Errorf("%w: %q", errAction, c.Actions[i].Name)}
			}
		}
	}
	if r.kinds == nil {
		return nil
	}
	for i := range c.Features {
		f := &c.Features[i]
		if kind, ok := r.kinds[f.Name]; ok && uint8(kind) != uint8(f.Kind) {
			return &codec.Error{Event: "context", Field: "features." + f.Name,
				Err: fmt.Errorf("%w: the model says %s", errKind, kind)}
		}
	}
	return nil
}

// recordOverhead is more than what the keys and numbers of a decision or feedback
// take.
const recordOverhead = 1024

// fits checks that the decision and the feedback of the parsed context, which carry
// its bytes, will not be too large for the log: a round must never be lost to that.
func (r *reader) fits(raw []byte, id string) error {
	const perAction = 5 + 9 // the heads of a name and of a propensity
	size := recordOverhead + len(raw) + 2*len(id)
	if len(r.ctx.Actions) == 0 {
		for i := range r.fixed {
			size += perAction + len(r.fixed[i].Name)
		}
	}
	for i := range r.ctx.Actions {
		size += perAction + len(r.ctx.Actions[i].Name)
	}
	if size > codec.MaxRecordBytes {
		return &codec.Error{Event: "context", Err: fmt.Errorf("%w: its decision would take %d bytes, the limit is %d", codec.ErrTooLarge, size, codec.MaxRecordBytes)}
	}
	return nil
}

// input returns the parsed context as a learner sees it. Features that the model
// does not list are left out: unknown reads as 0.
func (r *reader) input() *oracle.Input {
	c := &r.ctx
	r.features = r.features[:0]
	n := len(c.Features)
	for i := range c.Actions {
		n += len(c.Actions[i].Features)
	}
	if cap(r.features) < n {
		r.features = make([]oracle.Feature, 0, 2*n)
	}
	r.in.Features = r.convert(c.Features, r.kinds)
	r.in.Vector = c.Vector
	if len(c.Actions) == 0 {
		r.in.Actions = append(r.in.Actions[:0], r.fixed...)
		return &r.in
	}
	r.in.Actions = r.in.Actions[:0]
	for i := range c.Actions {
		a := &c.Actions[i]
		r.in.Actions = append(r.in.Actions, oracle.Action{Name: a.Name, Features: r.convert(a.Features, nil)})
	}
	return &r.in
}

// convert appends features to the arena, which has room for them, and returns
// their place in it.
func (r *reader) convert(fs []codec.Feature, kinds map[string]FeatureKind) []oracle.Feature {
	from := len(r.features)
	for i := range fs {
		f := &fs[i]
		if kinds != nil {
			if _, ok := kinds[f.Name]; !ok {
				continue
			}
		}
		r.features = append(r.features, oracle.Feature{Name: f.Name, Kind: oracle.FeatureKind(f.Kind), Value: f.Value, Text: f.Text})
	}
	if from == len(r.features) {
		return nil
	}
	return r.features[from:len(r.features):len(r.features)]
}
