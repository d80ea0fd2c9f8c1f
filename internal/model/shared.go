package model

import (
	"fmt"

	"hindsight/pkg/oracle"
)

type shared struct{ overFeatures }

// resolve decides β, ½ if K·D² ≤ 1e5, else 0, and λ, which is 1: how many of the
// hashed columns are in use is not known.
func (shared) resolve(m *Model, _, actions int) {
	if actions <= 0 {
		actions = m.mostActions()
	}
	m.Oracle.Beta.decide(oracle.AutoBeta(actions, int(m.Oracle.Hashed)))
	m.Oracle.Lambda.decide(1)
}

func (shared) memory(m *Model) float64 { return oracle.LinearBytes(1, int(m.Oracle.Hashed)) }

func (shared) cost(m *Model) []string {
	columns := int(m.Oracle.Hashed)
	return []string{named, fmt.Sprintf("1 regression of %d columns, %s", columns, bytesText(m.Memory())),
		work(m.mostActions(), 0, m.Oracle.Beta.Value > 0, columns)}
}

func (shared) build(m *Model, _ map[string][]byte) (oracle.Regressor, error) {
	o := m.Oracle
	return oracle.NewShared(oracle.SharedOptions{
		Hybrid: o.Kind == Hybrid, Hashed: int(o.Hashed), Beta: o.Beta.Value, Lambda: o.Lambda.Value, Version: o.Version,
		MaxFeatures: m.MaxFeatures, Schema: m.schema(),
	})
}
