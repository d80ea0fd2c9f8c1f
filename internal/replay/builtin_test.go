package replay

import (
	"math"
	"strings"
	"testing"

	"hindsight/internal/loop"
	"hindsight/internal/model"
	"hindsight/internal/world"
	"hindsight/pkg/codec"
	"hindsight/pkg/oracle"
)

func environment(t testing.TB, spec string, seed uint64, rounds int) *Rounds {
	t.Helper()
	e, err := NewEnvironment(spec, seed, rounds)
	if err != nil {
		t.Fatal(err)
	}
	if e.Name != spec || e.Len() != rounds {
		t.Fatalf("%s is called %s and has %d rounds", spec, e.Name, e.Len())
	}
	return e
}

// classOf returns the functions of an environment's class file.
func classOf(t testing.TB, e *Rounds) (*model.ClassFile, oracle.Class) {
	t.Helper()
	file, err := model.ParseClass("class", e.Class.Append(nil))
	if err != nil {
		t.Fatal(err)
	}
	class, err := file.Class()
	if err != nil {
		t.Fatal(err)
	}
	return file, class
}

// fit returns the functions of the class that are the truth in every round.
func fit(t *testing.T, e *Rounds) []int {
	t.Helper()
	_, class := classOf(t, e)
	off := make([]float64, class.Size())
	truth, f := make([]float64, len(e.Actions)), make([]float64, class.Size())
	for round := range 50 {
		var c codec.Context
		e.Context(&c, round)
		if err := c.Validate(); err != nil {
			t.Fatal(err)
		}
		var x oracle.Input
		for _, v := range c.Features {
			x.Features = append(x.Features, oracle.Feature{Name: v.Name, Kind: oracle.FeatureKind(v.Kind),
				Value: v.Value})
		}
		for _, a := range c.Actions {
			x.Actions = append(x.Actions, oracle.Action{Name: a.Name})
		}
		e.Truth(truth, round)
		for a, want := range truth {
			class.Eval(f, &x, a)
			for j := range f {
				off[j] = math.Max(off[j], math.Abs(f[j]-want))
			}
		}
	}
	var out []int
	for j, d := range off {
		if d < 1e-14 {
			out = append(out, j)
		}
	}
	return out
}

// TestClose holds the environment to its definition: intercepts are shared, the
// coefficients of function j lie around a centre with standard deviation r, centre and
// intercepts have standard deviation 0.7, and the truth is f_0.
func TestClose(t *testing.T) {
	const r = 0.3
	centre, around, n, m := 0.0, 0.0, 0.0, 0.0
	for seed := range uint64(20) {
		e := environment(t, "close:0.3", seed, 100)
		file, class := classOf(t, e)
		if class.Size() != 100 || len(e.Actions) != 5 || e.Columns != 6 {
			t.Fatalf("%d functions, %d actions, %d columns", class.Size(), len(e.Actions), e.Columns)
		}
		for a := range 5 {
			for i := range 6 {
				mean := 0.0
				for _, f := range file.Functions {
					mean += f.W[a][i] / 100
				}
				for _, f := range file.Functions {
					d := f.W[a][i] - mean
					if i == 5 && math.Abs(d) > 1e-12 {
						t.Fatalf("functions have different intercepts: %v and %v", f.W[a][i], mean)
					}
					if i < 5 {
						around += d * d
						m++
					}
				}
				centre += mean * mean
				n++
			}
		}
	}
	// Variances: of 600 values, and of 50,000 with 99 degrees of freedom in 100; the
	// centre is seen through the mean of 100 functions, r²/100 wider but for intercepts.
	if got, want := centre/n, 0.49+r*r/100*5/6; math.Abs(got-want) > 4*want*math.Sqrt(2/n) {
		t.Errorf("the centre has the variance %v, want %v", got, want)
	}
	if got, want := around/m*100/99, r*r; math.Abs(got-want) > 4*want*math.Sqrt(2/m) {
		t.Errorf("functions have the variance %v around it, want %v", got, want)
	}
	if got := fit(t, environment(t, "close:0.3", 4, 100)); len(got) != 1 || got[0] != 0 {
		t.Errorf("the truth is %v, want function 0", got)
	}
	if got := fit(t, environment(t, "close:0", 4, 100)); len(got) != 100 {
		t.Errorf("with r = 0 only %d functions are the truth", len(got))
	}
}

