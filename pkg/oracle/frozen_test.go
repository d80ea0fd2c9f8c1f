package oracle_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"hindsight/pkg/oracle"
	"hindsight/pkg/oracle/oracletest"
)

var frozenOptions = oracle.FrozenOptions{Actions: []string{"a", "b", "c", "d"}, Features: []oracle.FeatureSpec{
	{Name: "x0", Lo: -2, Hi: 2}, {Name: "x1", Lo: -1, Hi: 3}, {Name: "flag", Lo: 0, Hi: 1}}}

// slowFrozen solves the regression anew at each question.
type slowFrozen struct {
	z map[string][][]float64
	y map[string][]float64
	oracle.Regressor
}

func (s *slowFrozen) columns(x *oracle.Input) []float64 {
	z := []float64{1, 0, 0, 0}
	for _, f := range x.Features {
		for i, spec := range frozenOptions.Features {
			if f.Name == spec.Name {
				z[i+1] = max(-1, min(1, 2*(f.Value-spec.Lo)/(spec.Hi-spec.Lo)-1))
			}
		}
	}
	return z
}

func (s *slowFrozen) gram(name string) [][]float64 {
	g := make([][]float64, 4)
	for i := range g {
		g[i] = make([]float64, 5)
		g[i][i] = 4
		for n, z := range s.z[name] {
			for j, v := range z {
				g[i][j] += z[i] * v
			}
			g[i][4] += z[i] * (s.y[name][n] - .5)
		}
	}
	return g
}

func (s *slowFrozen) Predict(dst []float64, x *oracle.Input) {
	for i, a := range x.Actions {
		g := s.gram(a.Name)
		if a.Name == "e" { // not listed
			g = (&slowFrozen{}).gram("")
		}
		eliminate(g)
		dst[i] = .5
		for j, v := range s.columns(x) {
			dst[i] += v * g[j][4]
		}
		dst[i] = max(0, min(1, dst[i]))
	}
}

func (s *slowFrozen) Update(x *oracle.Input, a int, y float64) {
	name := x.Actions[a].Name
	s.z[name], s.y[name] = append(s.z[name], s.columns(x)), append(s.y[name], y)
}

func newSlowFrozen() *slowFrozen {
	return &slowFrozen{z: map[string][][]float64{}, y: map[string][]float64{}}
}

func TestFrozenContract(t *testing.T) {
	oracletest.Test(t, func() oracle.Regressor { return must(oracle.NewFrozen(frozenOptions)) },
		oracletest.Options{Reference: func() oracle.Regressor { return newSlowFrozen() }})
}

// TestFrozenDeterminant compares Λ with the determinants, and bad rounds with those whose determinant has more than
// doubled between what they knew and what was learned before them.
func TestFrozenDeterminant(t *testing.T) {
	o, s := must(oracle.NewFrozen(frozenOptions)), newSlowFrozen()
	rng := rand.New(rand.NewPCG(3, 3))
	logs := []float64{0}
	var doubled, nearly int64
	for n := int64(1); n <= 400; n++ {
		through := max(0, n-1-rng.Int64N(60))
		own := n%5 > 0
		o.Met(n, through, own)
		if grown := logs[n-1] - logs[through]; own && grown > math.Ln2 {
			doubled++
		} else if own && grown > 7./8*math.Ln2 {
			nearly++
		}
		x := oracletest.Input(rng)
		a, y := rng.IntN(len(x.Actions)), rng.Float64()
		o.Update(x, a, y)
		if x.Actions[a].Name != "e" {
			s.Update(x, a, y)
		}
		sum := 0.0
		for _, name := range frozenOptions.Actions {
			sum += logDeterminant(s.gram(name)) - 4*math.Log(4)
		}
		logs = append(logs, sum)
	}
	lambda, square, got, bad := o.Determinant()
	if lambda != 4 || square != 1 || math.Abs(got-logs[400]) > 1e-9*got {
		t.Errorf("λ %v, b² %v, Λ %v, want %v", lambda, square, got, logs[400])
	}
	if bad < doubled || bad > doubled+nearly || doubled == 0 {
		t.Errorf("%d bad rounds: the determinant of %d has doubled, of %d nearly", bad, doubled, nearly)
	}
	if want := 1.5*got + 3*4; math.Abs(o.Regret()-want) > 1e-9 {
		t.Errorf("R is %v, want %v", o.Regret(), want)
	}
}

