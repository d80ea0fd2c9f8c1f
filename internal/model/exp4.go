package model

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"hindsight/pkg/learner"
)

// EXP4 holds the parameters of the learner exp4dale.
type EXP4 struct {
	Policies string // a policy file, or a class file whose functions' best actions are played; relative to the model file
	Delays   Number // D, the sum of delays to expect; auto: the adaptive rate
	Horizon  int64  // T, the rounds to expect; 0 with adaptive rates, else ≥ 1
	Plain    bool   // plain importance weighting, for comparison
}

const exp4Example = "learner: {kind: exp4dale, policies: shop.policies.jsonl}"

// newEXP4 returns the learner that flags name: exp4dale, exp4dale:plain,
// exp4dale:D and exp4dale:plain,D.
func newEXP4(arg string, has bool) (Learner, error) {
	l := Learner{Kind: EXP4DALE, EXP4: EXP4{Delays: Number{Auto: true}}}
	if !has {
		return l, nil
	}
	rest, plain := strings.CutPrefix(arg, "plain")
	l.EXP4.Plain = plain
	if plain && rest == "" {
		return l, nil
	}
	if plain {
		rest = strings.TrimPrefix(rest, ",")
	}
	d, err := strconv.ParseInt(strings.TrimSpace(rest), 10, 64)
	if err != nil || d < 0 || d > maxDelays {
		return Learner{}, fmt.Errorf("learner exp4dale: %q is neither plain nor a sum of delays D ≥ 0; for example: exp4dale, exp4dale:plain, exp4dale:20000", arg)
	}
	l.EXP4.Delays = Number{Value: float64(d)}
	return l, nil
}

// maxDelays and maxHorizon keep K·T + D exact.
const (
	maxDelays  = 1 << 52
	maxHorizon = 1 << 40
)

// String writes what follows the learner's name in flags.
func (x EXP4) String() string {
	var parts []string
	if x.Plain {
		parts = append(parts, "plain")
	}
	if !x.Delays.Auto {
		parts = append(parts, strconv.FormatInt(int64(x.Delays.Value), 10))
	}
	if parts == nil {
		return ""
	}
	return ":" + strings.Join(parts, ",")
}

// canonical writes the value of the key learner.
func (x EXP4) canonical() string {
	d := "auto"
	if !x.Delays.Auto {
		d = strconv.FormatInt(int64(x.Delays.Value), 10) + ", horizon: " + strconv.FormatInt(x.Horizon, 10)
	}
	return "{kind: " + EXP4DALE + ", policies: " + strconv.Quote(x.Policies) + ", d: " + d + ", plain: " + strconv.FormatBool(x.Plain) + "}"
}

// isKind reports whether a mapping names its kind: the long form of a learner.
func isKind(n *yaml.Node) bool {
	if n.Kind != yaml.MappingNode {
		return false
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == "kind" {
			return true
		}
	}
	return false
}

// exp4 reads the long form of the learner exp4dale.
func (p *parser) exp4(n *yaml.Node) Learner {
	l := Learner{Kind: EXP4DALE, EXP4: EXP4{Delays: Number{Auto: true}}}
	x := &l.EXP4
	p.mapping(n, "learner", []string{"kind", "policies", "d", "horizon", "plain"}, func(key string, v *yaml.Node) {
		switch key {
		case "kind":
			if s, ok := p.scalar(v, "learner.kind", EXP4DALE, exp4Example); ok && s != EXP4DALE {
				p.errorf(v, "learner.kind: expected exp4dale, found %q; the others have one parameter at most: %v", s, errLearner)
			}
		case "policies":
			x.Policies = p.text(v, "learner.policies", "policies: shop.policies.jsonl")
		case "d":
			if v.Kind != yaml.ScalarNode || v.Value != "auto" {
				x.Delays = Number{Value: float64(p.integer(v, "learner.d", 0, maxDelays, "d: 20000"))}
			}
		case "horizon":
			x.Horizon = p.integer(v, "learner.horizon", 1, maxHorizon, "horizon: 10000")
		case "plain":
			x.Plain = p.boolean(v, "learner.plain", "plain: false")
		}
	})
	return l
}

func (m *Model) exp4Problems(add func(key, format string, args ...any)) {
	x := m.Learner.EXP4
	if m.Learner.Kind != EXP4DALE {
		return
	}
	if x.Policies == "" {
		add("learner", "exp4dale needs a policy file or a class file; for example: %s", exp4Example)
	} else if err := checkText(x.Policies); err != nil {
		add("learner", "policies: the file name %v", err)
	}
	switch {
	case x.Delays.Auto && x.Horizon != 0:
		add("learner", "horizon: it has no effect with d: auto; give both, or leave it out")
	case !x.Delays.Auto && (x.Horizon < 1 || x.Horizon > maxHorizon):
		add("learner", "d: with a known sum of delays the number of rounds must be known, too; for example: d: 20000, horizon: 10000")
	}
}

// borrow lets the learner use the class of the oracle where it names no policies.
func (m *Model) borrow() {
	if x := &m.Learner.EXP4; m.Learner.Kind == EXP4DALE && x.Policies == "" && m.Oracle.Kind == Hedge {
		x.Policies = m.Oracle.Class
	}
}

var errPolicies = errors.New("neither a policy file nor a class file")

// exp4 returns the learner exp4dale.
func (m *Model) exp4(files map[string][]byte) (learner.Learner, error) {
	x := m.Learner.EXP4
	b, ok := files[x.Policies]
	if !ok {
		return nil, fmt.Errorf("policies %q: %w", x.Policies, errNoFile)
	}
	policies, prior, err := parsePolicyClass(x.Policies, b)
	if err != nil {
		return nil, err
	}
	known := policies.Actions()
	for _, a := range m.Actions {
		if !slices.Contains(known, a) {
			return nil, fmt.Errorf("%s does not know the action %q of the model; it has %d others", x.Policies, a, len(known))
		}
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

// namedPolicies are policies over named actions.
type namedPolicies interface {
	learner.Policies
	Actions() []string
}

// parsePolicyClass reads policies from a policy file, or from a class file: those that
// play the best action by each of its functions.
func parsePolicyClass(name string, b []byte) (namedPolicies, []float64, error) {
	f, err := ParsePolicies(name, b)
	if err == nil {
		lists, err := f.Class()
		return lists, f.Priors(), err
	}
	c, classErr := ParseClass(name, b)
	switch {
	case classErr == nil && c.Kind == SharedClass:
		return nil, nil, fmt.Errorf("class %s is over features of actions, and exp4dale plays actions that a class lists; use it as oracle: {kind: hedge, class: %s}", name, name)
	case classErr == nil:
		class, err := c.Class()
		if err != nil {
			return nil, nil, fmt.Errorf("class %s: %w", name, err)
		}
		return learner.NewArgmin(class), c.Priors(), nil
	case strings.Contains(firstLine(b), "hindsight_class"):
		return nil, nil, classErr
	case strings.Contains(firstLine(b), "hindsight_policies"):
		return nil, nil, err
	}
	return nil, nil, fmt.Errorf("%w: %w", errPolicies, err)
}

func firstLine(b []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(b[:min(len(b), 1<<16)])), "\n")
	return line
}
