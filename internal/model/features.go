package model

import (
	"fmt"
	"math"
	"strconv"

	"hindsight/internal/loop"
	"hindsight/pkg/oracle"
)

// What the oracles over features share.

// versionField is left out of the canonical form in version 1: older models have the same bytes.
func versionField(o *Oracle) field {
	return field{key: "version", into: &o.Version, lo: 1, hi: oracle.Newest,
		example: "version: " + strconv.Itoa(oracle.Newest), omit: o.Version <= 1}
}

func betaField(o *Oracle) field { return field{key: "beta", into: &o.Beta, example: "beta: 0.5"} }

func lambdaField(o *Oracle) field { return field{key: "lambda", into: &o.Lambda, example: "lambda: 1"} }

// randomFields are the keys of random features, which the canonical form has if written.
func randomFields(o *Oracle, written bool) (fourier, columns, seed field) {
	return field{key: "fourier", into: &o.Fourier, example: "fourier: 128", omit: !written},
		field{key: "columns", into: &o.Columns, example: "columns: 17", omit: !written},
		field{key: "seed", into: &o.Seed, hi: 1 << 53, example: "seed: 1", omit: !written}
}

// follows reports whether the oracle sizes itself by what comes.
func (m *Model) follows() bool {
	return m.Oracle.Version > 1 && (m.Oracle.Kind == Auto || m.Oracle.Kind == Linear)
}

// sizes returns d and K that undecided parameters depend on, and d as far as it is known: what the model lists,
// or else its limits, stand for the unknown. It decides how many columns to expect, 0 if that is not known.
func (m *Model) sizes(columns, actions int) (d, known, k int) {
	m.Oracle.Columns.decide(float64(max(columns, 0)))
	if columns <= 0 {
		columns = int(m.Oracle.Columns.Value)
	}
	if d, known = columns, columns; d == 0 {
		d = m.columns()
	}
	if actions <= 0 {
		actions = m.mostActions()
	}
	return d, known, actions
}

// decideFourier decides on random features: those of [oracle.AutoFourier], or none where
// the bytes that they need, at the model's limits, are more than [MaxMemory].
func (m *Model) decideFourier(actions, columns int, bytes float64) {
	n := 0
	if bytes <= MaxMemory {
		n = oracle.AutoFourier(actions, columns)
	}
	m.Oracle.Fourier.decide(float64(n))
}

func (m *Model) checkLambda(add adder) {
	if l := m.Oracle.Lambda; !l.Auto && !(l.Value >= 1e-9 && l.Value <= 1e9) {
		add("oracle", "lambda: expected auto or a number in [1e-9, 1e9], found %v; for example: lambda: 1", l.Value)
	}
}

// maxColumns limits how many columns may be expected.
const maxColumns = 65537

// checkFourier reports whether the number of random features is right: nothing that
// depends on it can be judged otherwise.
func (m *Model) checkFourier(add adder) bool {
	o := m.Oracle
	whole := func(n Number, most float64) bool {
		return n.Auto || n.Value >= 0 && n.Value <= most && n.Value == math.Floor(n.Value)
	}
	if !whole(o.Columns, maxColumns) {
		add("oracle", "columns: expected auto or a whole number in 0…%d, 0 if not known, found %v; for example: "+
			"columns: 17", maxColumns, o.Columns.Value)
	}
	ok := whole(o.Fourier, oracle.MaxFourier)
	if !ok {
		add("oracle", "fourier: expected auto or a whole number in 0…%d, found %v; for example: fourier: 128",
			oracle.MaxFourier, o.Fourier.Value)
	}
	return ok
}

// checkFeatures reports what is wrong with any oracle over features.
func (m *Model) checkFeatures(add adder) {
	o := m.Oracle
	if b := o.Beta; !b.Auto && (b.Value < 0 || b.Value > 1) {
		add("oracle", "beta: expected auto or a number in [0,1], found %v; for example: beta: 0.5", b.Value)
	}
	if m.Explore.Name == Paper && m.Learner.Kind == DAFA {
		add("explore", "the paper's preset is for a finite class; use oracle: {kind: hedge, class: FILE}, or "+
			"explore: theory")
	}
	if bytes := m.Memory(); bytes > MaxMemory && !m.follows() {
		lower := "max_features or max_actions"
		if o.Fourier.Value > 0 {
			lower = "max_features, max_actions or fourier"
		}
		add("max_features", "with up to %d actions and %d columns the %s oracle may need %.3g GiB, more than 1 GiB; "+
			"lower %s", m.mostActions(), m.MaxFeatures+1, o.Kind, float64(bytes)/(1<<30), lower)
	}
}

// schema returns the features with bounds, statistics of texts among them.
func (m *Model) schema() (out []oracle.FeatureSpec) {
	for _, f := range m.Features {
		if f.Bounded {
			out = append(out, oracle.FeatureSpec{Name: f.Name, Lo: f.Lo, Hi: f.Hi})
		}
		if f.Kind == loop.NgramsFeature {
			for i := range oracle.TextStatistics {
				spec := oracle.TextStatistic(i)
				spec.Name = loop.StatisticName(f.Name, i)
				out = append(out, spec, spec.OfActions())
			}
		}
	}
	return out
}

// learnedActions is how many actions a regression learns over time, 0: as many as fit. A
// model that takes any may meet more than max_actions of one round; one that goes on with
// the learner of another list keeps what that one knew.
func (m *Model) learnedActions() int {
	if m.Warm.Keep {
		return 0
	}
	return len(m.Actions)
}

// costOfFollowing describes an oracle that sizes itself by the actions and columns that come.
func (m *Model) costOfFollowing(why, regressions, random string) costs {
	state := fmt.Sprintf("%s an action, as large as the columns seen%s; at most %s in all: "+
		"actions and columns beyond are counted and not learned", regressions, random, bytesText(m.mostMemory()))
	return costs{Oracle: m.Oracle.Kind, Why: why, State: state}
}

// costOfSize describes an oracle with a regression of each of some numbers of columns, n of the last being random
// features. An action takes the bytes given.
func (m *Model) costOfSize(why, regressions string, bytes float64, n, d int, columns ...int) costs {
	each, most := bytesText(int64(bytes)), bytesText(m.Memory())
	state := fmt.Sprintf("%s an action, %s each; at most %s in all", regressions, each, most)
	decision := work(m.mostActions(), n*(d-1), m.Oracle.Beta.Value > 0, columns...)
	return costs{Oracle: m.Oracle.Kind, Why: why, State: state, Decision: decision}
}

// checkVectors reports vectors that the oracle would not learn. Of texts all oracles learn the statistics.
func (m *Model) checkVectors(add adder) {
	if k := m.Oracle.Kind; !m.UsesOracle() || k == Auto || k == Diagonal {
		return
	}
	for _, f := range m.Features {
		if f.Kind == loop.VectorFeature {
			add("features", "%s is a vector, which the oracle %s does not learn; use oracle: auto or oracle: "+
				"diagonal", f.Name, m.Oracle.Kind)
		}
	}
}
