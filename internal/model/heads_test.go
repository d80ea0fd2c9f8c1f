package model

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"hindsight/internal/loop"
	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

// built is the learner of a model file that names outcomes, after some rounds: a model's quality and tokens in [0,1] of
// their ranges, tokens a record before the rest.
func built(t *testing.T, text string, rounds int) learner.Learner {
	t.Helper()
	l, err := mustParse(t, text).Build(nil)
	if err != nil {
		t.Fatal(err)
	}
	for n := range int64(rounds) {
		x := options()
		law, gamma := l.Propensities(nil, x)
		a := int(n % 2)
		tokens := []learner.Outcome{{}, {Known: true, Value: []float64{0.1, 0.9}[a]}}
		r := &learner.Round{Input: x, Action: a, Propensities: law, Gamma: gamma, N: 2*n + 1, LearnedThrough: 2 * n,
			Outcomes: tokens, Partial: true}
		l.Learn(r)
		r.N, r.Partial, r.Fate, r.Loss = 2*n+2, false, learner.Observed, 0.5
		r.Outcomes = []learner.Outcome{{Known: true, Value: []float64{0.4, 0.6}[a]}, {}}
		l.Learn(r)
	}
	return l
}

func options() *oracle.Input {
	return &oracle.Input{Actions: []oracle.Action{{Name: "a"}, {Name: "b"}}}
}

// A model with named outcomes builds a learner of one regression an outcome; it goes on with another formula, other
// constants and other budgets from the state of the learner at work.
func TestNamedBuild(t *testing.T) {
	const first = "actions: [a, b]\noutcomes: {quality: {}, tokens: {max: 1000, window: 1m}}\nconstants: {usd: {a: " +
		"1, b: 2}}\n"
	const later = "\nversion: 2\nwarm: keep"
	was := built(t, first+"reward: quality", 200)
	quality := func(l learner.Learner) (law []float64) {
		law, _ = l.Propensities(nil, options())
		return law
	}
	if law := quality(was); law[1] < 0.6 {
		t.Errorf("the better action has %v", law)
	}
	state, err := was.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	for text, cheap := range map[string]bool{
		"reward: quality" + later:                                                   false,
		"reward: quality - 0.01*usd*tokens" + later:                                 true,
		"reward: quality\nbudget: {c: {of: usd*tokens, mean_at_most: 300}}" + later: true,
	} {
		l := built(t, first+text, 0)
		if err := l.UnmarshalBinary(state); err != nil {
			t.Fatal(err)
		}
		if p, ok := l.(*learner.DAFA); ok && strings.Contains(text, "budget") { // solved when costs are next learned
			for n := range int64(5) {
				law, gamma := l.Propensities(nil, options())
				l.Learn(&learner.Round{Input: options(), Action: 1, Propensities: law, Gamma: gamma, N: 401 + n,
					LearnedThrough: 400 + n, Outcomes: []learner.Outcome{{}, {Known: true, Value: 0.9}}, Partial: true})
			}
			if prices := p.Prices(nil); len(prices) != 1 || prices[0] <= 0 {
				t.Errorf("%s: prices %v", text, prices)
			}
		}
		if law := quality(l); (law[0] > law[1]) != cheap {
			t.Errorf("%s: %v", text, law)
		}
	}
}

