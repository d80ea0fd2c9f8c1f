package learner_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"hindsight/pkg/learner"
)

func scope() *learner.Scope {
	return &learner.Scope{
		Outcomes: []learner.Variable{{Name: "latency_ms", Lo: 0, Hi: 60000}, {Name: "quality", Lo: -1, Hi: 1},
			{Name: "tokens", Lo: 1, Hi: 100000}},
		Constants: []learner.Constant{{Name: "usd", Values: []float64{1e-7, 1e-6, 1e-5}}, {Name: "w",
			Values: []float64{20}}, {Name: "sign", Values: []float64{1, -1, 2}}},
		Actions: []string{"llama", "mistral", "pro"},
	}
}

func mustFormula(t testing.TB, text string) *learner.Formula {
	t.Helper()
	f, err := learner.NewFormula(text, scope())
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return f
}

// What a formula comes to is computed by hand, in the order that it is written in.
func TestFormulaValue(t *testing.T) {
	y := []float64{250, 0.5, 800} // latency_ms, quality, tokens
	for _, c := range []struct {
		text, canonical string
		want            float64
		lo, hi          float64
		linear          bool
	}{
		{"quality", "quality", 0.5, -1, 1, true},
		{"quality-0.00002*latency_ms", "quality - 2e-05*latency_ms", 0.495, -2.2, 1, true},
		{"quality - w*usd*tokens", "quality - w*usd*tokens", 0.5 - 20*1e-6*800, -21, 0.999998, true},
		{"-(quality-1)/-2", "-(quality - 1)/-2", 0.5 / -2, -1, 0, true},
		{"2-3-quality", "2 - 3 - quality", -1.5, -2, 0, true},
		{"2-(3-quality)", "2 - (3 - quality)", -0.5, -2, 0, true},
		{"8/4/(quality+2)", "8/4/(quality + 2)", 0.8, 2. / 3, 2, false},
		{"quality*max(1, min(w, 2))", "quality*max(1, min(w, 2))", 1, -2, 2, true},
		{"quality*quality", "quality*quality", 0.25, -1, 1, false},
		{"max(quality, 0, .25)", "max(max(quality, 0), 0.25)", 0.5, 0.25, 1, false},
		{"clip(tokens/1e3, 0, 1)", "clip(tokens/1000, 0, 1)", 0.8, 0.001, 1, false},
		{"sign*quality + w", "sign*quality + w", 19.5, 18, 22, true}, // a weight by action
		{"quality/max(tokens,1)", "quality/max(tokens, 1)", 0.5 / 800, -1, 1, false},
		{" quality \n\t", "quality", 0.5, -1, 1, true},
		{"--quality * ( ( 2 ) )", "--quality*2", 1, -2, 2, true},
		{"-(quality*2)", "-(quality*2)", -1, -2, 2, true},
		{"quality*-usd", "quality*-usd", .5 * -1e-6, -1e-5, 1e-5, true},
		{"quality + clip(tokens, 1, 1)", "quality + clip(tokens, 1, 1)", 1.5, 0, 2, false},
		{"quality" + strings.Repeat("+1", 60), "quality" + strings.Repeat(" + 1", 60), 60.5, 59, 61, true},
		{"quality" + strings.Repeat(" ", 993), "quality", 0.5, -1, 1, true}, // 1,000 bytes
	} {
		f := mustFormula(t, c.text)
		if lo, hi := f.Range(); f.String() != c.canonical || f.Value("mistral", y) != c.want ||
			math.Abs(lo-c.lo) > 1e-15 || math.Abs(hi-c.hi) > 1e-15 || f.Linear() != c.linear {
			t.Errorf("%s: %s = %v in [%v, %v], linear %v", c.text, f, f.Value("mistral", y), lo, hi, f.Linear())
		}
	}
	f := mustFormula(t, "quality - w*usd*tokens")
	if f.Uses(0) || !f.Uses(1) || !f.Uses(2) {
		t.Error("it uses quality and tokens")
	}
	if math.Abs(f.Value("pro", y)-0.34) > 1e-15 || f.Value("unheard of", y) != f.Value("llama", y) {
		t.Error(f.Value("pro", y), f.Value("unheard of", y))
	}
	for quality, want := range map[float64]float64{.5: .25, 1: 0, -1: 1, 1.5: 0, -1.5: 1} {
		if got := mustFormula(t, "quality").Loss("pro", []float64{0, quality, 0}); got != want {
			t.Errorf("loss of %v is %v", quality, got)
		}
	}
	wide := mustFormula(t, "quality*8.988465674311579e+307") // half of the largest number
	if lo, hi := wide.Range(); hi-lo != math.MaxFloat64 {
		t.Errorf("a range of %v", hi-lo)
	}
	f, err := learner.NewFormula("y*c", &learner.Scope{Outcomes: []learner.Variable{{Name: "y", Hi: 1}},
		Constants: []learner.Constant{{Name: "c", Values: []float64{1, 2}}}, Actions: []string{"a", "b"}})
	if err != nil || f.Value("a", []float64{1}) != 1 || f.Value("b", []float64{1}) != 2 {
		t.Errorf("of two actions: %v, %v", f, err)
	}
}

