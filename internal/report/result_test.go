package report

import (
	"encoding/json"
	"math"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"weak"

	"hindsight/internal/certify"
	"hindsight/internal/delay"
	"hindsight/internal/latelosses"
	"hindsight/internal/loop"
	"hindsight/internal/model"
	"hindsight/internal/replay"
	"hindsight/internal/words"
	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

// oneRun is a run made by hand.
func oneRun() replay.Result {
	return replay.Result{
		Environment: "sigmoid", Learner: "dafa", Order: 0, Seed: 1, Window: "200 rounds",
		Rounds: 20000, MeanLoss: some(0.31415926), Regret: some(533.6), UniformLoss: some(0.5), BestLoss: some(0.2871),
		Fates: replay.Fates{Observed: 19000, Skipped: 1000, Late: 998, Duplicate: 3},
		LateLosses: latelosses.Comparison{OnTime: latelosses.Figures{N: 19000, Mean: some(0.31), SE: some(0.0034)},
			Late: latelosses.Figures{N: 996, Mean: some(0.322), SE: some(0.0148)}},
		Delays: delay.Report{
			Spec:     "lognormal:20,1.5",
			Raw:      delay.Stats{D: 1201234, DMax: 8883, SigmaMax: 82, Mean: 60.0617, P50: 20, P90: 137, P99: 655},
			Released: delay.Stats{D: 3701234, DMax: 201, SigmaMax: 201, Mean: 185.0617, P50: 180, P90: 200, P99: 201},
			FIFOTax:  2500000, Overtaken: 15000,
		},
		Certificate: certify.Certificate{
			T: 20000,
			PlausibleSet: &certify.SetBound{Bound: *certify.NewBound(1610.4, 20000), Alpha: 0.05, Surviving: 3,
				Functions: 100},
			ExplorationCost: some(490.7),
			Assumptions: []certify.Assumption{{Name: certify.Losses, State: certify.Enforced,
				Detail: "out of range is rejected"}},
			MeasuredDrift: certify.NewBound(2350.5, 20000), APriori: certify.NewBound(math.Inf(1), 20000),
			Notes: []string{"conditional on outcomes missing at random (rounds skipped and charged 1 each: 1000)"},
		},
		RoundsPerSecond: 123456.7,
	}
}

func TestResultJSON(t *testing.T) {
	r := oneRun()
	b, err := json.MarshalIndent(&r, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	checkGolden(t, "result.json", string(b)+"\n", words.NoLimit)
	var back replay.Result
	if err := json.Unmarshal(b, &back); err != nil || !reflect.DeepEqual(back, r) {
		t.Errorf("read back %+v, %v", back, err)
	}
}

// TestEmptyResultJSON holds that every promised key is there, 0 or null.
func TestEmptyResultJSON(t *testing.T) {
	b, err := json.Marshal(&replay.Result{})
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]json.RawMessage
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	var fates map[string]int64
	if err := json.Unmarshal(m["fates"], &fates); err != nil {
		t.Fatal(err)
	}
	for _, key := range strings.Fields("observed imputed skipped withdrawn late duplicate orphan mismatch malformed") {
		if v, ok := fates[key]; !ok || v != 0 {
			t.Errorf("fates.%s is %d, %v", key, v, ok)
		}
	}
	for _, key := range strings.Fields("regret uniform_loss best_loss") {
		if string(m[key]) != "null" {
			t.Errorf("%s is %s, want null", key, m[key])
		}
	}
	for _, key := range strings.Fields("late_losses rounds mean_loss rounds_per_second seed learner order delays " +
		"certificate environment window") {
		if _, ok := m[key]; !ok {
			t.Errorf("%s is missing", key)
		}
	}
}

func TestBounds(t *testing.T) {
	for _, c := range []struct {
		x       float64
		vacuous bool
		null    bool
	}{{99.9, false, false}, {100, true, false}, {1e9, true, false}, {math.Inf(1), true, true}, {math.NaN(),
		true, true}} {
		b := certify.NewBound(c.x, 100)
		if b.Vacuous != c.vacuous || (b.Value == nil) != c.null {
			t.Errorf("NewBound(%v, 100) = %+v", c.x, b)
		}
		if _, err := json.Marshal(b); err != nil {
			t.Errorf("NewBound(%v, 100): %v", c.x, err)
		}
	}
}

func TestCertify(t *testing.T) {
	reg, err := oracle.NewLinear(oracle.LinearOptions{})
	if err != nil {
		t.Fatal(err)
	}
	l := learner.NewDAFA(reg, learner.Root{C: 20})
	x := &oracle.Input{Actions: []oracle.Action{{Name: "a"}, {Name: "b"}}}
	l.Learn(&learner.Round{Input: x, Propensities: []float64{0.5, 0.5}, Gamma: 20, N: 1, Fate: learner.Imputed,
		Loss: 1})
	l.Learn(&learner.Round{Input: x, Propensities: []float64{0.5, 0.5}, Gamma: 20, N: 2, Fate: learner.Skipped})
	c := certify.Of(l, certify.Options{Rounds: 1000, Late: &latelosses.Comparison{}})
	if c.MeasuredDrift.Vacuous || !(*c.MeasuredDrift.Value >= 1) || c.APriori.Value != nil || !c.APriori.Vacuous {
		t.Errorf("%+v %+v", c.MeasuredDrift, c.APriori)
	}
	for _, want := range []string{"no theorem", "charged 1 each: 1", "imputed: 1"} {
		if !slices.ContainsFunc(c.Notes, func(n string) bool { return strings.Contains(n, want) }) {
			t.Errorf("no note says %q: %q", want, c.Notes)
		}
	}
	if c := certify.Of(learner.NewUniform(), certify.Options{Rounds: 1000,
		Late: &latelosses.Comparison{}}); c.MeasuredDrift != nil || c.APriori != nil || len(c.Notes) != 1 {
		t.Errorf("uniform: %+v", c)
	}
}

// TestAResultIsSmall holds that a result does not keep the rounds of its run in memory.
func TestAResultIsSmall(t *testing.T) {
	for _, spec := range []string{"sigmoid", "blocks:3,4"} {
		rounds, r := played(t, spec)
		for range 3 {
			runtime.GC()
		}
		if rounds.Value() != nil {
			t.Errorf("%s: the rounds of the run live as long as its result", spec)
		}
		if r.Regret == nil {
			t.Errorf("%s: no regret", spec)
		}
	}
}

// played runs an environment and returns its rounds as far as they are still there.
func played(t *testing.T, spec string) (weak.Pointer[replay.Rounds], *replay.Result) {
	env := environment(t, spec, 1, 50)
	m, files := replay.ModelFor(env, "test", model.Learner{Kind: model.Uniform}, loop.Window{Rounds: 100})
	d, err := delay.Parse("none", delay.Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	trial := &replay.Trial{Rounds: env, Delays: d, Model: m, Files: files, Seed: 1}
	r, err := trial.Run(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return weak.Make(trial.Rounds), r
}
