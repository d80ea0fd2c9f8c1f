package report

import (
	"encoding/csv"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"hindsight/internal/certify"
	"hindsight/internal/chart"
	"hindsight/internal/delay"
	"hindsight/internal/judge"
	"hindsight/internal/ope"
	"hindsight/internal/replay"
	"hindsight/internal/words"
	"hindsight/pkg/oracle"
)

func some(x float64) *float64 { return &x }

func figures(x ...float64) (out []ope.Figure) {
	for _, v := range x {
		out = append(out, ope.Figure(v))
	}
	return out
}

// example is results made by hand, with everything that there can be.
func example() *Results {
	line := replay.CourseLine{Mean: figures(.5, .3), SE: figures(nan, .1), SoFar: figures(.5, .4),
		SoFarSE: figures(nan, .05)}
	run := func(learner, delays string, loss float64) replay.Result {
		return replay.Result{Environment: "shop <b>&</b>", Learner: learner, Seed: 1, Window: "200 rounds", Rounds: 20,
			MeanLoss: some(loss), Regret: some(3), UniformLoss: some(.5), BestLoss: some(.2),
			Fates: replay.Fates{Observed: 15, Skipped: 5, Late: 2}, Delays: delay.Report{Spec: delays,
				Raw: delay.Stats{D: 40, Mean: 2}, Released: delay.Stats{D: 80, Mean: 4}},
			Certificate: certify.Certificate{T: 20, MeasuredDrift: certify.NewBound(12, 20),
				APriori: certify.NewBound(math.Inf(1), 20),
				Assumptions: []certify.Assumption{{Name: certify.Silence, State: certify.Void, Detail: "losses " +
					"imputed: 3"}},
				Notes: []string{"a note"}},
			Course: &replay.Course{Stretch: 10, Rounds: []int64{10, 20}, Loss: line, Uniform: &line, Best: &line,
				Regret: figures(2, 3), Bounds: map[string][]ope.Figure{"measured_drift": figures(8, 12)},
				Arriving: figures(1, 2), Waiting: figures(2, 4), Held: figures(1, 1), Most: []int64{3, 5},
				Delays: []delay.Bin{{Raw: 3, Released: 1}, {Low: 1, High: 1, Raw: 17, Released: 19}}},
			Contexts: &replay.WorstContexts{Of: "regret", Mean: .2, Groups: 9, MinRounds: 30,
				Worst: []replay.ContextGroup{{Context: "country = DE", Rounds: 7, Share: .35, Mean: .4, SE: .05,
					Above: .2, AboveSE: .06, Part: .7}}}}
	}
	policy := func(name string, value float64, flags ...string) *ope.Evaluation {
		dr := ope.Normal("dr", value, .01)
		return &ope.Evaluation{Policy: name, Rows: 1000, Matched: 300, ESS: 90, MaxWeight: 30, MeanWeight: .97,
			MeanWeightSE: .02, Overlap: .3, Support: 1, Flags: append([]string{}, flags...),
			Estimates: ope.Estimates{ope.Normal("ips", value, .02), dr}, Course: &ope.Course{Rows: []int{500, 1000},
				Value: figures(.1, .2), SE: figures(.01, .01), SoFar: figures(.1, .15), SoFarSE: figures(.01, .01),
				ESS: figures(50, 90)}}
	}
	return &Results{
		Runs: []replay.Result{run("dafa", "lognormal:20,1.5", .35), run("dafa", "none", .3)},
		Policies: []*ope.Evaluation{policy("logging", .1), policy("always:7", .2,
			"effective sample size 90 is below 100 (of 1000 rows): few rows carry the estimates")},
		Estimators: &judge.OffPolicySettings{Of: "reward", Rows: 1000, Actions: 10, MinPropensity: .01, Lambda: 10,
			Interval: judge.Choice{Right: judge.WorstInterval, Why: "outcomes that took longer are others"}},
		Sweep: []replay.SweepPoint{{Learner: "dafa", Rounds: 20, Orders: 3, MeanLoss: &replay.Estimate{Value: .3,
			SE: some(.01)}}, {Learner: "dafa", Delay: 10, Rounds: 20, Orders: 3, MeanLoss: &replay.Estimate{Value: .35,
			SE: some(.01)}}},
		Data: &replay.Data{Name: "shop <b>&</b>", Rounds: 20, Actions: 10, Columns: 5, Observed: 18,
			Propensities: &replay.Propensities{Min: .01, P1: .01, Median: .1, Max: .5, Inverse: 10}},
		Parameters: &Parameters{Command: "backtest --report out.html", Version: "devel",
			Made: time.Unix(1.7e9, 0).UTC(),
			Seed: 1, Inputs: []Input{{"data", "shop.csv", 12, strings.Repeat("ab", 32)}}},
	}
}

