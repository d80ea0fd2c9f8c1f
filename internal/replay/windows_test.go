package replay

import (
	"context"
	"math"
	"slices"
	"testing"

	"hindsight/internal/delay"
	"hindsight/internal/loop"
	"hindsight/internal/model"
	"hindsight/internal/scan"
)

// priced returns runs with the given regrets and shares of skipped rounds.
func priced(regrets [][]float64, skipped []int64) ([]loop.Window, [][]Result) {
	var windows []loop.Window
	runs := make([][]Result, len(regrets))
	for w := range regrets {
		windows = append(windows, loop.Window{Rounds: int64(10 * (w + 1))})
		for _, v := range regrets[w] {
			runs[w] = append(runs[w], Result{Rounds: 100, Regret: &v, MeanLoss: &v,
				Fates: Fates{Observed: 100 - skipped[w], Skipped: skipped[w]}})
		}
	}
	return windows, runs
}

func recommended(prices []WindowPrice) []string {
	var out []string
	for _, p := range prices {
		if p.Recommended {
			out = append(out, p.Window)
		}
	}
	return out
}

// The second window is the cheapest by .5 on the mean. The third costs .5 ± .5 more, less
// than two standard errors, and skips less: it is proposed. The fourth skips nothing and
// costs 10 ± .5 more.
func TestTheWindowThatSkipsLeastAmongTheCheapest(t *testing.T) {
	windows, runs := priced([][]float64{{20, 21}, {5, 6}, {5, 7}, {15, 17}}, []int64{50, 9, 3, 0})
	prices := PriceWindows(windows, "", runs)
	if got := recommended(prices); !slices.Equal(got, []string{"30 rounds"}) {
		t.Errorf("proposed %v", got)
	}
	third := prices[2]
	if third.Regret.Value != 6 || *third.Regret.SE != 1 || third.Worse.Value != .5 || *third.Worse.SE != .5 ||
		third.Skipped != .03 {
		t.Errorf("third window: %+v, worse %+v", third, third.Worse)
	}
}

// Of a log those rounds wait that drew its action; the others say nothing of what a window skips.
func TestWindowsSkipOfTheRoundsThatWait(t *testing.T) {
	runs := []Result{{Rounds: 1000, Matched: new(int64(150)), Fates: Fates{Skipped: 40, Late: 30, Withdrawn: 850}},
		{Rounds: 1000, Matched: new(int64(50)), Fates: Fates{Skipped: 10, Late: 0, Withdrawn: 950}}}
	p := PriceWindows([]loop.Window{{Rounds: 1}}, "", [][]Result{runs})[0]
	if p.Skipped != .25 || p.Late != .15 {
		t.Errorf("skipped %v, late %v", p.Skipped, p.Late)
	}
}

// Of windows alike in what they skip, and in cost or nearly so, the shortest is proposed.
func TestOfWindowsAlikeTheShortest(t *testing.T) {
	for _, costs := range [][][]float64{{{5, 7}, {5, 7}, {5, 7}}, {{5, 7}, {5, 7}, {5, 6}}} {
		windows, runs := priced(costs, []int64{3, 3, 3})
		if got := recommended(PriceWindows(windows, "", runs)); !slices.Equal(got, []string{"10 rounds"}) {
			t.Errorf("%v: proposed %v", costs, got)
		}
	}
}

func TestOneSeedProposesTheCheapest(t *testing.T) {
	windows, runs := priced([][]float64{{20}, {5}, {5.001}}, []int64{50, 9, 3})
	prices := PriceWindows(windows, "", runs)
	if got := recommended(prices); !slices.Equal(got, []string{"20 rounds"}) {
		t.Errorf("proposed %v", got)
	}
	if prices[0].Regret.SE != nil {
		t.Error("one run has a standard error")
	}
	windows, runs = priced([][]float64{{5}, {5}}, []int64{9, 3}) // of those that cost the same the one that skips less
	if got := recommended(PriceWindows(windows, "", runs)); !slices.Equal(got, []string{"20 rounds"}) {
		t.Errorf("proposed %v", got)
	}
}

