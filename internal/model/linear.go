package model

import (
	"fmt"

	"hindsight/pkg/oracle"
)

type linear struct{}

// expectRandom sets what random features have by default.
func (o *Oracle) expectRandom() { o.Columns, o.Bandwidth, o.Seed = Number{Auto: true}, 1, 1 }

// randomised reports whether a linear oracle has random features, or may have them.
func (o *Oracle) randomised() bool { return o.Fourier != (Number{}) }

const noRandom = "it has no effect without random features; for example: oracle: {kind: linear, fourier: %d}"

// dropRandom takes the defaults of random features back where there are none, and reports keys that say something of
// them.
func (o *Oracle) dropRandom(p *parser) {
	o.Columns, o.Bandwidth, o.Seed = Number{}, 0, 0
	for _, key := range []string{"columns", "bandwidth", "seed"} {
		if n := p.at["oracle."+key]; n != nil {
			p.errorf(n, "oracle.%s: "+noRandom, key, oracle.DefaultFourier)
		}
	}
}

func (linear) check(m *Model, add adder) {
	if o := m.Oracle; !o.randomised() && (o.Columns != (Number{}) || o.Bandwidth != 0 || o.Seed != 0) {
		add("oracle", "columns, bandwidth and seed: "+noRandom, oracle.DefaultFourier)
	}
	m.checkFeatures(add)
}

func (linear) resolve(m *Model, columns, actions int) {
	o := &m.Oracle
	if m.follows() {
		o.Columns.decide(0)
		o.Fourier.decide(oracle.DefaultFourier)
		return
	}
	d, known, k := m.sizes(columns, actions)
	m.decideFourier(k, d, oracle.LinearBytes(m.mostActions(), m.MaxFeatures+1+oracle.DefaultFourier))
	n := int(o.Fourier.Value)
	if n == 0 { // as if there had been no word of them
		o.Columns, o.Bandwidth, o.Seed = Number{}, 0, 0
	}
	o.Lambda.decide(oracle.AutoLambda(max(known, 1) + n))
	o.Beta.decide(oracle.AutoBeta(k, d+n))
}

func (linear) memory(m *Model) float64 {
	return oracle.LinearBytes(m.mostActions(), m.MaxFeatures+1+int(m.Oracle.Fourier.Value))
}

func (linear) cost(m *Model) []string {
	if m.follows() {
		return m.costOfFollowing(named, "1 regression", "")
	}
	why, other := named, m.Clone()
	other.Oracle = oracleOf(Auto)
	if need := other.oracleMemory(); need > MaxMemory {
		why = fmt.Sprintf("because auto would need up to %s, more than %s", bytesText(need), bytesText(MaxMemory))
	}
	d, _, _ := m.sizes(0, 0)
	n := int(m.Oracle.Fourier.Value)
	said := fmt.Sprintf("1 regression of %d columns", d+n)
	if n > 0 {
		said += fmt.Sprintf(", %d of them random features,", n)
	}
	return m.costOfSize(why, said, oracle.LinearBytes(1, d+n), n, d, d+n)
}

func (linear) build(m *Model, _ map[string][]byte) (oracle.Regressor, error) {
	o := m.Oracle
	return oracle.NewLinear(oracle.LinearOptions{
		Version: o.Version, Beta: o.Beta.orByWhatComes(), Lambda: o.Lambda.orByWhatComes(), Forget: o.Forget,
		Fourier: int(o.Fourier.Value), Columns: int(o.Columns.Value), Bandwidth: o.Bandwidth, Seed: uint64(o.Seed),
		MaxFeatures: m.MaxFeatures, MaxActions: m.learnedActions(), Schema: m.schema(),
	})
}
