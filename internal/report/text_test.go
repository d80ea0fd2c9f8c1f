package report

import (
	"flag"
	"math"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"hindsight/internal/certify"
	"hindsight/internal/judge"
	"hindsight/internal/latelosses"
	"hindsight/internal/ope"
	"hindsight/internal/replay"
	"hindsight/internal/words"
	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files of tables")

// text writes a page for a terminal.
func text(t *testing.T, p *Page, width int) string {
	t.Helper()
	var b strings.Builder
	if err := p.WriteText(&b, width); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// checkGolden compares a text with a golden file, and how wide it is.
func checkGolden(t *testing.T, name, got string, width int) {
	t.Helper()
	path := "testdata/" + name
	if *rewrite {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(path); err != nil || got != string(want) {
		t.Errorf("%s differs (go test -rewrite writes it anew): %v\n%s", path, err, got)
	}
	checkWidth(t, got, width)
}

func checkWidth(t *testing.T, text string, width int) {
	t.Helper()
	for line := range strings.Lines(text) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
			t.Errorf("%d columns wide: %s", n, line)
		}
	}
}

// uncertain is the certificate of a learner that has none.
func uncertain() certify.Certificate {
	return certify.Of(learner.NewUniform(), certify.Options{Rounds: 1, Late: &latelosses.Comparison{}})
}

func TestRunText(t *testing.T) {
	full, bare := oneRun(), oneRun()
	bare.Regret, bare.UniformLoss, bare.BestLoss = nil, nil, nil
	bare.LateLosses.Late.Mean, bare.LateLosses.Differ = some(0.61), true
	bare.Certificate = uncertain()
	checkGolden(t, "run.txt", text(t, Run(&full), 80)+"\n"+text(t, Run(&bare), 80), 80)
}

func TestRunsText(t *testing.T) {
	var runs []replay.Result
	for _, l := range []string{"dafa", "egreedy:0.05", "uniform"} {
		for _, d := range []string{"none", "lognormal:20,1.5"} {
			for order := range 3 {
				r := oneRun()
				r.Learner, r.Delays.Spec, r.Order = l, d, order
				*r.MeanLoss += 0.01 * float64(order)
				r.Regret = some(*r.Regret + 10*float64(order))
				if l == "uniform" {
					r.Certificate = uncertain()
				}
				if l == "dafa" && d == "none" && order == 2 {
					r.Certificate.PlausibleSet.Bound = *certify.NewBound(30000, 20000)
				}
				runs = append(runs, r)
			}
		}
	}
	runs[4].Regret = nil
	runs = append(runs, oneRun())
	runs[len(runs)-1].Learner = "fixed:a"
	checkGolden(t, "runs.txt", text(t, Runs(runs, 100), 100), 100)
	if got := text(t, Runs(nil, 100), 100); got != "no runs\n" {
		t.Errorf("no runs: %q", got)
	}
}

// The table of a backtest says of a group in which run regressions were started anew, and when; and late losses
// that differ are said of one run and of many.
func TestWarningsAreSaid(t *testing.T) {
	still, moved := replay.Result{Learner: "dafa"}, replay.Result{Learner: "dafa"}
	still.Certificate.Changes = &oracle.Changes{}
	moved.Certificate.Changes = &oracle.Changes{Count: 2, Last: []oracle.Change{{Example: 3237},
		{Example: 5012, Action: "b"}}}
	late := oneRun()
	late.LateLosses.Differ = true
	for _, c := range []struct {
		runs []replay.Result
		want string
	}{
		{[]replay.Result{still, still}, ""},
		{[]replay.Result{still, moved}, "(in 1 of 2 row orders; the first): what was played lost more than " +
			"predicted, and regressions were started anew (2); the last after learned rounds 3237 (all actions) " +
			"5012 (b)."},
		{[]replay.Result{late, late}, "lengthen the window"},
	} {
		got := strings.Join(strings.Fields(text(t, Runs(c.runs, 100), 100)), " ")
		if !strings.Contains(got, c.want) || strings.Contains(got, "Warning") != (c.want != "") {
			t.Errorf("%s, want %q", got, c.want)
		}
	}
	one := strings.Join(strings.Fields(text(t, Run(&late), 80)), " ")
	if !strings.Contains(one, "warning ") || !strings.Contains(one, "lengthen the window") ||
		strings.Contains(one, "late losses ") {
		t.Error(one)
	}
	late.LateLosses.Differ = false
	if one := text(t, Run(&late), 80); !strings.Contains(one, "late losses ") || strings.Contains(one, "warning") {
		t.Error(one)
	}
}

// evaluations are of three policies by eight estimators, one of which may be biased.
func evaluations() *judge.Evaluations {
	e := &judge.Evaluations{Settings: judge.OffPolicySettings{Of: "loss", Rows: 300, Actions: 3, MinPropensity: .1,
		Lambda: 10, CrossFit: 5, Interval: judge.Choice{Right: judge.AnyTimeInterval, Why: "it may be read again"}}}
	for _, name := range []string{"logging", "uniform", "eps:0.1,eps:0.2,eps:0.3,eps:0.4,eps:0.5,always:c"} {
		p := &ope.Evaluation{Policy: name, Rows: 300, Matched: 290, ESS: 120, MaxWeight: 3, MeanWeight: .97,
			MeanWeightSE: .02, Overlap: .7, Support: 1, Flags: []string{"few events: 300 rows, fewer than 1000"},
			AnyTime: ope.AnyTime{Low: .3, High: .55}}
		p.AnyTime.Worst.Low, p.AnyTime.Worst.High = .25, .75
		for _, of := range []string{"ips", "snips", "dm", "dr", "sndr", "cips10", "switchdr10", "dros10"} {
			p.Estimates = append(p.Estimates, ope.Normal(of, .4375, .0125))
		}
		dm := &p.Estimates[2]
		dm.SE, dm.Bias = ope.Figure(nan), &ope.Bias{Value: .01, SE: .02}
		e.Policies = append(e.Policies, p)
	}
	e.Policies[2].Flags = append(e.Policies[2].Flags, "a flag of its own")
	return e
}

// What a log says of policies has the weights, the estimates, and the flags in words: those of all once.
func TestJudgedText(t *testing.T) {
	got := text(t, Judged(evaluations(), false), 100)
	checkWidth(t, got, 100)
	for _, want := range []string{words.WithError(.4375, math.NaN()) + "*", "policy ", "ESS", "mean w",
		" ips ", "snips",
		"switchdr10", "dros10", "* may be biased", "Mean loss a row of 300 rows, 3 actions, smallest propensity 0.1",
		"\n\n! all policies: few events: 300 rows, fewer than 1000.\n! eps:0.1", ": a flag of its own.\n",
		"eps:0.1,eps:0.2,eps:0.3,eps:0.4,eps:0.5…"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in:\n%s", want, got)
		}
	}
	if strings.HasSuffix(got, "\n\n") {
		t.Error("it ends with an empty line")
	}
	for right, want := range map[string][2]string{judge.NormalInterval: {"0.413 to 0.462", "right here: normal, since"},
		judge.AnyTimeInterval: {"0.300 to 0.550", "right here: valid at any time, since it may be read again."},
		judge.WorstInterval:   {"0.250 to 0.750", "valid at any time, missing outcomes at their worst, since"}} {
		e := evaluations()
		e.Settings.Interval.Right = right
		for _, screen := range []bool{false, true} {
			got := strings.Join(strings.Fields(text(t, Judged(e, screen), 100)), " ")
			if !strings.Contains(got, want[0]) || !strings.Contains(got, want[1]) {
				t.Errorf("%s: %s", right, got)
			}
		}
	}
	if got := text(t, Judged(&judge.Evaluations{}, false), 100); got != "" {
		t.Errorf("%q of no policy", got)
	}
}

