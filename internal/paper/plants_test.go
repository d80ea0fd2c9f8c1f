package paper

import (
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"hindsight/internal/replay"
	"hindsight/internal/testkit/daily"
	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

// The wrong algorithms.
const (
	wrongSign = "wrong sign"       // weights grow with losses
	uniform   = "uniform"          // the law is uniform whatever was learned
	tenth     = "a tenth"          // of γ, of EXP4's η
	never     = "never learns"     // what comes in is thrown away
	root      = "wrong exponent"   // √γ for γ, of EXP4 η² for η
	wholeR    = "R for √R"         // in γ = √(KT/R)
	seer      = "knows the future" // it plays the best action of each round
)

var plants = map[string]plant{
	wrongSign: func(l learner.Learner, _ *replay.Rounds) learner.Learner {
		if _, ok := l.(*learner.EXP4); ok {
			return &mislearns{l, func(y float64) float64 { return -y }}
		}
		if d, ok := l.(*learner.DAFA); ok {
			if h, ok := d.Oracle().(*oracle.Hedge); ok {
				return &resampled{DAFA: d, predicts: newFlipped(h)}
			}
		}
		return &mislearns{l, func(y float64) float64 { return 1 - y }}
	},
	uniform: func(l learner.Learner, _ *replay.Rounds) learner.Learner {
		if d, ok := l.(*learner.DAFA); ok {
			return &resampled{DAFA: d, gamma: func(float64) float64 { return 0 }}
		}
		return learner.NewUniform()
	},
	tenth: func(l learner.Learner, _ *replay.Rounds) learner.Learner {
		return rated(l, func(rate float64) float64 { return rate / 10 },
			func(rate float64) float64 { return rate / 10 })
	},
	never: func(l learner.Learner, _ *replay.Rounds) learner.Learner { return &mislearns{l, nil} },
	root: func(l learner.Learner, _ *replay.Rounds) learner.Learner {
		return rated(l, math.Sqrt, func(eta float64) float64 { return 100 * eta * eta })
	},
	wholeR: func(l learner.Learner, _ *replay.Rounds) learner.Learner {
		return rated(l, func(gamma float64) float64 {
			return gamma / math.Sqrt(l.(*learner.DAFA).Oracle().Regret())
		}, nil)
	},
	seer: func(l learner.Learner, env *replay.Rounds) learner.Learner { return &knows{Learner: l, env: env} },
}

// mislearns learns of other losses; loss nil: of none.
type mislearns struct {
	learner.Learner
	loss func(float64) float64
}

func (m *mislearns) Learn(r *learner.Round) {
	if m.loss != nil {
		other := *r
		other.Loss = m.loss(r.Loss)
		m.Learner.Learn(&other)
	}
}

// rated returns l with another γ, or another fixed η.
func rated(l learner.Learner, gamma, eta func(float64) float64) learner.Learner {
	switch l := l.(type) {
	case *learner.DAFA:
		return &resampled{DAFA: l, gamma: gamma}
	case *learner.EXP4:
		if was := l.Eta(); !math.IsInf(was, 1) {
			other, err := learner.NewEXP4(l.Policies(), learner.EXP4Options{Eta: eta(was)})
			if err != nil {
				panic(err)
			}
			return other
		}
	}
	return l
}

// resampled draws from the law of another γ, or of other predictions.
type resampled struct {
	*learner.DAFA
	gamma    func(gamma float64) float64 // nil: as it is
	predicts *flipped                    // nil: the learner's own
}

func (s *resampled) Propensities(dst []float64, x *oracle.Input) ([]float64, float64) {
	law, gamma := s.DAFA.Propensities(nil, x)
	if s.gamma != nil {
		gamma = s.gamma(gamma)
	}
	values := make([]float64, len(law))
	if s.predicts != nil {
		s.predicts.Predict(values, x)
	} else {
		s.Oracle().Predict(values, x)
	}
	learner.Solve(law, values, gamma)
	dst = append(dst, law...)
	learner.Law(dst[len(dst)-len(law):], law)
	return dst, gamma
}

func (s *resampled) Learn(r *learner.Round) {
	s.DAFA.Learn(r)
	if s.predicts != nil && r.Fate == learner.Observed {
		s.predicts.Update(r.Input, r.Action, r.Loss)
	}
}

// flipped is Hedge with the sign of η wrong: q(f) ∝ exp(+η·Σ(f(z)−y)²).
type flipped struct {
	class        oracle.Class
	eta          float64
	losses, f, q []float64
}

func newFlipped(h *oracle.Hedge) *flipped {
	n := h.Size()
	eta := math.Log(math.Max(float64(n), 2)) / h.Regret()
	w := &flipped{class: h.Class(), eta: eta, losses: make([]float64, n), f: make([]float64, n), q: make([]float64, n)}
	w.weigh()
	return w
}

func (w *flipped) weigh() {
	top, sum := slices.Max(w.losses), 0.0
	for i, l := range w.losses {
		w.q[i] = math.Exp(w.eta * (l - top))
		sum += w.q[i]
	}
	for i := range w.q {
		w.q[i] /= sum
	}
}

func (w *flipped) AppendWeights(dst []float64) []float64 { return append(dst, w.q...) }

func (w *flipped) Predict(dst []float64, x *oracle.Input) {
	for a := range dst {
		w.class.Eval(w.f, x, a)
		dst[a] = 0
		for i, f := range w.f {
			dst[a] += w.q[i] * f
		}
		dst[a] = math.Min(dst[a], 1)
	}
}

func (w *flipped) Update(x *oracle.Input, action int, loss float64) {
	w.class.Eval(w.f, x, action)
	for i, f := range w.f {
		w.losses[i] += (f - loss) * (f - loss)
	}
	w.weigh()
}

// knows plays the best action of each round.
type knows struct {
	learner.Learner
	env *replay.Rounds
	t   int
}

func (s *knows) Propensities(dst []float64, x *oracle.Input) ([]float64, float64) {
	truth := make([]float64, len(x.Actions))
	s.env.Truth(truth, s.t)
	s.t++
	law := make([]float64, len(truth))
	law[slices.Index(truth, slices.Min(truth))] = 1
	return append(dst, law...), 0
}

// mistakes are wrong oracles, where the oracle is played alone.
var mistakes = map[string]func(h *oracle.Hedge) weighted{
	wrongSign: func(h *oracle.Hedge) weighted { return newFlipped(h) },
	never:     func(h *oracle.Hedge) weighted { return still{h} },
	"ten η": func(h *oracle.Hedge) weighted {
		other, err := oracle.NewHedge(h.Class(), oracle.HedgeOptions{Eta: 10 * math.Log(float64(h.Size())) / h.Regret(),
			Unproved: true})
		if err != nil {
			panic(err)
		}
		return other
	},
}

type still struct{ *oracle.Hedge }

func (still) Update(*oracle.Input, int, float64) {}

// cannot begins the reason why a claim cannot tell a wrong algorithm.
const cannot = "cannot tell: "

const (
	higher   = cannot + "an upper bound holds all the more"
	everyone = cannot + "the theorem is of every algorithm"
	oneSize  = cannot + "one size has no exponent"
	noGamma  = cannot + "both estimators have the same rate"
	room     = cannot + "what is asked leaves room for more exploration"
	below    = ": regret is below half of that of uniform play"
	bounded  = ": mean regret is below the bound that is proved"
	both     = "default" + below + ";paper" + below
	overT    = "the exponent of regret over T"
	quarter  = "less than a quarter of uniform play"
	another  = "as another program measured it"
	all      = "cautious" + bounded + ";default" + bounded + ";paper" + bounded
)

// noticed is which wrong algorithms each claim must notice, by checks that contain this;
// several are separated by ";".
var noticed = map[string]map[string]string{
	"exp4": {wrongSign: "adaptive" + bounded + ";known D" + bounded, uniform: "adaptive" + bounded +
		";known D" + bounded,
		never: "adaptive" + bounded + ";known D" + bounded, tenth: "known D" + bounded, seer: higher,
		root:   "the exponent of regret over T;the exponent of regret over K,;the exponent of regret over KT + D",
		wholeR: cannot + "it has no R"},
	"blocks": {wrongSign: everyone, uniform: everyone, tenth: everyone, never: everyone, root: everyone,
		wholeR: everyone, seer: "regret is at least"},
	"weighting": {wrongSign: "regrets less", uniform: "regrets less", never: "regrets less", seer: "regrets less",
		tenth: noGamma, root: noGamma, wholeR: noGamma},
	"unstable": {wrongSign: "less than half", uniform: "nothing without delay", never: "nothing without delay",
		seer:  "it regrets T/2",
		tenth: room, root: room, wholeR: room},
	"dafa": {wrongSign: all, uniform: all, never: all, tenth: "cautious" + bounded + ";paper" + bounded, seer: higher,
		root: "the exponent of regret over T;the exponent of regret over K,", wholeR: "the exponent of regret " +
			"over log|F|"},
	"adversaries": {wrongSign: both, uniform: both, tenth: "paper" + below, never: both, seer: higher, root: oneSize,
		wholeR: oneSize},
	"hypercube": {wrongSign: below, uniform: below, never: below, seer: "less than a fifth",
		tenth: room, root: oneSize, wholeR: oneSize},
	"order": {wrongSign: below, uniform: below, never: below, seer: higher, tenth: room, root: oneSize,
		wholeR: oneSize},
	"dmax": {wrongSign: below, uniform: below, never: below, seer: higher, tenth: below, root: oneSize,
		wholeR: oneSize},
	"oracles": {wrongSign: below, uniform: below, never: below, seer: higher, tenth: room, root: oneSize,
		wholeR: oneSize},
	"additive": {wrongSign: overT, uniform: overT, never: overT, root: overT, tenth: room, wholeR: room,
		seer: higher},
	"stages": {wrongSign: "over five times", uniform: quarter, never: quarter, tenth: room, root: oneSize,
		wholeR: oneSize, seer: higher},
	"delays": {wrongSign: another, uniform: another, never: another, tenth: another, root: another, wholeR: another,
		seer: higher},
	"stability": {wrongSign: "Σ(f̂−f⋆)² is below", never: "Σ(f̂−f⋆)² is below", "ten η": "Σ KL is below",
		uniform: cannot + "no law", tenth: cannot + "no γ", root: cannot + "no γ", wholeR: cannot + "no γ",
		seer: higher},
}

// Each claim fails with each wrong algorithm that it can tell. That it holds with the true
// ones is in TestEveryClaim.
func TestWrongAlgorithmsAreNoticed(t *testing.T) {
	found := map[string]bool{}
	for _, c := range Claims() {
		if testing.Short() && c.Name != "hypercube" {
			continue
		}
		for name := range plants {
			if noticed[c.Name][name] == "" {
				t.Errorf("%s: nothing is said of a learner: %s", c.Name, name)
			}
		}
		for i, name := range slices.Sorted(maps.Keys(noticed[c.Name])) {
			by := noticed[c.Name][name]
			if strings.HasPrefix(by, cannot) {
				continue
			}
			found[name] = true
			if !testing.Short() && !daily.Turn(t, i, 4) {
				continue
			}
			t.Run(c.Name+"/"+name, func(t *testing.T) {
				o := Options{Quick: true, Seeds: 1, Seed: 7, few: few(), plant: plants[name], mistake: mistakes[name]}
				err := Try(t.Context(), []Claim{c}, o, func(int) {}, func(f *Finding) error {
					for _, part := range strings.Split(by, ";") {
						if !slices.ContainsFunc(f.Checks, func(c Check) bool {
							return !c.Holds && strings.Contains(c.What, part)
						}) {
							t.Errorf("not noticed by any check with the words %q", part)
						}
					}
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
	}
	for name := range plants {
		if !found[name] && !testing.Short() {
			t.Errorf("no claim can tell a learner: %s", name)
		}
	}
}