func logDeterminant(g [][]float64) (sum float64) {
	for i := range g {
		sum += math.Log(g[i][i])
		for j := i + 1; j < len(g); j++ {
			r := g[j][i] / g[i][i]
			for k := i; k < len(g); k++ {
				g[j][k] -= r * g[i][k]
			}
		}
	}
	return sum
}

func TestFrozenRefuses(t *testing.T) {
	for name, change := range map[string]func(o *oracle.FrozenOptions){
		"no actions":      func(o *oracle.FrozenOptions) { o.Actions = nil },
		"an action twice": func(o *oracle.FrozenOptions) { o.Actions = []string{"a", "a"} },
		"a small lambda":  func(o *oracle.FrozenOptions) { o.Lambda = 3 },
		"bounds the wrong": func(o *oracle.FrozenOptions) {
			o.Features = []oracle.FeatureSpec{{Name: "x", Lo: 1, Hi: 1}}
		},
	} {
		o := frozenOptions
		change(&o)
		if _, err := oracle.NewFrozen(o); err == nil {
			t.Errorf("%s: it is taken", name)
		}
	}
}

// TestIntervals: the truth is within the intervals at all times in all but a few runs, where actions are chosen by what
// was learned, and they shrink with what is learned of an action; a third of their width is left in many runs.
func TestIntervals(t *testing.T) {
	const seeds, rounds, delta = 200, 400, .05
	truth := func(a int, x float64) float64 { return .5 + .4*x*float64(1-2*a) }
	actions := []oracle.Action{{Name: "a"}, {Name: "b"}}
	missed, narrow := 0, 0
	for seed := range uint64(seeds) {
		rng := rand.New(rand.NewPCG(seed, 9))
		f, err := oracle.NewFrozen(oracle.FrozenOptions{Actions: []string{"a", "b"},
			Features: []oracle.FeatureSpec{{Name: "x", Lo: -1, Hi: 1}}})
		if err != nil {
			t.Fatal(err)
		}
		var lo, hi [3]float64
		out, outNarrow := false, false
		for range rounds {
			x := 2*rng.Float64() - 1
			in := &oracle.Input{Actions: actions, Features: []oracle.Feature{{Name: "x", Kind: oracle.Number,
				Value: x}}}
			f.Interval(lo[:], hi[:], in, delta)
			for a := range actions {
				y, mid, half := truth(a, x), (lo[a]+hi[a])/2, (hi[a]-lo[a])/2
				out = out || y < lo[a] || y > hi[a]
				outNarrow = outNarrow || math.Abs(y-mid) > half/3
			}
			play := 0
			if lo[1] < lo[0] { // the one that may be better
				play = 1
			}
			loss := 0.0
			if rng.Float64() < truth(play, x) {
				loss = 1
			}
			f.Update(in, play, loss)
		}
		if out {
			missed++
		}
		if outNarrow {
			narrow++
		}
		in := &oracle.Input{Actions: []oracle.Action{{Name: "a"}, {Name: "b"}, {Name: "not listed"}},
			Features: []oracle.Feature{{Name: "x", Kind: oracle.Number}}}
		lo[2], hi[2] = .5, .5 // of another input
		if f.Interval(lo[:], hi[:], in, delta); hi[0]-lo[0] > .8 || lo[2] != 0 || hi[2] != 1 {
			t.Errorf("seed %d: [%v, %v] after %d rounds, [%v, %v] of what is not listed", seed, lo[0], hi[0], rounds,
				lo[2], hi[2])
		}
	}
	t.Logf("missed in %d of %d runs, a third in %d", missed, seeds, narrow)
	if float64(missed) > delta*seeds || narrow < seeds/2 {
		t.Errorf("missed in %d of %d runs, a third in %d", missed, seeds, narrow)
	}
}