// A sign behind a name that ends in e is no exponent.
func TestFormulaNames(t *testing.T) {
	f, err := learner.NewFormula("cause-1+cause*.5e+1", &learner.Scope{
		Outcomes: []learner.Variable{{Name: "cause", Hi: 1}}})
	if err != nil || f.String() != "cause - 1 + cause*5" {
		t.Errorf("%v, %v", f, err)
	}
}

// A wrong formula is refused by what is wrong, where it is, and what to write instead.
func TestFormulaErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                 `at its character 1: expected a number, a name or "(", found the end; for example:`,
		"quality +":        `at its character 10: expected a number, a name or "(", found the end; for example:`,
		"quality tokens":   `at its character 9: expected an operator or the end, found "t"; for example:`,
		"(quality":         `at its character 9: expected ")", found the end; for example:`,
		"quality − tokens": `at its character 9: expected an operator or the end, found "−"; for example:`,
		"2*qualty": `at its character 3: no outcome or constant is called "qualty"; there are latency_ms, ` +
			`quality, tokens, usd, w, sign`,
		"3":                       `at its character 1: it names no outcome, so that nothing can be learned`,
		"w":                       `at its character 1: it names no outcome`,
		"0*quality":               `at its character 1: its values lie in [0, 0]: it must be able to vary`,
		"1/latency_ms":            `at its character 3: it divides by what may be 0: that lies in [0, 60000]; keep`,
		"tokens/(quality*2)":      `at its character 16: it divides by what may be 0: that lies in [-2, 2]; keep`,
		"1/(quality-1)":           `at its character 11: it divides by what may be 0: that lies in [-2, 0]; keep`,
		"1/(1-quality)":           `at its character 5: it divides by what may be 0: that lies in [0, 2]; keep`,
		"1/(0*(-quality-2))":      `at its character 5: it divides by what may be 0: that lies in [0, 0]; keep`,
		"0*(-quality-2)":          `at its character 1: its values lie in [0, 0]: it must be able to vary`,
		"clip(2,.5,quality)":      `at its character 1: clip(x, from, to) has from = 0.5 above to = -1; exchange them`,
		"1/(quality*0.5)":         `at its character 11: it divides by what may be 0: that lies in [-0.5, 0.5]; keep`,
		"quality*1e308*1e308":     `at its character 14: its value may be larger than any number; use smaller`,
		"max(-tokens*1e308, 0)":   `at its character 12: its value may be larger than any number; use smaller`,
		"quality*1.5e308":         `at its character 1: its values lie in [-1.5e+308, 1.5e+308]: it must`,
		"1e999*quality":           `at its character 1: "1e999" is not a number`,
		"0x10*quality":            `at its character 1: "0x10" is not a number`,
		"clip(quality, 0)":        `at its character 1: clip takes 3 arguments, it has 2; for example: clip(quality, 0, 1)`,
		"clip(quality, 1, 0)":     `at its character 1: clip(x, from, to) has from = 1 above to = 0; exchange them`,
		"min(quality)":            `at its character 1: min takes 2 arguments or more, it has 1`,
		"max quality":             `at its character 5: expected "(" after max, found "q"`,
		strings.Repeat("-", 60):   `at its character 51: it is nested more than 50 deep`,
		strings.Repeat("1+", 600): `at its character 1001: it has 1200 bytes, at most 1000 are allowed`,
	} {
		_, err := learner.NewFormula(text, scope())
		if e := (*learner.FormulaError)(nil); !errors.As(err, &e) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%.40q: %v, want %s", text, err, want)
		} else if unknown := strings.Contains(want, "is called"); unknown != (e.Name == "qualty") {
			t.Errorf("%q: it names %q", text, e.Name)
		}
	}
}

