package model

import (
	"fmt"

	"hindsight/pkg/oracle"
)

type diagonal struct{ overFeatures }

// resolve decides β, which costs nothing here, and λ.
func (diagonal) resolve(m *Model, _, _ int) {
	m.Oracle.Beta.decide(0.5)
	m.Oracle.Lambda.decide(oracle.DiagonalLambda)
}

func (diagonal) memory(m *Model) float64 {
	return min(MaxMemory, oracle.DiagonalBytes(m.mostActions(), m.MaxFeatures+1+m.Places()))
}

func (diagonal) cost(m *Model) []string {
	return []string{named, fmt.Sprintf("1 diagonal regression an action of the columns seen and %d places of texts "+
		"and vectors; at most %s in all: actions beyond are counted and not learned", m.Places(),
		bytesText(m.Memory()))}
}

func (diagonal) build(m *Model, _ map[string][]byte) (oracle.Regressor, error) {
	o := m.Oracle
	return oracle.NewDiagonal(oracle.DiagonalOptions{
		Places: m.Places(), Beta: o.Beta.Value, Lambda: o.Lambda.Value, Version: o.Version,
		MaxFeatures: m.MaxFeatures, MaxActions: m.learnedActions(), Schema: m.schema(),
	})
}
