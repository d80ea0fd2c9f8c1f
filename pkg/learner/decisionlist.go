package learner

import (
	"errors"
	"fmt"

	"hindsight/pkg/oracle"
)

// DecisionList is a policy as a list of rules: the first rule whose conditions all hold and whose action is eligible
// says what to play. The last rule has no conditions. Where not even its action is eligible the first one is played.
type DecisionList []Rule

// Rule plays an action where all its conditions hold; without conditions, always.
type Rule struct {
	If   []Condition
	Then string
}

// Condition holds where the context has the feature, of this kind, with this
// value: the text, a number in [Lo, Hi], or a bool that is 1 or 0 as Lo says.
type Condition struct {
	Feature string
	Kind    oracle.FeatureKind
	Text    string
	Lo, Hi  float64
}

// holds reports whether the condition is true of a feature's value.
func (c *Condition) holds(f *oracle.Feature) bool {
	if f.Kind != c.Kind {
		return false
	}
	if c.Kind == oracle.Text {
		return f.Text == c.Text
	}
	return c.Lo <= f.Value && f.Value <= c.Hi
}

// DecisionLists is a class of decision lists over named features and actions. It
// has scratch space and is not safe for concurrent use.
type DecisionLists struct {
	actions  []string
	actionOf map[string]int32
	feature  map[string]int32
	lists    [][]listRule

	position []int32 // scratch, by action: its index in the round, or -1
	at       []int32 // scratch, by feature: its index in the round, or -1
}

var _ Policies = (*DecisionLists)(nil)

// listRule is a [Rule] with names resolved.
type listRule struct {
	conditions []listCondition
	then       int32
}

type listCondition struct {
	feature int32
	Condition
}

// NewDecisionLists returns the class of lists, whose rules play some of the actions.
func NewDecisionLists(actions []string, lists []DecisionList) (*DecisionLists, error) {
	if len(lists) == 0 || len(actions) == 0 {
		return nil, errors.New("decision lists: there must be an action and a list")
	}
	d := &DecisionLists{actions: append([]string(nil), actions...), actionOf: map[string]int32{},
		feature: map[string]int32{}}
	for i, a := range actions {
		d.actionOf[a] = int32(i)
	}
	for i, l := range lists {
		rules, err := d.resolve(l)
		if err != nil {
			return nil, fmt.Errorf("decision list %d: %w", i, err)
		}
		d.lists = append(d.lists, rules)
	}
	d.position, d.at = make([]int32, len(actions)), make([]int32, len(d.feature))
	return d, nil
}

func (d *DecisionLists) resolve(l DecisionList) ([]listRule, error) {
	if len(l) == 0 || len(l[len(l)-1].If) > 0 {
		return nil, errors.New("its last rule must have no conditions")
	}
	rules := make([]listRule, len(l))
	for j, r := range l {
		a, ok := d.actionOf[r.Then]
		if !ok {
			return nil, fmt.Errorf("rule %d plays %q, which is not among the actions", j, r.Then)
		}
		rules[j].then = a
		for _, c := range r.If {
			f, ok := d.feature[c.Feature]
			if !ok {
				f = int32(len(d.feature))
				d.feature[c.Feature] = f
			}
			rules[j].conditions = append(rules[j].conditions, listCondition{f, c})
		}
	}
	return rules, nil
}

// Size implements [Policies].
func (d *DecisionLists) Size() int { return len(d.lists) }

// Actions returns the names of the actions that the lists play; the caller must not change them.
func (d *DecisionLists) Actions() []string { return d.actions }

// Advise implements [Policies].
func (d *DecisionLists) Advise(dst []int32, x *oracle.Input) {
	for i := range d.position {
		d.position[i] = -1
	}
	for i := range d.at {
		d.at[i] = -1
	}
	for i := range x.Actions {
		if a, ok := d.actionOf[x.Actions[i].Name]; ok {
			d.position[a] = int32(i)
		}
	}
	for i := range x.Features {
		if f, ok := d.feature[x.Features[i].Name]; ok {
			d.at[f] = int32(i)
		}
	}
	for i, rules := range d.lists {
		dst[i] = d.first(rules, x)
	}
}

// first returns the position of the action that the first rule plays that applies.
func (d *DecisionLists) first(rules []listRule, x *oracle.Input) int32 {
	for j := range rules {
		if at := d.position[rules[j].then]; at >= 0 && d.all(rules[j].conditions, x) {
			return at
		}
	}
	return 0
}

func (d *DecisionLists) all(conditions []listCondition, x *oracle.Input) bool {
	for k := range conditions {
		c := &conditions[k]
		if at := d.at[c.feature]; at < 0 || !c.holds(&x.Features[at]) {
			return false
		}
	}
	return true
}
