package codec

import (
	"fmt"
	"slices"
)

// Mode says who decides and what is learned while an epoch is at work. A round keeps the mode in which it was decided.
type Mode uint8

// The modes of a model. All but Live answer the baseline's action, with the baseline's law as the logged propensities.
const (
	Live Mode = iota // the learner's law is drawn from, and learned
	// the baseline's is, or a guard's mixture of both; the learner's is logged beside it; learned
	Shadow
	Apprentice // the baseline's is, and the learner is not asked; learned
	Paused     // the baseline's is; nothing is learned

	// External is the mode of a round that another system decided ([Assigned]), whatever the model's is.
	External
)

// Modes are the names of a model's modes, in their order.
func Modes() []string { return []string{"live", "shadow", "apprentice", "paused"} }

// String returns the mode's name in the model file and in records.
func (m Mode) String() string {
	if int(m) < len(Modes()) {
		return Modes()[m]
	}
	if m == External {
		return external
	}
	return fmt.Sprintf("mode(%d)", uint8(m))
}

const external = "external"

// ParseMode returns the mode of a model by its name.
func ParseMode(name string) (Mode, error) {
	if i := slices.Index(Modes(), name); i >= 0 {
		return Mode(i), nil
	}
	return 0, fmt.Errorf("unknown mode %q: expected live, shadow, apprentice or paused", label(name))
}

// Share is one action of a baseline's law.
type Share struct {
	Name string
	P    float64 // in [0,1]
}

// appendMode appends what a record of a round that was not decided live has beside the others: the keys "mode" and, if
// the learner was asked, "would", its law over the actions in the order of the propensities.
func appendMode(dst []byte, m Mode, would []float64) []byte {
	if m == Live {
		return dst
	}
	dst = appendText(appendKey(dst, "mode"), m.String())
	if len(would) == 0 {
		return dst
	}
	return appendFloats(appendKey(dst, "would"), would)
}

func appendFloats(dst []byte, list []float64) []byte {
	dst = appendList(dst, len(list))
	for _, x := range list {
		dst = appendFloat(dst, x)
	}
	return dst
}

// modeKeys returns how many keys appendMode appends.
func modeKeys(m Mode, would []float64) int {
	switch {
	case m == Live:
		return 0
	case len(would) == 0:
		return 1
	}
	return 2
}

// modeKey reads one of the keys of appendMode, whose bits in seen are from and the next, or skips an unknown key.
func (r *reader) modeKey(key string, seen *uint32, from int, m *Mode, would *[]float64) {
	switch key {
	case "mode":
		r.once(seen, from)
		name := r.text()
		v, err := ParseMode(name)
		if name == external {
			v, err = External, nil
		}
		if err != nil && r.err == nil {
			r.fail(errModeName)
		}
		*m = v
	case "would":
		r.once(seen, from+1)
		for s := r.open(tokList); r.more(&s); {
			if len(*would) == MaxActions {
				r.fail(errManyActions)
			}
			*would = append(*would, r.float())
		}
	default:
		r.skip()
	}
}

// checkMode checks the mode of a record whose law is valid.
func checkMode(m Mode, unknown Unknown, actions []string, would []float64) (string, error) {
	switch {
	case m > External:
		return "mode", errUnknown
	case unknown > UnknownLaw || unknown > 0 && m != External:
		return "propensities", errUnsaid
	case len(would) == 0:
		return "", nil
	case m != Shadow:
		return "would", errWould
	case len(would) != len(actions):
		return "would", errLengths
	}
	return "would", checkGrid(would)
}

// checkGrid checks that a law is what can be drawn from: multiples of 2^-53 that sum to exactly 1.
func checkGrid(law []float64) error {
	var sum uint64
	for _, p := range law {
		n, err := units(p)
		if err != nil {
			return err
		}
		if sum += n; sum > one { // before it can wrap
			return errSum
		}
	}
	if sum != one {
		return errSum
	}
	return nil
}

const one = 1 << 53 // in units of 2^-53

// units returns a probability in units of 2^-53, in which sums are exact: float64 would round
// one just over 1 down to it.
func units(p float64) (uint64, error) {
	if !(p >= 0 && p <= 1) {
		return 0, errProbability
	}
	n := uint64(p * one) // exact: a power of two
	if float64(n) != p*one {
		return 0, errGrid
	}
	return n, nil
}

// baseline reads the baseline of a context: the name of an action, a list that begins
// with it, or a map of actions with their probabilities.
func (r *reader) baseline(dst []Share) []Share {
	switch r.kind() {
	case tokNull:
		r.null()
	case tokText, tokBytes:
		dst = append(dst, Share{Name: r.text(), P: 1})
	case tokMap:
		return r.shares(dst)
	case tokList: // as rounds of logs have it: the first is what would be played
		for s := r.open(tokList); r.more(&s); {
			name := r.text()
			if len(dst) == 0 {
				dst = append(dst, Share{Name: name, P: 1})
			}
		}
	case tokNone:
		r.fail(r.noValue())
	default:
		r.fail(errBaseline)
	}
	return dst
}

// shares reads actions with their probabilities and appends them.
func (r *reader) shares(dst []Share) []Share {
	for s := r.open(tokMap); r.more(&s); {
		if len(dst) == MaxActions {
			r.fail(errManyActions)
			return dst
		}
		name := r.key()
		dst = append(dst, Share{Name: name, P: r.float()})
		if r.err != nil {
			r.inKey(name)
		}
	}
	return dst
}

// oneAction reports whether a baseline is one action that is always played.
func oneAction(b []Share) bool { return len(b) == 1 && b[0].P == 1 }

func appendBaseline(dst []byte, b []Share) []byte {
	dst = appendKey(dst, "baseline")
	if oneAction(b) {
		return appendText(dst, b[0].Name)
	}
	return appendShares(dst, b)
}

func appendShares(dst []byte, b []Share) []byte {
	dst = appendMap(dst, len(b))
	for i := range b {
		dst = appendFloat(appendText(dst, b[i].Name), b[i].P)
	}
	return dst
}

// sharesSlack is how far probabilities that others give may sum from 1: writers round them.
const sharesSlack = 1e-6

// checkShares returns the field of a law in the named one that breaks a rule, and the rule. No law is fine.
func checkShares(field string, b []Share) (string, error) {
	if len(b) == 0 {
		return "", nil
	}
	sum := 0.0
	for i := range b {
		if err := checkName(b[i].Name, MaxNameBytes); err != nil {
			return field + "." + label(b[i].Name), err
		}
		if !(b[i].P >= 0 && b[i].P <= 1) {
			return field + "." + label(b[i].Name), errProbability
		}
		sum += b[i].P
	}
	if !(sum >= 1-sharesSlack && sum <= 1+sharesSlack) {
		return field, errSharesSum
	}
	if i := Repeated(len(b), func(i int) string { return b[i].Name }); i != -1 {
		return field + "." + label(b[i].Name), errDuplicate
	}
	return "", nil
}