// Two policies and two runs fit 80 columns and 24 lines.
func TestSummaryFitsAScreen(t *testing.T) {
	e, none := evaluations(), oneRun()
	e.Policies = e.Policies[:2]
	none.Delays.Spec = "none"
	got := text(t, Judged(e, true), 80) + "\n" + text(t, Runs([]replay.Result{oneRun(), none}, 80), 80)
	checkWidth(t, got, 80)
	if n := strings.Count(got, "\n"); n > 23 || strings.Contains(got, "\n\n\n") {
		t.Errorf("%d lines, or two empty ones:\n%s", n, got)
	}
	for _, want := range []string{"dafa, lognormal:20,1.5", "bound", " dr", "ESS", "all policies: few events"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in:\n%s", want, got)
		}
	}
}

// Tables of a log of rewards show rewards, on its own range: in [0, 2] a mean loss of 0.3 is a reward of 1.4, with
// errors twice as large, and the cheapest window's is the largest.
func TestRewardsInText(t *testing.T) {
	matched := int64(7)
	r := replay.Result{Environment: "shop", Learner: "dafa", Rounds: 10, Matched: &matched, MeanLoss: some(.3),
		Rewards: &words.Rewards{Max: 2}}
	prices := []replay.WindowPrice{{Window: "5 rounds", MeanLoss: &replay.Estimate{Value: .3, SE: some(.01)},
		Worse: &replay.Estimate{Value: .1, SE: some(.01)}}}
	all := func() string {
		return strings.Join(strings.Fields(text(t, Run(&r), 80)+text(t, Runs([]replay.Result{r}, 100), 100)+
			text(t, WindowPrices(&r, 1, prices), 100)), " ")
	}
	got := all()
	for _, want := range []string{"mean reward 1.400", "dafa 1.400 70.0%", "below best 5 rounds",
		"1.400±0.020 – 0.200±0.020", "Below best: reward short of the"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not told: %s", want, got)
		}
	}
	r.Replay = &replay.Replay{SNIPS: ope.Normal("snips", .3, .01), IPS: ope.Normal("ips", .35, .01)}
	if got := all(); !strings.Contains(got, "the reward of its policies is 1.400±0.020 (SNIPS; IPS 1.300±0.020)") ||
		!strings.Contains(got, "mean reward (SNIPS) estimates") {
		t.Error(got)
	}
	if strings.Contains(got, "mean loss") || strings.Contains(all(), "mean loss") {
		t.Errorf("losses are shown: %s", got)
	}
	if c := WindowChart(prices, &r); c.Series[0].Name != "mean reward" || c.Series[0].Y[0] != 1.4 {
		t.Errorf("%+v", c.Series[0])
	}
}

// The picture and the file of windows have each of them, also of one that says nothing.
func TestWindowFigures(t *testing.T) {
	prices := []replay.WindowPrice{{Window: "10 rounds", Bound: &replay.Estimate{Value: 20}, Recommended: true,
		MeanLoss: &replay.Estimate{Value: .3, SE: some(.01)}}, {Window: "20 rounds"}}
	c := WindowChart(prices, &replay.Result{Rounds: 100})
	if len(c.Series) != 3 || c.Series[0].X[0] != 10 || c.Series[0].Err[0] != .02 || c.Series[1].Y[0] != .2 ||
		c.Series[1].Err[0] != 0 || len(c.Series[2].X) != 2 || *c.Mark != 10 {
		t.Errorf("chart %+v", c)
	}
	f := WindowFile(prices)
	if len(f.Rows) != 2 || len(f.Rows[1]) != len(f.Columns) || f.Rows[0][8] != "0.3" || f.Rows[1][8] != "" {
		t.Errorf("%+v", f)
	}
}
