package logs

import (
	"strconv"

	"hindsight/pkg/codec"
)

// dsjson reads decision-service JSON of Vowpal Wabbit and Azure Personalizer: an event
// or an observation a line. What a line means is that of the format's own parser,
// parse_example_json.cc: lines that do not begin with { are ignored, so are keys that
// are not known, the cost is −reward, and actions count from 1.
type dsjson struct {
	lines *lines
	line  []byte
	scan  scan
	ctx   codec.Context

	event  dsEvent
	ranked []int
	probs  []float64
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

func newDsjson(l *lines) *dsjson { return &dsjson{lines: l} }

func (d *dsjson) raw() []byte { return d.line }

func (d *dsjson) next(r *Record) (Class, string, error) {
	line, tooLong, err := d.lines.next()
	if err != nil {
		d.line = nil
		return 0, "", err
	}
	d.line, r.Line = line, d.lines.n
	switch {
	case tooLong:
		return 0, "", &LineError{Line: r.Line, Msg: errTooLong}
	case isBlank(line):
		return IsSkipped, "blank line", nil
	case line[0] != '{':
		if line[0] == '[' {
			return IsSkipped, "checkpoint line", nil
		}
		return IsSkipped, "line without {", nil
	}
	return d.parse(r)
}

var errTooLong = "a line of more than " + strconv.Itoa(MaxLineBytes>>20) + " MiB"

// parse reads a line that begins with {.
func (d *dsjson) parse(r *Record) (Class, string, error) {
	s, e := &d.scan, &d.event
	s.reset(d.line)
	*e = dsEvent{index: -1, enqueued: NoTime, last: NoTime}
	d.ranked, d.probs = d.ranked[:0], d.probs[:0]
	s.open('{')
	for first := true; s.more(&first, '}'); {
		if key := s.key(); !d.label(key, r) && !d.more(key, r) {
			s.skip(1)
		}
	}
	s.end()
	if !s.ok() {
		return 0, "", &LineError{Line: r.Line, Column: int64(s.at) + 1, Msg: s.msg}
	}
	class, reason, err := d.finish(r)
	if err != nil {
		return 0, "", &LineError{Line: r.Line, Msg: err.Error()}
	}
	return class, reason, nil
}

// label reads the value of a key that says what was decided and came; false if it is
// none.
func (d *dsjson) label(key string, r *Record) bool {
	s, e := &d.scan, &d.event
	switch key {
	case "_label_cost":
		e.cost, e.hasCost = s.number(), true
	case "_label_probability":
		e.probability, e.hasProb = s.number(), true
	case "_label_Action":
		e.label = s.whole()
	case "_labelIndex":
		e.index = s.whole()
	case "_skipLearn":
		e.skipLearn = s.boolean()
	case "_original_label_cost":
		e.original, e.hasOriginal = s.number(), true
	case "pdrop":
		e.pdrop = s.number()
	case "a":
		d.ranked = s.wholes(d.ranked[:0])
	case "p", "_p":
		d.probs = s.numbers(d.probs[:0])
	case "_ba":
		r.Baseline = s.wholes(r.Baseline[:0])
	case "_label_ca":
		e.continuous = true
		s.skip(1)
	case "_outcomes":
		e.outcomes = true
		s.skip(1)
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
		if !s.null() {
			d.observations()
		}
	case "Timestamp":
		r.Time = s.time()
	case "EventId", "event_id":
		if !s.null() {
			r.ID = s.text()
		}
	case "RewardValue":
		if !s.null() {
			e.reward, e.hasReward = s.number(), true
		}
	case "EnqueuedTimeUtc":
		e.enqueued = s.time()
	case "DeferredAction":
		if !s.null() && !s.boolean() && s.ok() {
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
	if !s.open('{') {
		return
	}
	for first := true; s.more(&first, '}'); {
		switch key := s.key(); {
		case key == "_multi":
			d.multi(r)
		case key == "_slots":
			d.event.slots = true
			s.skip(2)
		case len(key) > 0 && key[0] == '_' && key != "_text":
			s.skip(2)
		case key == "_text":
			s.skip(2)
		default:
			r.Features = d.featureValue(r.Features, "", key, 2)
		}
	}
}

// multi reads the actions.
func (d *dsjson) multi(r *Record) {
	s := &d.scan
	d.event.multi = true
	if !s.open('[') {
		return
	}
	r.Actions = r.Actions[:0]
	for first := true; s.more(&first, ']'); {
		if len(r.Actions) == codec.MaxActions {
			s.fail("more than " + strconv.Itoa(codec.MaxActions) + " actions")
			return
		}
		r.Actions = growAction(r.Actions)
		d.action(&r.Actions[len(r.Actions)-1])
	}
}

// action reads one action. Its name is its _tag.
func (d *dsjson) action(a *codec.Action) {
	s := &d.scan
	if !s.open('{') {
		return
	}
	for first := true; s.more(&first, '}'); {
		switch key := s.key(); {
		case key == "_tag" && s.peek() == '"':
			a.Name = s.text()
		case key == "_slot_id":
			d.event.slotIDs = true
			s.skip(3)
		case len(key) > 0 && key[0] == '_':
			s.skip(3)
		default:
			a.Features = d.featureValue(a.Features, "", key, 3)
		}
	}
}

// observations reads what was joined with an event, or came by itself.
func (d *dsjson) observations() {
	s, e := &d.scan, &d.event
	if !s.open('[') {
		return
	}
	for first := true; s.more(&first, ']'); {
		e.observed = true
		if !s.open('{') {
			return
		}
		for first := true; s.more(&first, '}'); {
			switch s.key() {
			case "ActionTaken":
				e.active = !s.null() && s.boolean() || e.active
			case "DeferredAction":
				e.active = !s.null() && !s.boolean() || e.active
			case "EnqueuedTimeUtc":
				e.last = max(e.last, s.time())
			default:
				s.skip(2)
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
