package model

import (
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"hindsight/internal/loop"
)

const routing = "actions: [a, b]\noutcomes: {quality: {}, tokens: {max: 1000, window: 1m}}\n"

// Every key of named outcomes is read, and the canonical form is the same model.
func TestNamedOutcomes(t *testing.T) {
	m := mustParse(t, read(t, "named.yaml"))
	want := []loop.OutcomeRule{
		{Name: "latency_ms", Range: loop.Range{Max: 60000, Clip: true},
			Window: loop.Window{Nanos: int64(5 * time.Minute)}},
		{Name: "quality", Range: loop.Range{Max: 1}, Window: loop.Window{Nanos: int64(24 * time.Hour)},
			Take: loop.Last},
		{Name: "tokens", Range: loop.Range{Max: 100000, Clip: true}, Window: loop.Window{Nanos: int64(5 * time.Minute)},
			Impute: true, Default: 600},
	}
	if !reflect.DeepEqual(m.Named, want) {
		t.Errorf("outcomes %+v", m.Named)
	}
	r := m.Rules()
	if got := r.Worth.Value("pro", []float64{10000, 0.75, 1}); got != 0.75-0.2 || !r.Reward || !r.Worth.Linear() {
		t.Errorf("the reward is %v", got)
	}
	if math.Abs(r.Range.Min+1.2) > 1e-15 || r.Range.Max != 1 || r.Window.Nanos != int64(24*time.Hour) || r.Early ||
		r.Arrival {
		t.Errorf("rules %+v", r)
	}
	if !slices.Equal(r.Budgets, []string{"cost", "good"}) {
		t.Errorf("budgets %q", r.Budgets)
	}
	cost, good := &m.Budgets[0], &m.Budgets[1]
	if cost.Of.Value("pro", []float64{0, 0, 800}) != 0.008 || cost.Limit != 0.0005 || cost.AtLeast ||
		cost.PayBack != 1000 ||
		!reflect.DeepEqual(cost.About, []float64{3e-5, 0.015, 0.015}) {
		t.Errorf("cost %+v", cost)
	}
	if good.Name != "good" || good.Limit != 0.8 || !good.AtLeast || good.About != nil || good.PayBack != -1 {
		t.Errorf("good %+v", good)
	}
	c := m.Canonical()
	if string(c) != read(t, "named.golden") {
		t.Errorf("canonical form:\n%s", c)
	}
	if back := mustParse(t, string(c)); !reflect.DeepEqual(back, m) || !reflect.DeepEqual(m.Clone(), m) {
		t.Errorf("it reads back as %+v", back)
	}
	if logged := mustParseLogged(t, string(c)); logged.Oracle.Version != 2 || !reflect.DeepEqual(logged, m) {
		t.Errorf("a log's model is %+v", logged)
	}
	spaced := strings.Replace(read(t, "named.yaml"), "quality - patience", "(quality)-  patience", 1)
	if !reflect.DeepEqual(mustParse(t, spaced), m) {
		t.Error("a formula is another one if it has other spaces")
	}
	if err := m.SetReward("quality*2"); err != nil || m.Range != (loop.Range{Max: 2}) {
		t.Errorf("another formula: %v, %+v", err, m.Range)
	}
	if err := m.SetReward("qualty"); err == nil || !strings.Contains(err.Error(), `(did you mean "quality"?)`) {
		t.Error(err)
	}
	if err := Default().SetReward("quality"); err == nil {
		t.Error("a model with one loss takes a formula")
	}
}