// TestNeedle holds the environment to its definition.
func TestNeedle(t *testing.T) {
	hidden := map[int]int{}
	for seed := range uint64(900) {
		e := environment(t, "needle:0.4,0.2,0.6", seed, 10)
		star, means := -1, make([]float64, 10)
		e.Truth(means, 0)
		for a, m := range means {
			switch {
			case a == 0 && m == 0.4, a > 0 && m == 0.6:
			case a > 0 && m == 0.2 && star < 0:
				star = a
			default:
				t.Fatalf("means %v", means)
			}
		}
		hidden[star]++
	}
	for a := 1; a < 10; a++ {
		if hidden[a] < 60 || hidden[a] > 140 { // 100 ± 4 sd
			t.Errorf("the needle lies at %v", hidden)
		}
	}
	if len(hidden) != 9 {
		t.Errorf("the needle lies at %v", hidden)
	}
	e := environment(t, "needle:0.4,0.2,0.6", 5, 20_000)
	file, class := classOf(t, e)
	if class.Size() != 10 || len(e.Actions) != 10 || e.Columns != 1 {
		t.Fatalf("%d functions, %d actions, %d columns", class.Size(), len(e.Actions), e.Columns)
	}
	for j, f := range file.Functions {
		for a, w := range f.W {
			want := 0.6
			if a == 0 {
				want = 0.4
			} else if a == j {
				want = 0.2
			}
			if len(w) != 1 || w[0] != want {
				t.Errorf("f_%d of action %d is %v, want %v", j, a, w, want)
			}
		}
	}
	means := make([]float64, 10)
	e.Truth(means, 0)
	if got := fit(t, e); len(got) != 1 || means[got[0]] != 0.2 {
		t.Errorf("the truth is %v with means %v", got, means)
	}
	for a, p := range means {
		sum := 0.0
		for round := range e.Len() {
			sum += e.Loss(round, a)
		}
		if n := float64(e.Len()); math.Abs(sum/n-p) > 4*math.Sqrt(p*(1-p)/n) {
			t.Errorf("action %d loses %v, want %v", a, sum/n, p)
		}
	}
}

// TestNeedleTrapsGreed holds that greed is linear where DA-FA is not (docs/algorithms.md,
// section 6): all functions agree on the first action, and it is the best by prior.
func TestNeedleTrapsGreed(t *testing.T) {
	const rounds = 3000
	e := environment(t, "needle:0.4,0.2,0.6", 1, rounds)
	regret := map[string]float64{}
	for _, kind := range []string{model.DAFA, "greedy"} {
		l, err := model.ParseLearner(kind)
		if err != nil {
			t.Fatal(err)
		}
		m, files := ModelFor(e, "replay", l, loop.Window{Rounds: 200})
		r, err := (&Trial{Rounds: e, Delays: delays(t, "none", 1), Model: m, Files: files, Label: kind, Seed: 1}).Run(
			t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		regret[kind] = *r.Regret
	}
	if want := 0.2 * rounds; math.Abs(regret["greedy"]-want) > 1e-6 || regret[model.DAFA] > want/2 {
		t.Errorf("regret %v, want %v of greed and less than half of it of DA-FA", regret, want)
	}
}

func TestNewEnvironmentErrors(t *testing.T) {
	for spec, want := range map[string]string{
		"":              `unknown environment ""`,
		"sigmoids":      `unknown environment "sigmoids"`,
		"sigmoid:1":     "sigmoid takes no parameters, found 1 parameters",
		"close":         "close takes the parameters r, found 0 parameters",
		"close:-1":      `close: r is "-1": it must be a number in [0, 1000]`,
		"needle:.4,.2":  "needle takes the parameters s,n,o, found 2 parameters",
		"needle:.4,2,0": `needle: n is "2": it must be a number in [0, 1]`,
	} {
		if _, err := NewEnvironment(spec, 1, 5); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "for example") {
			t.Errorf("%q: %v, want %s", spec, err, want)
		}
	}
	var names []string
	for _, e := range world.List() {
		names = append(names, e.Name)
	}
	if got := strings.Join(names, " "); got != "sigmoid close needle unstable unstable-hedge hypercube blocks "+
		"trap cyc linear bandit multiclass log" {
		t.Errorf("listed: %s", got)
	}
}
