package model

import (
	"errors"
	"fmt"

	"hindsight/pkg/codec"
	"hindsight/pkg/oracle"
)

const (
	sharedHeaderExample = `{"hindsight_class":1,"kind":"shared","features":["age"],"action_features":["price"]}`
	sharedExample       = `{"prior":1,"linear":[[0.1,0.5],[-0.2,0.5]]} or {"prior":1,"trees":[{"splits":[[1,14.5,-1,-2]],"leaves":[[0.2],[0.6]]}]}`
)

// classKinds lists the kinds of classes.
func classKinds() []string {
	return []string{LinearClass, LogisticClass, TabularClass, MixedClass, SharedClass}
}

// mixed reports whether functions of the class differ in what they are.
func (c *ClassFile) mixed() bool { return c.Kind == MixedClass || c.Kind == SharedClass }

// sharedHeader takes the header of a class over features of actions: it lists no actions,
// since it takes any.
func sharedHeader(h *classHeader) (*ClassFile, error) {
	switch n := len(h.ActionFeatures); {
	case h.Actions != nil:
		return nil, errors.New("a shared class takes any action and lists none; for example " + sharedHeaderExample)
	case n == 0:
		return nil, errors.New("action_features: expected at least one name; for example " + sharedHeaderExample)
	case n > codec.MaxFeatures || len(h.Features) > codec.MaxFeatures:
		return nil, fmt.Errorf("%d features and %d of actions, at most %d of each are allowed", len(h.Features), n, codec.MaxFeatures)
	}
	if err := checkNames("features", h.Features); err != nil {
		return nil, err
	}
	if err := checkNames("action_features", h.ActionFeatures); err != nil {
		return nil, err
	}
	return &ClassFile{Kind: SharedClass, Features: h.Features, ActionFeatures: h.ActionFeatures}, nil
}

// outputs is how many losses a leaf has.
func (c *ClassFile) outputs() int {
	if c.Kind == SharedClass {
		return 1
	}
	return len(c.Actions)
}

// checkMixed reports what is wrong with a function of a mixed or shared class.
func (c *ClassFile) checkMixed(f oracle.MixedFunction) (err error) {
	if c.Kind == SharedClass {
		_, err = oracle.NewSharedClass(c.Features, c.ActionFeatures, []oracle.SharedFunction{oracle.SharedFunction(f)})
		return err
	}
	_, err = oracle.NewMixedClass(c.Features, c.Actions, []oracle.MixedFunction{f})
	return err
}
