package paper

import (
	"context"
	"fmt"
	"math"

	"hindsight/internal/chart"
	"hindsight/internal/model"
	"hindsight/internal/random"
	"hindsight/internal/replay"
	"hindsight/internal/world"
	"hindsight/pkg/codec"
	"hindsight/pkg/oracle"
)

// stabilityClaim tries the oracle alone: its regret, and how much it moves.
var stabilityClaim = Claim{
	Name:   "stability",
	Source: "thm:Vovk-regret-and-stability and lemma:vovk-stability (the Hedge-Vovk oracle)",
	Says: "At η = 1/18: Σ E(f̂−f⋆)² ≤ 2 log|F|/η, Σ E KL(q_t‖q_{t+1}) ≤ log|F|, Σ E‖f̂_t−f̂_{t+1}‖² ≤ 2 log|F|. " +
		"Sharper for every η ≤ ½: log|F|/η, κ(η)·log|F| with κ(η) = 2(e^η−1−η)/(1−e^{−η(1−η/2)}), and half of that.",
	plan: func(o Options) plan {
		var all []*movement
		for _, eta := range size(o, []float64{oracle.PaperEta, .1, .2, .3, .4, .5}, []float64{oracle.PaperEta,
			.2, .5}) {
			for _, functions := range size(o, []int{2, 16, 128, 1024}, []int{2, 64}) {
				all = append(all, &movement{eta: eta, functions: functions, rounds: size(o, 10000, 2000),
					runs: make([]moved, o.seeds())})
			}
		}
		var jobs []job
		for _, m := range all {
			jobs = append(jobs, perSeed(o, m.rounds, m.runs, func(ctx context.Context, seed uint64) (moved, error) {
				return m.play(ctx, seed, o.mistake)
			})...)
		}
		return plan{jobs, func(f *Finding) { concludeStability(f, all) }}
	},
}

// movement is one oracle at one η.
type movement struct {
	eta               float64
	functions, rounds int
	runs              []moved
}

// moved is what one run summed: Σ(f̂−f⋆)² at the points fed, Σ KL(q_t‖q_{t+1}), and Σ max over the round's actions of
// (f̂_t−f̂_{t+1})², a lower bound on the squared norm, which takes the largest over all contexts.
type moved struct{ regret, kl, shift float64 }

// weighted is an oracle that shows its weights.
type weighted interface {
	Predict(dst []float64, x *oracle.Input)
	Update(x *oracle.Input, action int, loss float64)
	AppendWeights(dst []float64) []float64
}

// play feeds the oracle uniformly drawn actions.
func (m *movement) play(ctx context.Context, seed uint64, mistake func(h *oracle.Hedge) weighted) (out moved,
	err error) {
	const actions = 5
	env := world.NewSigmoid(seed, m.rounds, world.SigmoidOptions{Actions: actions, Functions: m.functions})
	file, err := model.ParseClass("class", env.Class.Append(nil))
	if err != nil {
		return out, err
	}
	class, err := file.Class()
	if err != nil {
		return out, err
	}
	hedge, err := oracle.NewHedge(class, oracle.HedgeOptions{Eta: m.eta})
	if err != nil {
		return out, err
	}
	h := weighted(hedge)
	if mistake != nil {
		h = mistake(hedge)
	}
	draw := random.New(seed, "paper stability actions")
	var c codec.Context
	x, truth := oracle.Input{}, make([]float64, actions)
	f, next, q, qNext := make([]float64, actions), make([]float64, actions), []float64(nil), []float64(nil)
	for t := range m.rounds {
		if t&1023 == 0 && ctx.Err() != nil {
			return out, ctx.Err()
		}
		env.Context(&c, t)
		inputOf(&x, &c)
		env.Truth(truth, t)
		a := min(int(draw.Uniform(uint64(t), 0)*actions), actions-1)
		h.Predict(f, &x)
		q = h.AppendWeights(q[:0])
		h.Update(&x, a, env.Loss(t, a))
		h.Predict(next, &x)
		qNext = h.AppendWeights(qNext[:0])
		out.add(f, next, truth, a, q, qNext)
	}
	return out, nil
}

// inputOf sets x to what an oracle sees of a context with numbers only.
func inputOf(x *oracle.Input, c *codec.Context) {
	x.Features, x.Actions = x.Features[:0], x.Actions[:0]
	for _, f := range c.Features {
		x.Features = append(x.Features, oracle.Feature{Name: f.Name, Kind: oracle.Number, Value: f.Value})
	}
	for _, a := range c.Actions {
		x.Actions = append(x.Actions, oracle.Action{Name: a.Name})
	}
}

