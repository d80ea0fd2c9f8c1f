package paper

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"hindsight/internal/chart"
	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

// The claims on theorems that are derived here are played by a loop of their own: delays that look at losses,
// rounds learned in both orders, several copies of a learner. Learner, oracle and sampler are those that run live.

// grid is a class by its values: of function f in context x on action a at [x·K+a][f]. The first function that
// an environment names as its truth need not be the first of the class.
type grid struct {
	values  [][]float64
	actions int
}

func (g *grid) Size() int { return len(g.values[0]) }

func (g *grid) at(x *oracle.Input, action int) []float64 {
	return g.values[int(x.Vector[0])*g.actions+action]
}

func (g *grid) Eval(dst []float64, x *oracle.Input, action int) { copy(dst, g.at(x, action)) }

// Mix implements [oracle.Mixer].
func (g *grid) Mix(dst, q []float64, x *oracle.Input) {
	for a := range dst {
		s := 0.0
		for i, v := range g.at(x, a) {
			s += float64(q[i] * v)
		}
		dst[a] = s
	}
}

// lateWorld is an environment over a grid.
type lateWorld struct {
	*grid
	truth   int
	inputs  []*oracle.Input // by context
	context []int32         // of each round
}

// newLateWorld returns one with values by function, context and action.
func newLateWorld(functions, contexts, actions, truth int, context []int32,
	value func(f, x, a int) float64) *lateWorld {
	w := &lateWorld{grid: &grid{actions: actions}, truth: truth, context: context}
	list := make([]oracle.Action, actions)
	for a := range list {
		list[a].Name = fmt.Sprint("a", a)
	}
	for x := range contexts {
		w.inputs = append(w.inputs, &oracle.Input{Vector: []float64{float64(x)}, Actions: list})
		for a := range actions {
			v := make([]float64, functions)
			for f := range v {
				v[f] = value(f, x, a)
			}
			w.values = append(w.values, v)
		}
	}
	return w
}

// uniformContexts draws contexts.
func uniformContexts(rng *rand.Rand, rounds, contexts int) []int32 {
	out := make([]int32, rounds)
	for t := range out {
		out[t] = int32(rng.IntN(contexts))
	}
	return out
}

// lateSigmoid is 200 contexts of logistic functions, coefficients N(0, 1.5²).
func lateSigmoid(rounds, actions, functions int) func(rng *rand.Rand) *lateWorld {
	return func(rng *rand.Rand) *lateWorld {
		const contexts, d = 200, 5
		x := make([][d]float64, contexts)
		for i := range x {
			for j := range x[i] {
				x[i][j] = 2*rng.Float64() - 1
			}
		}
		theta := make([][d + 1]float64, functions*actions)
		for i := range theta {
			for j := range theta[i] {
				theta[i][j] = 1.5 * rng.NormFloat64()
			}
		}
		value := func(f, c, a int) float64 {
			w := &theta[f*actions+a]
			s := w[d]
			for j, v := range x[c] {
				s += w[j] * v
			}
			return 1 / (1 + math.Exp(-s))
		}
		return newLateWorld(functions, contexts, actions, 0, uniformContexts(rng, rounds, contexts), value)
	}
}

// lateStages is so many contexts one after the other. Under the truth the actions lose .5 and .7; function j says .9
// of the first in context j−1.
func lateStages(rounds, contexts int) func(*rand.Rand) *lateWorld {
	context := make([]int32, rounds)
	for t := range context {
		context[t] = int32(t * contexts / rounds)
	}
	return func(*rand.Rand) *lateWorld {
		return newLateWorld(contexts+1, contexts, 2, 0, context, func(f, x, a int) float64 {
			if a == 0 && f == x+1 {
				return .9
			}
			return .5 + .2*float64(a)
		})
	}
}

// lateCube is the 2ⁿ functions on n contexts with one action each that loses eps less than ½; the truth is drawn.
func lateCube(n int, eps float64, context func(rng *rand.Rand) []int32, other float64) func(rng *rand.Rand) *lateWorld {
	return func(rng *rand.Rand) *lateWorld {
		return newLateWorld(1<<n, n, 2, rng.IntN(1<<n), context(rng), func(f, x, a int) float64 {
			if f>>x&1 == a {
				return other - eps
			}
			return other
		})
	}
}

// lateDelays are delays of one kind: how many later rounds are decided before the outcome of round t comes, or
// the rules of those that hold back what they choose.
type lateDelays struct {
	name string
	wait func(rng *rand.Rand, t int, best bool, loss float64) int
	// good news of the best action is held back: at most so many at once, for so many rounds
	most, age int
	sigma     int // the most rounds that are outstanding at once, about
}

