package service

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"hindsight/internal/check"
	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

// names gives some simulations a model that names its outcomes, of two stages or three, and keeps a budget. It draws
// from numbers of its own.
func (o *simOptions) names(seed int64) {
	if seed%5 != 3 {
		return
	}
	rng := rand.New(rand.NewPCG(uint64(seed), 0x0a3e))
	long := o.rules.WindowRounds + o.rules.WindowNanos + 3
	if o.rules.WindowRounds > 0 {
		o.rules.WindowRounds = long
	} else {
		o.rules.WindowNanos = long
	}
	o.rules.Early = false
	window := func(x check.Named, n int64) check.Named {
		if o.rules.WindowRounds > 0 {
			x.WindowRounds = n
		} else {
			x.WindowNanos = n
		}
		return x
	}
	o.rules.Named = []check.Named{
		window(check.Named{Name: "cost", Max: 4, Impute: o.rules.Impute, Default: 1, Weight: -.25}, 1+
			rng.Int64N(long/2)),
		window(check.Named{Name: "quality", Max: 1, Last: rng.IntN(2) == 0, Weight: 1}, long),
	}
	if rng.IntN(3) == 0 {
		o.rules.Named = append(o.rules.Named, window(check.Named{Name: "speed", Max: 2, Last: true}, 1+
			rng.Int64N(long-1)))
	}
}

// ofVersion returns the rules of a version of the model, which changes the formula.
func ofVersion(r check.Rules, version int64) check.Rules {
	if r.Named = slices.Clone(r.Named); r.Named != nil && version%2 == 0 {
		r.Named[1].Weight, r.Named[0].Weight = 2, -.5
	}
	return r
}

// nameOutcomes makes rules and a learner those of a model that names its outcomes.
func (s *sim) nameOutcomes(r *check.Rules, rules *loop.Rules) (learner.Learner, error) {
	scope := learner.Scope{Actions: actionNames}
	var terms []string
	var heads []oracle.Head
	for _, o := range r.Named {
		rule := loop.OutcomeRule{Name: o.Name, Range: loop.Range{Max: o.Max},
			Window: loop.Window{Rounds: o.WindowRounds, Nanos: o.WindowNanos}, Impute: o.Impute, Default: o.Default}
		if o.Last {
			rule.Take = loop.Last
		}
		rules.Named = append(rules.Named, rule)
		scope.Outcomes = append(scope.Outcomes, learner.Variable{Name: o.Name, Hi: o.Max})
		if o.Weight != 0 {
			terms = append(terms, fmt.Sprintf("%v*%s", o.Weight, o.Name))
		}
		reg, err := oracle.NewLinear(oracle.LinearOptions{Beta: .5, Lambda: 1, MaxFeatures: 8})
		if err != nil {
			return nil, err
		}
		heads = append(heads, oracle.Head{Name: o.Name, Regressor: reg, Good: o.Weight > 0})
	}
	var err error
	if rules.Worth, err = learner.NewFormula(strings.Join(terms, " + "), &scope); err != nil {
		return nil, err
	}
	h, err := oracle.NewHeads(heads, rules.Worth.LossTerms)
	if err != nil {
		return nil, err
	}
	schedule, err := learner.NewSchedule("balanced", h)
	if err != nil {
		return nil, err
	}
	l, cost := learner.NewDAFA(h, schedule), make([]float64, len(heads))
	cost[0] = r.Named[0].Max
	rules.Budgets = []string{"spend"}
	return l, l.Spend([]learner.Budget{{Name: "spend", Mean: 1, About: map[string]float64{"a": 2, "b": .5},
		Of: func(string) (float64, []float64) { return 0, cost }}})
}

// named says what a decision was worth by name: now and then null, out of range or of another name.
func (u *users) named(o *codec.Outcome) {
	r := u.rng
	o.Kind, o.Value = codec.Named, 0
	for _, n := range u.s.o.rules.Named {
		if r.IntN(3) == 0 && len(o.Values) > 0 {
			continue
		}
		v := codec.Value{Name: n.Name, X: float64(r.IntN(5)) / 4 * n.Max}
		switch r.IntN(60) {
		case 0:
			v.X, v.Withdrawn = 0, true
		case 1:
			v.X = -1
		case 2:
			v.Name = "other"
		}
		if o.Values = append(o.Values, v); r.IntN(2) == 0 {
			break
		}
	}
	if r.IntN(3) == 0 {
		o.OutcomeID = ""
	}
	if k := r.IntN(len(o.Values)); r.IntN(3) > 0 {
		o.Values = o.Values[k : k+1]
	}
}
