package learner_test

import "hindsight/pkg/oracle"

// policy is a policy in Go: a pure function of the round that returns an index into its actions.
type policy func(x *oracle.Input) int

// policyList is a class of them.
type policyList []policy

func (l policyList) Size() int { return len(l) }

func (l policyList) Advise(dst []int32, x *oracle.Input) {
	for i, p := range l {
		dst[i] = int32(p(x))
	}
}
