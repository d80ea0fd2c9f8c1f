package codec

// AppendDecisionJSON appends the short form of d, which is the reply to a request:
// {"id","action","propensity","propensities":{…},"partition","n","epoch",
// "learned_through","mode","prices","first","unread","duplicate"}, the propensities in the order of the
// intervals; without "mode" if the round was decided live, and with "first" if it repeats the draw of its unit.
// unread names what nobody reads of its context; "": the key is left out.
// duplicate says that the decision was made for an earlier request.
func AppendDecisionJSON(dst []byte, d *Decision, unread string, duplicate bool) []byte {
	dst = AppendJSONText(jsonKey(append(dst, '{'), "id"), d.ID)
	dst = AppendJSONText(jsonKey(dst, "action"), d.Actions[d.Action])
	dst = jsonKnown(jsonKey(dst, "propensity"), d, d.Action)
	dst = append(jsonKey(dst, "propensities"), '{')
	for i := range d.Propensities {
		dst = jsonKnown(jsonKey(dst, d.Actions[i]), d, i)
	}
	dst = append(dst, '}')
	dst = jsonInt(jsonKey(dst, "partition"), int64(d.Partition))
	dst = jsonInt(jsonKey(dst, "n"), d.N)
	dst = jsonInt(jsonKey(dst, "epoch"), d.Epoch)
	dst = jsonInt(jsonKey(dst, "learned_through"), d.LearnedThrough)
	if d.Mode != Live {
		dst = AppendJSONText(jsonKey(dst, "mode"), d.Mode.String())
	}
	if len(d.Prices) > 0 {
		dst = append(jsonKey(dst, "prices"), '{')
		for i := range d.Prices {
			dst = jsonFloat(jsonKey(dst, d.Prices[i].Name), d.Prices[i].X)
		}
		dst = append(dst, '}')
	}
	dst = jsonFirst(dst, d.First)
	if unread != "" {
		dst = AppendJSONText(jsonKey(dst, "unread"), unread)
	}
	if duplicate {
		return append(jsonKey(dst, "duplicate"), "true}"...)
	}
	return append(jsonKey(dst, "duplicate"), "false}"...)
}

// jsonKnown appends the propensity of an action, null if it is unknown.
func jsonKnown(dst []byte, d *Decision, action int) []byte {
	if d.Unknown.known(action == d.Action) {
		return jsonFloat(dst, d.Propensities[action])
	}
	return append(dst, "null"...)
}

// AppendDecisionReply appends the short form of d as MessagePack, with the keys of [AppendDecisionJSON].
func AppendDecisionReply(dst []byte, d *Decision, unread string, duplicate bool) []byte {
	head, keys := len(dst), 9+modeKeys(d.Mode, nil)
	if d.First.N > 0 {
		keys++
	}
	dst = appendText(appendKey(appendMap(dst, keys), "id"), d.ID)
	dst = appendDraw(dst, d.Actions, d.Propensities, d.Action, d.Unknown)
	dst = appendInt(appendKey(dst, "partition"), int64(d.Partition))
	dst = appendInt(appendKey(dst, "n"), d.N)
	dst = appendInt(appendKey(dst, "epoch"), d.Epoch)
	dst = appendInt(appendKey(dst, "learned_through"), d.LearnedThrough)
	dst = appendMode(dst, d.Mode, nil)
	if len(d.Prices) > 0 {
		dst = appendPrices(another(dst, head, "prices"), d.Prices)
	}
	dst = appendFirst(dst, d.First)
	if unread != "" {
		dst = appendText(another(dst, head, "unread"), unread)
	}
	return appendBool(appendKey(dst, "duplicate"), duplicate)
}

// ErrorReply appends the reply to a request that failed, as JSON or MessagePack:
// {"error":{"code":409,"message":"…","id":"…"}}. id is "" if it could not be read.
func ErrorReply(dst []byte, code int, message, id string, json bool) []byte {
	from := len(dst)
	dst = appendMap(appendKey(appendMap(dst, 1), "error"), 3)
	dst = appendInt(appendKey(dst, "code"), int64(code))
	dst = appendText(appendKey(dst, "message"), message)
	dst = appendText(appendKey(dst, "id"), id)
	if json {
		return asJSON(dst, from)
	}
	return dst
}

// AppendStored appends the reply to an outcome that is in the log: {"id", "stored": true}, as JSON or MessagePack.
func AppendStored(dst []byte, id string, json bool) []byte {
	from := len(dst)
	dst = appendText(appendKey(appendMap(dst, 2), "id"), id)
	dst = appendBool(appendKey(dst, "stored"), true)
	if json {
		return asJSON(dst, from)
	}
	return dst
}
