package codec

import "slices"

// decisionKeys are the keys of a decision in the order of the wire. A key's index is its bit in the set of keys seen.
var decisionKeys = []string{
	"v", "n", "partition", "id", "epoch", "learned_through", "learned", "gamma",
	"contexts_through", "source", "time", "action", "propensity", "propensities", "context",
}

// AppendDecision appends d as MessagePack. d is valid ([Decision.Validate]); it
// panics if d.Action is no index of the propensities.
func AppendDecision(dst []byte, d *Decision) []byte {
	n, version := len(decisionKeys)+modeKeys(d.Mode, d.Would), int64(Version)
	if d.Era != 0 {
		n++
	}
	if len(d.Prices) > 0 {
		n, version = n+1, saysMore
	}
	if n += unitKeys(d.Unit, d.First); d.Mode == External || d.Unit != "" {
		version = saysMore
	}
	dst = appendMap(dst, n)
	dst = appendInt(appendKey(dst, "v"), version)
	dst = appendInt(appendKey(dst, "n"), d.N)
	dst = appendInt(appendKey(dst, "partition"), int64(d.Partition))
	dst = appendText(appendKey(dst, "id"), d.ID)
	dst = appendInt(appendKey(dst, "epoch"), d.Epoch)
	dst = appendInt(appendKey(dst, "learned_through"), d.LearnedThrough)
	dst = appendInt(appendKey(dst, "learned"), d.Learned)
	dst = appendFloat(appendKey(dst, "gamma"), d.Gamma)
	dst = appendInt(appendKey(dst, "contexts_through"), d.ContextsThrough)
	dst = appendInt(appendKey(dst, "source"), d.Source)
	dst = appendInt(appendKey(dst, "time"), d.Time)
	dst = appendDraw(dst, d.Actions, d.Propensities, d.Action, d.Unknown)
	dst = appendMode(appendBytes(appendKey(dst, "context"), d.Context), d.Mode, d.Would)
	if d.Era != 0 {
		dst = appendInt(appendKey(dst, "era"), d.Era)
	}
	if len(d.Prices) > 0 {
		dst = appendPrices(appendKey(dst, "prices"), d.Prices)
	}
	return appendUnit(dst, d.Unit, d.First)
}

// appendDraw appends the keys action, propensity and propensities.
func appendDraw(dst []byte, actions []string, law []float64, drawn int, unknown Unknown) []byte {
	dst = appendText(appendKey(dst, "action"), actions[drawn])
	if dst = appendKey(dst, "propensity"); unknown == UnknownLaw {
		dst = append(dst, mpNil)
	} else {
		dst = appendFloat(dst, law[drawn])
	}
	dst = appendMap(appendKey(dst, "propensities"), len(actions))
	for i, p := range law[:len(actions)] {
		if dst = appendText(dst, actions[i]); unknown.known(i == drawn) {
			dst = appendFloat(dst, p)
		} else {
			dst = append(dst, mpNil)
		}
	}
	return dst
}

// ParseDecision parses what [AppendDecision] wrote, in any form that MessagePack or JSON allows. Every key must be
// there, and action and propensity must agree with propensities. It reuses the memory of dst.
func ParseDecision(dst *Decision, b []byte) error {
	r := newReader(b)
	r.decision(dst)
	return r.end("decision")
}

func (r *reader) decision(d *Decision) {
	*d = Decision{Actions: d.Actions[:0], Propensities: d.Propensities[:0], Would: d.Would[:0],
		Prices: d.Prices[:0]}
	var drawn string
	var p float64
	var seen uint32
	s := r.entries()
	for r.entry(&s) {
		switch s.key {
		case "v":
			r.once(&seen, 0).version()
		case "n":
			d.N = r.once(&seen, 1).int()
		case "partition":
			d.Partition = r.once(&seen, 2).small()
		case "id":
			d.ID = r.once(&seen, 3).text()
		case "epoch":
			d.Epoch = r.once(&seen, 4).int()
		case "learned_through":
			d.LearnedThrough = r.once(&seen, 5).int()
		case "learned":
			d.Learned = r.once(&seen, 6).int()
		case "gamma":
			d.Gamma = r.once(&seen, 7).float()
		case "contexts_through":
			d.ContextsThrough = r.once(&seen, 8).int()
		case "source":
			d.Source = r.once(&seen, 9).int()
		case "time":
			d.Time = r.once(&seen, 10).int()
		case "action":
			drawn = r.once(&seen, 11).text()
		case "propensity":
			p = r.once(&seen, 12).known()
		case "propensities":
			d.Actions, d.Propensities = r.once(&seen, 13).law(d.Actions, d.Propensities)
		case "context":
			d.Context = r.once(&seen, 14).contextBytes()
		case "era":
			d.Era = r.once(&seen, 17).int()
		case "prices":
			d.Prices = r.once(&seen, 18).prices(d.Prices)
		default:
			if !r.unitKey(s.key, &seen, &d.Unit, &d.First) {
				r.modeKey(s.key, &seen, 15, &d.Mode, &d.Would)
			}
		}
	}
	r.require(seen, decisionKeys)
	d.Action, d.Unknown = r.draw(d.Actions, d.Propensities, drawn, p)
}

// law reads the propensities, in order, and appends names and values.
func (r *reader) law(actions []string, law []float64) ([]string, []float64) {
	s := r.entries()
	for r.entry(&s) {
		actions, law = append(actions, s.key), append(law, r.known())
		if len(actions) > MaxActions {
			r.fail(errManyActions)
		}
	}
	return actions, law
}

// known reads a propensity; null, which is unknown, is -1.
func (r *reader) known() float64 {
	if r.null() {
		return -1
	}
	return r.float()
}

// draw returns the index of the drawn action, checks its propensity, and fills in what is unknown of the law.
func (r *reader) draw(actions []string, law []float64, drawn string, p float64) (action int, unknown Unknown) {
	if r.err != nil {
		return 0, 0
	}
	action = slices.Index(actions, drawn)
	if action < 0 {
		r.fail(errUnlisted)
		r.in("action")
		return 0, 0
	}
	if law[action] != p {
		r.fail(errUnequal)
		r.in("propensity")
	}
	others := 0
	for _, x := range law {
		if x == -1 {
			others++
		}
	}
	switch {
	case others == 0:
		return action, 0
	case others == len(law):
		unknown = UnknownLaw
	case others == len(law)-1 && p > 0 && p < 1:
		unknown = UnknownRest
	default:
		r.fail(errHalfLaw)
		r.in("propensities")
		return action, 0
	}
	return action, unknown.Fill(law, action, p)
}