// A formula that is not linear is learned as one number, a budget that is not as one, too; both beside the outcomes.
func TestNamedBuildOfProducts(t *testing.T) {
	const text = "actions: [a, b]\noutcomes: {quality: {}, tokens: {max: 1000}}\n" +
		"reward: quality*quality\nbudget: {c: {of: quality*tokens, mean_at_most: 1, about: 500}}"
	m := mustParse(t, text)
	if got := m.heads(); !slices.Equal(got, []string{"quality", "tokens", "budget.c", oracle.LossHead}) {
		t.Errorf("heads %q", got)
	}
	l := built(t, text, 50)
	state, err := l.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	again := built(t, text, 0)
	if err := again.UnmarshalBinary(state); err != nil {
		t.Fatal(err)
	}
	if back, err := again.AppendBinary(nil); err != nil || !bytes.Equal(back, state) {
		t.Errorf("the state of products does not read back: %v", err)
	}
	worth := m.worth(m.Budgets[0].Of)
	y := []learner.Outcome{{Known: true, Value: 0.5}, {Known: true, Value: 0.2}}
	if got := worth("a", y); got != (learner.Outcome{Known: true, Value: 0.1}) {
		t.Errorf("half the quality and a fifth of the tokens are %+v of the range", got)
	}
	// As much as all the tokens at the best quality is the end of the range, and so is more; one head says where in it.
	y[0].Value, y[1].Value = 1, 1.5
	if got := worth("a", y); got != (learner.Outcome{Known: true, Value: 1}) {
		t.Errorf("more than all is %+v of the range", got)
	}
	if own, w := alone(2, -1, 3)("a"); own != -1 || !slices.Equal(w, []float64{0, 0, 4}) {
		t.Errorf("a head alone is worth %v and %v", own, w)
	}
	if got := worth("a", y[:1]); got.Known {
		t.Errorf("a product is known by one factor: %+v", got)
	}
	if cost := m.Cost(); !strings.HasSuffix(cost,
		"at most 24.3 MB in all: actions and columns beyond are counted and not learned; "+
			"once for each of quality, tokens, budget.c, the reward, which the total counts") {
		t.Errorf("cost: %s", cost)
	}
	if a, b := Default(), Default(); true {
		b.Named, b.Worth = []loop.OutcomeRule{m.Named[0], m.Named[1]}, m.Budgets[0].Of
		if a.Memory()*3 != b.Memory() {
			t.Errorf("memory %d and %d", a.Memory(), b.Memory())
		}
	}
	for _, kind := range []string{"uniform", "fixed: a"} {
		l := built(t, strings.Split(text, "\nbudget")[0]+"\nlearner: "+strings.Replace("{"+kind+"}", "{uniform}",
			"uniform", 1), 50)
		if l.Learned() != 50 {
			t.Errorf("%s counts %d rounds of 50", kind, l.Learned())
		}
	}
}

// A model with one named outcome is that of one loss, to the bit: its laws and its state. The state differs in the byte
// for its kind, and in a header before the regression, which names the outcome: by it warm: keep finds the outcome
// again beside others.
func TestOneNamedIsLoss(t *testing.T) {
	for named, one := range map[string]string{
		"outcomes: {cost: {}}\nreward: -cost":        "loss: {}",
		"outcomes: {quality: {}}\nreward: quality":   "reward: {}",
		"outcomes: {quality: {}}\nreward: 5*quality": "reward: {}",
	} {
		const actions = "actions: [a, b, c]\n"
		many, single := build(t, actions+named), build(t, actions+"order: fifo\n"+one)
		quality := strings.Contains(named, "quality")
		random := rand.New(rand.NewPCG(1, 2))
		for n := range int64(400) {
			x := &oracle.Input{Actions: []oracle.Action{{Name: "a"}, {Name: "b"}, {Name: "c"}},
				Features: []oracle.Feature{{Name: "x", Value: random.NormFloat64()}}}
			law, gamma := single.Propensities(nil, x)
			if got, g := many.Propensities(nil, x); g != gamma || !slices.Equal(got, law) {
				t.Fatalf("%s: round %d: %v, γ %v; of one loss %v, γ %v", named, n, got, g, law, gamma)
			}
			y := random.Float64()
			loss := y
			if quality {
				loss = 1 - y
			}
			r := learner.Round{Input: x, Action: int(n % 3), Propensities: law, Gamma: gamma, N: n + 1,
				LearnedThrough: n, Fate: learner.Observed, Loss: loss}
			single.Learn(&r)
			r.Outcomes = []learner.Outcome{{Known: true, Value: y}}
			many.Learn(&r)
		}
		regression, err := single.(interface{ Oracle() oracle.Regressor }).Oracle().AppendBinary(nil)
		if err != nil {
			t.Fatal(err)
		}
		want, err := single.AppendBinary(nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := many.AppendBinary(nil)
		if err != nil {
			t.Fatal(err)
		}
		const kind = 1 // the byte behind the version
		got[kind] = want[kind]
		header := len(want) - len(regression)
		added := len(got) - len(want)
		if added < 0 || !bytes.Equal(got[:header], want[:header]) || !bytes.Equal(got[header+added:], regression) {
			t.Errorf("%s: another state than that of one loss", named)
		} else if name := strings.TrimSuffix(strings.Split(named, "{")[1], ": "); added > 64 ||
			!bytes.Contains(got[header:header+added], []byte(name)) {
			t.Errorf("%s: %d bytes more than one loss has: %q", named, added, got[header:header+added])
		}
	}
}