// What is wrong with named outcomes is told at its line, with what to write.
func TestNamedErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{routing, `m.yaml:2:11: reward: named outcomes need a formula that says what they are worth; for example: reward: quality`},
		{routing + "reward: {min: 0, max: 1}", `m.yaml:3:9: reward: named outcomes need a formula`},
		{routing + "reward: qualty - 1", `m.yaml:3:9: reward: at its character 1: no outcome or constant is called "qualty"; ` +
			`there are quality, tokens (did you mean "quality"?)`},
		{routing + "reward: quality/tokens", `m.yaml:3:9: reward: at its character 9: it divides by what may be 0`},
		{"reward: quality", `m.yaml:1:9: reward: a formula is one of named outcomes, and the model has one loss; for example: o`},
		{"outcomes: {}", `m.yaml:1:11: outcomes: expected names, found keys and values; for example: outcomes: {quality:`},
		{"outcomes: {max: {}}",
			`m.yaml:1:17: outcomes: the name "max" has not 1 to 40 letters, digits and _, or is min, max or clip`},
		{"outcomes: {a-b: {}}", `m.yaml:1:17: outcomes: the name "a-b" has not 1 to 40 letters`},
		{"outcomes: {q: 3}",
			`m.yaml:1:15: outcomes.q: expected some of min, max, clip, window, missing, take, found 3`},
		{"outcomes: {q: {maks: 3}}", `m.yaml:1:16: outcomes.q: unknown key "maks" (did you mean "max"?)`},
		{"outcomes: {q: {take: frist}}", `outcomes.q.take: expected first | last | sum | mean | max | min, found "frist" (did`},
		{"outcomes: {q: {missing: impute}}", `missing: expected skip or {impute: X}, found "impute"`},
		{"reward: q\noutcomes: {q: {missing: {impute: 2}}}",
			`m.yaml:2:25: outcomes.q.missing: the imputed 2 is not in [0, 1]`},
		{"reward: q\noutcomes: {q: {min: 2}}", `m.yaml:2:15: outcomes.q: expected min below max, found min 2 and max 1`},
		{"reward: q\noutcomes: {q: {}, z: {window: 5r}}",
			`m.yaml:2:31: outcomes.z.window: 5 rounds is one kind and that of q another; ` +
				`give all windows in rounds, or all`},
		{routing + "reward: quality\nwindow: 3m", `m.yaml:4:9: window: the model names its outcomes, and each has its own`},
		{routing + "reward: quality\nmissing: impute", `m.yaml:4:10: missing: the model names its outcomes`},
		{routing + "reward: quality\nlearner: greedy",
			`learner: greedy does not learn named outcomes; use learner: dafa`},
		{routing + "reward: quality\nlearner: {kind: exp4dale, policies: p}",
			`learner: exp4dale does not learn named outcomes`},
		{routing + "reward: quality\noracle: {kind: hedge, class: f}",
			`oracle: hedge does not learn named outcomes; use`},
		{routing + "reward: quality\norder: early", `order: early is for models with one loss; use order: fifo`},
		{routing + "reward: quality\norder: arrival",
			`m.yaml:4:8: order: named outcomes are learned in the order of decisions`},
		{routing + "reward: quality\nactivation: required",
			`activation: it does not go with named outcomes; take it out`},
		{routing + "reward: quality\nconstants: {quality: 2}",
			`m.yaml:4:22: constants.quality: an outcome is called so, too`},
		{routing + "reward: quality\nconstants: {usd: {a: 1}}",
			`m.yaml:4:18: constants.usd: it has no number for the action "b"; give one for each action, or one for all`},
		{routing + "reward: quality\nconstants: {usd: {a: 1, b: 2, bb: 3}}",
			`m.yaml:4:31: constants.usd: "bb" is not in actions`},
		{"reward: q\noutcomes: {q: {}}\nconstants: {usd: {a: 1}}",
			`m.yaml:3:18: constants.usd: numbers by action need the list of actions; for example: actions: [llama, pro]`},
		{"constants: {usd: 2}", `m.yaml:1:12: constants: they are for formulas of named outcomes`},
		{"budget: {cost: {mean_at_most: 1}}", `m.yaml:1:16: budget.cost: it has no formula`},
		{routing + "reward: quality\nbudget: {cost: {of: tokens}}",
			`m.yaml:4:16: budget.cost: expected either mean_at_most or mean_at_least; for example: budget:`},
		{routing + "reward: quality\nbudget: {cost: {of: tokens, mean_at_most: 1, mean_at_least: 2}}",
			`expected either`},
		{routing + "reward: quality\nbudget: {cost: {of: tokns, mean_at_most: 1}}",
			`m.yaml:4:21: budget.cost.of: at its character 1: no outcome or constant is called "tokns"`},
		{routing + "reward: quality\nbudget: {cost: {of: tokens, mean_at_most: 1e4}}",
			`m.yaml:4:16: budget.cost: the bound 10000 is not inside (0, 1000), where tokens lies by the ranges of the outcomes`},
		{routing + "reward: quality\nbudget: {cost: {of: tokens - 1, mean_at_most: 1}}",
			`budget.cost: tokens - 1 may be as low as -1: what is spent must not be negative`},
		{routing + "reward: quality\nbudget: {cost: {of: tokens, mean_at_most: 1, about: {a: 1e4}}}",
			`budget.cost: about: 10000 is not in [0, 1000], where tokens lies by the ranges of the outcomes`},
		{routing + "reward: quality\nbudget: {cost: {of: tokens, mean_at_most: 1, pay_back: 1h}}",
			`m.yaml:4:56: budget.cost.pay_back: never, or: expected a number of rounds, found "1h"; ` +
				`for example: pay_back: 1000 rounds`},
		{routing + "reward: quality\noracle: {kind: shared}\nbudget: {cost: {of: tokens, mean_at_most: 1}}",
			`budget.cost: it does not go with oracle: shared; use oracle: auto, linear or diagonal`},
		{routing + "reward: quality\nbudget: {cost: {of: tokens*quality, mean_at_most: 1}}",
			`budget.cost: tokens*quality is not linear, and its outcomes have different windows; give them one window`},
		{"outcomes: {q: {}}\nreward: q\nbudget: {cost: {of: q, mean_at_most: 0.1, about: 0.1}}",
			`m.yaml:3:16: budget.cost: about needs the list of actions; for example: actions: [llama, pro]`},
		{routing + "reward: quality\nlearner: uniform\nbudget: {cost: {of: tokens, mean_at_most: 1}}",
			`learner: uniform keeps no budget; use learner: dafa, or take budget out`},
	} {
		if _, err := Parse("m.yaml", []byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s\ngot  %v\nwant %s…", c.text, err, c.want)
		}
	}
	_, warnings, err := ParseWithWarnings("m.yaml",
		[]byte(routing+"reward: quality\nbudget: {c: {of: tokens, mean_at_most: 1}}"))
	if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0].Msg,
		"budget.c: without about the first rounds") {
		t.Error(warnings, err)
	}
}

