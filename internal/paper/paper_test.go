package paper

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"hindsight/internal/replay"
	"hindsight/internal/testkit/daily"
	_ "hindsight/internal/testkit/roomy"
)

func TestSlopes(t *testing.T) {
	x := []float64{0, 10, 100, 1000}
	y := []float64{-3, 3 * math.Sqrt(10), 30, 3 * math.Sqrt(1000)} // the first has no logarithm
	f, ok := fitSlope("y over x", "about", .5, x, y)
	if !ok || math.Abs(f.Slope-.5) > 1e-12 || f.SE == nil || *f.SE > 1e-12 {
		t.Errorf("%+v %v", f, ok)
	}
	// log y = 0, 1, 0 at log x = −1, 0, 1: slope 0, rest 2/3, se = √(2/3/1/2).
	f, _ = fitSlope("y over x", "about", 0, []float64{1 / math.E, 1, math.E}, []float64{1, math.E, 1})
	if math.Abs(f.Slope) > 1e-12 || math.Abs(*f.SE-math.Sqrt(1.0/3)) > 1e-12 {
		t.Errorf("%+v se %v", f, *f.SE)
	}
	if f, ok := fitSlope("", "", 0, []float64{1, 2}, []float64{1, 4}); !ok || math.Abs(f.Slope-2) > 1e-12 ||
		f.SE != nil {
		t.Errorf("two points: %+v %v", f, ok)
	}
	if _, ok := fitSlope("", "", 0, []float64{1, 1}, []float64{1, 4}); ok {
		t.Error("two points at one place have a slope")
	}
	if _, ok := fitSlope("", "", 0, []float64{1, 2}, []float64{1, -4}); ok {
		t.Error("one point has a slope")
	}
}

func TestMeansAreComparedSeedBySeed(t *testing.T) {
	if !within([]float64{10, 20, 30}, []float64{9.9, 20.1, 30}) {
		t.Error("equal within noise, but said to be larger")
	}
	if within([]float64{10, 20, 30}, []float64{9, 19.1, 29}) {
		t.Error("larger in every seed, but said to be below")
	}
	if within([]float64{10}, []float64{math.Inf(1)}) {
		t.Error("a bound that is not there was kept")
	}
}

func TestTables(t *testing.T) {
	se := .25
	table := Table{Title: "t", Columns: []string{"d", "regret", "bound"}}
	table.row(10, replay.Estimate{Value: 2.5, SE: &se}, math.Inf(1))
	table.row(20, "none", 3.5)
	var b strings.Builder
	if err := table.writeCSV(&b); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(strings.NewReader(b.String())).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	want := [][]string{{"d", "regret", "regret_se", "bound"}, {"10", "2.5", "0.25", "+Inf"}, {"20", "none", "", "3.5"}}
	if !slices.EqualFunc(rows, want, slices.Equal[[]string]) {
		t.Errorf("%v", rows)
	}
	out, err := json.Marshal(table)
	if err != nil || string(
		out) != `{"title":"t","columns":["d","regret","bound"],"rows":[[10,{"value":2.5,"se":0.25},null],[20,"none",3.5]]}` {
		t.Errorf("%s %v", out, err)
	}
	if rows := table.Texts(); !reflect.DeepEqual(rows, [][]string{{"10", "2.50±0.25", "∞"}, {"20", "none", "3.5"}}) {
		t.Errorf("%q", rows)
	}
}

// few reports whether tests play some of a claim's delays only; with HINDSIGHT_LONG all.
func few() bool { return os.Getenv("HINDSIGHT_LONG") == "" }

