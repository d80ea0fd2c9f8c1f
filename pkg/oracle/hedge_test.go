package oracle

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// table is a class of constant functions of the action: f_i(x, a) = t[i][a].
type table [][]float64

func (t table) Size() int { return len(t) }

func (t table) Eval(dst []float64, _ *Input, action int) {
	for i := range t {
		dst[i] = t[i][action]
	}
}

func newHedge(c Class, o HedgeOptions) *Hedge {
	h, err := NewHedge(c, o)
	if err != nil {
		panic(err)
	}
	return h
}

// TestHedgeByHand: two functions that say 0 and 1; after a loss of 1 the first
// has weight e^-½ of the second.
func TestHedgeByHand(t *testing.T) {
	h := newHedge(table{{0}, {1}}, HedgeOptions{})
	x := &Input{Actions: named("a")}
	if p := predictions(h, x); p[0] != 0.5 {
		t.Errorf("f̂_1 = %v, want 0.5", p[0])
	}
	h.Update(x, 0, 1)
	if p := predictions(h, x); !near(p[0], 1/(1+math.Exp(-0.5))) {
		t.Errorf("f̂_2 = %v, want 1/(1+e^-½)", p[0])
	}
	if l := h.AppendLosses(nil); l[0] != 1 || l[1] != 0 {
		t.Errorf("losses %v", l)
	}
	prior := newHedge(table{{0}, {1}}, HedgeOptions{Prior: []float64{3, 1}})
	if w := prior.AppendWeights(nil); !near(w[0], 0.75) || !near(w[1], 0.25) {
		t.Errorf("prior 3:1 gives weights %v", w)
	}
}

