package replay

import (
	"hindsight/internal/model"
	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

func always(action string) learner.DecisionList { return learner.DecisionList{{Then: action}} }

// NewTrap returns the environment trap:K,m0,m,r of ALGORITHMS.md, section 6, where
// delay-adapted weighting beats plain importance weighting: constant policies, the loss
// of action a is 1[a ≠ 0] before round m and 1[a ≠ 1] from then on, and the outcomes of
// rounds m0 … m−1 all arrive at round r. By then the law has moved: what was drawn with a
// small probability then is almost certain now.
func NewTrap(rounds, k, m0, m, r int) *World {
	e := newWorld(rounds, k, "trap", float64(k), float64(m0), float64(m), float64(r))
	e.Delays = specification("hold", float64(m0), float64(m), float64(r))
	e.constants()
	e.mean = func(t, a int) float64 { return unless(t < m && a != 0 || t >= m && a != 1) }
	return e
}

// cycActions is K = N of [NewCyc].
const cycActions = 4

// NewCyc returns the environment cyc:h,d of ALGORITHMS.md, section 6: four constant
// policies, the best of which changes every h rounds: the loss of action a is
// 1[a ≠ ⌊t/h⌋ mod 4]; delays are d.
func NewCyc(rounds, h, d int) *World {
	e := newWorld(rounds, cycActions, "cyc", float64(h), float64(d))
	e.Delays = specification("constant", float64(d))
	e.constants()
	e.mean = func(t, a int) float64 { return unless(a != t/h%cycActions) }
	return e
}

// NewBetrayals returns an environment of an adversary that betrays: K constant policies,
// none of which loses anything at first, and all of which but the last lose always from
// some round on, one after the other, evenly over the first half of the rounds. The last
// never loses, so regret is what was lost.
func NewBetrayals(rounds, k int) *World {
	e := newWorld(rounds, k, "betrayals", float64(k))
	e.constants()
	e.mean = func(t, a int) float64 { return unless(a < k-1 && t >= a*rounds/(2*(k-1))) }
	return e
}

// NewBlocks returns the environment blocks:d,N of ALGORITHMS.md, section 6 (paper,
// thm:lower-bound-full-feedback): two actions, N policies that advise at random, anew in
// each block of d+1 rounds; inside a block advice and losses are constant, and all its
// outcomes come at its end: prediction with N experts over T/(d+1) rounds of losses in
// [0, d+1], whose regret no learner keeps below about √((d+1)·T·ln N/2).
func NewBlocks(seed uint64, rounds, d, n int) *World {
	bits, losses := NewStream(seed, "blocks advice"), NewStream(seed, "blocks losses")
	e := newWorld(rounds, 2, "blocks", float64(d), float64(n))
	e.features = numbered("p", n)
	e.Delays = specification("burst", float64(d+1))
	e.Policies = &model.PolicyFile{Actions: e.actions}
	for _, f := range e.features {
		on := learner.Condition{Feature: f, Kind: oracle.Number, Lo: 1, Hi: 1}
		e.Policies.Policies = append(e.Policies.Policies, model.PolicyLine{Prior: 1, Rules: learner.DecisionList{
			{If: []learner.Condition{on}, Then: e.actions[1]}, {Then: e.actions[0]}}})
	}
	e.advice = func(i, t int) int { return int(bits.Uint64(uint64(t/(d+1)), uint64(i)) >> 63) }
	e.value = func(t, i int) float64 { return float64(e.advice(i, t)) }
	e.mean = func(t, a int) float64 { return unless(a == int(losses.Uint64(uint64(t/(d+1)), 0)>>63)) }
	return e
}
