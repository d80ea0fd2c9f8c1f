package learner

import (
	"fmt"

	"hindsight/pkg/oracle"
)

// Greedy plays the action with the smallest prediction, the first of equal ones, and with probability ε a uniform one.
// At ε = 0 all other actions have propensity 0: their losses can never be estimated from its log.
type Greedy struct {
	counter
	reg     oracle.Regressor
	epsilon float64
	fhat, p []float64
}

// NewGreedy returns a greedy learner that owns reg.
func NewGreedy(reg oracle.Regressor) *Greedy { return &Greedy{reg: reg} }

// NewEpsilonGreedy returns an ε-greedy learner that owns reg; ε in [0,1].
func NewEpsilonGreedy(reg oracle.Regressor, epsilon float64) (*Greedy, error) {
	if !(epsilon >= 0 && epsilon <= 1) {
		return nil, fmt.Errorf("egreedy: epsilon is %v: it must be in [0,1]", epsilon)
	}
	return &Greedy{reg: reg, epsilon: epsilon}, nil
}

// Oracle returns the oracle, to look at.
func (g *Greedy) Oracle() oracle.Regressor { return g.reg }

// Propensities implements [Learner].
func (g *Greedy) Propensities(dst []float64, x *oracle.Input) ([]float64, float64) {
	k := len(x.Actions)
	g.fhat = resize(g.fhat, k)
	g.reg.Predict(g.fhat, x)
	g.p = mostly(g.p, k, argmin(g.fhat), g.epsilon)
	return appendLaw(dst, g.p), 0
}

// argmin returns the first index of the smallest element.
func argmin(x []float64) int {
	best := 0
	for i, v := range x {
		if v < x[best] {
			best = i
		}
	}
	return best
}

// Learn implements [Learner].
func (g *Greedy) Learn(r *Round) {
	if g.takes(r) {
		g.reg.Update(r.Input, r.Action, r.Loss)
	}
}

// AppendBinary implements [Learner].
func (g *Greedy) AppendBinary(b []byte) ([]byte, error) { return g.appendBinary(b, kindGreedy, g.reg) }

// UnmarshalBinary implements [Learner].
func (g *Greedy) UnmarshalBinary(b []byte) error { return g.readBinary(b, kindGreedy, g.reg) }
