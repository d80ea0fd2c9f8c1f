package model

import (
	"fmt"

	"hindsight/internal/loop"
	"hindsight/pkg/oracle"
)

type certified struct{ fixed }

const ridgeExample = "for example: actions: [red, green], features: {age: {number: [18, 99]}, vip: bool}, oracle: " +
	"{kind: ridge, certified: true}"

func (certified) check(m *Model, add adder) {
	if !m.Oracle.Certified {
		add("oracle", "ridge is for those who need its theorem: add certified: true; without one use oracle: linear")
	}
	if m.Actions == nil || m.Features == nil {
		add("oracle", "ridge needs all actions and features in the model file, so that its columns are fixed; %s",
			ridgeExample)
	}
	for _, f := range m.Features {
		if f.Kind != loop.BoolFeature && !(f.Kind == loop.NumberFeature && f.Bounded) {
			add("features", "%s: ridge needs columns that are fixed: a number with its bounds, or bool; %s", f.Name,
				ridgeExample)
		}
	}
	if l := m.Oracle.Lambda; !l.Auto && l.Value < float64(len(m.Features)+1) {
		add("oracle.lambda", "the theorem of ridge needs at least 1 + %d features, found %v; leave it out",
			len(m.Features), l.Value)
	}
	if m.Explore.Name == Paper && m.Learner.Kind == DAFA {
		add("explore", "the paper's preset is for a finite class; use oracle: {kind: hedge, class: FILE}, or "+
			"explore: cautious")
	}
	if bytes := m.Memory(); bytes > MaxMemory {
		add("oracle", "with %d actions and %d columns ridge needs %.3g GiB, more than 1 GiB", m.mostActions(),
			len(m.Features)+1, float64(bytes)/(1<<30))
	}
}

func (certified) memory(m *Model) float64 {
	return oracle.LinearBytes(m.mostActions(), len(m.Features)+1)
}

func (certified) cost(m *Model) []string {
	d := len(m.Features) + 1
	return m.costOfSize(named, fmt.Sprintf("1 regression of %d columns", d), oracle.LinearBytes(1, d), 0, d, d)
}

func (certified) build(m *Model, _ map[string][]byte) (oracle.Regressor, error) {
	o := oracle.FrozenOptions{Actions: m.Actions, Lambda: m.Oracle.Lambda.Value}
	for _, f := range m.Features {
		spec := oracle.FeatureSpec{Name: f.Name, Lo: f.Lo, Hi: f.Hi}
		if f.Kind != loop.NumberFeature {
			spec.Lo, spec.Hi = 0, 1
		}
		o.Features = append(o.Features, spec)
	}
	return oracle.NewFrozen(o)
}