// The page has its nine parts, is whole, escapes what it is given, and loads nothing.
func TestPage(t *testing.T) {
	var b strings.Builder
	if err := example().Page().Write(&b); err != nil {
		t.Fatal(err)
	}
	html := b.String()
	at := 0
	for _, id := range strings.Fields("intake propensities policies value delays regret sweep contexts parameters") {
		i := strings.Index(html, `<section id="`+id+`">`)
		if i < at {
			t.Errorf("part %s is not in its place", id)
		}
		at = i
	}
	for _, want := range []string{"always:7: effective sample size", "25.0% of the rounds were not learned",
		"country = DE", strings.Repeat("ab", 32), "shop &lt;b&gt;&amp;&lt;/b&gt;",
		"missing outcomes at their worst, since outcomes that took longer are others.",
		"the delays cost", "Permission is hereby granted", "press one to show it"} {
		if !strings.Contains(html, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if strings.Contains(html, "shop <b>") {
		t.Error("the name of the data is not escaped")
	}
	if loads := regexp.MustCompile(`(?i)(src|href)\s*=\s*["']?(https?:)?//|@import|url\(`).FindString(
		html); loads != "" {
		t.Errorf("the page loads something: %s", loads)
	}
	for _, nothing := range []string{">NaN", "%!", "&lt;nil"} {
		if strings.Contains(html, nothing) {
			t.Errorf("the page says %q", nothing)
		}
	}
}

// Results without anything make a page, too.
func TestEmptyPage(t *testing.T) {
	for _, r := range []*Results{{}, {Runs: []replay.Result{{}}}, {Policies: []*ope.Evaluation{{Policy: "logging"}},
		Estimators: &judge.OffPolicySettings{Of: "loss"}}} {
		var b strings.Builder
		if err := r.Page().Write(&b); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), `<section id="parameters">`) {
			t.Error("no parts")
		}
	}
}

// The worst comes first, and what is said of all policies is said once.
func TestFlags(t *testing.T) {
	r := example()
	few := "few events: 10 rows, fewer than 1000"
	for _, p := range r.Policies {
		p.Flags = append(p.Flags, few)
	}
	flags := r.Page().Flags
	if !slices.IsSortedFunc(flags, func(a, b pageFlag) int { return rank(a.Level) - rank(b.Level) }) {
		t.Errorf("%+v", flags)
	}
	n := 0
	for _, f := range flags {
		if strings.Contains(f.Text, few) {
			n++
		}
	}
	if n != 1 || flags[0].Text != "all policies: "+few+"." {
		t.Errorf("%d flags of few events: %+v", n, flags)
	}
	if flags := (&Results{}).Page().Flags; len(flags) != 1 || flags[0].Level != good {
		t.Errorf("%+v", flags)
	}
}

// What delays cost is paired by row order, also where an interrupted backtest has not the
// same orders with delays and without.
func TestDelaysCost(t *testing.T) {
	run := func(delays string, order int, loss float64) replay.Result {
		return replay.Result{Learner: "dafa", Order: order, Rounds: 10, MeanLoss: some(loss),
			Delays: delay.Report{Spec: delays}}
	}
	r := &Results{Runs: []replay.Result{run("exp:5", 0, .5), run("exp:5", 1, .9), run("exp:5", 2, .7),
		run("none", 2, .6), run("none", 0, .3)}}
	r.Summarise()
	if c := r.Summary[0].Cost; math.Abs(float64(c.Value)-.15) > 1e-12 || math.Abs(float64(c.SE)-.05) > 1e-12 {
		// of .2 and .1
		t.Errorf("%+v", c)
	}
	if r.Summary[1].Cost.known() || math.Abs(float64(r.Summary[1].Loss.Value)-.45) > 1e-12 {
		t.Errorf("%+v", r.Summary[1])
	}
	if says := strings.Join(r.Page().Says, " "); !strings.Contains(says, "Without delay it would have lost 0.4500") {
		t.Error(says)
	}
}

