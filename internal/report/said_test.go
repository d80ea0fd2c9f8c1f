package report

import (
	"encoding/json"
	"strings"
	"testing"

	"hindsight/internal/replay"
	"hindsight/internal/verify"
)

// TestLateLossesAreSaid: the warning is in the summaries and in JSON.
func TestLateLossesAreSaid(t *testing.T) {
	biased := playSeed(t, 1, 1000, "100", "loss:0,150")
	fair := playSeed(t, 1, 1000, "60", "exp:50")
	prompt := playSeed(t, 1, 100, "60", "none")
	for _, c := range []struct {
		r          *replay.Result
		warns, has bool
	}{{biased, true, true}, {fair, false, true}, {prompt, false, false}} {
		one, many := text(t, Run(c.r), 80), text(t, Runs([]replay.Result{*c.r, *c.r}, 100), 100)
		audit := said(&verify.Report{LateLosses: c.r.LateLosses})
		for _, text := range []string{one, many, audit} {
			text = strings.Join(strings.Fields(text), " ")
			if got := strings.Contains(text, "arning") && strings.Contains(text, "lengthen "+
				"the window"); got != c.warns {
				t.Errorf("%s: a warning is %v in: %s", c.r.Delays.Spec, got, text)
			}
		}
		if got := strings.Contains(one, "late losses "); got != (c.has && !c.warns) {
			t.Errorf("%s: late losses are not as they should be in: %s", c.r.Delays.Spec, one)
		}
	}
	// Losses of 0 come at once, those of 1 after the window, unless the run ends before.
	b, err := json.Marshal(&biased.LateLosses)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		OnTime struct{ Mean, SE float64 } `json:"on_time"`
		Late   struct {
			N        int64
			Mean, SE float64
		}
		Differ bool
	}
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	if !(got.OnTime.Mean < 0.05) || !(got.OnTime.SE < 0.01) || got.Late.Mean != 1 || got.Late.SE != 0 ||
		got.Late.N != biased.Fates.Late || !got.Differ {
		t.Errorf("%s", b)
	}
	if b, err = json.Marshal(&prompt.LateLosses.Late); err != nil || string(b) != `{"n":0,"mean":null,"se":null}` {
		t.Errorf("%s, %v", b, err)
	}
}
