package watch

import (
	"math"

	"hindsight/internal/certify"
	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

// certificateMetrics say what bounds the regret of the epoch at work. They are shown from when there
// is something to show.
type certificateMetrics struct {
	bounds                        []*gauge // by kind
	rounds, exploration           *gauge
	surviving, functions, refuted *gauge
	topWeight, effective          *gauge

	weights []float64 // scratch
}

func newCertificate(o *owner) certificateMetrics {
	return certificateMetrics{
		bounds: o.laterBy("hindsight_regret_bound",
			"Bound on the regret of the rounds of this epoch, those outstanding here included; +Inf: none, or void. "+
				"/certificate says on what each kind stands.",
			"plausible_set passes what the work is worth", label{"kind", certify.Kinds()}),
		rounds: o.later("hindsight_regret_rounds", "Rounds that those bounds are of: one that is not below it says "+
			"nothing.", ""),
		exploration: o.later("hindsight_exploration_cost", "What exploring cost in this epoch by the model's own "+
			"belief, in losses.", ""),
		surviving: o.later("hindsight_models_surviving",
			"Functions of the class that the data have not refuted (/models names them).", "it is 0"),
		functions: o.later("hindsight_models", "Functions of the class.", ""),
		refuted: o.later("hindsight_class_refuted",
			"1 if the data refute that any function of the class is the truth, at the level of the model's "+
				"certificate, else 0.",
			"it is 1: the bounds that need the class are void; fit another class"),
		topWeight: o.later("hindsight_top_weight",
			"Largest weight of a function (hedge), policy (exp4dale) or member (auto), as a share of all.", ""),
		effective: o.later("hindsight_effective_models", "As if so many of them had equal weights: 1/Σq².", ""),
	}
}

// Weights shows how the weights of a learner's functions or policies are spread, if it has any.
func (d *DeciderMetrics) Weights(l learner.Learner) {
	weighted, ok := l.(interface{ AppendWeights([]float64) []float64 })
	if o, has := l.(interface{ Oracle() oracle.Regressor }); has && !ok {
		weighted, ok = o.Oracle().(interface{ AppendWeights([]float64) []float64 })
	}
	if !ok {
		return
	}
	m := &d.certificate
	m.weights = weighted.AppendWeights(m.weights[:0])
	top, squares := 0.0, 0.0
	for _, q := range m.weights {
		top = max(top, q)
		squares += q * q
	}
	m.topWeight.Set(top)
	m.effective.Set(1 / squares)
}

// Certificate shows what a certificate says. What an earlier epoch had, and this one has not, is NaN.
func (d *DeciderMetrics) Certificate(f *certify.Figures) {
	m := &d.certificate
	for i, kind := range certify.Kinds() {
		if v, ok := f.Bounds[kind]; ok {
			m.bounds[i].Set(v)
		} else if m.bounds[i].prom != nil {
			m.bounds[i].Set(math.NaN())
		}
	}
	m.rounds.Set(float64(f.T))
	m.exploration.Set(f.Exploration)
	switch {
	case f.Functions > 0:
		m.surviving.Set(float64(f.Surviving))
		m.functions.Set(float64(f.Functions))
		m.refuted.Set(truth(f.Refuted))
	case m.functions.prom != nil:
		for _, g := range []*gauge{m.surviving, m.functions, m.refuted} {
			g.Set(math.NaN())
		}
	}
}

// truth returns 1 for true, and 0.
func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
