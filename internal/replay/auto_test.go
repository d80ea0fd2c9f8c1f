package replay

import (
	"os"
	"path/filepath"
	"testing"

	"hindsight/internal/logs"
	"hindsight/internal/loop"
	"hindsight/internal/model"
	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

// steered is auto with share: steered.
const steered = "steered"

// autoRun plays DA-FA over an oracle with its defaults.
func autoRun(t *testing.T, env *Rounds, name, delay string, order int) (*Result, oracle.Regressor) {
	t.Helper()
	m, _ := ModelFor(env, "replay", model.Learner{Kind: model.DAFA}, loop.Window{Rounds: 200})
	kind := name
	if name == steered {
		kind = model.Auto
	}
	var err error
	if m.Oracle, err = model.ParseOracle(kind); err != nil {
		t.Fatal(err)
	}
	m.Oracle.Steered = name == steered
	m.MaxFeatures = max(m.MaxFeatures, env.Columns)
	m.Resolve(env.Columns, len(env.Actions))
	l, err := m.Build(nil)
	if err != nil {
		t.Fatal(err)
	}
	tr := &Trial{Rounds: Order(env, order, 1), Order: order, Delays: delays(t, delay, 1), Model: m, Seed: 1}
	trace, err := traced(t.Context(), loop.Epoch{Number: 1, Rules: m.Rules(), Learner: l}, m.Name, SecretSeed(1),
		tr.Rounds, tr.Delays)
	if err != nil {
		t.Fatal(err)
	}
	return tr.result(trace.trace), l.(*learner.DAFA).Oracle()
}

// holdBound fails if the mixture has lost more than its theorem allows over the best
// member.
func holdBound(t *testing.T, reg oracle.Regressor) {
	t.Helper()
	a := reg.(*oracle.Aggregate)
	l := a.AppendLosses(nil)
	best := l[0]
	for _, v := range l[:len(l)-1] {
		best = min(best, v)
	}
	if mean := l[len(l)-1]; mean > best+a.Overhead() {
		t.Errorf("the mixture's loss %v exceeds the best member's, of %v, by more than %v", mean, l, a.Overhead())
	}
	if n := a.Counts().Resets; n != 0 {
		t.Errorf("%d regressions broke", n)
	}
}

// sharedSet opens a labelled CSV of the data beside the project.
func sharedSet(t *testing.T, name string) *Rounds {
	t.Helper()
	path := filepath.Join("../../../shared/data/multiclass", name+".csv")
	if _, err := os.Stat(path); err != nil {
		t.Skipf("the data set %s is not beside the project", name)
	}
	env, err := openLog(path, logs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return env
}

// TestAutoBound: on every stream, still and moving, prompt and late, the mixture keeps to
// its bound.
func TestAutoBound(t *testing.T) {
	n := many(1500, 3000)
	if testing.Short() {
		n = 500
	}
	for _, spec := range []string{"sigmoid", "close:0.3", "needle:0.4,0.2,0.6", "linear:10,10", "bandit:10,0.4,0.5"} {
		t.Run(spec, func(t *testing.T) {
			_, reg := autoRun(t, environment(t, spec, 1, n), model.Auto, "exp:50", 0)
			holdBound(t, reg)
		})
	}
	for _, name := range []string{"pendigits", "mushroom"} {
		t.Run(name, func(t *testing.T) {
			env := Head(sharedSet(t, name), n)
			for _, twist := range []string{"", "permute:0.5", "rewards:.6,.3"} {
				e := env
				if twist != "" {
					e = twisted(t, env, twist)
				}
				_, reg := autoRun(t, e, model.Auto, "lognormal:20,1.5", 0)
				holdBound(t, reg)
			}
		})
	}
}

// TestAutoTargets holds the aggregate to what it is for, over five row orders; the long
// form plays all rounds.
func TestAutoTargets(t *testing.T) {
	if os.Getenv("HINDSIGHT_LONG") == "" {
		t.Skip("all rounds of five row orders: with HINDSIGHT_LONG=1")
	}
	mean := func(env *Rounds, name, delay string) (loss, regret float64) {
		const orders = 5
		for i := range orders {
			r, reg := autoRun(t, env, name, delay, i)
			loss += *r.MeanLoss / orders
			regret += *r.Regret / orders
			if name == model.Auto {
				holdBound(t, reg)
			}
		}
		return loss, regret
	}
	pendigits, mushroom := sharedSet(t, "pendigits"), sharedSet(t, "mushroom")
	for _, c := range []struct {
		name  string
		env   *Rounds
		delay string
		most  float64
	}{
		{"pendigits", pendigits, "none", .055},
		{"mushroom", mushroom, "none", .0065},
		{"pendigits, labels permuted half-way", twisted(t, pendigits, "permute:0.5"), "none", .25},
		{"pendigits, exp:50", pendigits, "exp:50", .08},
	} {
		loss, _ := mean(c.env, model.Auto, c.delay)
		t.Logf("%s: mean loss %.4f, at most %v", c.name, loss, c.most)
		if loss > c.most {
			t.Errorf("%s: mean loss %v, want at most %v", c.name, loss, c.most)
		}
	}
	noisy := twisted(t, pendigits, "rewards:.6,.3")
	_, auto := mean(noisy, model.Auto, "none")
	_, linear := mean(noisy, model.Linear, "none")
	t.Logf("pendigits with rewards .6/.3: regret %.1f, of the linear oracle %.1f", auto, linear)
	if auto > linear {
		t.Errorf("with rewards .6/.3 the regret is %v, of the linear oracle %v", auto, linear)
	}
	for _, spec := range []string{"linear:10,10", "bandit:10,0.4,0.5"} {
		sum := map[string]float64{}
		const seeds = 32
		for seed := range uint64(seeds) {
			for _, name := range []string{model.Auto, model.Linear} {
				r, _ := autoRun(t, environment(t, spec, seed+1, 20_000), name, "none", 0)
				sum[name] += *r.Regret / seeds
			}
		}
		t.Logf("%s: mean regret %.1f, of the linear oracle %.1f", spec, sum[model.Auto], sum[model.Linear])
		if sum[model.Auto] > 1.1*sum[model.Linear] {
			t.Errorf("%s: regret %v is not within a tenth of %v", spec, sum[model.Auto], sum[model.Linear])
		}
	}
}

// TestSteeredShare: on a long stationary stream a steered share regrets about as much as the
// linear oracle, a fixed one more; on the public sets it keeps the targets of the aggregate.
func TestSteeredShare(t *testing.T) {
	if os.Getenv("HINDSIGHT_LONG") == "" {
		t.Skip("200,000 rounds of five seeds: with HINDSIGHT_LONG=1")
	}
	regret := map[string]float64{}
	const seeds = 5
	for seed := range uint64(seeds) {
		env := environment(t, "linear:10,10", seed+1, 200_000)
		for _, name := range []string{model.Auto, steered, model.Linear} {
			r, reg := autoRun(t, env, name, "none", 0)
			regret[name] += *r.Regret / seeds
			if name != model.Linear {
				holdBound(t, reg)
			}
		}
	}
	t.Logf("linear:10,10, 200,000 rounds: regret %.0f, steered %.0f, linear %.0f", regret[model.Auto], regret[steered],
		regret[model.Linear])
	if regret[steered] > 1.15*regret[model.Linear] || regret[steered] > regret[model.Auto] {
		t.Errorf("regrets %v", regret)
	}
	pendigits := sharedSet(t, "pendigits")
	for _, c := range []struct {
		name string
		env  *Rounds
		most float64
	}{
		{"pendigits", pendigits, .055},
		{"mushroom", sharedSet(t, "mushroom"), .0065},
		{"pendigits, labels permuted half-way", twisted(t, pendigits, "permute:0.5"), .25},
	} {
		loss := 0.0
		for i := range 5 {
			r, _ := autoRun(t, c.env, steered, "none", i)
			loss += *r.MeanLoss / 5
		}
		t.Logf("%s: mean loss %.4f, at most %v", c.name, loss, c.most)
		if loss > c.most {
			t.Errorf("%s: mean loss %v, want at most %v", c.name, loss, c.most)
		}
	}
}

// TestFourierOnPublicSets: where losses are not linear in the columns, random features lose
// less than half of what the linear oracle does; where rewards are mostly noise they may lose
// a tenth more. The long form plays five row orders.
func TestFourierOnPublicSets(t *testing.T) {
	if testing.Short() {
		t.Skip("pure and long: the race detector has nothing to find here")
	}
	pendigits := sharedSet(t, "pendigits")
	orders := many(1, 5)
	mean := func(env *Rounds, name string) (loss float64) {
		for i := range orders {
			r, _ := autoRun(t, env, name, "none", i)
			loss += *r.MeanLoss / float64(orders)
		}
		return loss
	}
	linear, random := mean(pendigits, model.Linear), mean(pendigits, model.Fourier)
	t.Logf("pendigits: mean loss %.4f, with random features %.4f", linear, random)
	if random > linear/2 {
		t.Errorf("pendigits: mean loss %v, with random features %v", linear, random)
	}
	if orders == 1 {
		return
	}
	noisy := twisted(t, pendigits, "rewards:.6,.3")
	linear, random = mean(noisy, model.Linear), mean(noisy, model.Fourier)
	t.Logf("with rewards .6/.3: %.4f, with random features %.4f", linear, random)
	if random > 1.1*linear {
		t.Errorf("with rewards .6/.3: mean loss %v, with random features %v", linear, random)
	}
}