func (m *moved) add(f, next, truth []float64, a int, q, qNext []float64) {
	m.regret += (f[a] - truth[a]) * (f[a] - truth[a])
	shift := 0.0
	for i := range f {
		shift = math.Max(shift, (f[i]-next[i])*(f[i]-next[i]))
	}
	m.shift += shift
	for i, p := range q {
		if p > 0 && qNext[i] > 0 { // below e^-64 of the largest a weight reads 0; it moves nothing
			m.kl += p * math.Log(p/qNext[i])
		}
	}
}

func concludeStability(f *Finding, all []*movement) {
	t := Table{Title: fmt.Sprintf("sums over %d rounds, divided by log|F|", all[0].rounds),
		Columns: []string{"η", "|F|", "Σ(f̂−f⋆)²", "sharper", "paper", "Σ KL", "sharper", "paper",
			"Σ‖f̂−f̂'‖² seen", "sharper", "paper"}}
	regret := chart.Chart{Title: "The Hedge-Vovk oracle: regret and movement over η, divided by log|F|", X: "η",
		Y: "sum / log|F|", LogX: true, LogY: true}
	lines := map[int]*chart.Series{}
	var order []int
	worst := [3]float64{}
	for _, m := range all {
		scale := logOf(m.functions)
		var r, kl, shift []float64
		for _, run := range m.runs {
			r, kl, shift = append(r, run.regret/scale), append(kl, run.kl/scale), append(shift, run.shift/scale)
		}
		bounds := [3]float64{1 / m.eta, oracle.HedgeKL(m.eta), oracle.HedgeKL(m.eta) / 2}
		sums := [3]replay.Estimate{estimate(r), estimate(kl), estimate(shift)}
		row := []any{m.eta, m.functions}
		for i, printed := range paperBounds(m.eta) {
			row = append(row, sums[i], bounds[i], printed)
		}
		t.row(row...)
		for i := range sums {
			worst[i] = math.Max(worst[i], sums[i].Value/bounds[i])
			f.check(sums[i].Value <= bounds[i]+2*se(sums[i]), "η = %.3g, |F| = %d: %s is below its sharper bound",
				m.eta, m.functions, []string{"Σ(f̂−f⋆)²", "Σ KL", "Σ‖f̂−f̂'‖²"}[i])
		}
		l, ok := lines[m.functions]
		if !ok {
			l = &chart.Series{Name: fmt.Sprintf("Σ KL, |F| = %d", m.functions)}
			lines[m.functions], order = l, append(order, m.functions)
		}
		addPoint(l, m.eta, sums[1])
	}
	bound := chart.Series{Name: "bound on Σ KL for every η ≤ ½", Dashed: true}
	for _, m := range all {
		if m.functions == all[0].functions {
			bound.X, bound.Y = append(bound.X, m.eta), append(bound.Y, oracle.HedgeKL(m.eta))
		}
	}
	for _, n := range order {
		regret.Series = append(regret.Series, *lines[n])
	}
	regret.Series = append(regret.Series, bound)
	f.Tables, f.Charts = append(f.Tables, t), append(f.Charts, picture{"stability", regret})
	f.Checked = "each sum is below its sharper bound, within two standard errors"
	var wider [3]float64
	for i, printed := range paperBounds(oracle.PaperEta) {
		wider[i] = printed / [3]float64{1 / oracle.PaperEta, oracle.HedgeKL(oracle.PaperEta),
			oracle.HedgeKL(oracle.PaperEta) / 2}[i]
	}
	f.Seen = fmt.Sprintf("of the sharper bounds at most %.2f, %.2f and %.2f were used (regret, KL, movement), for "+
		"every η up to ½; the paper's, which are proved for η ≤ 1/18 and the last for η = 1/18, are there %.3g, %.3g "+
		"and %.3g times as large. Movement is the largest over the round's context and not over all, so it is seen "+
		"from below.", worst[0], worst[1], worst[2], wider[0], wider[1], wider[2])
}

// paperBounds returns what the paper bounds the three sums by, over log|F|; NaN where it claims nothing.
func paperBounds(eta float64) [3]float64 {
	if eta > oracle.PaperEta {
		return [3]float64{math.NaN(), math.NaN(), math.NaN()}
	}
	return [3]float64{2 / eta, 1, 2}
}
