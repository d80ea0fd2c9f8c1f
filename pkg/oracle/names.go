package oracle

import (
	"errors"
	"fmt"
	"strings"
)

// featureNames resolves the names of features to the fixed columns of a class. What stood
// at a position last time is tried first, so that inputs of one shape cost a string
// comparison a name and no map look-up.
type featureNames struct {
	features    []string
	feature     map[string]int32
	category    map[[2]string]int32 // of features named "name=text"
	featureHint []int32             // scratch, by position: index into features
}

func newFeatureNames(features []string) (featureNames, error) {
	n := featureNames{features: append([]string(nil), features...), feature: make(map[string]int32, len(features)),
		category: map[[2]string]int32{}}
	for i, f := range features {
		if _, ok := n.feature[f]; ok {
			return featureNames{}, fmt.Errorf("feature %q is listed twice", f)
		}
		n.feature[f] = int32(i)
		if name, text, ok := strings.Cut(f, "="); ok {
			n.category[[2]string{name, text}] = int32(i)
		}
	}
	return n, nil
}

// names resolves the names of an input to the fixed features and actions of a class.
type names struct {
	featureNames
	actions    []string
	actionOf   map[string]int32
	actionHint []int32 // scratch, by position: index into actions
}

func newNames(features, actions []string) (names, error) {
	f, err := newFeatureNames(features)
	if err != nil {
		return names{}, err
	}
	n := names{featureNames: f, actions: append([]string(nil), actions...), actionOf: make(map[string]int32, len(actions))}
	if len(actions) == 0 {
		return names{}, errors.New("no actions")
	}
	for i, a := range actions {
		if _, ok := n.actionOf[a]; ok {
			return names{}, fmt.Errorf("action %q is listed twice", a)
		}
		n.actionOf[a] = int32(i)
	}
	return n, nil
}

// Features returns the class's feature names; the caller must not change them.
func (n *featureNames) Features() []string { return n.features }

// Actions returns the names of the only actions that a round may list; the
// caller must not change them.
func (n *names) Actions() []string { return n.actions }

// action returns the index of the action name that stands at a position, or -1.
func (n *names) action(position int, name string) int {
	if position < len(n.actionHint) {
		if h := n.actionHint[position]; h >= 0 && n.actions[h] == name {
			return int(h)
		}
	}
	a, ok := n.actionOf[name]
	if !ok {
		return -1
	}
	n.actionHint = setHint(n.actionHint, position, a)
	return int(a)
}

// named returns the index of the feature name that stands at a position, or -1.
func (n *featureNames) named(position int, name string) int {
	if position < len(n.featureHint) {
		if h := n.featureHint[position]; h >= 0 && n.features[h] == name {
			return int(h)
		}
	}
	c, ok := n.feature[name]
	if !ok {
		return -1
	}
	n.featureHint = setHint(n.featureHint, position, c)
	return int(c)
}

// columns sets z[c] to the value of features[c] in x.
func (n *names) columns(z []float64, x *Input) {
	n.read(z, x.Features)
	copy(z, x.Vector)
}

// read sets z[c] to the value of features[c] among xs.
func (n *featureNames) read(z []float64, xs []Feature) {
	clear(z)
	for i := range xs {
		f := &xs[i]
		if f.Kind == Text {
			if c, ok := n.category[[2]string{f.Name, f.Text}]; ok {
				z[c] = 1
			}
			continue
		}
		if c := n.named(i, f.Name); c >= 0 {
			z[c] = f.Value
		}
	}
}

// setHint sets hints[position] = v, growing hints with -1.
func setHint(hints []int32, position int, v int32) []int32 {
	for len(hints) <= position {
		hints = append(hints, -1)
	}
	hints[position] = v
	return hints
}
