package layout

import (
	"encoding/json"
	"flag"
	"math"
	"os"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
	"weak"

	"hindsight/internal/certify"
	"hindsight/internal/delay"
	"hindsight/internal/latelosses"
	"hindsight/internal/loop"
	"hindsight/internal/model"
	"hindsight/internal/replay"
	"hindsight/pkg/codec"
	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

var rewrite = flag.Bool("rewrite", false, "write golden files anew")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := "testdata/" + name
	if *rewrite {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (go test -rewrite writes it anew):\n%s", path, got)
	}
}

func some(x float64) *float64 { return &x }

func example() replay.Result {
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
		Certificate: replay.Certificate{
			T:               20000,
			PlausibleSet:    &certify.SetBound{Bound: *certify.NewBound(1610.4, 20000), Alpha: 0.05, Surviving: 3, Functions: 100},
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
	r := example()
	b, err := json.MarshalIndent(&r, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "result.json", string(b)+"\n")
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
	}{{99.9, false, false}, {100, true, false}, {1e9, true, false}, {math.Inf(1), true, true}, {math.NaN(), true, true}} {
		b := certify.NewBound(c.x, 100)
		if b.Vacuous != c.vacuous || (b.Value == nil) != c.null {
			t.Errorf("NewBound(%v, 100) = %+v", c.x, b)
		}
		if _, err := json.Marshal(b); err != nil {
			t.Errorf("NewBound(%v, 100): %v", c.x, err)
		}
	}
}

func TestFates(t *testing.T) {
	var f replay.Fates
	for _, fate := range []codec.Fate{codec.Observed, codec.Observed, codec.Imputed, codec.Skipped, codec.WithdrawnRound} {
		f.AddFate(fate)
	}
	for _, reason := range []string{codec.ReasonLate, codec.ReasonDuplicate, codec.ReasonOrphan, codec.ReasonMismatch,
		codec.ReasonMalformed, codec.ReasonLate} {
		if !f.AddReject(reason) {
			t.Errorf("%s is not counted", reason)
		}
	}
	if f.AddReject("foreign") {
		t.Error("an unknown reason is counted")
	}
	if want := (replay.Fates{Observed: 2, Imputed: 1, Skipped: 1, Withdrawn: 1, Late: 2, Duplicate: 1, Orphan: 1, Mismatch: 1, Malformed: 1}); f != want || f.Rounds() != 5 || f.Rejected() != 6 {
		t.Errorf("%+v, want %+v", f, want)
	}
}

func TestCertify(t *testing.T) {
	reg, err := oracle.NewLinear(oracle.LinearOptions{})
	if err != nil {
		t.Fatal(err)
	}
	l := learner.NewDAFA(reg, learner.Root{C: 20})
	x := &oracle.Input{Actions: []oracle.Action{{Name: "a"}, {Name: "b"}}}
	l.Learn(&learner.Round{Input: x, Propensities: []float64{0.5, 0.5}, Gamma: 20, N: 1, Fate: learner.Imputed, Loss: 1})
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

func widest(text string) int {
	w := 0
	for line := range strings.Lines(text) {
		w = max(w, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")))
	}
	return w
}

func TestRunTable(t *testing.T) {
	var b strings.Builder
	r := example()
	if err := WriteRun(&b, &r); err != nil {
		t.Fatal(err)
	}
	bare := example()
	bare.Regret, bare.UniformLoss, bare.BestLoss = nil, nil, nil
	bare.LateLosses.Late.Mean, bare.LateLosses.Differ = some(0.61), true
	bare.Certificate = certify.Of(learner.NewUniform(), certify.Options{Rounds: 1, Late: &latelosses.Comparison{}})
	b.WriteByte('\n')
	if err := WriteRun(&b, &bare); err != nil {
		t.Fatal(err)
	}
	golden(t, "run.txt", b.String())
	if w := widest(b.String()); w > 80 {
		t.Errorf("%d columns wide", w)
	}
}

func TestRunsTable(t *testing.T) {
	var runs []replay.Result
	for _, l := range []string{"dafa", "egreedy:0.05", "uniform"} {
		for _, d := range []string{"none", "lognormal:20,1.5"} {
			for order := range 3 {
				r := example()
				r.Learner, r.Delays.Spec, r.Order = l, d, order
				*r.MeanLoss += 0.01 * float64(order)
				r.Regret = some(*r.Regret + 10*float64(order))
				if l == "uniform" {
					r.Certificate = certify.Of(learner.NewUniform(), certify.Options{Rounds: 1, Late: &latelosses.Comparison{}})
				}
				if l == "dafa" && d == "none" && order == 2 {
					r.Certificate.PlausibleSet.Bound = *certify.NewBound(30000, 20000)
				}
				runs = append(runs, r)
			}
		}
	}
	runs[4].Regret = nil
	runs = append(runs, example())
	runs[len(runs)-1].Learner = "fixed:a"
	var b strings.Builder
	if err := WriteRunsIn(&b, runs, 100); err != nil {
		t.Fatal(err)
	}
	golden(t, "runs.txt", b.String())
	if w := widest(b.String()); w > 100 {
		t.Errorf("%d columns wide", w)
	}
	b.Reset()
	if err := WriteRunsIn(&b, nil, 100); err != nil || b.String() != "no runs\n" {
		t.Errorf("no runs: %q, %v", b.String(), err)
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

// TestChangesAreSaid: the table of a backtest says of a group in which run regressions were
// started anew, and when.
func TestChangesAreSaid(t *testing.T) {
	still, moved := replay.Result{Learner: "dafa"}, replay.Result{Learner: "dafa"}
	still.Certificate.Changes = &oracle.Changes{}
	moved.Certificate.Changes = &oracle.Changes{Count: 2, Last: []oracle.Change{{Example: 3237},
		{Example: 5012, Action: "b"}}}
	for _, c := range []struct {
		runs []replay.Result
		want string
	}{
		{[]replay.Result{still, still}, ""},
		{[]replay.Result{still, moved}, "(in 1 of 2 row orders; the first): what was played lost more than predicted, and " +
			"regressions were started anew (2); the last after learned rounds 3237 (all actions) 5012 (b)."},
	} {
		var b strings.Builder
		if err := WriteRunsIn(&b, c.runs, 100); err != nil {
			t.Fatal(err)
		}
		text := strings.Join(strings.Fields(b.String()), " ")
		if !strings.Contains(text, c.want) || strings.Contains(text, "Warning") != (c.want != "") {
			t.Errorf("%s, want %q", text, c.want)
		}
	}
}
