package codec

import (
	"slices"
	"time"
)

// AppendRoundJSON appends o as JSON. Its context and outcome are valid.
func AppendRoundJSON(dst []byte, o *Round) []byte { return roundAsJSON(AppendRound(dst, o), len(dst)) }

// roundAsJSON is asJSON for a round, whose times are texts in JSON, and whose version comes before its outcomes.
func roundAsJSON(dst []byte, from int) []byte {
	r, text := reader{b: dst[from:]}, append(dst, '{')
	version := int64(Version)
	for s := r.open(tokMap); r.more(&s); {
		key := r.key()
		if version > Version && (key == "outcomes" || key == "arms") {
			text = jsonInt(jsonKey(text, "v"), version)
			version = Version
		}
		switch key {
		case "v":
			version = r.int()
		case "time", "outcome_time":
			text = roundTimeJSON(jsonKey(text, key), r.int())
		case "outcomes":
			text = r.timedJSON(jsonKey(text, key))
		default:
			text = r.appendJSON(jsonKey(text, key), maxDepth, AppendJSONText)
		}
	}
	return slices.Delete(append(text, '}'), from, len(dst))
}

// timedJSON reads named outcomes and appends them.
func (r *reader) timedJSON(dst []byte) []byte {
	dst = append(dst, '{')
	for s := r.open(tokMap); r.more(&s); {
		if dst = jsonKey(dst, r.key()); r.kind() != tokMap {
			dst = r.appendJSON(dst, maxDepth, AppendJSONText)
			continue
		}
		r.open(tokMap) // {"time", "value"}
		r.key()
		at := r.int()
		r.key()
		dst = r.appendJSON(jsonKey(append(dst, '{'), "value"), maxDepth, AppendJSONText)
		dst = append(roundTimeJSON(jsonKey(dst, "time"), at), '}')
	}
	return append(dst, '}')
}

// bare reports whether nothing but its weight tells a decision from an outcome.
func (o *Round) bare() bool {
	return o.Decided && len(o.Features)+len(o.Vector)+len(o.Propensities) == 0 && o.Actions == nil &&
		o.Propensity == 0 && o.Time == NoTime
}

func roundTimeJSON(dst []byte, ns int64) []byte {
	return append(time.Unix(0, ns).UTC().AppendFormat(append(dst, '"'), time.RFC3339Nano), '"')
}

// AppendRound appends o as MessagePack. Its context and outcome are valid.
func AppendRound(dst []byte, o *Round) []byte {
	start, head := len(dst), len(dst)+2
	dst = AppendContext(append(dst, mpMap16, 0), &o.Context) // the head of its map becomes the last byte of this one's
	dst[head] &= 15
	if o.Time != NoTime {
		dst = appendInt(another(dst, head, "time"), o.Time)
	}
	if o.Action != "" {
		dst = appendText(another(dst, head, "action"), o.Action)
	}
	if o.Propensity != 0 {
		dst = appendFloat(another(dst, head, "propensity"), o.Propensity)
	}
	if len(o.Propensities) > 0 {
		dst = appendMap(another(dst, head, "propensities"), len(o.Propensities))
		for i, p := range o.Propensities {
			dst = appendFloat(appendText(dst, o.LawActions[i]), p)
		}
	}
	switch o.Kind {
	case Loss, Reward:
		dst = appendFloat(another(dst, head, o.Kind.String()), o.Value)
	case Withdrawn:
		dst = appendBool(another(dst, head, "withdrawn"), true)
	}
	if o.OutcomeTime != NoTime {
		dst = appendInt(another(dst, head, "outcome_time"), o.OutcomeTime)
	}
	if o.Weight != 0 && o.Weight != 1 || o.bare() {
		dst = appendFloat(another(dst, head, "weight"), max(o.Weight, 1))
	}
	if len(o.Baseline) > 0 {
		dst = appendList(another(dst, head, "baseline"), len(o.Baseline))
		for _, name := range o.Baseline {
			dst = appendText(dst, name)
		}
	}
	for _, f := range [...]struct {
		name string
		on   bool
	}{{"inactive", o.Inactive}, {"defaulted", o.Defaulted}, {"activated", o.Activated}} {
		if f.on {
			dst = appendBool(another(dst, head, f.name), true)
		}
	}
	if len(o.Values)+len(o.Arms) > 0 {
		dst[start+len("???\xa1v")] = saysMore // of the context: the first entry of the map
	}
	if len(o.Values) > 0 {
		dst = appendMap(another(dst, head, "outcomes"), len(o.Values))
		for i := range o.Values {
			v := &o.Values[i]
			if dst = appendText(dst, v.Name); v.Time != NoTime {
				dst = appendInt(appendKey(appendMap(dst, 2), "time"), v.Time)
				dst = appendKey(dst, "value")
			}
			if v.Withdrawn {
				dst = append(dst, mpNil)
			} else {
				dst = appendFloat(dst, v.X)
			}
		}
	}
	if len(o.Arms) > 0 {
		dst = appendMap(another(dst, head, "arms"), len(o.Arms))
		for _, a := range o.Arms {
			dst = appendValues(appendText(dst, a.Action), a.Values)
		}
	}
	return dst
}