// TestHedgeSlows: η goes down to the power of two below one over what is outstanding, and never up again; from there
// on weights are those of that η from the first loss on. What tunes γ stays.
func TestHedgeSlows(t *testing.T) {
	class := table{{0}, {1}}
	h, fixed := newHedge(class, HedgeOptions{Outstanding: true}), newHedge(class, HedgeOptions{})
	x := &Input{Actions: named("a")}
	h.Update(x, 0, 1)
	fixed.Update(x, 0, 1)
	for _, c := range []struct {
		outstanding int64
		eta         float64
	}{{0, .5}, {2, .5}, {3, .25}, {4, .25}, {1, .25}, {5, .125}, {100, 1. / 128}} {
		h.Slow(c.outstanding)
		fixed.Slow(c.outstanding)
		if eta, scale := h.Rate(); eta != c.eta || scale != math.Ln2 || h.Regret() != 2*math.Ln2 {
			t.Errorf("with %d outstanding η is %v of %v, the regret %v", c.outstanding, eta, scale, h.Regret())
		}
		if w := h.AppendWeights(nil); !near(w[0]/w[1], math.Exp(-c.eta)) {
			t.Errorf("with %d outstanding the weights are %v", c.outstanding, w)
		}
	}
	if eta, _ := fixed.Rate(); eta != .5 || fixed.Slows() || !h.Slows() || h.Size() != 2 || h.Class().Size() != 2 {
		t.Errorf("an oracle whose η stays is at %v", eta)
	}
	for _, o := range []HedgeOptions{{Outstanding: true, Eta: .25}, {Outstanding: true, Vovk: true, Unproved: true}} {
		if _, err := NewHedge(class, o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
}

// TestHedgeConstants pins the table of docs/algorithms.md 2.1.
func TestHedgeConstants(t *testing.T) {
	hundred := make(table, 100)
	for i := range hundred {
		hundred[i] = []float64{0}
	}
	log := math.Log(100)
	prior := make([]float64, 100)
	for i := range prior {
		prior[i] = 1
	}
	prior[5] = 0.01 // q_1 = 0.01/99.01
	for _, c := range []struct {
		name         string
		class        Class
		o            HedgeOptions
		regret, beta float64
		proved       bool
	}{
		{"default", hundred, HedgeOptions{}, 2 * log, 0.47559 * log, true},
		{"paper", hundred, HedgeOptions{Eta: PaperEta}, 36 * log, 2 * log, true},
		{"quarter", hundred, HedgeOptions{Eta: 0.25}, 4 * log, 0.173176 * log, true},
		{"one function", table{{0}}, HedgeOptions{}, 2 * math.Ln2, 0.47559 * math.Ln2, true},
		{"prior", hundred, HedgeOptions{Prior: prior}, 2 * math.Log(9901), 0.47559 * math.Log(9901), true},
		{"unproved", hundred, HedgeOptions{Eta: 2, Unproved: true}, log / 2, 0, false},
	} {
		h := newHedge(c.class, c.o)
		if !near(h.Regret(), c.regret) || math.Abs(h.Beta()-c.beta) > 1e-4*c.beta || h.Proved() != c.proved {
			t.Errorf("%s: R=%v β=%v proved=%v, want %v %v %v", c.name, h.Regret(), h.Beta(), h.Proved(), c.regret,
				c.beta, c.proved)
		}
	}
	if k := HedgeKL(0.5); math.Abs(k-0.951) > 5e-4 {
		t.Errorf("HedgeKL(½) = %v, want 0.951", k)
	}
	for _, eta := range []float64{1e-9, 1e-3, 0.1, 0.5} { // →η as η → 0
		want := eta * (1 + eta/3) / (1 - eta)
		if k := HedgeKL(eta); math.Abs(k/want-1) > 2*eta {
			t.Errorf("HedgeKL(%v) = %v, near %v expected", eta, k, want)
		}
	}
}

func TestHedgeRefuses(t *testing.T) {
	c := table{{0}, {1}}
	for name, o := range map[string]HedgeOptions{
		"eta over a half": {Eta: 0.6}, "negative eta": {Eta: -0.1}, "NaN": {Eta: math.NaN()},
		"huge":        {Eta: 1e9, Unproved: true},
		"short prior": {Prior: []float64{1}}, "zero prior": {Prior: []float64{1, 0}},
		"infinite prior": {Prior: []float64{1, math.Inf(1)}}, "wide prior": {Prior: []float64{1e-320, 1e300}},
	} {
		if _, err := NewHedge(c, o); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := NewHedge(table{}, HedgeOptions{}); err == nil {
		t.Error("empty class: accepted")
	}
}

// TestHedgeLong: weights stay finite and ordered where exp(−ηL) has long
// underflowed, and a late favourite still comes back.
func TestHedgeLong(t *testing.T) {
	h := newHedge(table{{0}, {1}}, HedgeOptions{})
	x := &Input{Actions: named("a")}
	for range 5000 {
		h.Update(x, 0, 0)
	}
	if w := h.AppendWeights(nil); w[0] != 1 || w[1] != 0 || h.logWeight[1] != -2500 {
		t.Fatalf("weights %v, log-weights %v", w, h.logWeight)
	}
	for range 5100 {
		h.Update(x, 0, 1)
	}
	if p := predictions(h, x); p[0] != 1 {
		t.Errorf("prediction %v after the other function won", p[0])
	}
}

// monteCarlo feeds the oracle Bernoulli losses of mean f⋆ = c[0], or, as a planted
// fault, losses that alternate between 0 and 1; it returns Σ(f̂−f⋆)²(z_t) and
// ΣKL(q_t‖q_{t+1}).
func monteCarlo(c table, eta float64, rounds int, rng *rand.Rand, fault bool) (regret, kl float64) {
	h := newHedge(c, HedgeOptions{Eta: eta})
	x := &Input{Actions: named("a", "b", "c", "d")}
	before := h.AppendWeights(nil)
	for s := range rounds {
		a := rng.IntN(len(x.Actions))
		f := predictions(h, x)[a]
		regret += (f - c[0][a]) * (f - c[0][a])
		y := 0.0
		if fault && s%2 == 0 || !fault && rng.Float64() < c[0][a] {
			y = 1
		}
		h.Update(x, a, y)
		after := h.AppendWeights(nil)
		for i, q := range before {
			if q > 0 && after[i] > 0 {
				kl += q * math.Log(q/after[i])
			}
		}
		before = after
	}
	return regret, kl
}

// TestHedgeBounds: the regret and stability theorems hold in Monte Carlo, with
// margin, and the same check fails when losses do not come from the class.
func TestHedgeBounds(t *testing.T) {
	const size, k, runs = 30, 4, 40
	bounds := func(eta float64, n int) (regret, kl float64) {
		log := math.Log(float64(n))
		if eta == PaperEta {
			return 36 * log, log
		}
		return 2 * log, 0.951 * log
	}
	for _, eta := range []float64{DefaultEta, PaperEta} {
		regret, kl := 0.0, 0.0
		for run := range runs {
			rng := rand.New(rand.NewPCG(uint64(run), 5))
			c := make(table, size)
			for i := range c {
				for range k {
					c[i] = append(c[i], rng.Float64())
				}
			}
			r, l := monteCarlo(c, eta, 1500, rng, false)
			regret, kl = regret+r/runs, kl+l/runs
		}
		maxRegret, maxKL := bounds(eta, size)
		t.Logf("η=%.3f: Σ(f̂−f⋆)² = %.3f of R=%.3f, ΣKL = %.3f of %.3f", eta, regret, maxRegret, kl, maxKL)
		if regret > 0.9*maxRegret || kl > 0.9*maxKL {
			t.Errorf("η=%v: bounds do not hold with margin", eta)
		}
		maxRegret, maxKL = bounds(eta, 2)
		two := table{{0, 0, 0, 0}, {1, 1, 1, 1}}
		if regret, kl = monteCarlo(two, eta, 6000, rand.New(rand.NewPCG(1, 5)), true); regret <= maxRegret ||
			kl <= maxKL {
			t.Errorf("η=%v: the check passes on losses that are not realizable (%.3f, %.3f): it cannot fail", eta,
				regret, kl)
		}
	}
}

// TestGoldenHedge pins predictions and state of a fixed run.
func TestGoldenHedge(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	w := make([][][]float64, 40)
	for i := range w {
		for range 3 {
			w[i] = append(w[i], []float64{rng.Float64()*4 - 2, rng.Float64()*4 - 2, rng.Float64()*4 - 2})
		}
	}
	c, err := NewLogisticClass([]string{"u", "v"}, []string{"a", "b", "c"}, w)
	if err != nil {
		t.Fatal(err)
	}
	out := ""
	for _, eta := range []float64{DefaultEta, PaperEta} {
		h := newHedge(c, HedgeOptions{Eta: eta})
		var d digest
		for range 500 {
			x := &Input{Features: []Feature{num("u", rng.Float64()), num("v", rng.Float64())}, Actions: named("a",
				"b", "c")}
			d.add(predictions(h, x)...)
			h.Update(x, rng.IntN(3), float64(rng.IntN(2)))
		}
		d.add(h.Beta(), h.Regret())
		b, _ := h.AppendBinary(nil)
		d.b = append(d.b, b...)
		out += fmt.Sprintf("eta=%v %v\n", eta, &d)
	}
	golden(t, "hedge.golden", out)
}
