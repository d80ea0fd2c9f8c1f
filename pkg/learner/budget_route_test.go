package learner_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"hindsight/internal/testkit/daily"
	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

// exam are prompts that each of some language models has answered: what the answers were worth and what they cost.
type exam struct {
	inputs        []oracle.Input
	quality, cost [][]float64
}

// readExam reads prompts with the 8 statistics of their text, and its words as terms.
func readExam(t testing.TB) (e exam) {
	path := "../../../shared/data/route/val_k4.jsonl"
	if p := os.Getenv("HINDSIGHT_ROUTE"); p != "" {
		path = p
	}
	file, err := os.Open(path)
	if err != nil {
		t.Skipf("no prompts: %v", err)
	}
	defer file.Close()
	var actions []oracle.Action
	var texts oracle.Texts
	in := bufio.NewScanner(file)
	in.Buffer(nil, 1<<22)
	for in.Scan() {
		var row struct {
			Prompt string
			Arms   map[string]struct{ Reward, Cost float64 }
		}
		if err := json.Unmarshal(in.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		if actions == nil {
			for _, name := range slices.Sorted(maps.Keys(row.Arms)) {
				actions = append(actions, oracle.Action{Name: name})
			}
		}
		x := oracle.Input{Actions: actions}
		var statistics [oracle.TextStatistics]float64
		x.Terms = texts.Append(nil, &statistics, 0, row.Prompt)
		for i, v := range statistics {
			x.Features = append(x.Features, oracle.Feature{Name: oracle.TextStatistic(i).Name, Kind: oracle.Number,
				Value: v})
		}
		var quality, cost []float64
		for _, a := range actions {
			quality, cost = append(quality, row.Arms[a.Name].Reward), append(cost, row.Arms[a.Name].Cost)
		}
		e.inputs, e.quality, e.cost = append(e.inputs, x), append(e.quality, quality), append(e.cost, cost)
	}
	return e
}

const mostUSD = .2 // of one answer: the range of the outcome

// aboutUSD is what the kit's model file says of prices.
var aboutUSD = map[string]float64{"meta-llama/llama-3.1-8b-instruct": 3e-5, "mistralai/mistral-large-2512": 5e-4,
	"google/gemini-2.5-flash": 1e-3, "google/gemini-2.5-pro": 1.5e-2}

var usd = []float64{0, mostUSD}

// router is a learner with a budget of so much a prompt.
func router(kind string, mean float64, about map[string]float64) *learner.DAFA {
	return onLoss(kind, toLoss, ofUSD(mean, about))
}

func ofUSD(mean float64, about map[string]float64) learner.Budget {
	return learner.Budget{Name: "cost", Of: func(string) (float64, []float64) { return 0, usd }, Mean: mean,
		About: about}
}

// onLoss is a learner of a loss by quality and usd.
func onLoss(kind string, loss []float64, of ...learner.Budget) *learner.DAFA {
	var schema []oracle.FeatureSpec
	for i := range oracle.TextStatistics {
		schema = append(schema, oracle.TextStatistic(i))
	}
	return costedBy(loss, func() oracle.Regressor {
		if kind == "linear" {
			return must(oracle.NewLinear(oracle.LinearOptions{Beta: oracle.ByWhatComes, Lambda: oracle.ByWhatComes,
				Schema: schema, Version: oracle.Newest}))
		}
		return must(oracle.NewAggregate(oracle.AggregateOptions{Beta: oracle.ByWhatComes, Fourier: oracle.ByWhatComes,
			Seed: 1, Schema: schema, Version: oracle.Newest, Places: oracle.TextPlaces}))
	}, of...)
}

// ema is the price of ParetoBandit's pacer, by gradient steps on a smoothed cost, with its constants.
type ema struct{ cost, price float64 }

func (e *ema) observe(c float64) { // in budgets
	e.cost += .05 * (c - e.cost)
	e.price = max(0, min(e.price+.05*(e.cost-1), 5))
}

// spent is how a run ended: means of what the logged law expects, and the most that was overspent, in budgets.
type spent struct{ quality, cost, most float64 }

// route plays the exam in a random order, with outcomes so many rounds late. If quality comes before costs a round
// has two records.
func (e *exam) route(l *learner.DAFA, mean float64, late, costsLate int, dual *ema, seed uint64) (s spent) {
	rng := rand.New(rand.NewPCG(seed, 19))
	order := rng.Perm(len(e.inputs))
	rounds := make([]learner.Round, len(order))
	n := int64(0)
	learn := func(t int, outcomes int, partial bool) {
		if t < 0 {
			return
		}
		n++
		r, row := rounds[t], order[t]
		r.N, r.Partial, r.Fate, r.Outcomes = n, partial, learner.Observed, make([]learner.Outcome, 2)
		if outcomes&1 != 0 {
			r.Outcomes[0] = learner.Outcome{Known: true, Value: e.quality[row][r.Action]}
		}
		c := e.cost[row][r.Action]
		if outcomes&2 != 0 {
			r.Outcomes[1] = learner.Outcome{Known: true, Value: min(c/mostUSD, 1)}
		}
		r.Loss = 1 - e.quality[row][r.Action]
		l.Learn(&r)
		if dual != nil {
			if outcomes&2 != 0 {
				dual.observe(c / mean)
			}
			l.SetPrice(dual.price)
		}
	}
	over := 0.0
	for t, row := range order {
		r := &rounds[t]
		r.Input, r.LearnedThrough = &e.inputs[row], n
		r.Propensities, r.Gamma = l.Propensities(nil, r.Input)
		r.Action = learner.Draw(r.Propensities, rng.Uint64()>>11)
		for a, p := range r.Propensities {
			s.quality += p * e.quality[row][a] / float64(len(order))
			s.cost += p * e.cost[row][a] / mean / float64(len(order))
		}
		over += e.cost[row][r.Action]/mean - 1
		s.most = max(s.most, over)
		switch {
		case late == costsLate:
			learn(t-late, 3, false)
		default:
			learn(t-late, 1, true)
			learn(t-costsLate, 2, false)
		}
	}
	return s
}

// routes plays so many seeds.
func (e *exam) routes(t *testing.T, kind string, mean float64, about map[string]float64, late, costsLate, seeds int,
	gradient bool) (m spent) {
	low, high := math.Inf(1), 0.0
	for seed := range seeds {
		var dual *ema
		l := router(kind, mean, about)
		if gradient {
			dual = &ema{cost: 1}
			l.SetPrice(0)
		}
		s := e.route(l, mean, late, costsLate, dual, uint64(seed))
		m.quality += s.quality / float64(seeds)
		m.cost += s.cost / float64(seeds)
		m.most = max(m.most, s.most)
		low, high = min(low, s.cost), max(high, s.cost)
	}
	t.Logf("%s: B %v, %s, late %d and %d: quality %.4f at %.3f of the budget (%.3f to %.3f), most overspent %.0f",
		t.Name(), mean, kind, late, costsLate, m.quality, m.cost, low, high, m.most)
	return m
}

// TestBudgetRoute: on prompts for four language models the mean cost keeps its budget, with costs at once and 100
// rounds late, from nothing but what the models roughly cost. The long form plays 8 orders.
func TestBudgetRoute(t *testing.T) {
	if testing.Short() {
		t.Skip("pure and long: the race detector has nothing to find here")
	}
	seeds := 1
	if os.Getenv("HINDSIGHT_LONG") != "" {
		seeds = 8
	}
	for i, c := range []struct {
		mean            float64
		late, costsLate int
		quality         float64
	}{
		{1.5e-4, 0, 0, .837}, {1.5e-4, 0, 100, .839}, {1.5e-4, 100, 100, .835},
		{5e-4, 0, 0, .916}, {5e-4, 0, 100, .917}, {5e-4, 100, 100, .907},
		{2e-3, 0, 0, .926}, {2e-3, 0, 100, .925}, {2e-3, 100, 100, .925},
	} {
		for k, kind := range []string{"linear", "auto"} {
			if !daily.Turn(t, i+k, 3) {
				continue
			}
			t.Run(fmt.Sprintf("%s/%v/%d,%d", kind, c.mean, c.late, c.costsLate), func(t *testing.T) {
				t.Parallel()
				e := readExam(t)
				s := e.routes(t, kind, c.mean, aboutUSD, c.late, c.costsLate, seeds, false)
				if seeds > 1 && (s.cost < .90 || s.cost > 1.05) || s.cost < .75 || s.cost > 1.2 {
					t.Errorf("%.3f of the budget are spent", s.cost)
				}
				if seeds > 1 && s.quality < c.quality-.01 {
					t.Errorf("the quality is %.4f, want %.3f", s.quality, c.quality)
				}
			})
		}
	}
}

// TestBudgetGood: at least a quality at the least cost, alone and under a budget of the cost.
func TestBudgetGood(t *testing.T) {
	if testing.Short() {
		t.Skip("pure and long: the race detector has nothing to find here")
	}
	e := readExam(t)
	for i, least := range []float64{.9, .92} {
		if !daily.Turn(t, i, 2) {
			continue
		}
		good := ofQuality(least)
		cheap := e.route(onLoss("linear", []float64{0, 1}, good), 5e-4, 0, 0, nil, 1)
		t.Logf("quality %.4f for at least %v, at %.6f a prompt", cheap.quality, least, cheap.cost*5e-4)
		if math.Abs(cheap.quality-least) > .01 {
			t.Errorf("the quality is %.4f, want %v", cheap.quality, least)
		}
	}
	both := e.route(onLoss("linear", []float64{0, 1}, ofUSD(5e-4, aboutUSD), ofQuality(.9)), 5e-4, 0, 100, nil, 1)
	t.Logf("quality %.4f at %.3f of the budget under both", both.quality, both.cost)
	if both.quality < .88 || both.cost > 1.1 {
		t.Errorf("the quality is %.4f at %.3f of the budget", both.quality, both.cost)
	}
}

// BenchmarkRoute times a decision and what is learned of a round: 4 actions, 8 statistics, 4,096 places of words, two
// outcomes and a budget. least-ns is the least of several samples, as in [BenchmarkDecide].
func BenchmarkRoute(b *testing.B) {
	e := readExam(b)
	for _, kind := range []string{"linear", "auto"} {
		l := router(kind, 5e-4, aboutUSD)
		e.route(l, 5e-4, 0, 0, nil, 1)
		var law []float64
		r := learner.Round{Fate: learner.Observed, Outcomes: make([]learner.Outcome, 2)}
		i := 0
		for name, f := range map[string]func(){
			"decide": func() { law, _ = l.Propensities(law[:0], &e.inputs[i%len(e.inputs)]) },
			"learn": func() {
				row := i % len(e.inputs)
				r.Input, r.Action, r.N, r.LearnedThrough = &e.inputs[row], i%4, int64(i+1), int64(i)
				r.Loss = 1 - e.quality[row][r.Action]
				r.Outcomes[0] = learner.Outcome{Known: true, Value: 1 - r.Loss}
				r.Outcomes[1] = learner.Outcome{Known: true, Value: e.cost[row][r.Action] / mostUSD}
				l.Learn(&r)
			},
		} {
			b.Run(kind+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					f()
					i++
				}
				b.ReportMetric(measure(func() { f(); i++ })*1e9, "least-ns")
			})
		}
	}
}

