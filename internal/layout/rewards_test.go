package layout

import (
	"strings"
	"testing"

	"hindsight/internal/ope"
	"hindsight/internal/replay"
	"hindsight/internal/words"
)

// Tables of a log of rewards show rewards, on its own range: in [0, 2] a mean loss of 0.3 is a
// reward of 1.4, with errors twice as large, and the cheapest window's is the largest.
func TestRewardsInTables(t *testing.T) {
	loss, se := .3, .01
	matched := int64(7)
	r := replay.Result{Environment: "shop", Learner: "dafa", Rounds: 10, Matched: &matched, MeanLoss: &loss,
		Rewards: &words.Rewards{Max: 2}}
	price := replay.WindowPrice{Window: "5 rounds", MeanLoss: &replay.Estimate{Value: loss, SE: &se}, Worse: &replay.Estimate{Value: .1, SE: &se}}
	all := func() string {
		var b strings.Builder
		for _, err := range []error{WriteRun(&b, &r), WriteRunsIn(&b, []replay.Result{r}, 100),
			WriteWindows(&b, &r, 1, []replay.WindowPrice{price})} {
			if err != nil {
				t.Fatal(err)
			}
		}
		return strings.Join(strings.Fields(b.String()), " ")
	}
	text := all()
	for _, want := range []string{"mean reward 1.400", "dafa 1.400 70.0%", "below best 5 rounds",
		"1.400 ± 0.020 – 0.2000 ± 0.020", "Below best: reward short of the"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not told: %s", want, text)
		}
	}
	r.Replay = &replay.Replay{SNIPS: ope.Normal("snips", .3, .01), IPS: ope.Normal("ips", .35, .01)}
	if text := all(); !strings.Contains(text, "the reward of its policies is 1.400±0.020 (SNIPS; IPS 1.300±0.020)") ||
		!strings.Contains(text, "mean reward is the weighted one") {
		t.Error(text)
	}
	if strings.Contains(text, "mean loss") || strings.Contains(all(), "mean loss") {
		t.Errorf("losses are shown: %s", text)
	}
	if c := WindowChart([]replay.WindowPrice{price}, &r); c.Series[0].Name != "mean reward" || c.Series[0].Y[0] != 1.4 {
		t.Errorf("%+v", c.Series[0])
	}
}
