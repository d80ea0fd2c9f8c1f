package oracle

import (
	"errors"
	"fmt"
	"strings"
)

// index finds names by the positions at which they stand. What stood there last time is tried first, so that
// inputs of one shape cost a string comparison a name and no map look-up.
type index struct {
	names []string
	of    map[string]int32
	hint  []int32 // scratch, by position: index into names
}

func newIndex(kind string, names []string) (n index, err error) {
	for _, name := range names {
		if _, ok := n.of[name]; ok {
			return index{}, fmt.Errorf("%s %q is listed twice", kind, name)
		}
		n.add(name)
	}
	return n, nil
}

// add appends a name, which it copies, and returns its index.
func (n *index) add(name string) int32 {
	if n.of == nil {
		n.of = map[string]int32{}
	}
	i := int32(len(n.names))
	name = strings.Clone(name)
	n.names, n.of[name] = append(n.names, name), i
	return i
}

// at returns the index of the name that stands at a position, or -1.
func (n *index) at(position int, name string) int {
	if position < len(n.hint) {
		if h := n.hint[position]; h >= 0 && n.names[h] == name {
			return int(h)
		}
	}
	i, ok := n.of[name]
	if !ok {
		return -1
	}
	n.hint = setHint(n.hint, position, i)
	return int(i)
}

// featureNames resolves the names of features to the fixed columns of a class.
type featureNames struct {
	features index
	category map[[2]string]int32 // of features named "name=text"
}

func newFeatureNames(features []string) (n featureNames, err error) {
	n.category = map[[2]string]int32{}
	for i, f := range features {
		if name, text, ok := strings.Cut(f, "="); ok {
			n.category[[2]string{name, text}] = int32(i)
		}
	}
	n.features, err = newIndex("feature", features)
	return n, err
}

// names resolves the names of an input to the fixed features and actions of a class.
type names struct {
	featureNames
	actions index
}

func newNames(features, actions []string) (n names, err error) {
	if n.featureNames, err = newFeatureNames(features); err != nil {
		return names{}, err
	}
	if len(actions) == 0 {
		return names{}, errors.New("no actions")
	}
	n.actions, err = newIndex("action", actions)
	return n, err
}

// Features returns the class's feature names; the caller must not change them.
func (n *featureNames) Features() []string { return n.features.names }

// Actions returns the names of the only actions that a round may list; the caller must not change them.
func (n *names) Actions() []string { return n.actions.names }

// action returns the index of the action name that stands at a position, or -1.
func (n *names) action(position int, name string) int { return n.actions.at(position, name) }

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
		if c := n.features.at(i, f.Name); c >= 0 {
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
