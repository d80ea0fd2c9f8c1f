package judge

import (
	"math"
	"strings"
	"testing"

	"hindsight/internal/dataset"
	"hindsight/internal/dataset/testkit"
	"hindsight/internal/logs"
	"hindsight/internal/loop"
	"hindsight/internal/model"
	"hindsight/internal/replay"
)

// Four rows of which the second has no q, and so no reward, but a c; the last has nothing.
const namedRows = `{"actions":["x","y"],"action":"x","propensity":0.5,"outcomes":{"q":1,"c":2}}
{"actions":["x","y"],"action":"x","propensity":0.8,"outcomes":{"c":4}}
{"actions":["x","y"],"action":"y","propensity":0.2,"outcomes":{"q":0.5,"c":1}}
{"actions":["x","y"],"action":"y","propensity":0.2}
`

// Each outcome of a policy is judged on the rows in which it is known, by hand; so is the budget, and the reward on
// those that have all it needs. Progressive learners learn all of it, in order.
func TestNamedOutcomesByHand(t *testing.T) {
	m, err := model.Parse("m", []byte("actions: [x, y]\nreward: q - c/10\noutcomes: {q: {window: 5r}, c: {max: 10, "+
		"window: 5r}}\nbudget: {spent: {of: 2*c, mean_at_most: 3, about: 1}}"))
	if err != nil {
		t.Fatal(err)
	}
	env := replay.OfTable(testkit.ReadEvents(t, namedRows, dataset.Options{}, logs.Options{})).For(m)
	learned := 0
	o, err := NewOffPolicy(env, func(_, _ string) (*Progressive, error) {
		l, err := m.Build(nil)
		if err != nil {
			return nil, err
		}
		p := NewProgressive(loop.Epoch{Number: 1, Rules: m.Rules(), Learner: l}, "m", replay.SecretSeed(1), env)
		p.StopWhen(func() error { learned++; return nil })
		return p, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := [3]int{o.missing(0), o.missing(1), o.missing(2)}; got != [3]int{0, 1, 1} {
		t.Errorf("%d rows without a reward lie before, between and behind the two that have one", got)
	}
	e, err := o.Evaluate("always:x", o.Options())
	if err != nil {
		t.Fatal(err)
	}
	// Weights of x: 1/.5, 1/.8, 0. c: (2·2 + 1.25·4 + 0)/3; q over rows 1 and 3: 2·1/2; the reward: 2·.8/2.
	want := map[string]float64{"c": 3, "q": 1, "budget spent": 6}
	for _, x := range e.Outcomes {
		if got := float64(x.Estimates.Get("ips").Value); math.Abs(got-want[x.Name]) > 1e-12 {
			t.Errorf("%s is %v, want %v", x.Name, got, want[x.Name])
		}
		delete(want, x.Name)
	}
	if len(want) > 0 || e.Outcomes[0].Rows != 3 || e.Outcomes[1].Rows != 2 || e.Rows != 2 ||
		math.Abs(float64(e.Estimates.Get("ips").Value)-.8) > 1e-12 {
		t.Errorf("%+v of %d rows: %+v", e.Outcomes, e.Rows, e.Estimates.Get("ips"))
	}
	if got := float64(e.Outcomes[0].Estimates.Get("snips").Value); math.Abs(got-9/3.25) > 1e-12 {
		t.Errorf("snips %v", got)
	}
	if !strings.Contains(strings.Join(e.Flags, "\n"), "1 rows have another outcome and not q") {
		t.Errorf("%q", e.Flags)
	}
	if e, err = o.Evaluate("logging", o.Options()); err != nil ||
		float64(e.Outcomes[0].Estimates.Get("ips").Value) != 7./3 {
		t.Errorf("%v %+v", err, e)
	}
	if e, err = o.Evaluate("learner:dafa", o.Options()); err != nil || learned == 0 || e.Outcomes[0].Rows != 3 {
		t.Errorf("%v %+v", err, e)
	}
	if s := o.Settings(o.Options()); s.Formula != "q - c/10" || s.Of != "reward" || s.Rows != 2 ||
		s.WithoutOutcome != 2 {
		t.Errorf("%+v", s)
	}
}
