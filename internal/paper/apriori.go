package paper

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"hindsight/internal/chart"
	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

// delaysClaim reproduces the tables of regret and bounds over kinds of delays.
var delaysClaim = Claim{
	Name:   "delays",
	Source: "derived here: theorems 1, 2 and 3 (docs/algorithms.md, 3.4); BOLD: Joulani, György and Szepesvári 2013",
	Says: "Under delays that are blind to missing losses DA-FA with η = ½ pays for delay additively, in any order, " +
		"with nothing known beforehand: √(KT log|F|) + d·log|F|. Played beside it: FIFO, η = 1/σ, BOLD, which has a " +
		"copy for each round outstanding, and the constants of the paper.",
	plan: delaysPlan,
}

// measured is a row of the table of regret at T = 20,000, K = 10, |F| = 100, c = 8, which a program of its own
// measured on six seeds of the same environments: NaN says that it was not.
type measured struct {
	lateDelays
	regret [5]float64 // FIFO, arrival, η = 1/σ, BOLD, the paper's
}

// sampling is the relative standard error of figures of the table, at most: of FIFO under heavy tails it is more.
const (
	sampling    = 0.085
	heavyTailed = 0.12
)

func kindsOfDelays() []measured {
	wait := func(name string, sigma int, wait func(rng *rand.Rand, t int, best bool, loss float64) int) lateDelays {
		return lateDelays{name: name, sigma: sigma, wait: wait}
	}
	starve := func(_ *rand.Rand, _ int, best bool, _ float64) int {
		if best {
			return 500
		}
		return 1
	}
	none := lateConstant(0)
	none.name = "none"
	return []measured{
		{none, [5]float64{319, 319, 319, 319, 4131}},
		{lateConstant(50), [5]float64{343, 343, 571, 2419, 4146}},
		{wait("lognormal 20, 1.5", 87, func(rng *rand.Rand, _ int, _ bool, _ float64) int {
			return int(20 * math.Exp(1.5*rng.NormFloat64()))
		}), [5]float64{827, 335, 746, 2971, 4675}},
		{wait("pareto 1.5, 10", 44, func(rng *rand.Rand, _ int, _ bool, _ float64) int {
			return int(math.Min(1e6, 10*math.Pow(1-rng.Float64(), -2./3)))
		}), [5]float64{498, 331, 522, 2018, 4283}}, {lateBlocks(500), [5]float64{517, 517, 2747, 8434, 4196}},
		{wait("head of line 900/1000", 2, func(_ *rand.Rand, t int, _ bool, _ float64) int {
			if t%1000 == 0 {
				return 900
			}
			return 1
		}), [5]float64{693, 320, 320, 521, 4285}},
		{wait("best arm 500 late", 484, starve), [5]float64{539, 352, 2719, 5615, 4267}},
		{wait("by loss 200/5", 194, func(_ *rand.Rand, _ int, _ bool, loss float64) int {
			return 200 - int(195*loss)
		}), [5]float64{414, 365, 1292, 4774, 4188}}, {goodNewsLate(100, 2000), [5]float64{741, 333, 840, 3544, 4408}},
	}
}

func delaysPlan(o Options) plan {
	const rounds, actions = 20000, 10
	kinds := kindsOfDelays()
	algos := []lateAlgo{halfFIFO, halfArrival, bySigma, bold, paperFIFO(rounds)}
	seeds := size(o, max(6, o.seeds()/3), min(2, o.seeds()))
	if o.Quick {
		kinds, algos = kinds[:3], algos[:2]
	}
	if o.few {
		kinds = kinds[1:2]
	}
	cells := make([][]*late, len(kinds))
	var all []job
	for i, k := range kinds {
		for _, a := range algos {
			c := &late{world: lateSigmoid(rounds, actions, 100), rounds: rounds, delays: k.lateDelays, algo: a}
			cells[i] = append(cells[i], c)
			all = append(all, c.jobs(o, seeds)...)
		}
	}
	return plan{all, func(f *Finding) { concludeDelays(f, kinds, cells) }}
}

func concludeDelays(f *Finding, kinds []measured, cells [][]*late) {
	f.lateCells("regret at T = 20,000, K = 10, |F| = 100",
		"delays", "Regret under kinds of delays", cells)
	off := 0.0
	for i, k := range kinds {
		for j, c := range cells[i] {
			e, want, of := estimate(c.regret), k.regret[j], sampling
			if c.algo.fifo && i > 0 {
				of = heavyTailed
			}
			noise := math.Hypot(se(e), of*want)
			off = math.Max(off, math.Abs(e.Value-want)/noise)
			f.check(math.Abs(e.Value-want) <= 3*noise, "%s, %s: regret is %.0f, as another program measured it, "+
				"within 3 standard errors", k.name, c.algo.name, want)
		}
	}
	f.aprioriTable()
	f.Checked = "regret is what another program measured, within 3 standard errors, and the bounds are those of its " +
		"table, within 1 %"
	f.Seen = fmt.Sprintf("regret was at most %.1f standard errors from what was measured before. In the order of "+
		"arrival with η = ½ delay costs hardly anything; η = 1/σ and BOLD, which no delays can fool, pay for that "+
		"under all.", off)
}

