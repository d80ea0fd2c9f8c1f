package model

import (
	"fmt"
	"math"
	"strconv"

	"hindsight/pkg/oracle"
)

// resolveAuto decides the parameters of the aggregate that were left to the program:
// how many columns to expect, 0 if that is not known, β as for the linear oracle, and
// the random features, 128 if K·(d+128)² ≤ 1e6 and the model's limits
// leave memory for them, else none. d and K are what the model
// lists, or else its limits, where they are not known.
func (m *Model) resolveAuto(columns, actions int) {
	o := &m.Oracle
	if o.Columns.Auto {
		o.Columns = Number{Value: float64(max(columns, 0))}
	}
	if columns <= 0 {
		columns = m.columns()
		if o.Columns.Value > 0 {
			columns = int(o.Columns.Value)
		}
	}
	if actions <= 0 {
		actions = m.mostActions()
	}
	if o.Beta.Auto {
		o.Beta = Number{Value: oracle.AutoBeta(actions, columns)}
	}
	if o.Fourier.Auto {
		o.Fourier = Number{Value: float64(m.autoFourier(actions, columns, oracle.AggregateBytes(m.mostActions(), m.MaxFeatures+1, oracle.DefaultFourier)))}
	}
}

// auto builds the aggregate; its parameters are decided.
func (m *Model) auto() (oracle.Regressor, error) {
	o := oracle.AggregateOptions{
		Columns: int(m.Oracle.Columns.Value), Beta: m.Oracle.Beta.orByWhatComes(), Fourier: int(m.Oracle.Fourier.orByWhatComes()),
		Seed: uint64(m.Oracle.Seed), Steered: m.Oracle.Steered, MaxFeatures: m.MaxFeatures, MaxActions: m.learnedActions(),
		Schema: m.schema(), Version: m.Oracle.Version,
	}
	return oracle.NewAggregate(o)
}

// orByWhatComes returns the value of a parameter, or what leaves it to the oracle.
func (n Number) orByWhatComes() float64 {
	if n.Auto {
		return oracle.ByWhatComes
	}
	return n.Value
}

// follows reports whether the oracle sizes itself by what comes.
func (m *Model) follows() bool {
	return m.Oracle.Version > 1 && (m.Oracle.Kind == Auto || m.Oracle.Kind == Linear)
}

// resolveNothing is [Model.Resolve] of an oracle that follows what comes: only columns, of
// which none is expected then, and the number of random features of the linear oracle, which
// it has or has not.
func (m *Model) resolveNothing() {
	o := &m.Oracle
	if o.Columns.Auto {
		o.Columns = Number{}
	}
	if o.Kind == Linear && o.Fourier.Auto {
		o.Fourier = Number{Value: oracle.DefaultFourier}
	}
}

// schema returns the features with bounds.
func (m *Model) schema() (out []oracle.FeatureSpec) {
	for _, f := range m.Features {
		if f.Bounded {
			out = append(out, oracle.FeatureSpec{Name: f.Name, Lo: f.Lo, Hi: f.Hi})
		}
	}
	return out
}

// ParseOracle reads an oracle as flags write it, with its defaults: auto, linear, fourier,
// which is linear with 128 random features, shared or hybrid.
func ParseOracle(s string) (Oracle, error) {
	switch s {
	case Auto:
		return newAuto(), nil
	case Linear:
		return newLinear(), nil
	case Fourier:
		return newRandom(Number{Value: oracle.DefaultFourier}), nil
	case Shared, Hybrid:
		return newShared(s), nil
	}
	return Oracle{}, fmt.Errorf("unknown oracle %q: expected auto, linear, fourier, shared or hybrid; hedge needs a model file with its class", s)
}

// maxColumns limits how many columns may be expected.
const maxColumns = 65537

func (m *Model) autoProblems(add func(key, format string, args ...any)) {
	if m.fourierProblems(add) {
		return
	}
	m.regressionProblems(add)
}

// fourierProblems reports whether the number of random features is wrong: nothing that
// depends on it can be judged then.
func (m *Model) fourierProblems(add func(key, format string, args ...any)) bool {
	o := m.Oracle
	whole := func(n Number, most float64) bool {
		return n.Auto || n.Value >= 0 && n.Value <= most && n.Value == math.Floor(n.Value)
	}
	if !whole(o.Columns, maxColumns) {
		add("oracle", "columns: expected auto or a whole number in 0…%d, 0 if not known, found %v; for example: columns: 17", maxColumns, o.Columns.Value)
	}
	if !whole(o.Fourier, oracle.MaxFourier) {
		add("oracle", "fourier: expected auto or a whole number in 0…%d, found %v; for example: fourier: 128", oracle.MaxFourier, o.Fourier.Value)
		return true
	}
	return false
}

// autoMemory returns the bytes of the aggregate with as many actions and columns as the model
// allows; random features that follow what comes take at most 5 MB more.
func (m *Model) autoMemory() int64 {
	c := *m
	c.Resolve(0, 0)
	return int64(oracle.AggregateBytes(m.mostActions(), m.MaxFeatures+1, int(c.Oracle.Fourier.Value)))
}

// DefaultOracle sets the oracle of a model that names none: auto.
func (m *Model) DefaultOracle() { m.defaultOracle(oracle.Newest) }

// defaultOracle is [Model.DefaultOracle] for a version of what is computed. In version 1 it is
// linear where auto, with as many actions and columns as the model allows, would take more
// than [MaxMemory].
func (m *Model) defaultOracle(version int) {
	m.Oracle = newAuto()
	m.Oracle.Version = version
	if version == 1 && m.autoMemory() > MaxMemory {
		m.Oracle = newLinear()
		m.Oracle.Version = version
	}
}

// canonicalVersion is left out in version 1: older models have the same bytes.
func (o Oracle) canonicalVersion() string {
	if o.Version <= 1 {
		return ""
	}
	return ", version: " + strconv.Itoa(o.Version)
}

func (o Oracle) canonicalAuto() string {
	return "{kind: auto" + o.canonicalVersion() + ", beta: " + o.Beta.canonical() + ", columns: " + o.Columns.canonical() + ", fourier: " + o.Fourier.canonical() +
		", seed: " + strconv.FormatInt(o.Seed, 10) + pick(o.Steered, ", share: steered}", "}") // left out otherwise: older models have the same bytes
}
