package model

import (
	"fmt"
	"slices"

	"hindsight/internal/loop"
	"hindsight/pkg/oracle"
)

// What the oracles over features share.

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

// checkFeatures reports what is wrong with any oracle over features.
func (m *Model) checkFeatures(add adder) {
	o := m.Oracle
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

// learnedActions is how many actions a regression learns over time, 0: as many as fit. A model that takes any may meet
// more than max_actions of one round; one that goes on with the learner of another list keeps what that one knew.
func (m *Model) learnedActions() int {
	if m.Warm.Keep {
		return 0
	}
	return len(m.Actions)
}

// costOfFollowing describes an oracle that sizes itself by the actions and columns that come.
func (m *Model) costOfFollowing(why, regressions, random string) []string {
	return []string{why, fmt.Sprintf("%s an action, as large as the columns seen%s; at most %s in all: actions and "+
		"columns beyond are counted and not learned", regressions, random, bytesText(m.mostMemory()))}
}

// costOfSize describes an oracle with a regression of each of some numbers of columns, n of the last being random
// features. An action takes the bytes given.
func (m *Model) costOfSize(why, regressions string, bytes float64, n, d int, columns ...int) []string {
	each, most := bytesText(int64(bytes)), bytesText(m.Memory())
	state := fmt.Sprintf("%s an action, %s each; at most %s in all", regressions, each, most)
	return []string{why, state, work(m.mostActions(), n*(d-1), m.Oracle.Beta.Value > 0, columns...)}
}

// checkListed reports names that statistics of texts have, and vectors that the oracle would not learn. Of texts all
// oracles learn the statistics.
func (m *Model) checkListed(add adder) {
	k := m.Oracle.Kind
	for _, f := range m.Features {
		if f.Kind == loop.VectorFeature && m.UsesOracle() && k != Auto && k != Diagonal {
			add("features", "%s is a vector, which the oracle %s does not learn; use oracle: auto or oracle: "+
				"diagonal", f.Name, k)
		}
		for i := range oracle.TextStatistics {
			name := loop.StatisticName(f.Name, i)
			if f.Kind == loop.NgramsFeature && slices.ContainsFunc(m.Features, func(o loop.FeatureRule) bool {
				return o.Name == name
			}) {
				add("features."+name, "that is the name of a statistic of the text %s; choose another", f.Name)
			}
		}
	}
}
