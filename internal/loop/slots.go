package loop

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"hindsight/pkg/codec"
)

// A slot is a round of its own. A context with slots is never decided: each of its slots becomes a context without
// any, whose actions are those that the slots before have left. So the law of a slot is the law given the draws before
// it, and outcomes, learners, certificates and estimates know of rounds only.

// SlotRule is what a model says of one slot.
type SlotRule struct {
	Name    string
	Actions []string // that may be played there; nil: any
}

// SlotFeature is the feature that has the name of a round's slot. Those of the slot itself begin with it and a dot.
const SlotFeature = "slot"

// SlotID returns the id of the round that decides a slot.
func SlotID(id, slot string) string { return id + slotMark + slot }

// slotMark is in no slot's name, so that no two slots have one id.
const slotMark = ":"

// ErrSlots is what is wrong with a context that has slots: it is not decided itself.
var ErrSlots = errors.New("are decided by request only: send the context to /v1/decide, or as a request")

var (
	errSlotID      = errors.New("is missing: a context with slots needs an id, by which a retry finds its rounds")
	errSlotVector  = errors.New("are a list of numbers: with slots, give them by name")
	errSlotAlone   = errors.New("is not for a context with slots: say it of a context for each slot")
	errSlotMark    = errors.New("has a colon, which is before the slot in its round's id")
	errSlotUnknown = errors.New("is not a slot of the model")
	errSlotAction  = errors.New("is not among the actions of the context")
	errSlotActions = errors.New("the slots before it may leave it no action")
)

// CheckSlots says what is wrong with a valid context that has slots, before any of them is decided.
func (r *Rules) CheckSlots(c *codec.Context) error {
	switch {
	case c.ID == "":
		return codec.ContextError("id", errSlotID)
	case len(c.Vector) > 0:
		return codec.ContextError("features", errSlotVector)
	case c.Assigned.Action != "":
		return codec.ContextError("assigned", errSlotAlone)
	case c.LoggedPropensity != 0:
		return codec.ContextError("logged_propensity", errSlotAlone)
	case r.Sticky > 0 && c.Unit != "":
		return codec.ContextError("unit", errSlotAlone)
	}
	check := r.Check()
	takers := map[string]uint32{} // bit i: slot i may take the action
	for i := range c.Slots {
		if err := r.checkSlot(c, i); err != nil {
			return err
		}
		one, before := r.SlotContext(c, i, nil), uint32(0)
		left := one.Actions
		for _, a := range left {
			before |= takers[a.Name]
			takers[a.Name] |= 1 << i
		}
		if n := bits.OnesCount32(before); left != nil && len(left) <= n {
			return codec.ContextError(place(i), fmt.Errorf("%w: it has %d, and %d of them may take one", errSlotActions,
				len(left), n))
		}
		err := check(codec.AppendContext(nil, &one))
		if field := (*codec.Error)(nil); errors.As(err, &field) {
			return codec.ContextError(place(i)+": "+field.Field, field.Err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func place(i int) string { return fmt.Sprintf("slots[%d]", i) }

func (r *Rules) checkSlot(c *codec.Context, i int) error {
	s, where := &c.Slots[i], place(i)
	switch {
	case strings.Contains(s.Name, slotMark):
		return codec.ContextError(where+".name", errSlotMark)
	case r.Slots != nil && r.slot(s.Name) == nil:
		return codec.ContextError(where+".name", fmt.Errorf("%w: %q", errSlotUnknown, s.Name))
	}
	all := r.allActions(c, s)
	for _, name := range s.Actions {
		if !slices.ContainsFunc(all, func(a codec.Action) bool { return a.Name == name }) {
			return codec.ContextError(where+".actions", fmt.Errorf("%q %w", name, errSlotAction))
		}
	}
	return nil
}

func (r *Rules) slot(name string) *SlotRule {
	if i := slices.IndexFunc(r.Slots, func(s SlotRule) bool { return s.Name == name }); i >= 0 {
		return &r.Slots[i]
	}
	return nil
}

// SlotContext returns the context of the round that decides slot i of a context, given the actions that were drawn
// for the slots before. It shares memory with c.
func (r *Rules) SlotContext(c *codec.Context, i int, drawn []string) codec.Context {
	s := &c.Slots[i]
	one := codec.Context{ID: SlotID(c.ID, s.Name), Unit: c.Unit, Actions: r.slotActions(c, i, drawn)}
	one.Features = append(slices.Clip(c.Features), codec.Feature{Name: SlotFeature, Kind: codec.Text, Text: s.Name})
	for _, f := range s.Features {
		f.Name = SlotFeature + "." + f.Name
		one.Features = append(one.Features, f)
	}
	own := s.Baseline
	if len(own) == 0 {
		own = c.Baseline
	}
	one.Baseline = leftOf(own, one.Actions)
	return one
}

// allActions returns the actions of a context for a slot: its own, else those of the model, else those of the slot.
func (r *Rules) allActions(c *codec.Context, s *codec.Slot) []codec.Action {
	if len(c.Actions) > 0 {
		return c.Actions
	}
	names := r.Actions
	if names == nil {
		names = s.Actions
	}
	all := make([]codec.Action, 0, len(names))
	for _, name := range names {
		all = append(all, codec.Action{Name: name})
	}
	return all
}

// slotActions returns the actions of a slot given those that were drawn before; nil: nothing says which there are.
func (r *Rules) slotActions(c *codec.Context, i int, drawn []string) (left []codec.Action) {
	s := &c.Slots[i]
	rule, all := r.slot(s.Name), r.allActions(c, s)
	if len(all) > 0 {
		left = []codec.Action{}
	}
	for _, a := range all {
		if len(s.Actions) > 0 && !slices.Contains(s.Actions, a.Name) || slices.Contains(r.Masked, a.Name) ||
			rule != nil && rule.Actions != nil && !slices.Contains(rule.Actions, a.Name) ||
			slices.Contains(drawn, a.Name) {
			continue
		}
		left = append(left, a)
	}
	return left
}

// leftOf returns the part of a law that is over the actions, in proportion; equal parts if that is nothing, and nil if
// there is no law.
func leftOf(law []codec.Share, actions []codec.Action) (left []codec.Share) {
	if len(law) == 0 {
		return nil
	}
	sum := 0.0
	for _, s := range law {
		if s.P > 0 && slices.ContainsFunc(actions, func(a codec.Action) bool { return a.Name == s.Name }) {
			left, sum = append(left, s), sum+s.P
		}
	}
	if len(left) == 0 {
		for _, a := range actions {
			left = append(left, codec.Share{Name: a.Name, P: 1})
		}
		sum = float64(len(left))
	}
	for i := range left {
		left[i].P /= sum
	}
	return left
}
