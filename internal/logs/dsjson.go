package logs

import (
	"strconv"

	"hindsight/internal/scan"
	"hindsight/pkg/codec"
)

// dsjson reads decision-service JSON of Vowpal Wabbit and Azure Personalizer: an event or an observation a line. What a
// line means is that of the format's own parser, parse_example_json.cc: lines that do not begin with { are ignored, so
// are keys that are not known, the cost is −reward, and actions count from 1.
type dsjson struct {
	lines
	scan scan.JSON
	ctx  codec.Context

	event  dsEvent
	ranked []int
	probs  []float64

	several   several
	said      []slot    // of _outcomes, in the order of the slots
	originals []float64 // their costs where the event was not activated; NaN: not said
}

// dsEvent is what a line says besides features.
type dsEvent struct {
	cost, original, probability, pdrop    float64
	hasCost, hasOriginal, hasProb         bool
	label                                 int  // 1-based; 0: none
	index                                 int  // 0-based; -1: none
	skipLearn, observed, hasReward, multi bool // observed: o is not empty; hasReward: RewardValue
	hasObservations                       bool // Observations
	outcomes, slots, slotIDs, continuous  bool
	reward                                float64
	enqueued, last                        int64 // times of the line, and of the last observation
	active                                bool  // an observation activates
	hasContext                            bool
}

func newDsjson(l *scan.Lines) *dsjson { return &dsjson{lines: lines{Lines: l}} }

func (d *dsjson) next(r *Record) (class, string, error) {
	if d.several.more() {
		return d.several.next(r, &d.ctx, codec.Reward)
	}
	ok, class, reason, err := d.read(r)
	switch {
	case !ok:
		return class, reason, err
	case d.line[0] == '[':
		return isSkipped, "checkpoint line", nil
	case d.line[0] != '{':
		return isSkipped, "line without {", nil
	}
	return d.parse(r)
}

// parse reads a line that begins with {.
func (d *dsjson) parse(r *Record) (class, string, error) {
	s, e := &d.scan, &d.event
	s.Reset(d.line)
	*e = dsEvent{index: -1, enqueued: scan.NoTime, last: scan.NoTime}
	d.ranked, d.probs, d.originals = d.ranked[:0], d.probs[:0], d.originals[:0]
	d.several.reset()
	for first := s.Open('{'); s.More(&first, '}'); {
		if key := s.Key(); !d.label(key, r) && !d.more(key, r) {
			s.Skip(1)
		}
	}
	s.End()
	if !s.Ok() {
		return 0, "", &scan.LineError{Line: r.Line, Column: int64(s.At) + 1, Msg: s.Msg}
	}
	return d.finish(r)
}

// label reads the value of a key that says what was decided and came; false if it is none.
func (d *dsjson) label(key string, r *Record) bool {
	s, e := &d.scan, &d.event
	switch key {
	case "_label_cost":
		e.cost, e.hasCost = s.Number(), true
	case "_label_probability":
		e.probability, e.hasProb = s.Number(), true
	case "_label_Action":
		e.label = s.Whole()
	case "_labelIndex":
		e.index = s.Whole()
	case "_skipLearn":
		e.skipLearn = s.Boolean()
	case "_original_label_cost":
		e.original, e.hasOriginal = s.Number(), true
	case "pdrop":
		e.pdrop = s.Number()
	case "a":
		d.ranked = s.Wholes(d.ranked[:0])
	case "p", "_p":
		d.probs = s.Numbers(d.probs[:0])
	case "_ba":
		r.Baseline = s.Wholes(r.Baseline[:0])
	case "_label_ca":
		e.continuous = true
		s.Skip(1)
	case "_outcomes":
		d.outcomes()
	default:
		return false
	}
	return true
}

// more reads the value of a key that says the rest; false if it is none.
func (d *dsjson) more(key string, r *Record) bool {
	s, e := &d.scan, &d.event
	switch key {
	case "c":
		e.hasContext = true
		d.context(r)
	case "o", "Observations":
		e.hasObservations = e.hasObservations || key != "o"
		if !s.Null() {
			d.observations()
		}
	case "Timestamp":
		r.Time = s.Time()
	case "EventId", "event_id":
		if !s.Null() {
			r.ID = s.Text()
		}
	case "RewardValue":
		if !s.Null() {
			e.reward, e.hasReward = s.Number(), true
		}
	case "EnqueuedTimeUtc":
		e.enqueued = s.Time()
	case "DeferredAction":
		if !s.Null() && !s.Boolean() && s.Ok() {
			e.active = true
		}
	default:
		return false
	}
	return true
}

// context reads shared features and actions.
func (d *dsjson) context(r *Record) {
	s := &d.scan
	for first := s.Open('{'); s.More(&first, '}'); {
		switch key := s.Key(); {
		case key == "_multi":
			d.multi(r)
		case key == "_slots":
			d.slots()
		case len(key) > 0 && key[0] == '_' && key != "_text":
			s.Skip(2)
		case key == "_text":
			s.Skip(2)
		default:
			r.Features = d.featureValue(r.Features, "", key, 2)
		}
	}
}

// multi reads the actions.
func (d *dsjson) multi(r *Record) {
	s := &d.scan
	d.event.multi = true
	r.Actions = r.Actions[:0]
	for first := s.Open('['); s.More(&first, ']'); {
		if len(r.Actions) == codec.MaxActions {
			s.Fail("more than " + strconv.Itoa(codec.MaxActions) + " actions")
			return
		}
		d.action(r.another(""))
	}
}

// action reads one action. Its name is its _tag.
func (d *dsjson) action(a *codec.Action) {
	s := &d.scan
	for first := s.Open('{'); s.More(&first, '}'); {
		switch key := s.Key(); {
		case key == "_tag" && s.Peek() == '"':
			a.Name = s.Text()
		case key == "_slot_id":
			d.event.slotIDs = true
			s.Skip(3)
		case len(key) > 0 && key[0] == '_':
			s.Skip(3)
		default:
			a.Features = d.featureValue(a.Features, "", key, 3)
		}
	}
}

// observations reads what was joined with an event, or came by itself.
func (d *dsjson) observations() {
	s, e := &d.scan, &d.event
	for first := s.Open('['); s.More(&first, ']'); {
		e.observed = true
		for first := s.Open('{'); s.More(&first, '}'); {
			switch s.Key() {
			case "ActionTaken":
				e.active = !s.Null() && s.Boolean() || e.active
			case "DeferredAction":
				e.active = !s.Null() && !s.Boolean() || e.active
			case "EnqueuedTimeUtc":
				e.last = max(e.last, s.Time())
			default:
				s.Skip(2)
			}
		}
	}
}

// ordinals are the names of the first actions without one.
var ordinals = func() (out [256]string) {
	for i := range out {
		out[i] = strconv.Itoa(i)
	}
	return out
}()

func ordinal(i int) string {
	if i < len(ordinals) {
		return ordinals[i]
	}
	return strconv.Itoa(i)
}
