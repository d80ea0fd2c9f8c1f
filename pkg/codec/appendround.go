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
	if len(o.Values)+len(o.Arms) > 0 {
		if o.Unit == "" && o.Assigned.Action == "" { // else the context says it
			dst = jsonInt(jsonKey(dst, "v"), namedVersion)
		}
		dst = namedJSON(dst, o)
	}
	return append(dst, '}')
}

// namedJSON appends named outcomes.
func namedJSON(dst []byte, o *Round) []byte {
	value := func(v *Value) {
		if v.Withdrawn {
			dst = append(dst, "null"...)
		} else {
			dst = jsonFloat(dst, v.X)
		}
	}
	if len(o.Values) > 0 {
		dst = append(jsonKey(dst, "outcomes"), '{')
		for i := range o.Values {
			v := &o.Values[i]
			if dst = jsonKey(dst, v.Name); v.Time == NoTime {
				value(&v.Value)
				continue
			}
			dst = jsonKey(append(dst, '{'), "value")
			value(&v.Value)
			dst = append(roundTimeJSON(dst, "time", v.Time), '}')
		}
		dst = append(dst, '}')
	}
	if len(o.Arms) > 0 {
		dst = append(jsonKey(dst, "arms"), '{')
		for i := range o.Arms {
			dst = append(jsonKey(dst, o.Arms[i].Action), '{')
			for j := range o.Arms[i].Values {
				v := &o.Arms[i].Values[j]
				dst = jsonFloat(jsonKey(dst, v.Name), v.X)
			}
			dst = append(dst, '}')
		}
		dst = append(dst, '}')
	}
	return dst
}

// bare reports whether nothing but its weight tells a decision from an outcome.
func (o *Round) bare() bool {
	return o.Decided && len(o.Features)+len(o.Vector)+len(o.Propensities) == 0 && o.Actions == nil &&
		o.Propensity == 0 && o.Time == NoTime
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
	if len(o.Values)+len(o.Arms) > 0 {
		dst[start+len("???\xa1v")] = namedVersion // of the context: the first entry of the map
	}
	if len(o.Values) > 0 {
		key("outcomes")
		dst = appendMap(dst, len(o.Values))
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
		key("arms")
		dst = appendMap(dst, len(o.Arms))
		for i := range o.Arms {
			a := &o.Arms[i]
			dst = appendMap(appendText(dst, a.Action), len(a.Values))
			for j := range a.Values {
				dst = appendFloat(appendText(dst, a.Values[j].Name), a.Values[j].X)
			}
		}
	}
	dst[start+2] = byte(n)
	return dst
}