// A log of rewards is reported in rewards, on its own range: in [0, 2] a mean loss of 0.3 is a
// reward of 1.4, a loss more a reward less; and a line's band stands around it.
func TestRewardsAreShown(t *testing.T) {
	r := example()
	for i := range r.Runs {
		r.Runs[i].Rewards = &words.Rewards{Max: 2}
		r.Runs[i].UniformLoss, r.Runs[i].Regret, r.Runs[i].Contexts.Of = nil, nil, "loss"
	}
	r.Runs[0].MeanLoss = some(.35)
	page := r.Page()
	if tile := page.Tiles[0]; tile.Label != "Mean reward of dafa" || tile.Value != "1.300" {
		t.Errorf("%+v", tile)
	}
	if says := strings.Join(page.Says, " "); !strings.Contains(says, "dafa earned 1.300 a round") ||
		!strings.Contains(says, "Without delay it would have earned 1.400 a round: the delays cost +0.1000") {
		t.Error(says)
	}
	var names []string
	for _, s := range page.Sections {
		for _, part := range s.Parts {
			switch x := part.(type) {
			case *table:
				names = append(names, x.Caption)
				for _, c := range x.Columns {
					names = append(names, c.Name)
				}
			case *pageChart:
				names = append(names, x.Title, x.Y.Label)
				if line := x.Views[0].Series[0]; x.ID == "course" &&
					(line.Y[1] != 1.2 || !(line.Low[1] < 1.2 && line.High[1] > 1.2)) {
					t.Errorf("%+v", line)
				}
			}
		}
	}
	all := strings.Join(names, "; ")
	for _, want := range []string{"Mean reward over time", "mean reward", "reward a round", "below the rest",
		"below the least delay"} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is nowhere: %s", want, all)
		}
	}
	if strings.Contains(all, "mean loss") || strings.Contains(all, "loss a round") {
		t.Errorf("losses are shown: %s", all)
	}
}

// What delays cost is told where it is more than noise, and never as a gain that is none.
func TestCostWithinNoise(t *testing.T) {
	for _, c := range []struct {
		value, se   float64
		rewards     *words.Rewards
		want, notes string
	}{
		{-.01, .01, nil, "within noise", "± 0.010 more loss"}, {.01, .01, nil, "within noise", "± 0.010 more loss"},
		{.05, .01, nil, "+0.05000", "± 0.010 more loss a round than"},
		{-.01, nan, nil, "none seen", "one row order"},
		{.05, .01, &words.Rewards{Max: 1}, "+0.05000", "less reward a round than"},
	} {
		if got := costTile(mean{ope.Figure(c.value), ope.Figure(c.se)}, c.rewards); got.Value != c.want ||
			!strings.Contains(got.Note, c.notes) {
			t.Errorf("%v ± %v: %+v", c.value, c.se, got)
		}
	}
	if text := worse(mean{-.01, .01}); strings.Contains(text, "−") {
		t.Error(text)
	}
}

// The tile of the best policy says how sure it is, and on how many rewards it stands.
func TestBestPolicyTile(t *testing.T) {
	for value, noise := range map[float64]bool{.12: true, .2: false} {
		r := example()
		best := ranking(r.Policies[1])
		*best = ope.Normal("dr", value, .01)
		r.Policies[1].NonZero = 1234
		tiles := r.Page().Tiles
		tile := tiles[len(tiles)-1]
		if !strings.Contains(tile.Note, "95 %: ") ||
			!strings.Contains(tile.Note, "from 300 rows whose action it plays, of which 1,234 have a reward "+
				"other than 0") || strings.Contains(tile.Note, "within noise") != noise {
			t.Errorf("%v: %+v", value, tile)
		}
	}
}

