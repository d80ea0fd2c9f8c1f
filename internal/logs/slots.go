package logs

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"hindsight/internal/loop"
	"hindsight/pkg/codec"
)

// several is an event with several slots: a conditional contextual bandit of Vowpal Wabbit. It becomes an event a slot,
// as a context with slots becomes a round a slot: without the actions that the slots before have played, and with the
// slot's name and features among its own.
type several struct {
	shared Record // all actions, and what the slots have in common
	slots  []slot
	at     int   // the next slot
	ready  int   // slots of an event that was read to its end
	left   []int // actions that are left
}

// slot is one of them. Actions are indices into those of the event.
type slot struct {
	name     string // "": its number, from 1
	features []codec.Feature
	may      []int     // actions that may be played there; empty: all
	played   []int     // first the one that was played, then others; empty: none is known
	probs    []float64 // of played
	cost     float64
	observed bool
}

var (
	errCCBLine  = errors.New("expected ccb shared, ccb action or ccb slot")
	errCCBLabel = errors.New("expected a label action:cost:probability,action:probability,…")
)

// more reports whether a slot of the event read last is to be handed on.
func (e *several) more() bool { return e.at < e.ready }

// reset forgets the event.
func (e *several) reset() { e.slots, e.at, e.ready = e.slots[:0], 0, 0 }

// begin takes what was read of an event into r. Its slots are read.
func (e *several) begin(r *Record) {
	e.shared, *r = *r, e.shared
	for i := range e.shared.Actions {
		if e.shared.Actions[i].Name == "" {
			e.shared.Actions[i].Name = ordinal(i + 1)
		}
	}
	e.ready, e.left = len(e.slots), e.left[:0]
	for i := range e.shared.Actions {
		e.left = append(e.left, i)
	}
}

// grow makes room for one more slot, whose lists keep their memory.
func (e *several) grow() *slot {
	if len(e.slots) < cap(e.slots) {
		e.slots = e.slots[:len(e.slots)+1]
	} else {
		e.slots = append(e.slots, slot{})
	}
	s := &e.slots[len(e.slots)-1]
	*s = slot{features: s.features[:0], may: s.may[:0], played: s.played[:0], probs: s.probs[:0]}
	return s
}

// next makes an event of the next slot. Where one is malformed what follows it in the line is too.
func (e *several) next(r *Record, ctx *codec.Context, kind codec.OutcomeKind) (class, string, error) {
	s, shared, i := &e.slots[e.at], &e.shared, e.at
	e.at++
	r.reset()
	r.Line, r.File, r.long = shared.Line, shared.File, shared.long
	if len(s.played) == 0 {
		return isSkipped, "a slot without a label", nil
	}
	err := e.fill(r, s, i)
	r.Outcome, r.Value = kind, s.cost
	if kind == codec.Reward {
		r.Value = 0 - s.cost
		if !s.observed && s.cost == 0 {
			r.Flags |= Defaulted
		}
	}
	if err == nil {
		err = validate(ctx, r)
	}
	if err != nil {
		e.reset()
		return 0, "", fmt.Errorf("slot %d: %w", i+1, err)
	}
	return isEvent, "", nil
}

// fill fills in slot i but for its outcome, and takes out what it played.
func (e *several) fill(r *Record, s *slot, i int) error {
	shared, name, found := &e.shared, s.name, 0
	if name == "" {
		name = ordinal(i + 1)
	}
	r.Time, r.Weight, r.Flags = shared.Time, shared.Weight, shared.Flags
	if shared.ID != "" {
		r.ID = loop.SlotID(shared.ID, name)
	}
	r.Features = append(append(r.Features, shared.Features...),
		codec.Feature{Name: loop.SlotFeature, Kind: codec.Text, Text: name})
	r.Features = append(r.Features, s.features...)
	for _, a := range e.left {
		if len(s.may) > 0 && !slices.Contains(s.may, a) {
			continue
		}
		if i < len(shared.Baseline) && shared.Baseline[i] == a { // from 0, as all of a line with slots
			r.Baseline = append(r.Baseline, len(r.Actions))
		}
		own := r.another(shared.Actions[a].Name)
		own.Features = append(own.Features, shared.Actions[a].Features...)
		r.Propensities = append(r.Propensities, -1)
		at := slices.Index(s.played, a)
		if at < 0 || at >= len(s.probs) {
			continue
		}
		found++
		if r.Propensities[len(r.Actions)-1] = s.probs[at]; at == 0 {
			r.Chosen, r.Action, r.Propensity = len(r.Actions)-1, own.Name, min(s.probs[0], 1)
		}
	}
	switch {
	case len(s.probs) > 0 && len(s.probs) != len(s.played):
		return errLaw
	case found < len(s.probs):
		return errors.New("an action of a slot is none that the slots before have left")
	case slices.ContainsFunc(s.probs, func(p float64) bool { return !(p >= 0 && p <= 1+1e-6) }), !(r.Propensity > 0):
		return errProbability
	case math.IsInf(s.cost, 0) || math.IsNaN(s.cost):
		return errCost
	}
	if found < len(r.Actions) { // of some actions the probability is not known
		r.Propensities = r.Propensities[:0]
	}
	e.left = slices.DeleteFunc(e.left, func(a int) bool { return a == s.played[0] })
	return nil
}

