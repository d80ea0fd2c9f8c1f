package paper

import (
	"fmt"
	"math"
	"slices"

	"hindsight/internal/model"
	"hindsight/internal/replay"
	"hindsight/internal/world"
	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

// preset is one choice of the constants, with what is proved of it.
type preset struct {
	name string
	tune func(rounds int) func(m *model.Model)
	eta  float64
	// explores bounds Σ(K−1)/γ_t, and steepest γ_t, without delay.
	explores, steepest func(t, k, logF float64) float64
}

// presets are the defaults, and the constants of the paper's proof.
var presets = []preset{
	anytime("default", "balanced", learner.Balanced),
	{"paper", func(rounds int) func(*model.Model) {
		return func(m *model.Model) {
			m.Explore = model.Explore{Name: model.Paper, Horizon: int64(rounds)}
			m.Oracle.Eta = model.PaperEta
		}
	}, model.PaperEta, func(t, k, logF float64) float64 { return (k - 1) * t / paperGamma(t, k, logF) }, paperGamma},
}

// cautious has the factor for which the bound of the defaults is least. That of the default
// itself would leave room for a ninth of its γ.
var cautious = anytime("cautious", "cautious", learner.Cautious)

// anytime is γ_t = c·√((K−1)t/R) with R = 2 log|F|.
func anytime(name, explore string, c float64) preset {
	return preset{name, func(int) func(*model.Model) {
		return func(m *model.Model) { m.Explore.Name = explore }
	}, oracle.DefaultEta,
		func(t, k, logF float64) float64 { return 2 / c * math.Sqrt((k-1)*t*2*logF) },
		func(t, k, logF float64) float64 { return c * math.Sqrt((k-1)*t/(2*logF)) }}
}

// paperGamma is γ = √(KT/R_T) with R_T = 36 log|F| (thm:DAFA-REGRET, thm:Vovk-regret).
func paperGamma(t, k, logF float64) float64 { return math.Sqrt(k * t / (36 * logF)) }

// bound bounds E regret at constant delay d before anything is played, by the theorem with
// the sharper constants of the package comment of learner:
//
//	Σ(K−1)/γ_t + (max γ_t/4)·log|F|/η + 2√(d_max·D·β),   β = κ(η)/2·log|F|
func (p *preset) bound(rounds, actions int, logF float64, d int) float64 {
	t, k, late := float64(rounds), float64(actions), 0.0
	if p.eta == oracle.DefaultEta { // its γ grows with what was learned: d rounds are played with the first
		late = float64(d) * (k - 1) / p.steepest(1, k, logF)
	}
	return p.explores(t, k, logF) + late + p.steepest(t, k, logF)/4*logF/p.eta + 2*float64(d)*math.Sqrt(
		t*oracle.HedgeKL(p.eta)/2*logF)
}

// logistic returns the environment of logistic functions with coefficients of a standard deviation.
func logistic(rounds, actions, functions int, scale float64) func(uint64) *replay.Rounds {
	return func(seed uint64) *replay.Rounds {
		return replay.OfWorld(
			world.NewSigmoid(seed, rounds, world.SigmoidOptions{Actions: actions, Functions: functions, Scale: scale}))
	}
}

// steep makes functions so steep that losses are nearly certain and the functions far apart: a bound of few
// functions is far below the regret of uniform play here, at no more than thousands of rounds.
const steep = 8

// sorted returns the rounds of [steep] functions as an adversary sorts them: by the best action, so
// that for long nothing is seen of the others, and then all at once.
func sorted(rounds, actions, functions int) func(uint64) *replay.Rounds {
	return func(seed uint64) *replay.Rounds {
		e := logistic(rounds, actions, functions, steep)(seed)
		order, best, truth := make([]int32, rounds), make([]int, rounds), make([]float64, actions)
		for t := range rounds {
			e.Truth(truth, t)
			best[t], order[t] = slices.Index(truth, slices.Min(truth)), int32(t)
		}
		slices.SortStableFunc(order, func(a, b int32) int { return best[a] - best[b] })
		return e.Pick(order)
	}
}

// dafaClaim tries the regret bound over T, K, log|F| and D.
var dafaClaim = Claim{
	Name:   "dafa",
	Source: "thm:DAFA-REGRET with thm:Vovk-regret (DA-FA with the Hedge-Vovk oracle)",
	Says: "E regret ≤ O(√(KT log|F|) + √(d_max D log|F|)) under delayed feedback in FIFO order. Played where the " +
		"bound, with the constants that are proved, is less than uniform play regrets.",
	plan: func(o Options) plan { return sweepPlan(o, "DA-FA", dafaSweeps(o)) },
}

// dafaSweeps lays out the axes.
func dafaSweeps(o Options) []sweep {
	const actions, functions = 4, 4
	rounds := size(o, 32000, 6000)
	type at struct{ t, k, n, d int }
	axes := []struct {
		name   string
		values []int
		at     func(v int) at
	}{
		{"T", size(o, []int{4000, 8000, 16000, 32000, 64000}, []int{8000, 32000}), func(v int) at {
			return at{v, actions, functions, 0}
		}},
		{"K", size(o, []int{2, 4, 8, 16, 32}, []int{2, 4, 12}), func(v int) at { return at{rounds, v, functions, 0} }},
		{"log|F|", size(o, []int{2, 4, 16, 128}, []int{2, 4, 16}), func(v int) at { return at{rounds, actions, v, 0} }},
		{"D/T", size(o, []int{0, 5, 10, 20}, []int{5, 10}),
			func(v int) at { return at{rounds, actions, functions, v} }},
	}
	var out []sweep
	for _, a := range axes {
		s := sweep{axis: a.name}
		if o.few {
			a.values = []int{a.values[0], a.values[len(a.values)-1]}
		}
		for _, p := range append([]preset{cautious}, presets...) {
			l := line{bent: a.name == "D/T"}
			for _, v := range a.values {
				at, x := a.at(v), float64(v)
				if a.name == "log|F|" {
					x = logOf(v)
				}
				c := &cell{label: p.name, x: x, rounds: at.t, env: logistic(at.t, at.k, at.n, steep),
					delays: fmt.Sprintf("constant:%d", at.d), tune: p.tune(at.t)}
				l.points = append(l.points, point{c, p.bound(at.t, at.k, logOf(at.n), at.d)})
			}
			s.lines = append(s.lines, l)
		}
		out = append(out, s)
	}
	return out
}
