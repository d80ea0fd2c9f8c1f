package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"hindsight/internal/daemon"
	"hindsight/internal/model"
)

// variants returns each policy with every formula and every bound of a budget that flags ask for.
func (b *backtest) variants(of []*policy) (out []*policy, err error) {
	for _, p := range of {
		all := []*policy{p}
		for i, text := range b.rewards {
			q, err := p.variant(text, len(b.rewards) > 1, func(m *model.Model) error { return m.SetReward(text) })
			if err != nil {
				return nil, daemon.Usagef("--reward: %v", err)
			}
			all = append(all[:i], q)
		}
		for _, text := range b.budgets {
			name, limits, err := parseBudget(text)
			if err != nil {
				return nil, daemon.Usagef("--budget %v", err)
			}
			var each []*policy
			for _, p := range all {
				for _, x := range limits {
					q, err := p.variant(name+" "+strconv.FormatFloat(x, 'g', 4, 64), true, func(m *model.Model) error {
						i := slices.IndexFunc(m.Budgets, func(b model.Budget) bool { return b.Name == name })
						if i < 0 {
							return fmt.Errorf("the model has no budget %q: its file gives it, with what an action is "+
								"about; for example budget: {%s: {of: %s, mean_at_most: 0.0005, about: {a: 3e-5, b: "+
								"0.015}}}", name, name, name)
						}
						m.Budgets[i].Limit = x
						return m.Validate()
					})
					if err != nil {
						return nil, daemon.Usagef("--budget: %v", err)
					}
					each = append(each, q)
				}
			}
			all = each
		}
		out = append(out, all...)
	}
	return out, nil
}

// named returns the source with the first of the formulas.
func (b *backtest) named() source {
	s := b.source
	if len(b.rewards) > 0 {
		s.reward = b.rewards[0]
	}
	return s
}

// variant returns the policy with another model; its label says so if it is told.
func (p *policy) variant(label string, told bool, change func(m *model.Model) error) (*policy, error) {
	q := *p
	if q.model = p.model.Clone(); told {
		q.label += ", " + label
	}
	return &q, change(q.model)
}

// budgetSteps is how many bounds a range of them has, each the same factor above the one before.
const budgetSteps = 7

// parseBudget reads NAME=X,Y,… or NAME=LOW..HIGH.
func parseBudget(text string) (name string, limits []float64, err error) {
	name, rest, ok := strings.Cut(text, "=")
	low, high, span := strings.Cut(rest, "..")
	parts := strings.Split(rest, ",")
	if span {
		parts = []string{low, high}
	}
	for _, part := range parts {
		x, err := strconv.ParseFloat(strings.TrimSpace(part), 64)
		if ok = ok && err == nil && !math.IsNaN(x) && !math.IsInf(x, 0); !ok {
			return "", nil, fmt.Errorf("%q: expected NAME=X,Y,… or NAME=LOW..HIGH, for example cost=1.5e-4..2e-3", text)
		}
		limits = append(limits, x)
	}
	if !span {
		return name, limits, nil
	}
	from, to := limits[0], limits[1]
	if !(from > 0 && to > from) {
		return "", nil, fmt.Errorf("%q: expected 0 < LOW < HIGH", text)
	}
	limits = limits[:0]
	for i := range budgetSteps {
		limits = append(limits, from*math.Pow(to/from, float64(i)/(budgetSteps-1)))
	}
	return name, limits, nil
}
