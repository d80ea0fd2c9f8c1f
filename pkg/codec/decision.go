package codec

// decisionKeys are the keys of a decision in the order of the wire. A key's index
// is its bit in the set of keys seen.
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
		n, version = n+1, namedVersion
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
	dst = appendDraw(dst, d.Actions, d.Propensities, d.Action)
	dst = appendMode(appendBytes(appendKey(dst, "context"), d.Context), d.Mode, d.Would)
	if d.Era != 0 {
		dst = appendInt(appendKey(dst, "era"), d.Era)
	}
	if len(d.Prices) > 0 {
		dst = appendPrices(appendKey(dst, "prices"), d.Prices)
	}
	return dst
}

// appendDraw appends the keys action, propensity and propensities.
func appendDraw(dst []byte, actions []string, law []float64, drawn int) []byte {
	dst = appendText(appendKey(dst, "action"), actions[drawn])
	dst = appendFloat(appendKey(dst, "propensity"), law[drawn])
	dst = appendMap(appendKey(dst, "propensities"), len(actions))
	for i, p := range law[:len(actions)] {
		dst = appendFloat(appendText(dst, actions[i]), p)
	}
	return dst
}

// ParseDecision parses what [AppendDecision] wrote, in any form that MessagePack or JSON
// allows. Every key must be there, and action and propensity must agree with
// propensities. It reuses the memory of dst.
func ParseDecision(dst *Decision, b []byte) error {
	r := newReader(b)
	r.decision(dst)
	return r.end("decision")
}

func (r *reader) decision(d *Decision) {
	*d = Decision{Actions: d.Actions[:0], Propensities: d.Propensities[:0], Would: d.Would[:0],
		Prices: d.Prices[:0]}
	var seen uint32
	var drawn string
	var p float64
	for s := r.open(tokMap); r.more(&s); {
		key := r.key()
		switch key {
		case "v":
			r.once(&seen, 0)
			r.version()
		case "n":
			r.once(&seen, 1)
			d.N = r.int()
		case "partition":
			r.once(&seen, 2)
			d.Partition = r.small()
		case "id":
			r.once(&seen, 3)
			d.ID = r.text()
		case "epoch":
			r.once(&seen, 4)
			d.Epoch = r.int()
		case "learned_through":
			r.once(&seen, 5)
			d.LearnedThrough = r.int()
		case "learned":
			r.once(&seen, 6)
			d.Learned = r.int()
		case "gamma":
			r.once(&seen, 7)
			d.Gamma = r.float()
		case "contexts_through":
			r.once(&seen, 8)
			d.ContextsThrough = r.int()
		case "source":
			r.once(&seen, 9)
			d.Source = r.int()
		case "time":
			r.once(&seen, 10)
			d.Time = r.int()
		case "action":
			r.once(&seen, 11)
			drawn = r.text()
		case "propensity":
			r.once(&seen, 12)
			p = r.float()
		case "propensities":
			r.once(&seen, 13)
			d.Actions, d.Propensities = r.law(d.Actions, d.Propensities)
		case "context":
			r.once(&seen, 14)
			d.Context = r.contextBytes()
		case "era":
			r.once(&seen, 17)
			d.Era = r.int()
		case "prices":
			r.once(&seen, 18)
			d.Prices = r.prices(d.Prices)
		default:
			r.modeKey(key, &seen, 15, &d.Mode, &d.Would)
		}
		if r.err != nil {
			r.inKey(key)
			return
		}
	}
	r.require(seen, decisionKeys)
	d.Action = r.draw(d.Actions, d.Propensities, drawn, p)
}

// law reads the propensities, in order, and appends names and values.
func (r *reader) law(actions []string, law []float64) ([]string, []float64) {
	for s := r.open(tokMap); r.more(&s); {
		name := r.key()
		actions, law = append(actions, name), append(law, r.float())
		if len(actions) > MaxActions {
			r.fail(errManyActions)
		}
		if r.err != nil {
			r.inKey(name)
		}
	}
	return actions, law
}

// draw returns the index of the drawn action and checks its propensity.
func (r *reader) draw(actions []string, law []float64, drawn string, p float64) int {
	if r.err != nil {
		return 0
	}
	for i, name := range actions {
		if name != drawn {
			continue
		}
		if law[i] != p {
			r.fail(errUnequal)
			r.in("propensity")
		}
		return i
	}
	r.fail(errUnlisted)
	r.in("action")
	return 0
}
