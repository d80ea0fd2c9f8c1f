package model

import (
	"hindsight/pkg/oracle"
)

// maxHashed is the largest D of a shared oracle: its matrix has D(D+1)/2 numbers.
const maxHashed = 8192

// newShared returns the shared or the hybrid oracle with its defaults.
func newShared(kind string) Oracle {
	return Oracle{Kind: kind, Version: oracle.Newest, Beta: Number{Auto: true}, Lambda: Number{Auto: true}, Hashed: oracle.DefaultHashed}
}

// resolveShared decides β, ½ if K·D² ≤ 1e5, else 0, and λ, which is 1: how many of the
// hashed columns are in use is not known.
func (m *Model) resolveShared(actions int) {
	o := &m.Oracle
	if actions <= 0 {
		actions = m.mostActions()
	}
	if o.Beta.Auto {
		o.Beta = Number{Value: oracle.AutoBeta(actions, int(o.Hashed))}
	}
	if o.Lambda.Auto {
		o.Lambda = Number{Value: 1}
	}
}

// shared builds the oracle; its parameters are decided.
func (m *Model) shared() (oracle.Regressor, error) {
	o := m.Oracle
	return oracle.NewShared(oracle.SharedOptions{Hybrid: o.Kind == Hybrid, Hashed: int(o.Hashed), Beta: o.Beta.Value, Lambda: o.Lambda.Value,
		MaxFeatures: m.MaxFeatures, Schema: m.schema(), Version: o.Version})
}

func (m *Model) sharedProblems(add func(key, format string, args ...any)) {
	if h := m.Oracle.Hashed; h < 2 || h > maxHashed {
		add("oracle", "hashed: expected a whole number in 2…%d, found %d; for example: hashed: 256", maxHashed, h)
	}
	m.lambdaProblem(add)
	m.regressionProblems(add)
}

// sharedMemory returns the bytes of its one matrix.
func (m *Model) sharedMemory() int64 { return int64(oracle.LinearBytes(1, int(m.Oracle.Hashed))) }
