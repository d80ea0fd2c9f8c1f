package model

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"hindsight/pkg/learner"
)

// exp4 holds the parameters of the learner exp4dale.
type exp4 struct {
	// a policy file, or a class file whose functions' best actions are played; relative to the model file
	Policies string
	Delays   Number // D, the sum of delays to expect; auto: the adaptive rate
	Horizon  int64  // T, the rounds to expect; 0 with adaptive rates, else ≥ 1
	Plain    bool   // plain importance weighting, for comparison
}

const exp4Example = "{kind: exp4dale, policies: shop.policies.jsonl}"

// maxDelays and maxHorizon keep K·T + D exact.
const (
	maxDelays  = 1 << 52
	maxHorizon = 1 << 40
)

var defaultEXP4 = exp4{Delays: Number{Auto: true}}

// newEXP4 returns the parameters that flags name: exp4dale, exp4dale:plain, exp4dale:D and exp4dale:plain,D.
func newEXP4(arg string, has bool) (exp4, error) {
	x := defaultEXP4
	rest, plain := strings.CutPrefix(arg, "plain")
	x.Plain = has && plain
	if !has || plain && rest == "" {
		return x, nil
	}
	if plain {
		rest = strings.TrimPrefix(rest, ",")
	}
	d, err := strconv.ParseInt(strings.TrimSpace(rest), 10, 64)
	if err != nil || d < 0 || d > maxDelays {
		return x, fmt.Errorf("learner exp4dale: %q is neither plain nor a sum of delays D ≥ 0; for example: "+
			"exp4dale, exp4dale:plain, exp4dale:20000", arg)
	}
	x.Delays = Number{Value: float64(d)}
	return x, nil
}

// String writes what follows the learner's name in flags.
func (x exp4) String() string {
	delays := strconv.FormatInt(int64(x.Delays.Value), 10)
	switch {
	case x.Plain && x.Delays.Auto:
		return ":plain"
	case x.Plain:
		return ":plain," + delays
	case x.Delays.Auto:
		return ""
	}
	return ":" + delays
}

// fields returns the keys of the long form of the learner.
func (x *exp4) fields() []field {
	kind := form{EXP4DALE, EXP4DALE, func(s string) error {
		if s != EXP4DALE {
			return fmt.Errorf("expected exp4dale, found %q; the others have one parameter at most: %w", s, errLearner)
		}
		return nil
	}, func() string { return EXP4DALE }}
	return []field{
		{key: "kind", into: kind},
		{key: "policies", into: &x.Policies, example: "shop.policies.jsonl"},
		autoField(&x.Delays, field{key: "d", whole: true, hi: maxDelays, example: "20000"}),
		{key: "horizon", into: &x.Horizon, whole: true, lo: 1, hi: maxHorizon, example: "10000", omit: x.Horizon == 0},
		{key: "plain", into: &x.Plain, example: "false"},
	}
}

func (x *exp4) check(add adder) {
	if x.Policies == "" {
		add("learner", "exp4dale needs a policy file or a class file; for example: learner: %s", exp4Example)
	} else if err := checkText(x.Policies); err != nil {
		add("learner.policies", "the file name %v", err)
	}
	if x.Delays.Auto && x.Horizon != 0 {
		add("learner.horizon", "it has no effect with d: auto; give both, or leave it out")
	} else if !x.Delays.Auto && x.Horizon == 0 {
		add("learner.d", "with a known sum of delays the number of rounds must be known, too; for example: d: 20000, "+
			"horizon: 10000")
	}
}

var errPolicies = errors.New("neither a policy file nor a class file")

// build returns the learner of a model.
func (x *exp4) build(m *Model, files map[string][]byte) (learner.Learner, error) {
	policies, prior, err := parsePolicyClass(x.Policies, files)
	if err != nil {
		return nil, err
	}
	known := policies.Actions()
	if err := knows(x.Policies, known, m.Actions); err != nil {
		return nil, err
	}
	o := learner.EXP4Options{Prior: prior, Plain: x.Plain}
	if !x.Delays.Auto {
		k := len(known)
		if m.Actions != nil {
			k = len(m.Actions)
		}
		o.Eta = learner.EXP4Eta(policies.Size(), k, x.Horizon, int64(x.Delays.Value))
	}
	return learner.NewEXP4(policies, o)
}

// knows reports an action of a model that a file does not know.
func knows(file string, known, actions []string) error {
	for _, a := range actions {
		if !slices.Contains(known, a) {
			return fmt.Errorf("%s does not know the action %q of the model; it has %d others", file, a, len(known))
		}
	}
	return nil
}

// namedPolicies are policies over named actions.
type namedPolicies interface {
	learner.Policies
	Actions() []string
}

// parsePolicyClass reads policies from a policy file, or from a class file: those that
// play the best action by each of its functions.
func parsePolicyClass(name string, files map[string][]byte) (namedPolicies, []float64, error) {
	b, ok := files[name]
	if !ok {
		return nil, nil, fmt.Errorf("policies %q: %w", name, errNoFile)
	}
	f, err := ParsePolicies(name, b)
	if err == nil {
		lists, err := f.Class()
		return lists, f.Priors(), err
	}
	c, classErr := ParseClass(name, b)
	switch {
	case classErr == nil && c.Kind == SharedClass:
		return nil, nil, fmt.Errorf("class %s is over features of actions, and exp4dale plays actions that a class "+
			"lists; use it as oracle: {kind: hedge, class: %s}", name, name)
	case classErr == nil:
		class, err := c.Class()
		if err != nil {
			return nil, nil, fmt.Errorf("class %s: %w", name, err)
		}
		return learner.NewArgmin(class), c.Priors(), nil
	}
	first, _, _ := strings.Cut(strings.TrimSpace(string(b[:min(len(b), 1<<16)])), "\n")
	switch {
	case strings.Contains(first, "hindsight_class"):
		return nil, nil, classErr
	case strings.Contains(first, "hindsight_policies"):
		return nil, nil, err
	}
	return nil, nil, fmt.Errorf("%w: %w", errPolicies, err)
}
