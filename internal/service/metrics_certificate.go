package service

import (
	"math"

	"github.com/prometheus/client_golang/prometheus"

	"hindsight/internal/certify"
	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

// certificateMetrics say what bounds the regret of the epoch at work.
type certificateMetrics struct {
	bound, rounds, exploration, surviving, functions, refuted *prometheus.GaugeVec
	topWeight, effective                                      *prometheus.GaugeVec
}

func newCertificateMetrics(c *catalog) certificateMetrics {
	p := partitionLabel
	return certificateMetrics{
		bound: c.gauge("hindsight_regret_bound", "Bound on the regret of the rounds of this epoch, those outstanding here charged 1 each; +Inf: none, or void. /certificate says on what each kind stands.",
			"plausible_set passes what the work is worth", p, label{"kind", certify.Kinds()}),
		rounds:      c.gauge("hindsight_regret_rounds", "Rounds that those bounds are of: one that is not below it says nothing.", "", p),
		exploration: c.gauge("hindsight_exploration_cost", "What exploring cost in this epoch by the model's own belief, in losses.", "", p),
		surviving:   c.gauge("hindsight_models_surviving", "Functions of the class that the data have not refuted (/models names them).", "it is 0", p),
		functions:   c.gauge("hindsight_models", "Functions of the class.", "", p),
		refuted: c.gauge("hindsight_class_refuted", "1 if the data refute that any function of the class is the truth, at the level of the model's certificate, else 0.",
			"it is 1: the bounds that need the class are void; fit another class", p),
		topWeight: c.gauge("hindsight_top_weight", "Largest weight of a function (hedge), policy (exp4dale) or member (auto), as a share of all.", "", p),
		effective: c.gauge("hindsight_effective_models", "As if so many of them had equal weights: 1/Σq².", "", p),
	}
}

// certificatePart is what one decider shows of them. The gauges are made when there is
// something to show.
type certificatePart struct {
	byKind []gauges
	shown  [5]bool // of byKind
	models bool    // those of models are

	weights []float64 // scratch
}

// showWeights shows how the weights of a learner's functions or policies are spread, if it
// has any.
func (p *certificatePart) showWeights(m *certificateMetrics, g *gauges, l learner.Learner) {
	weighted, ok := l.(interface{ AppendWeights([]float64) []float64 })
	if o, has := l.(interface{ Oracle() oracle.Regressor }); has && !ok {
		weighted, ok = o.Oracle().(interface{ AppendWeights([]float64) []float64 })
	}
	if !ok {
		return
	}
	p.weights = weighted.AppendWeights(p.weights[:0])
	top, squares := 0.0, 0.0
	for _, q := range p.weights {
		top = max(top, q)
		squares += q * q
	}
	g.of(m.topWeight).Set(top)
	g.of(m.effective).Set(1 / squares)
}

func (p *certificatePart) show(m *certificateMetrics, g *gauges, f *certify.Figures) {
	if p.byKind == nil {
		for _, kind := range certify.Kinds() {
			p.byKind = append(p.byKind, gauges{values: append(g.values[:1:1], kind)})
		}
	}
	for i, kind := range certify.Kinds() {
		v, ok := f.Bounds[kind]
		if !ok {
			v = math.NaN() // an earlier epoch had it
		}
		if p.shown[i] = p.shown[i] || ok; p.shown[i] {
			p.byKind[i].of(m.bound).Set(v)
		}
	}
	g.of(m.rounds).Set(float64(f.T))
	g.of(m.exploration).Set(f.Exploration)
	if p.models = p.models || f.Functions > 0; !p.models {
		return
	}
	surviving, functions, refuted := float64(f.Surviving), float64(f.Functions), 0.0
	if f.Refuted {
		refuted = 1
	}
	if f.Functions == 0 {
		surviving, functions, refuted = math.NaN(), math.NaN(), math.NaN()
	}
	g.of(m.surviving).Set(surviving)
	g.of(m.functions).Set(functions)
	g.of(m.refuted).Set(refuted)
}

// close ends all that a decider shows.
func (d *deciderPart) close() {
	d.gauges.close()
	d.certificate.close()
}

func (p *certificatePart) close() {
	for i := range p.byKind {
		p.byKind[i].close()
	}
}