// A log without propensities is no good news, and what is read in each column is told.
func TestUnweightedIsFlagged(t *testing.T) {
	r := example()
	matched := int64(3)
	r.Policies, r.Runs[0].Matched, r.Runs[1].Matched = nil, &matched, &matched
	if !slices.ContainsFunc(r.Page().Flags, func(f pageFlag) bool {
		return strings.Contains(f.Text, "is a biased estimate")
	}) {
		t.Errorf("%+v", r.Page().Flags)
	}
	for name, want := range map[string]string{"ips": "IPS", "cips10": "clipped IPS, λ\u00a010",
		"dros_auto": "DRos, λ\u00a0auto", "switchdrinf": "Switch-DR, λ\u00a0inf", "other": "other"} {
		if got := estimatorColumn(name); got.Name != want || name != "other" && got.Means == "" {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// An estimate that may be biased is marked, and shows no interval.
func TestBiasedIsMarked(t *testing.T) {
	r := example()
	dm := ope.Normal("dm", .3, nan)
	dm.Bias = &ope.Bias{Value: .1, SE: .01}
	for _, p := range r.Policies {
		p.Estimates = append(p.Estimates, dm)
	}
	b, err := json.Marshal(r.Page())
	if err != nil {
		t.Fatal(err)
	}
	if page := string(b); !strings.Contains(page, "0.3000**") || !strings.Contains(page, `,null],"high":[`) {
		t.Errorf("no mark, or an interval: %s", b)
	}
}

// Files have the columns that they promise, and JSON and CSV the same figures.
func TestCSV(t *testing.T) {
	r, dir := example(), filepath.Join(t.TempDir(), "csv")
	if err := r.WriteCSV(dir); err != nil {
		t.Fatal(err)
	}
	tables := map[string][]map[string]string{}
	for _, f := range r.files() {
		file, err := os.Open(filepath.Join(dir, f.Name))
		if err != nil {
			t.Fatal(err)
		}
		rows, err := csv.NewReader(file).ReadAll()
		file.Close()
		if err != nil {
			t.Fatalf("%s: %v", f.Name, err)
		}
		if !slices.Equal(rows[0], f.Columns) || len(rows) != len(f.Rows)+1 {
			t.Errorf("%s has the columns %q and %d rows", f.Name, rows[0], len(rows)-1)
		}
		for _, row := range rows[1:] {
			m := map[string]string{}
			for i, name := range rows[0] {
				m[name] = row[i]
			}
			tables[f.Name] = append(tables[f.Name], m)
		}
	}
	for _, c := range []struct {
		file      string
		row       int
		key, want string
	}{
		{"runs.csv", 0, "mean_loss", "0.35"}, {"runs.csv", 1, "delays.spec", "none"}, {"runs.csv", 0, "delays.raw.D",
			"40"},
		{"runs.csv", 0, "certificate.measured_drift.value", "12"},
		{"runs.csv", 0, "certificate.a_priori.value", ""}, {"runs.csv", 0, "certificate.plausible_set.surviving", ""},
		{"runs.csv", 0, "fates.skipped", "5"},
		{"course.csv", 0, "loss.se", ""}, {"course.csv", 1, "loss.so_far", "0.4"}, {"course.csv", 1,
			"bounds.measured_drift", "12"}, {"course.csv", 3, "run", "1"}, {"course.csv", 1, "first.mean", ""},
		{"delays.csv", 1, "released", "19"}, {"contexts.csv", 0, "context", "country = DE"}, {"policies.csv", 1,
			"ess", "90"},
		{"estimates.csv", 3, "value", "0.2"},
		{"policy_course.csv", 1, "so_far", "0.15"}, {"sweep.csv", 1, "mean_loss.value", "0.35"},
		{"sweep.csv", 1, "regret.value", ""}, {"data.csv", 0, "propensities.median", "0.1"},
		{"parameters.csv", 0, "inputs.name", "shop.csv"}, {"parameters.csv", 0, "made", "2023-11-14T22:13:20Z"},
	} {
		rows := tables[c.file]
		if len(rows) <= c.row {
			t.Errorf("%s has %d rows", c.file, len(rows))
			continue
		}
		if got, ok := rows[c.row][c.key]; !ok || got != c.want {
			t.Errorf("%s, row %d: %s is %q (%v), want %q", c.file, c.row, c.key, got, ok, c.want)
		}
	}
}

// Every column of runs.csv is a path of the JSON.
func TestColumnsArePathsOfJSON(t *testing.T) {
	r := example().Runs[0]
	r.Certificate.PlausibleSet, r.Certificate.Measured, r.Certificate.RealisedLoss = &certify.SetBound{},
		&certify.Bound{},
		&certify.RiskBound{}
	c := &r.Certificate
	for _, b := range []*certify.Bound{&c.PlausibleSet.Bound, c.Measured, &c.RealisedLoss.Bound, c.MeasuredDrift,
		c.APriori} {
		b.Void = certify.ClassRefuted // it is not there else
	}
	r.Certificate.ExplorationCost, r.Certificate.Drift, r.Certificate.Changes = some(1), some(1), &oracle.Changes{}
	r.Rewards = &words.Rewards{}
	r.Delays.Recorded, r.Replay = &delay.Recorded{}, &replay.Replay{}
	matched, lambda := int64(1), ope.Figure(1)
	r.Matched = &matched
	for _, e := range []*ope.Estimate{&r.Replay.IPS, &r.Replay.SNIPS} {
		e.Lambda, e.Bias = &lambda, &ope.Bias{}
	}
	b, err := json.Marshal(&r)
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	for _, path := range columnsOf[replay.Result]() {
		var v any = m
		for _, key := range strings.Split(path, ".") {
			o, _ := v.(map[string]any)
			var ok bool
			if v, ok = o[key]; !ok {
				t.Errorf("JSON has no %s", path)
				break
			}
		}
	}
}

// A picture's series are laid over one x; what a logarithm has no place for is left out.
func TestFromChart(t *testing.T) {
	c := fromChart("x", "", &chart.Chart{LogX: true, LogY: true, Series: []chart.Series{
		{Name: "a", X: []float64{1, 100}, Y: []float64{2, 0}, Err: []float64{3, 1}}, {Name: "b", X: []float64{0, 10},
			Y: []float64{5, 6}}}})
	if !slices.Equal(c.At, []float64{1, 10, 100}) {
		t.Fatal(c.At)
	}
	a, b := c.Views[0].Series[0], c.Views[0].Series[1]
	if a.Y[0] != 2 || a.Low[0] != .2 || a.High[0] != 5 || !math.IsNaN(float64(a.Y[2])) ||
		!math.IsNaN(float64(a.Y[1])) || b.Y[1] != 6 || b.Low != nil {
		t.Errorf("%+v %+v", a, b)
	}
}

func TestReadInput(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"b.csv": "", "a.csv": "abc"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := ReadInput("data", dir)
	if err != nil || len(got) != 2 || got[0] != (Input{"data", "a.csv", 3,
		"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"}) || got[1].Name != "b.csv" {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := ReadInput("data", filepath.Join(dir, "none")); err == nil {
		t.Error("a file that is not there has a checksum")
	}
}

// The page says on top whether the learner is worth having, once that is known: over enough row
// orders where the truth is known, else beside what the log recorded, if it has propensities.
func TestVerdict(t *testing.T) {
	run := func(order int, loss float64) replay.Result {
		return replay.Result{Learner: "dafa", Order: order, Rounds: 10, MeanLoss: some(loss), UniformLoss: some(.5),
			BestLoss: some(.1), Delays: delay.Report{Spec: "none"}}
	}
	r := &Results{Runs: []replay.Result{run(0, .19), run(1, .21)}}
	if got := r.Page().Verdict; got != "dafa lost 20% of the most possible; how that compares with the uniform "+
		"policy is not known yet. replayer backtest --orders 5 measures it." {
		t.Error(got)
	}
	r = &Results{Runs: []replay.Result{run(0, .19), run(1, .21), run(2, .2), run(3, .2), run(4, .2)}}
	if got := r.Page().Verdict; got != "dafa lost 20% of the most possible; 60% less than the uniform policy (95% "+
		"interval: 58% to 62%)." {
		t.Error(got) // by hand: a standard error of .00316, times 2.776
	}
	matched := int64(5)
	log := replay.Result{Learner: "dafa", Rounds: 10, Matched: &matched, MeanLoss: some(.2),
		Delays: delay.Report{Spec: "none"},
		Course: &replay.Course{Logged: &replay.CourseLine{SoFar: []ope.Figure{.6, .5}, SoFarSE: []ope.Figure{.1, .03}}}}
	r = &Results{Runs: []replay.Result{log}}
	if got := r.Page().Verdict; got != "dafa lost 20% of the most possible; how that compares with the policy that "+
		"made the log is not known yet." {
		t.Error(got)
	}
	log.Replay = &replay.Replay{SNIPS: ope.Normal("snips", .2, .04)}
	r = &Results{Runs: []replay.Result{log}}
	if got := r.Page().Verdict; got != "dafa lost 20% of the most possible; 60% less than the policy that made the "+
		"log (95% interval: 40% to 80%)." {
		t.Error(got) // by hand: errors of .03 and .04 are one of .05
	}
	if got := (&Results{}).Page().Verdict; got != "" {
		t.Error(got)
	}
}
