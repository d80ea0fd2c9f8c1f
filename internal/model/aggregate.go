package model

import (
	"fmt"

	"hindsight/pkg/oracle"
)

type aggregate struct{ overFeatures }

// resolve decides how many columns to expect, β as for the linear oracle, and the random features, 128 if
// K·(d+128)² ≤ 1e6 and the model's limits leave memory for them, else none.
func (aggregate) resolve(m *Model, columns, actions int) {
	o := &m.Oracle
	if m.follows() {
		o.Columns.decide(0)
		return
	}
	d, _, k := m.sizes(columns, actions)
	o.Beta.decide(oracle.AutoBeta(k, d))
	m.decideFourier(k, d, oracle.AggregateBytes(m.mostActions(), m.MaxFeatures+1, oracle.DefaultFourier, 0))
}

// memory leaves out random features that follow what comes: they take at most 5 MB.
func (aggregate) memory(m *Model) float64 {
	return oracle.AggregateBytes(m.mostActions(), m.MaxFeatures+1, int(m.Oracle.Fourier.Value), m.Places())
}

func (aggregate) cost(m *Model) []string {
	o := m.Oracle
	if m.follows() {
		random := ""
		if o.Fourier.Auto {
			random = ", the third on random features while actions × (columns + 128)² ≤ 1e6"
		}
		regressions := 2
		if o.Fourier != (Number{}) {
			regressions = 3
		}
		if n := m.Places(); n > 0 {
			random += fmt.Sprintf(", and a diagonal one of these and %d places of texts and vectors", n)
		}
		return m.costOfFollowing("the default", fmt.Sprintf("%d regressions", regressions), random)
	}
	d, _, k := m.sizes(0, 0)
	n := int(o.Fourier.Value)
	columns, said := []int{d, d}, fmt.Sprintf("2 regressions of %d columns", d)
	if n > 0 {
		columns, said = append(columns, d+n), fmt.Sprintf("3 regressions of %d, %d and %d columns", d, d, d+n)
	}
	return m.costOfSize(whyRandom(m, n, k, d), said, oracle.AggregateBytes(1, d, n, 0), n, d, columns...)
}

// whyRandom says why the aggregate has n random features, where K actions have d columns.
func whyRandom(m *Model, n, k, d int) string {
	square := fmt.Sprintf("%d actions × (%d + %d)²", k, d, oracle.DefaultFourier)
	switch {
	case n > 0 && n == oracle.AutoFourier(k, d):
		return "with random features, because " + square + " ≤ 1e6"
	case n > 0:
		return fmt.Sprintf("with %d random features, because the model names them", n)
	case oracle.AutoFourier(k, d) == 0:
		return "without random features, because " + square + " > 1e6"
	case oracle.AggregateBytes(k, m.MaxFeatures+1, oracle.DefaultFourier, 0) > MaxMemory:
		return "without random features, because the limits of actions and columns leave no memory for them"
	}
	return "without random features, because the model says so"
}

func (aggregate) build(m *Model, _ map[string][]byte) (oracle.Regressor, error) {
	o := m.Oracle
	return oracle.NewAggregate(oracle.AggregateOptions{
		Columns: int(o.Columns.Value), Beta: o.Beta.orByWhatComes(), Fourier: int(o.Fourier.orByWhatComes()),
		Seed: uint64(o.Seed), Steered: o.Steered, Version: o.Version,
		MaxFeatures: m.MaxFeatures, MaxActions: m.learnedActions(), Schema: m.schema(), Places: m.Places(),
	})
}