// TestPriceOfAnOutcome: of a named outcome a window costs what its own outcomes skip; without regret losses decide.
func TestPriceOfAnOutcome(t *testing.T) {
	run := func(loss float64, skipped int64) []Result {
		return []Result{{Rounds: 10, MeanLoss: &loss, Outcomes: []NamedOutcome{{Name: "p"},
			{Name: "q", OutcomeFates: OutcomeFates{Skipped: skipped, Late: 2}}}}}
	}
	windows := []loop.Window{{Rounds: 10}, {Rounds: 20}}
	prices := PriceWindows(windows, "q", [][]Result{run(.5, 5), run(.25, 4)})
	if p := prices[0]; p.Skipped != .5 || p.Late != .2 || p.MeanLoss.Value != .5 || p.Regret != nil ||
		!slices.Equal(recommended(prices), []string{"20 rounds"}) {
		t.Errorf("%+v, proposed %v", p, recommended(prices))
	}
	prices = PriceWindows(windows, "", [][]Result{run(.5, 5), {{Rounds: 10}}}) // nothing is known of the second
	if prices[0].Skipped != 0 || !slices.Equal(recommended(prices), []string{"10 rounds"}) {
		t.Errorf("%+v, proposed %v", prices[0], recommended(prices))
	}
}

func TestNoLossProposesNothing(t *testing.T) {
	prices := PriceWindows([]loop.Window{{Rounds: 1}}, "", [][]Result{{{Rounds: 5}}})
	if got := recommended(prices); got != nil {
		t.Errorf("proposed %v", got)
	}
}

func TestDefaultWindows(t *testing.T) {
	env, err := NewEnvironment("sigmoid", 1, 1000)
	if err != nil {
		t.Fatal(err)
	}
	var got []int64
	for _, w := range DefaultWindows(env, "") {
		got = append(got, w.Rounds)
	}
	if !slices.Equal(got, []int64{10, 20, 50, 100, 200, 500}) {
		t.Errorf("windows in rounds: %v", got)
	}
	// Waits of 90, 20, 10 and 10 minutes: from a tenth of the median on, until one is enough.
	minute := int64(60e9)
	var text []string
	for _, w := range timedWindows([]int64{0, 0, 0, 0, 0}, []int64{90 * minute, 20 * minute, 10 * minute, 10 * minute,
		scan.NoTime}) {
		text = append(text, model.FormatWindow(w))
	}
	if !slices.Equal(text, []string{"2m", "5m", "10m", "30m", "1h", "2h"}) {
		t.Errorf("windows in time: %v", text)
	}
	for want, came := range map[string][]int64{"1h": {scan.NoTime}, "2160h": {3e15 * 365, 3e15 * 365}, "1s": {-5}} {
		if got := timedWindows([]int64{0, 0}, came); len(got) != 1 || model.FormatWindow(got[0]) != want {
			t.Errorf("outcomes at %v: windows %v, want %s", came, got, want)
		}
	}
	if got := DefaultWindows(timedLog(t), ""); len(got) == 0 || got[0].Rounds != 0 || got[0].Nanos != 1e9 {
		t.Errorf("windows of a log with times: %v", got)
	}
}

// A short window throws rounds away, a long one releases them late: both are seen.
func TestPricesOfRealRuns(t *testing.T) {
	env, err := NewEnvironment("sigmoid", 1, 3000)
	if err != nil {
		t.Fatal(err)
	}
	d, err := delay.Parse("exp:50", delay.Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	windows := []loop.Window{{Rounds: 10}, {Rounds: 100}, {Rounds: 1000}}
	runs := make([][]Result, len(windows))
	for i, w := range windows {
		m, files := ModelFor(env, "w", model.Learner{Kind: model.DAFA}, w)
		r, err := (&Trial{Rounds: env, Delays: d, Model: m, Files: files, Label: "dafa",
			Seed: 1}).Run(context.Background(), nil)
		if err != nil {
			t.Fatal(err)
		}
		runs[i] = []Result{*r}
	}
	p := PriceWindows(windows, "", runs)
	if !(p[0].Skipped > .7 && p[0].Skipped > p[1].Skipped && p[1].Skipped > p[2].Skipped) {
		t.Errorf("skipped %v, %v, %v", p[0].Skipped, p[1].Skipped, p[2].Skipped)
	}
	if !(p[0].Released < p[1].Released && p[1].Released < p[2].Released) {
		t.Errorf("released %v, %v, %v", p[0].Released, p[1].Released, p[2].Released)
	}
	for _, w := range p {
		if math.Abs(w.Skipped-w.Late) > 1e-12 {
			t.Errorf("window %s skipped %v but %v came late", w.Window, w.Skipped, w.Late)
		}
	}
	if p[0].Recommended {
		t.Error("the window that throws nearly all away is proposed")
	}
}