// known are bounds of the table at T = 20,000 and K = 10: by theorem 1, 2 and 3, by stability in FIFO order, and of
// the paper; NaN where delays are random and the bound depends on the largest.
var known = []struct {
	name   string
	late   func(t int) float64 // nil: pareto or lognormal, drawn
	bounds [2][5]float64       // |F| = 100, 1,000
}{
	{"none", func(int) float64 { return 0 }, [2][5]float64{{1628, 1288, 1669, 1288, 23033}, {}}},
	{"constant 50", func(int) float64 { return 50 }, [2][5]float64{{10721, 9195, 3438, 22296, 65975},
		{13130, 11262, 4506}}},
	{"pareto 1.5, 10", nil, [2][5]float64{{2: 4887}, {2: 6172}}},
	{"lognormal 20, 1.5", nil, [2][5]float64{{2: 7069}, {2: 8632}}},
	{"blocks of 500", func(t int) float64 { return float64(499 - t%500) }, [2][5]float64{{2: 10200}, {2: 14230}}},
	{"head of line 900/1000", func(t int) float64 {
		if t%1000 == 0 {
			return 900
		}
		return 1
	}, [2][5]float64{{2684, 2230, 1859}, {3288, 2731, 2299}}},
}

func (f *Finding) aprioriTable() {
	const rounds, actions = 20000, 10
	for i, functions := range []int{100, 1000} {
		t := Table{Title: fmt.Sprintf("bounds known before the run but for the delays, |F| = %d", functions)}
		t.Columns = []string{"delays", "theorem 1", "theorem 2", "theorem 3", "θ", "W", "stability, FIFO",
			"the paper, FIFO"}
		for _, k := range known {
			late := make([]float64, rounds)
			rng := rand.New(rand.NewPCG(1, 22))
			for s := range late {
				switch {
				case k.late != nil:
					late[s] = k.late(s)
				case k.name[0] == 'p':
					late[s] = math.Floor(10 * math.Pow(1-rng.Float64(), -2./3))
				default:
					late[s] = math.Floor(20 * math.Exp(1.5*rng.NormFloat64()))
				}
			}
			b, at := boundsOf(late, actions, logOf(functions))
			t.row(k.name, b[0], b[1], b[2], at.Theta, int(at.Late), b[3], b[4])
			for j, want := range k.bounds[i] {
				if want > 0 {
					f.check(math.Abs(b[j]-want) <= want/100, "|F| = %d, %s: the bound by %s is %.0f, within 1 %%",
						functions, k.name, t.Columns[columnOfBound[j]], want)
				}
			}
		}
		f.draw(t, fmt.Sprintf("delays-bounds-%d", functions), chart.Chart{Title: t.Title, Y: "bound", LogY: true},
			columnOfBound...)
	}
}

// columnOfBound is that of the table by the order of boundsOf.
var columnOfBound = []int{1, 2, 3, 6, 7}

// boundsOf returns the bounds with the best fixed γ, of rounds with such delays.
func boundsOf(late []float64, actions int, logF float64) (b [5]float64, at learner.Free) {
	rounds := len(late)
	kt := float64((actions - 1) * rounds)
	sigma := outstandingOf(late)
	most := slices.Max(sigma)
	lead := func(lead float64) float64 { return math.Sqrt(kt * lead) }
	one := learner.Potential{Eta: math.Min(.5, 1/math.Max(most, 1)), Scale: logF}
	b[0] = lead(math.Exp(one.Eta*most) * one.Sum())
	b[1] = lead(2 * (most + 1) * logF)
	half := learner.Potential{Eta: oracle.DefaultEta, Scale: logF}
	b[2], at = half.Additive(int64(slices.Max(late)), lead, func(w int64) (n float64) {
		for _, d := range late {
			if d > float64(w) {
				n++
			}
		}
		return n
	})
	released, last := make([]float64, rounds), 0.0
	for t, d := range late {
		last = math.Max(last, float64(t)+d)
		released[t] = math.Min(last-float64(t), float64(rounds-t))
	}
	sum, squares := 0.0, 0.0
	for _, s := range outstandingOf(released) {
		sum, squares = sum+s, squares+s*s
	}
	b[3] = lead(2*logF) + 2*math.Sqrt(squares*oracle.HedgeKL(oracle.DefaultEta)/2*logF)
	b[4] = slices.Max(released) + 4*math.Sqrt(36*float64(actions*rounds)*logF) +
		2*math.Sqrt(2*slices.Max(released)*sum*logF)
	return b, at
}

// outstandingOf returns σ_t.
func outstandingOf(late []float64) []float64 {
	came, sigma := make([]float64, len(late)+1), make([]float64, len(late))
	for t, d := range late {
		if at := float64(t) + d + 1; at < float64(len(late)) {
			came[int(at)]++
		}
	}
	there := 0.0
	for t := range late {
		there += came[t]
		sigma[t] = float64(t) - there
	}
	return sigma
}