// TestBlindStart holds that the rounds in which nothing can be known are played by the learner that plays
// all of them: they cost what an environment of so many rounds costs, with its class.
func TestBlindStart(t *testing.T) {
	for _, c := range Claims() {
		if c.Name != "dmax" {
			continue
		}
		var f *Finding
		o := Options{Quick: true, Seeds: 1, Seed: 7, few: true}
		err := Try(t.Context(), []Claim{c}, o, func(int) {}, func(found *Finding) error { f = found; return nil })
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range f.Tables[0].Rows {
			d := int(row[1].(float64))
			if d == 0 {
				continue
			}
			alone := &cell{rounds: d, env: builtin(row[0].(string), d), delays: fmt.Sprintf("constant:%d", d)}
			r, err := alone.play(t.Context(), o.Seed, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := row[4].(replay.Estimate).Value; math.Abs(got-*r.Regret) > 1e-9*(1+got) {
				t.Errorf("%s: the first %d rounds cost %v, alone %v", row[0], d, got, *r.Regret)
			}
		}
	}
}

// Every claim can be tried, says what it saw, and does what it says it will do: a half of them each day, all in
// .ci/run's step for the paper.
func TestEveryClaim(t *testing.T) {
	dir := t.TempDir()
	o := Options{Quick: true, Seeds: 1, Seed: 7, few: few()}
	var claims []Claim
	for i, c := range Claims() {
		if c.Name == "stability" || c.Name == "dmax" || !testing.Short() && daily.Turn(t, i, 2) {
			claims = append(claims, c)
		}
	}
	var done atomic.Int64
	found := 0
	err := Try(t.Context(), claims, o, func(n int) { done.Add(int64(n)) }, func(f *Finding) error {
		found++
		if len(f.Tables) == 0 || len(f.Tables[0].Rows) == 0 || f.Seen == "" || f.Source == "" || f.Says == "" {
			t.Errorf("%s: says nothing: %+v", f.Claim, f)
		}
		if derived := strings.HasPrefix(f.Source, "derived here"); derived && len(f.Charts) != len(f.Tables) {
			t.Errorf("%s: %d pictures of %d tables", f.Claim, len(f.Charts), len(f.Tables))
		}
		for _, table := range f.Tables {
			for _, row := range table.Rows {
				if len(row) != len(table.Columns) {
					t.Errorf("%s: a row of %d in a table of %d columns", f.Claim, len(row), len(table.Columns))
				}
			}
		}
		for _, c := range f.Checks {
			if !c.Holds {
				t.Errorf("%s: does not hold: %s", f.Claim, c.What)
			}
		}
		if err := f.Save(dir); err != nil {
			t.Errorf("%s: %v", f.Claim, err)
		}
		for _, name := range append(pictures(f), f.Claim+".json", f.Claim+"-1.csv") {
			if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
				t.Errorf("%s: %v", name, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found != len(claims) {
		t.Errorf("%d findings of %d claims", found, len(claims))
	}
	if want := Work(claims, o); done.Load() != want {
		t.Errorf("%d rounds done, %d announced", done.Load(), want)
	}
}

func pictures(f *Finding) (names []string) {
	for _, p := range f.Charts {
		names = append(names, p.Name+".png")
	}
	return names
}

// A certificate that is too small is found.
func TestACheckCanFail(t *testing.T) {
	var cells []*cell
	for _, spec := range []string{"none", "constant:50"} {
		for _, pre := range presets {
			cells = append(cells, &cell{label: pre.name, rounds: 2000, env: sorted(2000, 4, 4), delays: spec,
				window: 200, tune: pre.tune(2000)})
		}
	}
	for _, j := range jobs(Options{Seeds: 2, Seed: 1}, cells) {
		if err := j.run(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	gather(cells)
	var f Finding
	concludeAdversaries(&f, cells)
	if !f.Holds() {
		t.Fatal("an honest certificate fails")
	}
	for i := range cells[1].bound {
		cells[1].bound[i] /= 100
	}
	f = Finding{}
	concludeAdversaries(&f, cells)
	if f.Holds() {
		t.Error("a certificate of a hundredth passes")
	}
}

// Where rounds are skipped because of what they lost, nothing is promised and nothing checked.
func TestLossySilence(t *testing.T) {
	skips := func(n int64) []*replay.Result {
		r := &replay.Result{Rounds: 10}
		r.Fates.Skipped = n
		return []*replay.Result{r}
	}
	for _, c := range []struct {
		delays string
		n      int64
		want   bool
	}{{"never-bad:0.3", 1, true}, {"loss:10,200", 3, true}, {"loss:10,100", 0, false}, {"never:0.1", 1, false},
		{"starve-best:500", 8, false}} {
		if got := lossy(&cell{delays: c.delays, runs: skips(c.n)}); got != c.want {
			t.Errorf("%s with %d skipped: %v", c.delays, c.n, got)
		}
	}
}

// TestEnumerationCanFail: without a term of its own each inequality of theorem 3 is broken.
func TestEnumerationCanFail(t *testing.T) {
	for i := range 3 {
		var drop [3]bool
		if got := slices.Min(enumerate(200, 3, drop)[i]); got < -1e-9 {
			t.Errorf("inequality %d: slack %v", i, got)
		}
		drop[i] = true
		if got := slices.Min(enumerate(200, 3, drop)[i]); got > -1e-6 {
			t.Errorf("inequality %d without a term: slack %v", i, got)
		}
	}
}

// TestOneLostRound: a round that never has an outcome costs the additive bound at most 1.
func TestOneLostRound(t *testing.T) {
	late := make([]float64, 20000)
	for i := range late {
		late[i] = 50
	}
	before, _ := boundsOf(late, 10, math.Log(100))
	late[7000] = 1e9
	after, at := boundsOf(late, 10, math.Log(100))
	if d := after[2] - before[2]; !(d >= 0 && d <= 1) || at.Late != 50 {
		t.Errorf("the bound was %v, and is %v at %+v", before[2], after[2], at)
	}
}
