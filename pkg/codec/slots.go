package codec

// Slot is one place of several that a context fills: each gets an action of its own.
type Slot struct {
	Name     string
	Features []Feature // of the slot; names unique
	Actions  []string  // of the context's actions those that may be played here; empty: all
	Baseline []Share   // in place of the context's
}

// MaxSlots is the most slots of a context.
const MaxSlots = 32

// plain reports whether a slot has nothing but its name, which then stands for it.
func (s *Slot) plain() bool {
	return len(s.Features) == 0 && len(s.Actions) == 0 && len(s.Baseline) == 0
}

func appendSlots(dst []byte, slots []Slot) []byte {
	dst = appendList(appendKey(dst, "slots"), len(slots))
	for i := range slots {
		s := &slots[i]
		if s.plain() {
			dst = appendText(dst, s.Name)
			continue
		}
		n := 1
		for _, has := range []bool{len(s.Features) > 0, len(s.Actions) > 0, len(s.Baseline) > 0} {
			if has {
				n++
			}
		}
		dst = appendText(appendKey(appendMap(dst, n), "name"), s.Name)
		if len(s.Features) > 0 {
			dst = appendFeatures(appendKey(dst, "features"), s.Features)
		}
		if len(s.Actions) > 0 {
			dst = appendList(appendKey(dst, "actions"), len(s.Actions))
			for _, name := range s.Actions {
				dst = appendText(dst, name)
			}
		}
		if len(s.Baseline) > 0 {
			dst = appendBaseline(dst, s.Baseline)
		}
	}
	return dst
}

// AppendSlotsReply appends the reply to a context with slots: {"id", "slots": {name: the reply of its round…}}.
func AppendSlotsReply(dst []byte, id string, slots []Slot, replies [][]byte, json bool) []byte {
	if !json {
		dst = appendText(appendKey(appendMap(dst, 2), "id"), id)
		dst = appendMap(appendKey(dst, "slots"), len(slots))
		for i := range slots {
			dst = append(appendText(dst, slots[i].Name), replies[i]...)
		}
		return dst
	}
	dst = append(jsonKey(AppendJSONText(jsonKey(append(dst, '{'), "id"), id), "slots"), '{')
	for i := range slots {
		dst = append(jsonKey(dst, slots[i].Name), replies[i]...)
	}
	return append(dst, "}}"...)
}

// slots reads the slots into dst, whose memory it reuses; null is none.
func (r *reader) slots(dst []Slot) []Slot {
	if r.null() {
		return dst
	}
	for s := r.open(tokList); r.more(&s); {
		if len(dst) == MaxSlots {
			r.fail(errManySlots)
			return dst
		}
		n := len(dst)
		if n < cap(dst) {
			dst = dst[:n+1]
		} else {
			dst = append(dst, Slot{})
		}
		one := &dst[n]
		*one = Slot{Features: one.Features[:0], Actions: one.Actions[:0], Baseline: one.Baseline[:0]}
		switch r.kind() {
		case tokText, tokBytes:
			one.Name = r.text()
		case tokMap:
			r.slot(one)
		case tokNone:
			r.fail(r.noValue())
		default:
			r.fail(errSlot)
		}
		if r.err != nil {
			r.in(item("", n))
		}
	}
	return dst
}

func (r *reader) slot(one *Slot) {
	var seen uint32
	s := r.entries()
	for r.entry(&s) {
		switch s.key {
		case "name":
			one.Name = r.once(&seen, 0).text()
		case "features":
			if !r.once(&seen, 1).null() {
				one.Features = r.namedFeatures(one.Features)
			}
		case "actions":
			if r.once(&seen, 2).null() {
				break
			}
			for s := r.open(tokList); r.more(&s); {
				if len(one.Actions) == MaxActions {
					r.fail(errManyActions)
				}
				one.Actions = append(one.Actions, r.text())
			}
		case "baseline":
			one.Baseline = r.once(&seen, 3).baseline(one.Baseline)
		default:
			r.stray("slots.", s.key)
		}
	}
	r.require(seen, actionKeys)
}

// checkSlots returns the field that breaks a rule, and the rule. Features, and which actions there are, are checked
// where a slot becomes a round.
func checkSlots(slots []Slot) (string, error) {
	if len(slots) > MaxSlots {
		return "slots", errManySlots
	}
	for i := range slots {
		if err := checkName(slots[i].Name, MaxNameBytes); err != nil {
			return item("slots", i) + ".name", err
		}
		if field, err := checkShares(item("slots", i)+".baseline", slots[i].Baseline); err != nil {
			return field, err
		}
	}
	if i := Repeated(len(slots), func(i int) string { return slots[i].Name }); i != -1 {
		return item("slots", i) + ".name", errDuplicate
	}
	return "", nil
}
