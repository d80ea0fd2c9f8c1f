package judge

import (
	"math"
	"strings"
	"testing"

	"hindsight/internal/dataset"
	"hindsight/internal/logs"
	"hindsight/internal/loop"
	"hindsight/internal/model"
	"hindsight/internal/replay"
	"hindsight/pkg/learner"
)

// TestProgressiveWeighsByWhatWasDone works the second law of a learner by hand that weighs by importance. The log
// played x with probability ¼ where the learner would have with ½; x lost 1. So the policy that plays x is charged
// 1/¼ = 4, and with η = √(log 2/(2·10 + 7)) the learner plays x next with probability e^-4η/(1 + e^-4η).
func TestProgressiveWeighsByWhatWasDone(t *testing.T) {
	const text = "a,r,p\nx,0,.25\ny,1,.75\nx,1,.25\n"
	log, err := readLog("t.csv", strings.NewReader(text), logOptions{Options: logs.Options{
		Mapping: logs.Mapping{Action: "a", Reward: "r", Propensity: "p"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	o, err := NewOffPolicy(log, func(string, string) (*Progressive, error) {
		const file = "learner: {kind: exp4dale, policies: p, d: 7, horizon: 10, plain: true}\nactions: [x, y]"
		m, err := model.Parse("m", []byte(file))
		if err != nil {
			return nil, err
		}
		constant := &model.PolicyFile{Actions: []string{"x", "y"}}
		for _, a := range constant.Actions {
			constant.Policies = append(constant.Policies, model.PolicyLine{Prior: 1,
				Rules: learner.DecisionList{{Then: a}}})
		}
		built, err := m.Build(map[string][]byte{"p": constant.Append(nil)})
		if err != nil {
			return nil, err
		}
		ep := loop.Epoch{Number: 1, Rules: m.Rules(), Learner: built}
		return NewProgressive(ep, "m", replay.SecretSeed(1), log), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	p, err := o.target("learner:exp4dale")
	if err != nil {
		t.Fatal(err)
	}
	charged := math.Exp(-4 * math.Sqrt(math.Ln2/27))
	for row, want := range []float64{.5, charged / (1 + charged)} {
		law := make([]float64, 2)
		if p.law(law, row); math.Abs(law[0]-want) > 1e-12 {
			t.Errorf("row %d: x with probability %.6f, want %.6f", row, law[0], want)
		}
	}
	if err := p.failed(); err != nil {
		t.Error(err)
	}
}

// TestDroppedJudged: three rows stand for 2, 1 and 4 events; terms of always x are 4, 0 and 0 over 7.
func TestDroppedJudged(t *testing.T) {
	const text = `{"action":"x","actions":["x","y"],"propensity":0.5,"loss":1,"weight":2}
{"action":"y","actions":["x","y"],"propensity":0.5,"loss":1}
{"action":"x","actions":["x","y"],"propensity":0.25,"loss":0,"weight":4}
`
	o := judged(t, readEvents(t, text, dataset.Options{}, logs.Options{}))
	e, err := o.Evaluate("always:x", o.Options())
	if err != nil {
		t.Fatal(err)
	}
	if got := float64(e.Estimates.Get("ips").Value); math.Abs(got-4./7) > 1e-12 {
		t.Errorf("estimated IPS %v, want 4/7", got)
	}
	if strings.Contains(strings.Join(e.Flags, "\n"), "without an outcome") {
		t.Errorf("every row has an outcome: %q", e.Flags)
	}
	if got := float64(o.Settings(o.Options()).Events); got != 7 {
		t.Errorf("%v events, want 7", got)
	}
}
