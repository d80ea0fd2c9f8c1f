package replay

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"hindsight/internal/dataset"
	"hindsight/internal/delay"
	"hindsight/internal/logs"
	"hindsight/internal/loop"
	"hindsight/internal/model"
	"hindsight/internal/random"
	"hindsight/pkg/codec"
)

func namedModel(t testing.TB, text string) *model.Model {
	t.Helper()
	m, err := model.Parse("m.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// runNamed plays a model on rounds.
func runNamed(t testing.TB, env *Rounds, m *model.Model, spec string) *Result {
	t.Helper()
	if err := UseOutcomes(m, env); err != nil {
		t.Fatal(err)
	}
	m.Resolve(env.Columns, len(env.Actions))
	env = env.For(m)
	d, err := delay.Parse(spec, env.DelayOptions(1))
	if err != nil {
		t.Fatal(err)
	}
	r, err := (&Trial{Rounds: env, Delays: d, Model: m, Label: "l", Seed: 1}).Run(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

const namedLog = `{"id":"e0","time":"2020-01-01T00:00:00Z","actions":["x","y"],"action":"x","propensity":0.5,"outcomes":` + `{"q":{"value":0.8,"time":"2020-01-01T00:00:30Z"},"c":{"value":2,"time":"2020-01-01T00:00:05Z"}}}
{"id":"e1","outcomes":{"c":3},"outcome_time":"2020-01-01T00:00:31Z"}
{"id":"e1","time":"2020-01-01T00:00:10Z","actions":["x","y"],"action":"x","propensity":0.5}
{"id":"e1","outcomes":{"q":0.5},"outcome_time":"2020-01-01T00:00:40Z"}
{"id":"e1","outcomes":{"q":0.7},"outcome_time":"2020-01-01T00:00:41Z"}
{"id":"e2","time":"2020-01-01T00:00:20Z","actions":["x","y"],"action":"x","propensity":0.5,"outcomes":` +
	`{"q":null,"c":4},"outcome_time":"2020-01-01T00:00:21Z"}
{"id":"e3","time":"2020-01-01T00:00:50Z","actions":["x","y"],"action":"x","propensity":0.5}
{"id":"e4","time":"2020-01-01T00:03:00Z","actions":["x","y"],"action":"y","propensity":0.5,"outcomes":{"q":1,"c":1}}
`

// TestNamedLog: each outcome of a log comes when the log says it came, is late by its own window, and is missed by its
// own rule.
func TestNamedLog(t *testing.T) {
	env := readEvents(t, namedLog, dataset.Options{}, logs.Options{})
	if in := env.Intake; in.Joined != 2 || in.Extra != 1 || in.Rows != 5 {
		t.Fatalf("%+v", in)
	}
	q, c := env.Log.Outcome("q"), env.Log.Outcome("c")
	if start := env.Log.Decided[0]; q.Came[0]-start != 30e9 || c.Came[0]-start != 5e9 || q.Came[1]-start != 40e9 ||
		!math.IsInf(q.Value[2], 1) || !math.IsNaN(q.Value[3]) || env.Log.Outcome("loss") != nil {
		t.Errorf("%+v %+v", q, c)
	}
	m := namedModel(t, "actions: [x, y]\nlearner: {fixed: x}\nreward: q - c/10\noutcomes: {q: {window: 60s}, c: "+
		"{max: 10, window: 10s, missing: {impute: 1}}}\n")
	r := runNamed(t, env, m, "recorded")
	if r.Fates.Observed != 1 || r.Fates.Imputed != 1 || r.Fates.Skipped != 2 || r.Fates.Withdrawn != 1 {
		t.Errorf("rounds %+v", r.Fates)
	}
	want := []NamedOutcome{
		{Name: "c", Mean: 3, OutcomeFates: OutcomeFates{Observed: 2, Imputed: 2, Withdrawn: 1, Late: 1}},
		{Name: "q", Mean: .65, OutcomeFates: OutcomeFates{Observed: 2, Skipped: 1, Withdrawn: 2}}}
	for i, o := range r.Outcomes {
		if o.Name != want[i].Name || math.Abs(float64(o.Mean-want[i].Mean)) > 1e-12 ||
			o.OutcomeFates != want[i].OutcomeFates {
			t.Errorf("outcome %+v\nwant    %+v", o, want[i])
		}
	}
	if r.Formula != "q - c/10" || r.Rewards.Min != -1 || r.Rewards.Max != 1 {
		t.Errorf("%s in %+v", r.Formula, r.Rewards)
	}
	// Of e0 and e1, whose reward is known in the log: .6 and .2.
	if got := r.Rewards.Shown(float64(r.Replay.SNIPS.Value)); math.Abs(got-.4) > 1e-9 {
		t.Errorf("mean reward %v", got)
	}
}

// TestNamedByHand: what a log knows of each round's outcomes, of what they are worth, and of budgets, by hand.
func TestNamedByHand(t *testing.T) {
	m := namedModel(t, "actions: [x, y]\nreward: q - c/10\noutcomes: {q: {window: 60s}, c: "+
		"{min: 2.5, max: 10, clip: true, window: 10s}}\nbudget: {b: {of: c*c, mean_at_most: 9}}\n")
	bare := readEvents(t, namedLog, dataset.Options{}, logs.Options{})
	r := bare.For(m)
	nan := math.NaN()
	for i, c := range []struct {
		value      float64
		known, any bool
		named      []float64 // of c, q and the budget
	}{
		{.8 - .25, true, true, []float64{2.5, .8, 6.25}}, {.5 - .3, true, true, []float64{3, .5, 9}},
		{0, false, true, []float64{4, nan, 16}}, {0, false, false, []float64{nan, nan, nan}},
		{1 - .25, true, true, []float64{2.5, 1, 6.25}},
	} {
		value, known, any := r.Worth(i)
		if math.Abs(value-c.value) > 1e-12 || known != c.known || any != c.any {
			t.Errorf("round %d is worth %v, %t, %t", i, value, known, any)
		}
		a := r.Log.Slot(i)
		got := make([]float64, 3)
		if r.NamedValues(got, i, a); fmt.Sprint(got) != fmt.Sprint(c.named) {
			t.Errorf("round %d has %v, want %v", i, got, c.named)
		}
		if r.NamedValues(got, i, 1-a); !math.IsNaN(got[0]) || !math.IsNaN(got[1]) || !math.IsNaN(got[2]) {
			t.Errorf("of another action than was played it has %v", got)
		}
		closed := r.Closed(nil, i, a)
		for k, x := range closed {
			want := codec.Closed{Name: string("cq"[k]), Fate: codec.Skipped, Partition: -1, Offset: -1}
			if v := c.named[k]; !math.IsNaN(v) {
				want.Fate, want.Value, want.Partition, want.Offset = codec.Observed, v, 0, 0
			}
			if len(closed) != 2 || x != want {
				t.Errorf("round %d: %+v, want %+v", i, x, want)
			}
		}
	}
	if r.Formula() != "q - c/10" || strings.Join(r.Named(), ", ") != "c, q, budget b" || !r.RecordsDelays() ||
		r.Scale() != (loop.Range{Min: -1, Max: .75}) {
		t.Errorf("%s of %q in %v", r.Formula(), r.Named(), r.Scale())
	}
	if bare.Formula() != "" || bare.Named() != nil || bare.Closed(nil, 0, 0) != nil || bare.RecordsDelays() {
		t.Errorf("without a model: %q of %q", bare.Formula(), bare.Named())
	}
	seen := map[string]string{bare.Digest(): "no outcomes"}
	for of, with := range map[string]string{"all": "", "a value": `"value":0.8,`, "a time": `00:00:31Z`} {
		text := strings.Replace(namedLog, with, map[string]string{"": "", `"value":0.8,`: `"value":0.7,`,
			`00:00:31Z`: `00:00:32Z`}[with], 1)
		d := readEvents(t, text, dataset.Options{}, logs.Options{}).For(m).Digest()
		if seen[d] != "" {
			t.Errorf("rounds with another %s than %s have the same digest", of, seen[d])
		}
		seen[d] = of
	}
	one := tableLog(t)
	for i, want := range []float64{1, 0, nan} {
		if value, known, any := one.Worth(i); known != (i < 2) || any != known || known && value != want ||
			one.Scale() != (loop.Range{Min: 0, Max: 1}) {
			t.Errorf("round %d of one reward is worth %v, %t", i, value, known)
		}
	}
	if err := UseOutcomes(m, one); err == nil || !strings.Contains(err.Error(), "has no outcome") {
		t.Errorf("named outcomes of a log with one reward: %v", err)
	}
	if err := UseOutcomes(m, threeLabels(t)); err == nil || !strings.Contains(err.Error(), "has one loss, and") {
		t.Errorf("named outcomes of labels: %v", err)
	}
}

const armsText = `{"features":{"h":1},"arms":{"x":{"q":0.5,"c":2},"y":{"q":1,"c":8}}}
{"features":{"h":2},"arms":{"y":{"q":0.25,"c":4},"x":{"q":0.75,"c":2}}}
`

// TestArms: where every action's outcomes are known the truth is what the formula says of them, and budgets are of what
// is played.
func TestArms(t *testing.T) {
	env := readEvents(t, armsText, dataset.Options{}, logs.Options{})
	m := namedModel(t, "actions: [x, y]\nlearner: {fixed: y}\nreward: q - usd*c\nconstants: {usd: {x: 0.1, y: 0.05}}\n"+
		"outcomes: {q: {window: 5r}, c: {max: 10, window: 2r}}\n")
	var err error
	m.Budgets = []model.Budget{{Name: "spent", Limit: 5, Of: m.Worth},
		{Name: "earned", Limit: .5, Of: m.Worth, AtLeast: true}}
	if err = UseActions(m, env); err != nil {
		t.Fatal(err)
	}
	rounds := env.For(m)
	truth := make([]float64, 2)
	rounds.Truth(truth, 1)
	// rewards in [−1, 1]: x .75 − .2, y .25 − .2
	if !rounds.Known || math.Abs(truth[0]-(1-.55)/2) > 1e-12 || math.Abs(truth[1]-(1-.05)/2) > 1e-12 {
		t.Errorf("losses of actions %v", truth)
	}
	r := runNamed(t, env, m, "constant:1,c=none")
	if float64(r.Outcomes[0].Mean) != 6 || float64(r.Outcomes[1].Mean) != .625 || r.Fates.Observed != 2 ||
		math.Abs(float64(r.Budgets[0].Mean)-.325) > 1e-12 || math.Abs(float64(r.Budgets[0].Share)-.065) > 1e-12 {
		t.Errorf("%+v %+v %+v", r.Outcomes, r.Budgets, r.Fates)
	}
	if c := r.Course; len(c.Outcomes["q"].Mean) != 2 || float64(c.Outcomes["q"].Mean[1]) != .25 ||
		math.Abs(float64(c.Spent["spent"].SoFar[1])-.325) > 1e-12 {
		t.Errorf("course %+v", c.Outcomes["q"])
	}
	// .6 and .05 were earned: .1 more than the limit, then .45 less.
	if b := r.Budgets; b[0].Worst != 0 || math.Abs(float64(b[1].Worst)-(.9-.2)) > 1e-6 ||
		!math.IsNaN(float64(b[1].Price)) || !math.IsNaN(float64(r.Course.Prices["earned"].SoFar[1])) {
		t.Errorf("budgets %+v, prices %+v", b, r.Course.Prices["earned"])
	}
	if r.Delays.Raw.D != 1+0 { // the second of two rounds is cut at the end
		t.Errorf("delays %+v", r.Delays.Raw)
	}
}

// NameOutcomes takes the outcomes of the data, in their ranges there.
func TestNameOutcomes(t *testing.T) {
	env := readEvents(t, armsText, dataset.Options{}, logs.Options{})
	m, _ := ModelFor(env, "replay", model.Learner{Kind: model.DAFA}, loop.Window{Rounds: 7})
	if err := UseOutcomes(m, env); err == nil || !strings.Contains(err.Error(), "has the outcomes c, q, and the "+
		"model has one") {
		t.Error(err)
	}
	if err := NameOutcomes(m, env, "2*q", m.Window); err != nil || len(m.Named) != 2 || m.Named[1].Name != "q" ||
		m.Named[1].Range != (loop.Range{Min: .25, Max: 1}) || m.Window.Rounds != 7 {
		t.Errorf("%v %+v", err, m.Named)
	}
	// What was withdrawn or never came has no part in a range.
	if err := NameOutcomes(m, readEvents(t, namedLog, dataset.Options{}, logs.Options{}), "q", m.Window); err != nil ||
		len(m.Named) != 2 || m.Named[0].Range != (loop.Range{Min: 1, Max: 4}) ||
		m.Named[1].Range != (loop.Range{Min: .5, Max: 1}) {
		t.Errorf("%v %+v", err, m.Named)
	}
	if err := NameOutcomes(m, env, "q - p", m.Window); err == nil {
		t.Error("a formula of an outcome that is not there")
	}
	m = namedModel(t, "reward: q - p\noutcomes: {q: {window: 5r}, p: {window: 5r}}")
	if err := UseOutcomes(m, env); err == nil || !strings.Contains(err.Error(), `has no outcome "p"; it has c, q`) {
		t.Error(err)
	}
	m = namedModel(t, "reward: q - c\noutcomes: {q: {window: 5r}, c: {max: 3, window: 5r}}")
	if err := UseOutcomes(m, env); err == nil || !strings.Contains(err.Error(), "the outcome c is 8, which is not "+
		"in [0, 3]") {
		t.Error(err)
	}
}

// namedTrial is a run of a model with two stages and a budget on rounds of three actions, of which each next one is
// better and dearer.
func namedTrial(t testing.TB, rounds int, spec string) *Trial {
	t.Helper()
	var text strings.Builder
	random := random.New(1, "named trial")
	for i := range rounds {
		u := func(k int) float64 { return random.Uniform(uint64(i), uint64(k)) }
		fmt.Fprintf(&text, `{"features":{"h":%v},"arms":{"x":{"q":%v,"c":%v},"y":{"q":%v,"c":%v},"z":{"q":%v,"c":%v}}}`+
			"\n", u(0), u(1)/2, u(2), u(3)*(1-u(0)/2), 1+3*u(4), .5+u(5)/2, 5+5*u(6))
	}
	env := readEvents(t, text.String(), dataset.Options{}, logs.Options{})
	m := namedModel(t, "name: replay\nactions: [x, y, z]\nreward: q - c/100\noutcomes: {q: {window: 100r}, c: "+
		"{max: 10, window: 20r, missing: {impute: 5}}}\nbudget: {spent: {of: c, mean_at_most: 2, about: {x: 0.5, y: "+
		"2, z: 8}}}\n")
	m.Resolve(env.Columns, 3)
	env = env.For(m)
	d, err := delay.Parse(spec, env.DelayOptions(1))
	if err != nil {
		t.Fatal(err)
	}
	return &Trial{Rounds: env, Delays: d, Model: m, Label: "dafa", Seed: 1}
}
