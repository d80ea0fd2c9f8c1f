package model

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// Learner names a learner with its parameters.
type Learner struct {
	Kind    string  // DAFA, Elimination, Greedy, Uniform, EGreedy, Fixed or EXP4DALE
	Epsilon float64 // of EGreedy: the share of uniform draws, in [0,1]
	Action  string  // of Fixed: the action that is always played
	EXP4    exp4    // of EXP4DALE
}

// Explores returns the share of decisions that are drawn uniformly; it is not ok of a learner that explores where it is
// unsure.
func (l *Learner) Explores() (share float64, ok bool) {
	switch l.Kind {
	case Uniform:
		return 1, true
	case eGreedy:
		return l.Epsilon, true
	case greedy, Fixed:
		return 0, true
	}
	return 0, false
}

// Kinds of learners, as in the key learner.
const (
	DAFA        = "dafa"
	elimination = "elimination" // DA-FA that plays only what a surviving function thinks best
	greedy      = "greedy"
	Uniform     = "uniform"
	eGreedy     = "egreedy"
	Fixed       = "fixed"
	EXP4DALE    = "exp4dale"
)

var errLearner = errors.New("expected dafa, elimination, greedy, uniform, egreedy:EPSILON, fixed:ACTION or exp4dale; " +
	"for example: dafa, egreedy:0.05, fixed:red")

// ParseLearner reads a learner as flags write it: dafa, greedy, uniform,
// egreedy:0.05, fixed:ACTION, exp4dale, exp4dale:D, exp4dale:plain.
func ParseLearner(s string) (Learner, error) { return newLearner(cutParameter(s)) }

func newLearner(kind, arg string, has bool) (l Learner, err error) {
	l.Kind = kind
	switch kind {
	case DAFA, elimination, greedy, Uniform:
		if has {
			err = fmt.Errorf("learner %s takes no parameter, it has %q: %w", kind, arg, errLearner)
		}
	case eGreedy:
		if l.Epsilon = 0.05; !has {
			break
		}
		if l.Epsilon, err = parseFloat(arg); err != nil || l.Epsilon < 0 || l.Epsilon > 1 {
			err = fmt.Errorf("learner egreedy: %q is not a number in [0,1]: %w", arg, errLearner)
		}
	case Fixed:
		l.Action = arg
		if err = checkText(arg); err != nil {
			err = fmt.Errorf("learner fixed: the action to play %w: %w", err, errLearner)
		}
	case EXP4DALE:
		l.EXP4, err = newEXP4(arg, has)
	default:
		near := didYouMean(kind, []string{DAFA, elimination, greedy, Uniform, eGreedy, Fixed, EXP4DALE})
		err = fmt.Errorf("unknown learner %q%s: %w", kind, near, errLearner)
	}
	return l, err
}

// String writes the learner as ParseLearner reads it.
func (l Learner) String() string {
	switch l.Kind {
	case eGreedy:
		return l.Kind + ":" + formatFloat(l.Epsilon)
	case Fixed:
		return l.Kind + ":" + l.Action
	case EXP4DALE:
		return l.Kind + l.EXP4.String()
	}
	return l.Kind
}

func (l *Learner) read(p *parser, n *yaml.Node, where string) {
	if kindsOf(n) != nil {
		*l = Learner{Kind: EXP4DALE, EXP4: defaultEXP4}
		p.fields(n, where, l.keys())
		return
	}
	parameter{example: "{egreedy: 0.05}", set: func(name, arg string, has bool) (err error) {
		*l, err = newLearner(name, arg, has)
		return err
	}}.read(p, n, where)
}

// keys returns the keys of the long form, which only exp4dale has.
func (l *Learner) keys() []field {
	if l.Kind != EXP4DALE {
		return nil
	}
	return l.EXP4.fields()
}

// kindsOf returns the values of the key kind of a mapping, of which there should be one at most.
func kindsOf(n *yaml.Node) (kinds []*yaml.Node) {
	if n.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == "kind" {
				kinds = append(kinds, n.Content[i+1])
			}
		}
	}
	return kinds
}

func (l *Learner) canonical() string {
	switch l.Kind {
	case Fixed:
		return "{" + Fixed + ": " + strconv.Quote(l.Action) + "}"
	case EXP4DALE:
		return braces(l.keys())
	}
	return parameter{get: l.String}.canonical()
}

func (l *Learner) check(m *Model, add adder) {
	switch l.Kind {
	case Fixed:
		if m.Actions != nil && !slices.Contains(m.Actions, l.Action) {
			add("learner", "fixed plays %q, which is not in actions; name one of them", l.Action)
		}
	case EXP4DALE:
		l.EXP4.check(add)
	}
}

// Explore says how much DA-FA explores.
type Explore struct {
	Name    string  // a name of the key explore; "" means Factor
	Factor  float64 // > 0: stands in γ where the named ones have theirs
	Horizon int64   // of Paper: T ≥ 1
}

// Names of the key explore that are not numbers.
const (
	cautious   = "cautious"
	guaranteed = "guaranteed"
	balanced   = "balanced"
	theory     = "theory"
	Paper      = "paper"
)

var errExplore = errors.New("expected cautious, guaranteed, balanced, theory, a number in (0, 1e9], or {paper: T}; " +
	"for example: balanced")

// ParseExplore reads how much to explore as flags write it: a name, a positive number, or paper:T.
func ParseExplore(s string) (Explore, error) { return newExplore(cutParameter(s)) }

func newExplore(kind, arg string, has bool) (Explore, error) {
	switch kind {
	case cautious, guaranteed, balanced, theory:
		if has {
			return Explore{}, fmt.Errorf("explore %s takes no parameter, it has %q: %w", kind, arg, errExplore)
		}
		return Explore{Name: kind}, nil
	case Paper:
		if !has {
			return Explore{}, errors.New("explore paper needs the number of rounds T; for example: {paper: 20000}")
		}
		t, err := strconv.ParseInt(arg, 10, 64)
		if err != nil || t < 1 {
			return Explore{}, fmt.Errorf("explore paper: %q is not a number of rounds T ≥ 1; for example: {paper: "+
				"20000}", arg)
		}
		return Explore{Name: Paper, Horizon: t}, nil
	}
	f, err := parseFloat(kind)
	if has || err != nil || f <= 0 || f > 1e9 {
		return Explore{}, fmt.Errorf("unknown explore %q: %w", kind, errExplore)
	}
	return Explore{Factor: f}, nil
}

// String writes the setting as ParseExplore reads it.
func (e Explore) String() string {
	switch e.Name {
	case "":
		return formatFloat(e.Factor)
	case Paper:
		return Paper + ":" + strconv.FormatInt(e.Horizon, 10)
	}
	return e.Name
}

// Warning returns what a number is probably mistaken for, "" if it is not: other programs
// explore by ε, which is below 1, and a factor that small leaves all to chance.
func (e Explore) Warning() string {
	if e.Name != "" || e.Factor >= 1 {
		return ""
	}
	f := formatFloat(e.Factor)
	return fmt.Sprintf("explore: %s is no ε, the share of rounds that are left to chance: it is a factor of γ, and "+
		"one so small plays nearly at random for very long; for ε-greedy write learner: {egreedy: %s}, else leave "+
		"explore out", f, f)
}

func (e *Explore) parameter() parameter {
	return parameter{balanced, func(name, arg string, has bool) (err error) {
		*e, err = newExplore(name, arg, has)
		return err
	}, e.String}
}
