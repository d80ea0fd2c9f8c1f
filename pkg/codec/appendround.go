package codec

import "time"

// AppendRoundJSON appends o as JSON. Its context and outcome are valid.
func AppendRoundJSON(dst []byte, o *Round) []byte {
	dst = AppendContextJSON(dst, &o.Context)
	dst = dst[:len(dst)-1] // the closing bracket
	dst = roundTimeJSON(dst, "time", o.Time)
	if o.Action != "" {
		dst = jsonText(jsonKey(dst, "action"), o.Action)
	}
	if o.Propensity != 0 {
		dst = jsonFloat(jsonKey(dst, "propensity"), o.Propensity)
	}
	if len(o.Propensities) > 0 {
		dst = append(jsonKey(dst, "propensities"), '{')
		for i, p := range o.Propensities {
			dst = jsonFloat(jsonKey(dst, o.LawActions[i]), p)
		}
		dst = append(dst, '}')
	}
	switch o.Kind {
	case Loss, Reward:
		dst = jsonFloat(jsonKey(dst, o.Kind.String()), o.Value)
	case Withdrawn:
		dst = append(jsonKey(dst, "withdrawn"), "true"...)
	}
	if len(o.Values) > 0 {
		dst = jsonValues(jsonKey(dst, Named.String()), o.Values)
	}
	dst = roundTimeJSON(dst, "outcome_time", o.OutcomeTime)
	if o.Weight != 0 && o.Weight != 1 || o.bare() {
		dst = jsonFloat(jsonKey(dst, "weight"), max(o.Weight, 1))
	}
	if len(o.Baseline) > 0 {
		dst = append(jsonKey(dst, "baseline"), '[')
		for _, name := range o.Baseline {
			dst = jsonText(jsonComma(dst), name)
		}
		dst = append(dst, ']')
	}
	for _, f := range o.flags() {
		if f.on {
			dst = append(jsonKey(dst, f.name), "true"...)
		}
	}
	return append(dst, '}')
}

// bare reports whether nothing but its weight tells a decision from an outcome.
func (o *Round) bare() bool {
	return o.Decided && len(o.Features)+len(o.Vector)+len(o.Propensities) == 0 && o.Actions == nil && o.Propensity == 0 &&
		o.Time == NoTime
}

type roundFlag struct {
	name string
	on   bool
}

func (o *Round) flags() [3]roundFlag {
	return [...]roundFlag{{"inactive", o.Inactive}, {"defaulted", o.Defaulted}, {"activated", o.Activated}}
}

func roundTimeJSON(dst []byte, key string, ns int64) []byte {
	if ns == NoTime {
		return dst
	}
	dst = append(jsonKey(dst, key), '"')
	return append(time.Unix(0, ns).UTC().AppendFormat(dst, time.RFC3339Nano), '"')
}

// AppendRound appends o as MessagePack. Its context and outcome are valid.
func AppendRound(dst []byte, o *Round) []byte {
	start := len(dst)
	dst = AppendContext(append(dst, mpMap16, 0), &o.Context) // the head of its map becomes the last byte of this one's
	n := int(dst[start+2] & 15)
	key := func(name string) {
		n++
		dst = appendKey(dst, name)
	}
	if o.Time != NoTime {
		key("time")
		dst = appendInt(dst, o.Time)
	}
	if o.Action != "" {
		key("action")
		dst = appendText(dst, o.Action)
	}
	if o.Propensity != 0 {
		key("propensity")
		dst = appendFloat(dst, o.Propensity)
	}
	if len(o.Propensities) > 0 {
		key("propensities")
		dst = appendMap(dst, len(o.Propensities))
		for i, p := range o.Propensities {
			dst = appendFloat(appendText(dst, o.LawActions[i]), p)
		}
	}
	switch o.Kind {
	case Loss, Reward:
		key(o.Kind.String())
		dst = appendFloat(dst, o.Value)
	case Withdrawn:
		key("withdrawn")
		dst = appendBool(dst, true)
	}
	if len(o.Values) > 0 {
		dst[start+len("\xde\x00\x80\xa1v")] = namedVersion // in place of that of the context
		key(Named.String())
		dst = appendValues(dst, o.Values)
	}
	if o.OutcomeTime != NoTime {
		key("outcome_time")
		dst = appendInt(dst, o.OutcomeTime)
	}
	if o.Weight != 0 && o.Weight != 1 || o.bare() {
		key("weight")
		dst = appendFloat(dst, max(o.Weight, 1))
	}
	if len(o.Baseline) > 0 {
		key("baseline")
		dst = appendList(dst, len(o.Baseline))
		for _, name := range o.Baseline {
			dst = appendText(dst, name)
		}
	}
	for _, f := range o.flags() {
		if f.on {
			key(f.name)
			dst = appendBool(dst, true)
		}
	}
	dst[start+2] = byte(n)
	return dst
}