// slots reads the slots of a context of dsjson.
func (d *dsjson) slots() {
	s := &d.scan
	d.event.slots = true
	for first := s.Open('['); s.More(&first, ']'); {
		one := d.several.grow()
		for first := s.Open('{'); s.More(&first, '}'); {
			switch key := s.Key(); {
			case key == "_id" && s.Peek() == '"':
				one.name = s.Text()
			case key == "_inc":
				one.may = s.Wholes(one.may)
			case strings.HasPrefix(key, "_"):
				s.Skip(3)
			default:
				one.features = d.featureValue(one.features, loop.SlotFeature, key, 3)
			}
		}
	}
}

// outcomes reads what was played in the slots, and what came of it. They may come before the slots.
func (d *dsjson) outcomes() {
	s := &d.scan
	d.event.outcomes, d.said = true, d.said[:0]
	for first := s.Open('['); s.More(&first, ']'); {
		one, original := slot{}, math.NaN()
		for first := s.Open('{'); s.More(&first, '}'); {
			switch key := s.Key(); {
			case key == "_label_cost":
				one.cost = s.Number()
			case key == "_original_label_cost":
				original = s.Number()
			case key == "_a" && s.Peek() == '[':
				one.played = s.Wholes(one.played)
			case key == "_a":
				one.played = append(one.played, s.Whole())
			case key == "_p" && s.Peek() == '[':
				one.probs = s.Numbers(one.probs)
			case key == "_p":
				one.probs = append(one.probs, s.Number())
			case key == "_o" && s.Open('['):
				for first := true; s.More(&first, ']'); {
					one.observed = true
					s.Skip(3)
				}
			default:
				s.Skip(2)
			}
		}
		d.said, d.originals = append(d.said, one), append(d.originals, original)
	}
}

// ccb makes the events of a line with slots, and returns the first.
func (d *dsjson) ccb(r *Record) (class, string, error) {
	e := &d.event
	switch {
	case !(e.pdrop >= 0 && e.pdrop < 1):
		return 0, "", errDrop
	case len(d.said) == 0 || len(d.several.slots) == 0:
		return isSkipped, "no action was played", nil
	case len(d.said) > len(d.several.slots):
		return 0, "", errors.New("there are more _outcomes than _slots")
	}
	r.Weight = 1 / (1 - e.pdrop)
	for i := range d.said {
		one := &d.several.slots[i]
		said := &d.said[i]
		one.played, one.probs, one.cost, one.observed = said.played, said.probs, said.cost, said.observed
		if e.skipLearn && !math.IsNaN(d.originals[i]) {
			one.cost = d.originals[i]
		}
	}
	if e.skipLearn {
		r.Flags |= Inactive
	}
	d.several.begin(r)
	return d.several.next(r, &d.ctx, codec.Reward)
}

// ccb makes the events of an example of --ccb_explore_adf, and returns the first.
func (d *vwText) ccb(r *Record) (class, string, error) {
	d.several.reset()
	if err := d.each(r, d.ccbLine); err != nil {
		return 0, "", err
	}
	if len(r.Actions) == 0 || len(d.several.slots) == 0 {
		return 0, "", errors.New("an example without actions or without slots")
	}
	d.several.begin(r)
	return d.several.next(r, &d.ctx, codec.Loss)
}

// ccbLine reads line n of an example with slots.
func (d *vwText) ccbLine(r *Record, line []byte, n int) (err error) {
	label, rest, _ := bytes.Cut(line, []byte("|"))
	fields := strings.Fields(string(label))
	if len(fields) < 2 || fields[0] != "ccb" {
		return errCCBLine
	}
	switch kind := fields[1]; {
	case kind == "shared" && n == 0:
		r.Features, err = d.features(r.Features, rest)
	case kind == "action" && len(d.several.slots) == 0:
		if len(r.Actions) == codec.MaxActions {
			return errors.New("more than " + strconv.Itoa(codec.MaxActions) + " actions")
		}
		a := r.another("")
		a.Features, err = d.features(a.Features, rest)
	case kind == "slot":
		one := d.several.grow()
		if one.features, err = d.features(one.features, rest); err != nil {
			return err
		}
		for i := range one.features {
			one.features[i].Name = d.names.Join(loop.SlotFeature, one.features[i].Name)
		}
		err = one.label(fields[2:])
	default:
		err = errCCBLine
	}
	return err
}

// label reads what stands between ccb slot and the bar: what was played, and the actions that may be.
func (s *slot) label(fields []string) error {
	for _, f := range fields {
		switch {
		case f[0] == '\'': // a tag
		case strings.Contains(f, ":"):
			for i, part := range strings.Split(f, ",") {
				values := strings.Split(part, ":")
				if i == 0 && len(values) == 3 {
					var err error
					if s.cost, err = strconv.ParseFloat(values[1], 64); err != nil {
						return errCCBLabel
					}
					values = []string{values[0], values[2]}
				} else if i == 0 {
					return errCCBLabel
				}
				a, p, err := share(values)
				if err != nil {
					return err
				}
				s.played, s.probs = append(s.played, a), append(s.probs, p)
			}
		default:
			for part := range strings.SplitSeq(f, ",") {
				a, err := strconv.Atoi(part)
				if err != nil {
					return errCCBLabel
				}
				s.may = append(s.may, a)
			}
		}
	}
	return nil
}

func share(values []string) (action int, p float64, err error) {
	if len(values) != 2 {
		return 0, 0, errCCBLabel
	}
	action, err = strconv.Atoi(values[0])
	if err == nil {
		p, err = strconv.ParseFloat(values[1], 64)
	}
	if err != nil {
		return 0, 0, errCCBLabel
	}
	return action, p, nil
}
