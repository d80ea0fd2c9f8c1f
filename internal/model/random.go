package model

import (
	"strconv"

	"go.yaml.in/yaml/v3"

	"hindsight/pkg/oracle"
)

// Fourier is the linear oracle with random features, as flags name it.
const Fourier = "fourier"

// Limits of the bandwidth of random features.
const (
	leastBandwidth = 1e-3
	mostBandwidth  = 1e3
)

// newRandom returns the linear oracle with m random features and the other defaults.
func newRandom(m Number) Oracle {
	o := newLinear()
	o.Fourier, o.Columns, o.Bandwidth, o.Seed = m, Number{Auto: true}, 1, 1
	return o
}

// randomised reports whether a linear oracle has random features, or may have them.
func (o *Oracle) randomised() bool { return o.Fourier.Auto || o.Fourier.Value > 0 }

// linearKeys are the keys of a linear oracle; the last three say how random features are made.
func linearKeys() []string {
	return []string{"kind", "version", "beta", "lambda", "forget", "fourier", "columns", "bandwidth", "seed"}
}

// finishLinear fills in what random features have by default, or reports keys that say
// something of features that are not there.
func (p *parser) finishLinear(o *Oracle, given map[string]*yaml.Node) {
	if !o.randomised() {
		for _, key := range linearKeys()[6:] {
			if n := given[key]; n != nil {
				p.errorf(n, "oracle.%s: it has no effect without random features; for example: oracle: {kind: linear, fourier: %d}", key, oracle.DefaultFourier)
			}
		}
		return
	}
	fill := newRandom(o.Fourier)
	if given["columns"] == nil {
		o.Columns = fill.Columns
	}
	if given["bandwidth"] == nil {
		o.Bandwidth = fill.Bandwidth
	}
	if given["seed"] == nil {
		o.Seed = fill.Seed
	}
}

// resolveLinear decides the parameters of the linear oracle that were left to the program;
// columns and actions are d and K, 0 if not known.
func (m *Model) resolveLinear(columns, actions int) {
	o := &m.Oracle
	if o.Columns.Auto {
		o.Columns = Number{Value: float64(max(columns, 0))}
	}
	known := columns
	if columns <= 0 {
		columns = m.columns()
		if o.Columns.Value > 0 {
			columns = int(o.Columns.Value)
			known = columns
		}
	}
	if actions <= 0 {
		actions = m.mostActions()
	}
	if o.Fourier.Auto {
		o.Fourier = Number{Value: float64(m.autoFourier(actions, columns, oracle.LinearBytes(m.mostActions(), m.MaxFeatures+1+oracle.DefaultFourier)))}
		if o.Fourier.Value == 0 { // as if there had been no word of them
			o.Columns, o.Bandwidth, o.Seed = Number{}, 0, 0
		}
	}
	random := int(o.Fourier.Value)
	if o.Lambda.Auto {
		o.Lambda = Number{Value: oracle.AutoLambda(max(known, 1) + random)}
	}
	if o.Beta.Auto {
		o.Beta = Number{Value: oracle.AutoBeta(actions, columns+random)}
	}
}

// autoFourier is the rule for random features: those of [oracle.AutoFourier], or none where
// the bytes that they need, at the model's limits, are more than [MaxMemory].
func (m *Model) autoFourier(actions, columns int, bytes float64) int {
	if bytes > MaxMemory {
		return 0
	}
	return oracle.AutoFourier(actions, columns)
}

// linearMemory returns the bytes of the linear oracle at its largest.
func (m *Model) linearMemory() int64 {
	c := *m
	c.Resolve(0, 0)
	return int64(oracle.LinearBytes(m.mostActions(), m.MaxFeatures+1+int(c.Oracle.Fourier.Value)))
}

// randomProblems are those of the random features of a linear oracle.
func (m *Model) randomProblems(add func(key, format string, args ...any)) {
	o := m.Oracle
	if !o.randomised() {
		if o.Columns != (Number{}) || o.Bandwidth != 0 || o.Seed != 0 {
			add("oracle", "columns, bandwidth and seed have no effect without random features; for example: oracle: {kind: linear, fourier: %d}", oracle.DefaultFourier)
		}
		return
	}
	if !(o.Bandwidth >= leastBandwidth && o.Bandwidth <= mostBandwidth) {
		add("oracle", "bandwidth: expected a number in [%v, %v], found %v; for example: bandwidth: 1", leastBandwidth, float64(mostBandwidth), o.Bandwidth)
	}
}

// canonicalRandom is left out where there are no random features: older models have the same
// bytes.
func (o Oracle) canonicalRandom() string {
	if !o.randomised() {
		return ""
	}
	return ", fourier: " + o.Fourier.canonical() + ", columns: " + o.Columns.canonical() +
		", bandwidth: " + formatFloat(o.Bandwidth) + ", seed: " + strconv.FormatInt(o.Seed, 10)
}
