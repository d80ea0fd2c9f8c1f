package world

import (
	"hindsight/internal/grammar"
	"hindsight/internal/model"
	"hindsight/internal/random"
	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

func always(action string) learner.DecisionList { return learner.DecisionList{{Then: action}} }

// newTrap returns the environment trap:K,m0,m,r of docs/algorithms.md, section 6, where delay-adapted weighting beats
// plain importance weighting: constant policies, the loss of action a is 1[a ≠ 0] before round m and 1[a ≠ 1] from then
// on, and the outcomes of rounds m0 … m−1 all arrive at round r. By then the law has moved: what was drawn with a small
// probability then is almost certain now.
func newTrap(_ uint64, rounds int, args []float64) *World {
	k, m := int(args[0]), int(args[2])
	e := newWorld(rounds, k, "trap", args...)
	e.Delays = grammar.Write("hold", args[1:]...)
	e.constants()
	e.mean = func(t, a int) float64 { return unless(t < m && a != 0 || t >= m && a != 1) }
	return e
}

// cycActions is K = N of [newCyc].
const cycActions = 4

// newCyc returns the environment cyc:h,d of docs/algorithms.md, section 6: four constant policies, the best of which
// changes every h rounds: the loss of action a is 1[a ≠ ⌊t/h⌋ mod 4]; delays are d.
func newCyc(_ uint64, rounds int, args []float64) *World {
	h := int(args[0])
	e := newWorld(rounds, cycActions, "cyc", args...)
	e.Delays = grammar.Write("constant", args[1])
	e.constants()
	e.mean = func(t, a int) float64 { return unless(a != t/h%cycActions) }
	return e
}

// NewBetrayals returns an environment of an adversary that betrays: K constant policies, none of which loses anything
// at first, and all of which but the last lose always from some round on, one after the other, evenly over the first
// half of the rounds. The last never loses, so regret is what was lost.
func NewBetrayals(rounds, k int) *World {
	e := newWorld(rounds, k, "betrayals", float64(k))
	e.constants()
	e.mean = func(t, a int) float64 { return unless(a < k-1 && t >= a*rounds/(2*(k-1))) }
	return e
}

// newBlocks returns the environment blocks:d,N of docs/algorithms.md, section 6 (paper, thm:lower-bound-full-feedback):
// two actions, N policies that advise at random, anew in each block of d+1 rounds; inside a block advice and losses are
// constant, and all its outcomes come at its end: prediction with N experts over T/(d+1) rounds of losses in [0, d+1],
// whose regret no learner keeps below about √((d+1)·T·ln N/2).
func newBlocks(seed uint64, rounds int, args []float64) *World {
	d := int(args[0])
	bits, losses := random.New(seed, "blocks advice"), random.New(seed, "blocks losses")
	e := newWorld(rounds, 2, "blocks", args...)
	e.Features = numbered("p", int(args[1]))
	e.Delays = grammar.Write("burst", args[0]+1)
	e.Policies = &model.PolicyFile{Actions: e.Actions}
	for _, f := range e.Features {
		on := learner.Condition{Feature: f, Kind: oracle.Number, Lo: 1, Hi: 1}
		e.Policies.Policies = append(e.Policies.Policies, model.PolicyLine{Prior: 1, Rules: learner.DecisionList{
			{If: []learner.Condition{on}, Then: e.Actions[1]}, {Then: e.Actions[0]}}})
	}
	e.Advice = func(i, t int) int { return int(bits.Uint64(uint64(t/(d+1)), uint64(i)) >> 63) }
	e.value = func(t, i int) float64 { return float64(e.Advice(i, t)) }
	e.mean = func(t, a int) float64 { return unless(a == int(losses.Uint64(uint64(t/(d+1)), 0)>>63)) }
	return e
}