// TestBudgetAbout: without rough prices, or with wrong ones, the budget is kept in the end; an EMA of costs with
// gradient steps, which is what others do, is not when costs come late.
func TestBudgetAbout(t *testing.T) {
	if os.Getenv("HINDSIGHT_LONG") == "" {
		t.Skip("long")
	}
	e := readExam(t)
	scaled := func(by ...float64) map[string]float64 {
		about := map[string]float64{}
		for i, name := range slices.Sorted(maps.Keys(aboutUSD)) {
			about[name] = aboutUSD[name] * by[i%len(by)]
		}
		return about
	}
	for _, mean := range []float64{1.5e-4, 5e-4, 2e-3} {
		for name, c := range map[string]struct {
			about map[string]float64
			most  float64 // of the budget
		}{
			"a third": {scaled(1. / 3), 1.1}, "three times": {scaled(3), 1.1}, "some": {scaled(3, 1./3), 1.1},
			"a tenth": {scaled(.1), 1.3}, "none": {nil, 2.5}, // which costs what the rounds before the first cost take
		} {
			for _, late := range [][2]int{{0, 0}, {0, 100}, {100, 100}} {
				t.Run(fmt.Sprintf("%s/%v/%v", name, mean, late), func(t *testing.T) {
					t.Parallel()
					s := e.routes(t, "auto", mean, c.about, late[0], late[1], 4, false)
					if s.cost > c.most {
						t.Errorf("%.3f of the budget are spent", s.cost)
					}
				})
			}
		}
		t.Run(fmt.Sprint("gradient/", mean), func(t *testing.T) {
			t.Parallel()
			for _, late := range [][2]int{{0, 0}, {0, 100}, {100, 100}} {
				e.routes(t, "linear", mean, aboutUSD, late[0], late[1], 8, true)
			}
		})
	}
}
