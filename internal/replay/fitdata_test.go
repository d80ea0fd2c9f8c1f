package replay

import (
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"hindsight/internal/dataset"
	"hindsight/internal/delay"
	classes "hindsight/internal/fit"
	"hindsight/internal/logs"
	"hindsight/internal/loop"
	"hindsight/internal/model"
	"hindsight/internal/world"
	"hindsight/pkg/codec"
)

// TestFitData: columns, losses and weights of a labelled CSV, of a log, and of a CSV of
// which one action a row counts.
func TestFitData(t *testing.T) {
	m, err := readLabelled("f.csv", strings.NewReader("label,n_x,c_y\na,1.5,u\nb,,v\na,2,u\nb,3,w\n"))
	if err != nil {
		t.Fatal(err)
	}
	d, err := FitData(m, FitOptions{Columns: 3})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(d.Features, []string{"c_y=u", "c_y=v", "n_x"}) { // of the texts that occur once the first
		t.Errorf("columns %v", d.Features)
	}
	if got := asJSON(t, d.X); got != "[[1,0,1.5],[0,1,0],[1,0,2],[0,0,3]]" {
		t.Errorf("rows %s", got)
	}
	if got := asJSON(t, []any{d.Loss, d.Weight}); got != "[[[0,1],[1,0],[0,1],[1,0]],[1,1,1,1]]" {
		t.Errorf("losses and weights %s", got)
	}
	one, err := FitData(m, FitOptions{Columns: 9, Rows: 3, Bandit: true, Seed: 1})
	if err != nil || one.Len() != 3 {
		t.Fatal(one, err)
	}
	for i, loss := range one.Loss {
		a := slices.IndexFunc(loss, func(v float64) bool { return !math.IsNaN(v) })
		if a < 0 || loss[a] != m.Loss(i, a) || !math.IsNaN(loss[1-a]) || one.Weight[i] != 2 {
			t.Errorf("row %d: losses %v, weight %v", i, loss, one.Weight[i])
		}
	}
	log, err := FitData(targetLog(t), FitOptions{Columns: 9})
	if err != nil || log.Len() != 3 || !slices.Equal(log.Weight, []float64{2, 4, 1}) || log.Loss[1][1] != 1 ||
		!math.IsNaN(log.Loss[1][0]) {
		t.Errorf("%+v, %v", log, err)
	}
	if _, err := FitData(tableLog(t), FitOptions{Columns: 9}); err == nil {
		t.Error("data without features was taken")
	}
}

// TestTail: what is behind the first rounds is what it was, of whatever data.
func TestTail(t *testing.T) {
	for _, env := range []*Rounds{OfWorld(world.NewSigmoid(1, 30, world.SigmoidOptions{})), worldLog(t, 1, 30),
		Head(worldLog(t, 1, 40), 30), timedLog(t)} {
		for _, n := range []int{0, 1, 3} {
			rest := Tail(env, n)
			if rest.Len() != env.Len()-n {
				t.Fatalf("%s: %d of %d rounds", env.Name, rest.Len(), env.Len())
			}
			v, w := env, rest
			for i := range rest.Len() {
				var a, b codec.Context
				env.Context(&a, i+n)
				rest.Context(&b, i)
				if asJSON(t, a) != asJSON(t, b) {
					t.Fatalf("%s: round %d differs", env.Name, i)
				}
				for k := range env.Actions {
					if x, y := env.Loss(i+n, k), rest.Loss(i, k); x != y && !math.IsNaN(x) {
						t.Fatalf("%s: round %d: loss %v, want %v", env.Name, i, y, x)
					}
				}
				if v.Log != nil && (w.Log.Action[w.Row(i)] != v.Log.Action[v.Row(i+n)] || v.Timed() &&
					w.Time(i) != v.Time(i+n)) {
					t.Fatalf("%s: round %d is another", env.Name, i)
				}
			}
		}
	}
}

