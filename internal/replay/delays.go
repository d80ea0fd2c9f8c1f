package replay

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"hindsight/pkg/oracle"
)

// Never is the delay of an outcome that does not come.
const Never int64 = -1

// maxDelay keeps sums far from overflow; it is beyond any horizon.
const maxDelay = 1 << 40

// Delays says when outcomes come back. It is a pure function of the round.
type Delays interface {
	// Delay returns how many later decisions of the partition are made before the
	// outcome of round t = 0, 1, 2, … is there: 0 means known to the next
	// decision, [Never] that it does not come.
	Delay(t int) int64
	// String returns the specification that ParseDelays reads.
	String() string
}

// delayKind is one word of the grammar of delays.
type delayKind struct {
	Entry
	args []delayArg
	draw func(args []float64, s Stream, t uint64) int64
}

type delayArg struct {
	name   string
	lo, hi float64
	whole  bool
}

func delayKinds() []delayKind {
	count := func(name string) delayArg { return delayArg{name, 0, maxDelay, true} }
	positive := func(name string, hi float64) delayArg { return delayArg{name, 1e-9, hi, false} }
	return []delayKind{
		{Entry{"none", "", "every outcome is known to the next decision"}, nil,
			func([]float64, Stream, uint64) int64 { return 0 }},
		{Entry{"constant", "d", "every outcome comes after d later decisions"}, []delayArg{count("d")},
			func(a []float64, _ Stream, _ uint64) int64 { return int64(a[0]) }},
		{Entry{"exp", "mean", "exponential delays"}, []delayArg{positive("mean", 1e9)},
			func(a []float64, s Stream, t uint64) int64 { return whole(-a[0] * oracle.Log(s.Uniform(t, 0))) }},
		{Entry{"lognormal", "median,sigma", "log-normal delays: half come within the median, some very late"},
			[]delayArg{positive("median", 1e9), {"sigma", 0, 20, false}},
			func(a []float64, s Stream, t uint64) int64 {
				return whole(a[0] * oracle.Exp(float64(a[1]*s.Normal(t, 0))))
			}},
		{Entry{"pareto", "alpha,min", "heavy-tailed delays of at least min; a mean exists for alpha > 1 only"},
			[]delayArg{positive("alpha", 100), positive("min", 1e9)},
			func(a []float64, s Stream, t uint64) int64 {
				return whole(a[1] * oracle.Exp(-oracle.Log(s.Uniform(t, 0))/a[0]))
			}},
		{Entry{"never", "p", "an outcome is lost with probability p, and comes at once otherwise"}, []delayArg{{"p", 0, 1, false}},
			func(a []float64, s Stream, t uint64) int64 {
				if s.Uniform(t, 0) < a[0] {
					return Never
				}
				return 0
			}},
	}
}

// whole rounds a positive delay to a whole number of decisions.
func whole(x float64) int64 {
	if !(x < maxDelay) {
		return maxDelay
	}
	return int64(math.Floor(float64(x) + 0.5)) // the conversion keeps x·y + ½ from being fused
}

// DelayList lists the delays.
func DelayList() []Entry {
	var out []Entry
	for _, k := range delayKinds() {
		out = append(out, k.Entry)
	}
	return out
}

var errDelays = errors.New("expected NAME or NAME:NUMBER,…, several joined by +; for example: none, exp:50, lognormal:20,1.5, constant:10+never:0.05; `replayer list` names them all")

// ParseDelays reads a specification of delays: a word with its numbers
// (pareto:1.5,10), or a sum of them (constant:10+exp:5). Terms of a sum draw
// independently; an outcome that one of them loses is lost.
func ParseDelays(spec string, seed uint64) (Delays, error) {
	var sum delaySum
	var names []string
	for i, text := range strings.Split(spec, "+") {
		term, err := parseTerm(strings.TrimSpace(text))
		if err != nil {
			return nil, fmt.Errorf("delays %q: %w", spec, err)
		}
		term.stream = NewStream(seed, "delay "+itoa(i))
		sum.terms = append(sum.terms, term)
		names = append(names, term.String())
	}
	sum.spec = strings.Join(names, "+")
	return &sum, nil
}

type delayTerm struct {
	kind   delayKind
	args   []float64
	stream Stream
}

func parseTerm(text string) (delayTerm, error) {
	name, rest, has := strings.Cut(text, ":")
	for _, k := range delayKinds() {
		if k.Name != name {
			continue
		}
		var args []string
		if has {
			args = strings.Split(rest, ",")
		}
		if len(args) != len(k.args) {
			return delayTerm{}, fmt.Errorf("%s takes %s, found %d parameters: %w", name, k.usage(), len(args), errDelays)
		}
		t := delayTerm{kind: k}
		for i, a := range k.args {
			v, err := strconv.ParseFloat(strings.TrimSpace(args[i]), 64)
			if err != nil || !(v >= a.lo && v <= a.hi) || (a.whole && v != math.Floor(v)) {
				return delayTerm{}, fmt.Errorf("%s: %s is %q: %s: %w", name, a.name, args[i], a.expected(), errDelays)
			}
			t.args = append(t.args, v+0) // +0: no −0
		}
		return t, nil
	}
	return delayTerm{}, fmt.Errorf("unknown delay %q: %w", name, errDelays)
}

func (k delayKind) usage() string {
	if len(k.args) == 0 {
		return "no parameters"
	}
	return "the parameters " + k.Params
}

func (a delayArg) expected() string {
	kind := "a number"
	if a.whole {
		kind = "a whole number"
	}
	return fmt.Sprintf("it must be %s in [%v, %v]", kind, a.lo, a.hi)
}

func (t delayTerm) String() string {
	s := t.kind.Name
	for i, v := range t.args {
		sep := ","
		if i == 0 {
			sep = ":"
		}
		s += sep + strconv.FormatFloat(v, 'f', -1, 64)
	}
	return s
}

type delaySum struct {
	terms []delayTerm
	spec  string
}

func (d *delaySum) String() string { return d.spec }

func (d *delaySum) Delay(t int) int64 {
	total := int64(0)
	for i := range d.terms {
		term := &d.terms[i]
		v := term.kind.draw(term.args, term.stream, uint64(t))
		if v == Never {
			return Never
		}
		total = min(total+v, maxDelay)
	}
	return total
}
