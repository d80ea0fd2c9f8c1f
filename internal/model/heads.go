package model

import (
	"fmt"
	"strings"

	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

// heads returns the names of the regressions of a model with named outcomes: one an outcome, whether or not its formula
// needs it now, one for each budget and for the reward if they are not linear in outcomes.
func (m *Model) heads() (names []string) {
	for _, r := range m.Named {
		names = append(names, r.Name)
	}
	for i := range m.Budgets {
		if of := m.Budgets[i].Of; of != nil && !of.Linear() { // nil in a file without outcomes, which is refused
			names = append(names, m.Budgets[i].headName())
		}
	}
	if m.Worth != nil && !m.Worth.Linear() {
		names = append(names, oracle.LossHead)
	}
	return names
}

// headName is that of the regression of a budget: no outcome has it.
func (b *Budget) headName() string { return "budget." + b.Name }

// buildNamed returns the learner of a resolved model with named outcomes.
func (m *Model) buildNamed(files map[string][]byte) (learner.Learner, error) {
	names := m.heads()
	heads, at := make([]oracle.Head, len(names)), map[string]int{}
	for k, name := range names {
		reg, err := m.Oracle.kind().build(m, files)
		if err != nil {
			return nil, fmt.Errorf("model %s: oracle: %w", m.Name, err)
		}
		heads[k], at[name] = oracle.Head{Name: name, Regressor: reg}, k
	}
	loss := oracle.Weights(m.Worth.LossTerms)
	if m.Worth.Linear() {
		for k, w := range second(m.Worth.LossTerms("")) {
			heads[k].Good = w < 0
		}
	} else {
		loss = alone(at[oracle.LossHead], 0, 1)
	}
	h, err := oracle.NewHeads(heads, loss)
	if err != nil {
		return nil, fmt.Errorf("model %s: %w", m.Name, err)
	}
	l, err := m.BuildOn(h)
	if err != nil || m.Budgets == nil {
		return l, err
	}
	var budgets []learner.Budget
	for i := range m.Budgets {
		b := &m.Budgets[i]
		out := learner.Budget{Name: b.Name, Of: b.Of.Terms, Mean: b.Limit, AtLeast: b.AtLeast, PayBack: b.PayBack}
		if !b.Of.Linear() {
			lo, hi := b.Of.Range()
			out.Head = at[b.headName()]
			out.Of, out.Worth = alone(out.Head, lo, hi), m.worth(b.Of)
		}
		out.About = map[string]float64{}
		for i, a := range m.Actions {
			if b.About != nil {
				out.About[a] = b.About[min(i, len(b.About)-1)]
			}
		}
		budgets = append(budgets, out)
	}
	if err := l.(*learner.DAFA).Spend(budgets); err != nil {
		return nil, fmt.Errorf("model %s: %w", m.Name, err)
	}
	return l, nil
}

func second(_ float64, w []float64) []float64 { return w }

// alone is the value of one head, whose [0,1] stands for [lo, hi].
func alone(head int, lo, hi float64) oracle.Weights {
	w := make([]float64, head+1)
	w[head] = hi - lo
	return func(string) (float64, []float64) { return lo, w }
}

// worth returns what a formula that is not linear comes to in [0,1] of its range, once its outcomes are known.
func (m *Model) worth(f *learner.Formula) func(action string, y []learner.Outcome) learner.Outcome {
	values := make([]float64, len(m.Named))
	lo, hi := f.Range()
	return func(action string, y []learner.Outcome) learner.Outcome {
		for k := range values {
			if f.Uses(k) && (k >= len(y) || !y[k].Known) {
				return learner.Outcome{}
			}
			r := m.Named[k].Range
			if values[k] = r.Min; k < len(y) {
				values[k] += float64(y[k].Value * (r.Max - r.Min))
			}
		}
		return learner.Outcome{Known: true, Value: min(max((f.Value(action, values)-lo)/(hi-lo), 0), 1)}
	}
}

// headsText says how many regressions there are, for people.
func (m *Model) headsText() string {
	names := m.heads()
	for k, name := range names {
		if name == oracle.LossHead {
			names[k] = "the reward"
		}
	}
	return "once for each of " + strings.Join(names, ", ") + ", which the total counts"
}
