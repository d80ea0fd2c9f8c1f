package codec

// Assigned says what another system decided: its context asks for no decision, it tells of one. The zero
// value says nothing.
type Assigned struct {
	Action     string  // "": the context asks for a decision
	Propensity float64 // of Action, in (0,1]; 0: not said
	Law        []Share // all propensities: names unique, sums to 1; empty: not said
	By         string  // who decided, for people
}

// Unknown says which part of the law of a round of mode [External] is not known. On the wire it is null.
type Unknown uint8

// What may be unknown of a law.
const (
	// UnknownRest: only the propensity of the action is known. The other actions have equal parts of the rest.
	UnknownRest Unknown = iota + 1
	// UnknownLaw: nothing is known, and nothing is estimated from it. The action has propensity 1.
	UnknownLaw
)

// Fill sets a law that is not all known, aligned with the actions: p is that of the action, in [2^-53,1]. It returns
// what is unknown of it, which is nothing where the action has all.
func (u Unknown) Fill(law []float64, action int, p float64) Unknown {
	own, left := uint64(one), uint64(len(law)-1)
	if u == UnknownRest {
		x := p * one // exact: a power of two
		if own = uint64(x); x-float64(own) >= 0.5 {
			own++
		}
		if own == one {
			u = 0
		}
	}
	rest := one - own
	for i := range law {
		if i == action {
			law[i] = float64(own) / one
			continue
		}
		part := rest / left
		law[i] = float64(part) / one
		rest -= part
		left--
	}
	return u
}

// known reports whether the propensity of an action is.
func (u Unknown) known(drawn bool) bool { return u == 0 || u == UnknownRest && drawn }

func appendAssigned(dst []byte, a *Assigned) []byte {
	head := len(dst)
	dst = appendText(appendKey(appendMap(dst, 1), "action"), a.Action)
	if a.Propensity != 0 {
		dst = appendFloat(another(dst, head, "propensity"), a.Propensity)
	}
	if len(a.Law) > 0 {
		dst = appendShares(another(dst, head, "propensities"), a.Law)
	}
	if a.By != "" {
		dst = appendText(another(dst, head, "by"), a.By)
	}
	return dst
}

var assignedKeys = []string{"action"}

// assigned reads what another system decided; null is nothing.
func (r *reader) assigned(a *Assigned) {
	if r.null() {
		return
	}
	var seen uint32
	s := r.entries()
	for r.entry(&s) {
		switch s.key {
		case "action":
			if a.Action = r.once(&seen, 0).text(); a.Action == "" {
				r.fail(errEmpty)
			}
		case "propensity":
			if r.once(&seen, 1).null() {
				break
			}
			if a.Propensity = r.float(); !(a.Propensity > 0 && a.Propensity <= 1) {
				r.fail(errPossible)
			}
		case "propensities":
			if !r.once(&seen, 2).null() {
				a.Law = r.shares(a.Law)
			}
		case "by":
			a.By = r.once(&seen, 3).textOrNull()
		default:
			r.stray("assigned.", s.key)
		}
	}
	r.require(seen, assignedKeys)
}

// check returns the field that breaks a rule, and the rule. Whether the actions are those of the context is
// for the model to say, which may have them.
func (a *Assigned) check() (string, error) {
	if a.Action == "" {
		if a.Propensity != 0 || len(a.Law) > 0 || a.By != "" {
			return "assigned.action", errEmpty
		}
		return "", nil
	}
	if err := CheckText(a.Action, MaxNameBytes); err != nil {
		return "assigned.action", err
	}
	if err := CheckText(a.By, MaxNameBytes); err != nil {
		return "assigned.by", err
	}
	if len(a.Law) == 0 {
		if !(a.Propensity >= 0 && a.Propensity <= 1) {
			return "assigned.propensity", errPossible
		}
		return "", nil
	}
	if a.Propensity != 0 {
		return "assigned.propensity", errTwoLaws
	}
	if field, err := checkShares("assigned.propensities", a.Law); err != nil {
		return field, err
	}
	for i := range a.Law {
		if a.Law[i].Name == a.Action && a.Law[i].P > 0 {
			return "", nil
		}
	}
	return "assigned.propensities." + label(a.Action), errPossible
}