// fitPlay fits a class to the first 2,000 rows in some order and returns the mean loss of
// the default learner over it on the rest, and that of the linear oracle that started with
// the first row.
func fitPlay(t *testing.T, env *Rounds, order int, bandit bool) (class, linear float64) {
	t.Helper()
	const used = 2000
	env = Order(env, order, 1)
	d, err := FitData(env, FitOptions{Rows: used, Columns: 200, Bandit: bandit, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	c, err := classes.Fit(t.Context(), d, classes.Defaults())
	if err != nil {
		t.Fatal(err)
	}
	none, err := delay.Parse("none", delay.Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	play := func(env *Rounds, o model.Oracle, files map[string][]byte) *Result {
		m, _ := ModelFor(env, "replay", model.Learner{Kind: model.DAFA}, loop.Window{Rounds: 200})
		m.Oracle = o
		m.Resolve(env.Columns, len(env.Actions))
		r, err := (&Trial{Rounds: env, Delays: none, Model: m, Files: files, Seed: 1}).Run(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	rest := Tail(env, used)
	over := play(rest, model.Oracle{Kind: model.Hedge, Eta: .5, Class: "c"}, map[string][]byte{"c": c.File.Append(nil)})
	o, err := model.ParseOracle(model.Linear)
	if err != nil {
		t.Fatal(err)
	}
	all, head := play(env, o, nil), play(Head(env, used), o, nil)
	n := float64(env.Len())
	linear = (*all.MeanLoss*n - *head.MeanLoss*used) / (n - used)
	t.Logf("order %d, bandit %v: %d functions of %d tried, best held-out %.4f (%s), constant %.4f, %d survive; class "+
		"%.4f, linear %.4f",
		order, bandit, len(c.Functions), c.Tried, c.Functions[0].HeldOut, c.Functions[0].Kind, c.Constant, c.Surviving,
		*over.MeanLoss, linear)
	return *over.MeanLoss, linear
}

// TestFitPendigits: on pendigits a class of 200 functions fitted to the first 2,000 rows,
// with the loss of every action, against the linear oracle on the rest, over five row
// orders.
func TestFitPendigits(t *testing.T) {
	const file = "../../../shared/data/multiclass/pendigits.csv"
	if os.Getenv("HINDSIGHT_LONG") == "" {
		t.Skip("set HINDSIGHT_LONG=1: it takes a minute")
	}
	env, err := openLog(file, logs.Options{})
	if err != nil {
		t.Skipf("the data set pendigits is not beside the project: %v", err)
	}
	for _, bandit := range []bool{false, true} {
		var differences []float64
		for order := range 5 {
			class, linear := fitPlay(t, env, order, bandit)
			differences = append(differences, linear-class)
		}
		mean, se := meanSE(differences)
		t.Logf("bandit %v: linear less class %.4f ± %.4f", bandit, mean, se)
		if !bandit && !(mean > 2*se) {
			t.Errorf("with all losses the class does not beat the linear oracle: %.4f ± %.4f", mean, se)
		}
	}
}

func meanSE(x []float64) (mean, se float64) {
	n := float64(len(x))
	for _, v := range x {
		mean += v / n
	}
	for _, v := range x {
		se += (v - mean) * (v - mean) / (n - 1) / n
	}
	return mean, math.Sqrt(se)
}

// TestFitVectors: places of a vector are columns in their order, of rows that are longer than others, too; weights are
// those of rows that stand for several.
func TestFitVectors(t *testing.T) {
	const text = `{"features":[1,2],"action":"a","loss":1,"weight":2}
{"features":[3,4,5],"action":"b","loss":0}
`
	d, err := FitData(readEvents(t, text, dataset.Options{}, logs.Options{}), FitOptions{Columns: 9})
	if err != nil {
		t.Fatal(err)
	}
	if got := asJSON(t, []any{d.Features, d.X, d.Weight}); got != `[["0","1","2"],[[1,2,0],[3,4,5]],[2,1]]` {
		t.Error(got)
	}
}
