package codec

import "errors"

// A unit is whom or what a context is about: a person, a device, a session. In a model with sticky units one unit gets
// one draw for a time: the contexts that follow repeat it, and their records name it.

// RoundRef names a round by its place in the decisions. The zero value names none.
type RoundRef struct {
	Partition int
	N         int64 // 1, 2, 3, …; 0: none
}

var (
	errUnitAlone  = errors.New("names a round, and there is no unit")
	errUnitText   = errors.New("is not a text; write it in quotes")
	errFirstAhead = errors.New("is not an earlier round of the partition")
)

// unitKeys returns how many keys appendUnit appends.
func unitKeys(unit string, first RoundRef) int {
	switch {
	case unit == "":
		return 0
	case first.N == 0:
		return 1
	}
	return 2
}

// appendUnit appends the keys unit and first of a record.
func appendUnit(dst []byte, unit string, first RoundRef) []byte {
	if unit == "" {
		return dst
	}
	return appendFirst(appendText(appendKey(dst, "unit"), unit), first)
}

// appendFirst appends the key first, of a repeat.
func appendFirst(dst []byte, first RoundRef) []byte {
	if first.N == 0 {
		return dst
	}
	dst = appendMap(appendKey(dst, "first"), 2)
	dst = appendInt(appendKey(dst, "partition"), int64(first.Partition))
	return appendInt(appendKey(dst, "n"), first.N)
}

// jsonFirst is appendFirst in JSON.
func jsonFirst(dst []byte, first RoundRef) []byte {
	if first.N == 0 {
		return dst
	}
	dst = append(jsonKey(dst, "first"), '{')
	dst = jsonInt(jsonKey(dst, "partition"), int64(first.Partition))
	return append(jsonInt(jsonKey(dst, "n"), first.N), '}')
}

// unitKey reads one of the keys of appendUnit, and reports whether it was one. Their bits in seen are the last two.
func (r *reader) unitKey(key string, seen *uint32, unit *string, first *RoundRef) bool {
	switch key {
	case "unit":
		r.once(seen, 30)
		*unit = r.text()
	case "first":
		r.once(seen, 31)
		*first = r.roundRef()
	default:
		return false
	}
	return true
}

var refKeys = []string{"partition", "n"}

func (r *reader) roundRef() (ref RoundRef) {
	var seen uint32
	s := r.entries()
	for r.entry(&s) {
		switch s.key {
		case "partition":
			ref.Partition = r.once(&seen, 0).small()
		case "n":
			if ref.N = r.once(&seen, 1).int(); ref.N < 1 {
				r.fail(errRange)
			}
		default:
			r.skip()
		}
	}
	r.require(seen, refKeys)
	return ref
}

// contextUnit reads the unit of a context or an outcome. What is no text may be anything to somebody else: only a model
// with units refuses it, by [Context.CheckUnit].
func (r *reader) contextUnit() (unit string, other bool) {
	if k := r.kind(); k == tokText || k == tokBytes || k == tokNull {
		return r.textOrNull(), false
	}
	r.skip()
	return "", true
}

// CheckUnit reports what is wrong with the unit of a context, if the model asks for it. Units have the rules of ids.
func (c *Context) CheckUnit() error {
	if c.unitOther {
		return wrong("context", "unit", errUnitText)
	}
	return wrong("context", "unit", CheckText(c.Unit, MaxIDBytes))
}

// checkUnit checks what the record of round n of a partition says of its unit.
func checkUnit(unit string, first RoundRef, partition int, n int64) (string, error) {
	if err := CheckText(unit, MaxIDBytes); err != nil {
		return "unit", err
	}
	switch {
	case first == RoundRef{}:
		return "", nil
	case unit == "":
		return "first", errUnitAlone
	case first.Partition != partition || first.N < 1 || first.N >= n:
		return "first", errFirstAhead
	}
	return "", nil
}