// A learner goes on with another formula, other constants and other budgets where all are linear in the same outcomes.
func TestNamedDiffering(t *testing.T) {
	const was = routing + "reward: quality\nconstants: {usd: 2}\nbudget: {c: {of: tokens, mean_at_most: 1, about: 1}}"
	for text, want := range map[string]string{
		was: "",
		routing + "reward: quality - usd*tokens\nconstants: {usd: {a: 3, b: 4}}":    "",
		strings.Replace(was, "quality: {}", "quality: {window: 1h, take: mean}", 1): "",
		strings.Replace(was, "max: 1000", "max: 2000", 1):                           "reward",
		strings.Replace(was, "quality: {}", "quality: {}, more: {}", 1):             "reward",
		strings.Replace(was, "reward: quality", "reward: max(quality, 0.5)", 1):     "reward",
		strings.Replace(was, "of: tokens", "of: tokens*tokens", 1):                  "reward",
		"actions: [a, b]\nreward: {min: 0}":                                         "reward",
	} {
		canonical := func(text string) []byte { return mustParse(t, text).Canonical() }
		if key, _ := Differing(canonical(was), canonical(text), "loss", "reward", "oracle"); key != want {
			t.Errorf("%s\ndiffers in %q, want %q", text, key, want)
		}
		same := text == was || slices.ContainsFunc([]string{"take: mean", "max: 2000", "more:"},
			func(part string) bool { return strings.Contains(text, part) })
		if key, _ := Differing(canonical(was), canonical(text), Worth); (key == "") != same {
			t.Errorf("%s\nis worth another reward: %q", text, key)
		}
	}
}

// A window of one round is one in rounds.
func TestNamedWindows(t *testing.T) {
	mustParse(t, "reward: q\noutcomes: {q: {window: 1r}, z: {window: 5r}, x: {window: 1r}}")
}

// The example of the page and the kit's model are right.
func TestNamedExamples(t *testing.T) {
	page, err := os.ReadFile("../../docs/named-outcomes.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "## Outcomes\n")
	_, rest, _ = strings.Cut(rest, "```yaml\n")
	example, _, _ := strings.Cut(rest, "```")
	kit, err := os.ReadFile("../../compose/route/route.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"actions: [llama, pro]\n" + example, string(kit)} {
		if m, warnings, err := ParseWithWarnings("m.yaml", []byte(text)); err != nil || len(warnings) > 0 ||
			len(m.Budgets) != 1 {
			t.Errorf("%v, %v", err, warnings)
		}
	}
}
