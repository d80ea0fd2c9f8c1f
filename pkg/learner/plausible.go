package learner

import (
	"fmt"
	"math"

	"hindsight/pkg/oracle"
)

// Plausible is what the models of a finite class say of the regret (docs/algorithms.md, 5.1) and of themselves (2.1).
// Bound and Raised hold each with probability at least 1−Alpha at all times at once.
type Plausible struct {
	Functions int     // |F|; 0: no models are kept
	Surviving int     // |C_t(Alpha)|
	Alpha     float64 // level
	Bound     float64 // on the regret of the rounds released; +Inf: no function survives
	Charged   int64   // rounds that are 1 each in Bound
	Waiting   int64   // of them, those that came before their turn: they are 1 each in Random, too
	// the bound with those at what they cost by the functions: it needs no more than that silence does not depend on
	// the loss, which Bound needs, too, of the losses that came
	Random float64
	Ahead  int64 // rounds in both that have no feedback yet ([DAFA.Decided])
	Alarm  bool  // realizability is watched
	Raised int64 // place in the feedback log at which it was refuted; 0: it is not
}

// Refuted reports whether the class is refuted at level Alpha. The alarm splits Alpha between its own evidence and M_f,
// 1−ε to ε: it is raised, too, when every function is dropped. That none survives at Alpha counts only where the alarm
// is off, for beside it that is a second test of the same level.
func (p *Plausible) Refuted() bool {
	if p.Alarm {
		return p.Raised > 0
	}
	return p.Functions > 0 && p.Surviving == 0
}

// Plausible returns the certificate of the rounds so far.
func (m *Models) Plausible() Plausible {
	p := Plausible{Functions: m.size, Alpha: m.alpha, Charged: m.charged + m.waiting, Waiting: m.waiting}
	p.Surviving, p.Bound, p.Random = m.bound(oracle.Log(1 / m.alpha))
	if m.alarm != nil {
		p.Alarm, p.Raised = true, m.alarm.raised
	}
	return p
}

// Evidence returns the least E_f of a function that is not refuted, without its share of M_f: the alarm is raised at
// 1/α. 0: the alarm is off; +Inf: it was raised. It takes some exps a function, action and rate.
func (m *Models) Evidence() float64 {
	switch {
	case m.alarm == nil:
		return 0
	case m.alarm.raised > 0:
		return math.Inf(1)
	}
	return m.alarm.least(m.loss)
}

// bound returns the size of the set of functions with log M_f < level, and the bounds from it.
func (m *Models) bound(level float64) (surviving int, bound, random float64) {
	bound, random = math.Inf(-1), math.Inf(-1)
	for i, t := range m.top {
		if t < level {
			surviving++
			bound = math.Max(bound, m.regret[i])
			random = math.Max(random, m.regret[i]+m.silent[i])
		}
	}
	if surviving == 0 {
		return 0, math.Inf(1), math.Inf(1)
	}
	return surviving, float64(m.charged+m.waiting) + bound, float64(m.unknown+m.waiting) + random
}

// Model is one function that survives.
type Model struct {
	Function int     // its index in the class
	PValue   float64 // min(1, 1/max_s M_f): it survives at every level below
	Loss     float64 // L_f − min L
	Regret   float64 // R_f + charged: what the regret is if it is the truth
}

// LeastAlpha is the smallest level at which [Models.Append] can answer: what was refuted at a smaller one is forgotten.
func (m *Models) LeastAlpha() float64 { return memberShare * m.alpha }

// Append appends C_t(alpha) in the order of the class; alpha 0 stands for that of the certificate. The set contains the
// truth at all times at once with probability at least 1−alpha, if any function is the truth.
func (m *Models) Append(dst []Model, alpha float64) ([]Model, error) {
	if alpha == 0 {
		alpha = m.alpha
	}
	if !(alpha >= m.LeastAlpha() && alpha < 1) {
		return dst, fmt.Errorf("alpha is %v: give a level of at least %.3g and below 1; what fell at a smaller one is "+
			"forgotten", alpha, m.LeastAlpha())
	}
	least := math.Inf(1)
	for _, l := range m.loss {
		least = math.Min(least, l)
	}
	level := oracle.Log(1 / alpha)
	for i, t := range m.top {
		if t < level {
			dst = append(dst, Model{int(m.which[i]), math.Min(1, oracle.Exp(-t)), m.loss[i] - least,
				float64(m.charged+m.waiting) + m.regret[i]})
		}
	}
	return dst, nil
}