// lateAlgo is one way to learn.
type lateAlgo struct {
	name string
	fifo bool
	// several: a round goes to the first that waits for none
	make func(w *lateWorld, sigma int) ([]learner.Learner, error)
}

// late is one cell of an experiment on delays, played once a seed.
type late struct {
	world  func(rng *rand.Rand) *lateWorld
	rounds int
	delays lateDelays
	algo   lateAlgo
	regret []float64
}

// jobs returns the runs.
func (c *late) jobs(o Options, seeds int) []job {
	c.regret = make([]float64, seeds)
	return perSeed(o, c.rounds, c.regret, func(ctx context.Context, seed uint64) (float64, error) {
		return c.play(ctx, seed, o.plant)
	})
}

// lateCells shows regret by kinds of delays, then by ways to learn, as a table and as a picture.
func (f *Finding) lateCells(title, name, caption string, cells [][]*late) {
	t, columns := Table{Title: title, Columns: []string{"delays"}}, []int(nil)
	for j, c := range cells[0] {
		t.Columns, columns = append(t.Columns, c.algo.name), append(columns, j+1)
	}
	for _, cells := range cells {
		row := []any{cells[0].delays.name}
		for _, c := range cells {
			row = append(row, estimate(c.regret))
		}
		t.row(row...)
	}
	f.draw(t, name, chart.Chart{Title: caption, Y: "regret", LogY: true}, columns...)
}

// lateRound is a round that was decided.
type lateRound struct {
	learner.Round
	copy  int
	ready bool
}

// lateRun is one that is played.
type lateRun struct {
	*late
	w      *lateWorld
	rng    *rand.Rand
	copies []learner.Learner
	rounds []lateRound
	due    [][]int32 // rounds whose outcome comes before a decision
	held   []int32
	busy   []bool
	n      []int64 // feedbacks of each copy
	next   int     // first round that is not learned, in order
}

// play returns the regret of a run.
func (c *late) play(ctx context.Context, seed uint64, plant plant) (regret float64, err error) {
	r := &lateRun{late: c, rng: rand.New(rand.NewPCG(seed, 20)), rounds: make([]lateRound, c.rounds),
		due: make([][]int32, c.rounds)}
	r.w = c.world(rand.New(rand.NewPCG(seed, 21)))
	if r.copies, err = c.algo.make(r.w, c.delays.sigma); err != nil {
		return 0, err
	}
	for i, l := range r.copies {
		if plant != nil {
			r.copies[i] = plant(l, nil)
		}
	}
	r.busy, r.n = make([]bool, len(r.copies)), make([]int64, len(r.copies))
	for t := range c.rounds {
		if t&1023 == 0 && ctx.Err() != nil {
			return 0, ctx.Err()
		}
		r.come(t)
		regret += r.decide(t)
	}
	return regret, nil
}

// come learns what comes before decision t.
func (r *lateRun) come(t int) {
	d := &r.delays
	for len(r.held) > 0 && (len(r.held) > d.most || t-int(r.held[0]) > d.age) {
		r.due[t], r.held = append(r.due[t], r.held[0]), r.held[1:]
	}
	for _, s := range r.due[t] {
		if r.rounds[s].ready = true; !r.algo.fifo {
			r.learn(&r.rounds[s])
		}
	}
	r.due[t] = nil
	for ; r.algo.fifo && r.next < t && r.rounds[r.next].ready; r.next++ {
		r.learn(&r.rounds[r.next])
	}
}

func (r *lateRun) learn(x *lateRound) {
	r.busy[x.copy] = false
	r.n[x.copy]++
	x.N = r.n[x.copy]
	r.copies[x.copy].Learn(&x.Round)
	x.Propensities = nil
}

// decide plays round t and returns its regret.
func (r *lateRun) decide(t int) (regret float64) {
	x := &r.rounds[t]
	for x.copy < len(r.copies)-1 && r.busy[x.copy] {
		x.copy++
	}
	r.busy[x.copy] = true
	l := r.copies[x.copy]
	x.Input, x.Decision, x.LearnedThrough, x.Fate = r.w.inputs[r.w.context[t]], int64(t+1), r.n[x.copy],
		learner.Observed
	x.Propensities, x.Gamma = l.Propensities(make([]float64, 0, r.w.actions), x.Input)
	x.Action = learner.Draw(x.Propensities, r.rng.Uint64()>>11)
	low, mine := math.Inf(1), 0.0
	for a, p := range x.Propensities {
		v := r.w.at(x.Input, a)[r.w.truth]
		low, regret = math.Min(low, v), regret+p*v
		if a == x.Action {
			mine = v
		}
	}
	if r.rng.Float64() < mine {
		x.Loss = 1
	}
	if r.delays.most > 0 && mine == low && x.Loss == 0 {
		r.held = append(r.held, int32(t))
	} else if at := t + 1 + r.delays.wait(r.rng, t, mine == low, x.Loss); at < len(r.due) {
		r.due[at] = append(r.due[at], int32(t))
	}
	return regret - low
}