// formulas draws texts that may be formulas.
func formulas() *rapid.Generator[string] {
	leaf := rapid.SampledFrom(strings.Fields("quality tokens latency_ms usd w sign 2 0.5 -1 1e-4"))
	var tree func(depth int) *rapid.Generator[string]
	tree = func(depth int) *rapid.Generator[string] {
		if depth == 0 {
			return leaf
		}
		sub := tree(depth - 1)
		return rapid.Custom(func(t *rapid.T) string {
			switch op := rapid.SampledFrom([]string{"leaf", "+", "-", "*", "/", "~", "min", "max", "clip"}).Draw(t,
				"op"); op {
			case "leaf":
				return leaf.Draw(t, "leaf")
			case "~":
				return "-(" + sub.Draw(t, "a") + ")"
			case "clip":
				return "clip(" + sub.Draw(t, "a") + ", -2, 3.5)"
			case "min", "max":
				return op + "(" + sub.Draw(t, "a") + ", " + sub.Draw(t, "b") + ")"
			default:
				return "(" + sub.Draw(t, "a") + ")" + op + "(" + sub.Draw(t, "b") + ")"
			}
		})
	}
	return tree(4)
}

// outcomes draws values within their ranges, bounds among them.
func outcomes(t *rapid.T) (y, parts []float64) {
	for _, v := range scope().Outcomes {
		x := rapid.OneOf(rapid.Float64Range(v.Lo, v.Hi), rapid.SampledFrom([]float64{v.Lo, v.Hi})).Draw(t, v.Name)
		y, parts = append(y, x), append(parts, (x-v.Lo)/(v.Hi-v.Lo))
	}
	return y, parts
}

// No value leaves the range that a formula has, to the bit; the linear form comes to what the tree does; the
// canonical form is the same formula.
func TestFormulaProperties(t *testing.T) {
	seen := map[bool]int{}
	rapid.Check(t, func(t *rapid.T) {
		text := formulas().Draw(t, "formula")
		f, err := learner.NewFormula(text, scope())
		if err != nil {
			t.Skip(err)
		}
		seen[f.Linear()]++
		again, err := learner.NewFormula(f.String(), scope())
		if err != nil || again.String() != f.String() {
			t.Fatalf("%s reads back as %v, %v", f, again, err)
		}
		lo, hi := f.Range()
		for range 8 {
			y, parts := outcomes(t)
			for _, a := range scope().Actions {
				v, loss := f.Value(a, y), f.Loss(a, y)
				if !(v >= lo && v <= hi && loss >= 0 && loss <= 1) || again.Value(a, y) != v {
					t.Fatalf("%s of %s at %v = %v, loss %v, outside [%v, %v], or %v", f, a, y, v, loss, lo, hi,
						again.Value(a, y))
				}
				if !f.Linear() {
					continue
				}
				c, w := f.Terms(a)
				d, u := f.LossTerms(a)
				size := max(1, math.Abs(c), math.Abs(lo), math.Abs(hi)) // also of what cancels, which is rounded, too
				for k, part := range parts {
					c, d = c+w[k]*part, d+u[k]*part
					size += math.Abs(w[k])
				}
				if math.Abs(c-v) > 1e-12*size || math.Abs(d-loss) > 1e-12*max(1, size/(hi-lo)) {
					t.Fatalf("%s of %s at %v is linear: %v, loss %v; the tree: %v, %v", f, a, y, c, d, v, loss)
				}
			}
		}
	})
	if !testing.Short() && (seen[true] < 10 || seen[false] < 10) { // in short tests there are 20 in all
		t.Errorf("linear and other formulas: %v", seen)
	}
}

func TestFormulaDoesNotAllocate(t *testing.T) {
	f := mustFormula(t, "clip(quality, 0, 1) - w*usd*tokens/max(latency_ms, 1)")
	y := []float64{250, 0.5, 800}
	if n := testing.AllocsPerRun(100, func() { f.Loss("pro", y) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzFormula(f *testing.F) {
	for _, s := range []string{"quality - 0.00002*latency_ms", "clip(-w/(tokens), .5, 1e-3)", "max(quality,usd)",
		"1e-", "((("} {
		f.Add(s)
	}
	y := []float64{250, 0.5, 800}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := learner.NewFormula(text, scope())
		if err != nil {
			if c := err.(*learner.FormulaError).Column; c < 1 || c > len(text)+1 {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		b, err := learner.NewFormula(a.String(), scope())
		if err != nil || b.String() != a.String() {
			t.Fatalf("%q: %v, again %v, %v", text, a, b, err)
		}
		if v, u := a.Value("pro", y), b.Value("pro", y); fmt.Sprint(v) != fmt.Sprint(u) || math.IsNaN(v) {
			t.Fatalf("%s = %v or %v", a, v, u)
		}
	})
}