// The kinds of delays of the tables.
func lateConstant(d int) lateDelays {
	return lateDelays{name: fmt.Sprintf("constant %d", d), sigma: d,
		wait: func(*rand.Rand, int, bool, float64) int { return d }}
}

func lateBlocks(d int) lateDelays {
	return lateDelays{name: fmt.Sprintf("blocks of %d", d), sigma: d - 1,
		wait: func(_ *rand.Rand, t int, _ bool, _ float64) int { return d - 1 - t%d }}
}

// goodNewsLate holds back good news of the best action.
func goodNewsLate(most, age int) lateDelays {
	return lateDelays{name: "good news late", sigma: most, most: most, age: age,
		wait: func(*rand.Rand, int, bool, float64) int { return 0 }}
}

// over returns a learner of DA-FA over Hedge.
func over(w *lateWorld, o oracle.HedgeOptions, s learner.Schedule) ([]learner.Learner, error) {
	h, err := oracle.NewHedge(w.grid, o)
	if err != nil {
		return nil, err
	}
	return []learner.Learner{learner.NewDAFA(h, s)}, nil
}

// explores returns γ = c·√((K−1)n/(2·log|F|)).
func (w *lateWorld) explores(c float64) explores {
	return explores{c, 2 * math.Log(math.Max(2, float64(w.Size())))}
}

// explores is [learner.Anytime] with a constant that does not follow η.
type explores struct{ c, r float64 }

func (s explores) Gamma(k int, learned int64, _ float64) float64 {
	return learner.Anytime{C: s.c}.Gamma(k, learned, s.r)
}

// single is one learner with η = ½ unless o says otherwise.
func single(name string, fifo bool, o oracle.HedgeOptions, c float64) lateAlgo {
	return lateAlgo{name, fifo, func(w *lateWorld, _ int) ([]learner.Learner, error) {
		return over(w, o, w.explores(c))
	}}
}

// bySigma has the fixed η = 1/σ, in the order of arrival.
var bySigma = lateAlgo{"arrival, η = 1/σ", false, func(w *lateWorld, sigma int) ([]learner.Learner, error) {
	return over(w, oracle.HedgeOptions{Eta: math.Min(.5, 1/math.Max(1, float64(sigma)))}, w.explores(learner.Balanced))
}}

// outstanding has the η that follows what is outstanding in the order of decisions, in the order of arrival.
var outstanding = lateAlgo{"arrival, η outstanding", false, func(w *lateWorld, _ int) ([]learner.Learner, error) {
	one, err := over(w, oracle.HedgeOptions{Outstanding: true}, w.explores(learner.Balanced))
	if err != nil {
		return nil, err
	}
	m, err := learner.NewModels(w.grid, learner.ModelsOptions{})
	if err != nil {
		return nil, err
	}
	return one, one[0].(*learner.DAFA).WatchArrivals(m)
}}

// bold is a copy a round that is outstanding: none ever waits (Joulani, György and Szepesvári 2013).
var bold = lateAlgo{"BOLD", false, func(w *lateWorld, sigma int) (all []learner.Learner, err error) {
	for range sigma + 1 {
		one, err := over(w, oracle.HedgeOptions{}, w.explores(learner.Balanced))
		if err != nil {
			return nil, err
		}
		all = append(all, one...)
	}
	return all, nil
}}

// paperFIFO has the constants of the paper's proof.
func paperFIFO(rounds int) lateAlgo {
	return lateAlgo{"paper, FIFO", true, func(w *lateWorld, _ int) ([]learner.Learner, error) {
		return over(w, oracle.HedgeOptions{Eta: oracle.PaperEta}, learner.Paper{T: int64(rounds)})
	}}
}

var (
	halfFIFO    = single("FIFO, η = ½", true, oracle.HedgeOptions{}, learner.Balanced)
	halfArrival = single("arrival, η = ½", false, oracle.HedgeOptions{}, learner.Balanced)
)
