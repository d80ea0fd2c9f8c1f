package delay

import (
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"hindsight/internal/grammar"
)

func delays(t testing.TB, spec string, seed uint64) *Delays {
	t.Helper()
	d, err := Parse(spec, Options{Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestParseDelays(t *testing.T) {
	for spec, want := range map[string]string{
		"none": "none", "constant:50": "constant:50", "exp:50.0": "exp:50", "lognormal:20,1.5": "lognormal:20,1.5",
		"pareto:1.5, 10": "pareto:1.5,10", "constant:10 + never:0.05": "constant:10+never:0.05",
		"constant:1e3": "constant:1000",
	} {
		d, err := Parse(spec, Options{Seed: 1})
		if err != nil || d.Spec != want {
			t.Errorf("%q reads as %v, %v, want %q", spec, d, err, want)
		}
	}
	for spec, want := range map[string]string{
		"":                "unknown delay \"\"",
		"exponential:5":   "unknown delay \"exponential\"",
		"none:1":          "none takes no parameters, found 1 parameters",
		"exp":             "exp takes the parameters mean, found 0 parameters",
		"exp:0":           "exp: mean is \"0\": it must be a number in",
		"exp:inf":         "exp: mean is \"inf\"",
		"exp:nan":         "exp: mean is \"nan\"",
		"constant:1.5":    "constant: d is \"1.5\": it must be a whole number",
		"constant:-1":     "constant: d is \"-1\"",
		"pareto:1.5":      "pareto takes the parameters alpha,min, found 1 parameters",
		"never:1.1":       "never: p is \"1.1\"",
		"none+":           "unknown delay \"\"",
		"lognormal:20,-1": "lognormal: sigma is \"-1\"",
	} {
		_, err := Parse(spec, Options{Seed: 1})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "for example") {
			t.Errorf("%q: %v, want %s", spec, err, want)
		}
	}
}

// TestDelayList holds that what is listed can be typed.
func TestDelayList(t *testing.T) {
	file := t.TempDir() + "/delays"
	if err := os.WriteFile(file, []byte("1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range List() {
		spec := e.Name
		switch {
		case e.Params == "FILE":
			spec += ":" + file
		case e.Params != "":
			spec += ":1" + strings.Repeat(",1", strings.Count(e.Params, ","))
		}
		names = append(names, e.Name)
		if d, err := Parse(spec, Options{Seed: 1, Decided: []int64{1, 2}, Came: []int64{2,
			3}}); e.Name != "starve-best" && (err != nil || d.Spec != spec) || e.Meaning == "" {
			t.Errorf("%+v: %v, %v", e, d, err)
		}
	}
	want := strings.Fields("none constant exp lognormal pareto never burst head hold reorder starve-best loss " +
		"never-bad recorded recorded")
	if !slices.Equal(names, want) {
		t.Errorf("delays %v, want %v", names, want)
	}
}

// TestDelayLaws compares quantiles with the laws' own, 4 standard errors wide.
func TestDelayLaws(t *testing.T) {
	const n = 200_000
	for _, c := range []struct {
		spec string
		cdf  func(x float64) float64 // of the real-valued delay
		at   []float64
	}{
		{"exp:50", func(x float64) float64 { return 1 - math.Exp(-x/50) }, []float64{0.5, 10.5, 50.5, 200.5}},
		{"lognormal:20,1.5", func(x float64) float64 {
			return math.Erfc(-math.Log(x/20)/1.5/math.Sqrt2) / 2
		}, []float64{1.5, 20.5, 100.5, 1000.5}},
		{"pareto:1.5,10", func(x float64) float64 { return 1 - math.Pow(10/x, 1.5) }, []float64{10.5, 20.5,
			100.5, 1000.5}},
	} {
		d := delays(t, c.spec, 5)
		below := make([]float64, len(c.at))
		for round := range n {
			v := float64(d.Delay(&Play{Round: round}))
			for i, x := range c.at {
				if v < x {
					below[i]++
				}
			}
		}
		for i, x := range c.at {
			p := c.cdf(x)
			if got, se := below[i]/n, math.Sqrt(p*(1-p)/n); math.Abs(got-p) > 4*se+1e-12 {
				t.Errorf("%s: P(d < %v) = %v, want %v ± %v", c.spec, x, got, p, se)
			}
		}
	}
	never, d := 0, delays(t, "never:0.1", 5)
	for round := range n {
		if d.Delay(&Play{Round: round}) == Never {
			never++
		}
	}
	if math.Abs(float64(never)/n-0.1) > 4*math.Sqrt(0.09/n) {
		t.Errorf("never:0.1 loses %d of %d", never, n)
	}
}

// TestDelaysProperties holds what is true of every specification.
func TestDelaysProperties(t *testing.T) {
	term := rapid.SampledFrom([]string{"none", "constant:3", "constant:1099511627776", "exp:50", "lognormal:20,1.5",
		"lognormal:1000000000,20", "pareto:0.001,10", "pareto:1.5,10", "never:0.5", "never:1"})
	rapid.Check(t, func(t *rapid.T) {
		terms := rapid.SliceOfN(term, 1, 3).Draw(t, "terms")
		spec, seed := strings.Join(terms, "+"), rapid.Uint64().Draw(t, "seed")
		d, err := Parse(spec, Options{Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse(d.Spec, Options{Seed: seed})
		if err != nil || again.Spec != d.Spec {
			t.Fatalf("%q reads as %v, %v", d.Spec, again, err)
		}
		for i := range 50 {
			v := d.Delay(&Play{Round: i})
			if v < Never || v > grammar.MaxCount || v != again.Delay(&Play{Round: i}) {
				t.Fatalf("%s: delay of round %d is %d, then %d", d.Spec, i, v, again.Delay(&Play{Round: i}))
			}
			switch {
			case slices.Contains(terms, "never:1") && v != Never,
				!strings.Contains(spec, "never") && v == Never,
				slices.Contains(terms, "constant:3") && v != Never && v < 3,
				slices.Equal(terms, []string{"none"}) && v != 0:
				t.Fatalf("%s: delay %d", d.Spec, v)
			}
		}
	})
}

// TestTermsDrawApart holds that the terms of a sum are not copies of each other.
func TestTermsDrawApart(t *testing.T) {
	sum, one := delays(t, "exp:50+exp:50", 1), delays(t, "exp:50", 1)
	same := 0
	for i := range 1000 {
		if sum.Delay(&Play{Round: i}) == 2*one.Delay(&Play{Round: i}) {
			same++
		}
	}
	if same > 100 {
		t.Errorf("%d of 1000 sums are twice their first term", same)
	}
}

func FuzzParseDelays(f *testing.F) {
	for _, spec := range []string{"none", "exp:50", "lognormal:20,1.5", "pareto:1.5,10", "constant:10+never:0.05",
		"exp:1e-9", "constant:-0", "burst:7+head:5,2", "loss:5,0+never-bad:.5", "reorder:3+starve-best:2"} {
		f.Add(spec, uint64(1))
	}
	f.Fuzz(func(t *testing.T, spec string, seed uint64) {
		if strings.Contains(spec, Own) {
			t.Skip("it names a file of this machine")
		}
		d, err := Parse(spec, Options{Seed: seed})
		if err != nil {
			return
		}
		back, err := Parse(d.Spec, Options{Seed: seed})
		if err != nil || back.Spec != d.Spec || back.Delay(&Play{Round: 7}) != d.Delay(&Play{Round: 7}) {
			t.Fatalf("%q → %q: %v", spec, d.Spec, err)
		}
	})
}

// twin computes the statistics from their definitions, in O(T²).
func twin(raw, through []int64) (r Report) {
	n := len(raw)
	var d, released []int64
	for t := range n {
		rawT, releasedT, sigmaRaw, over := int64(0), int64(0), int64(0), int64(0)
		for s := range n {
			known := raw[s] != Never && int64(t-s-1) >= raw[s] // s is known to decision t
			switch {
			case s < t && !known:
				sigmaRaw++
			case s > t:
				if raw[t] == Never || int64(s-t-1) < raw[t] {
					rawT++
				}
				if through[s] < int64(t+1) {
					releasedT++
				}
				if raw[s] != Never && (raw[t] == Never || int64(s)+raw[s] < int64(t)+raw[t]) {
					over = 1
				}
			}
		}
		d, released = append(d, rawT), append(released, releasedT)
		r.Raw.SigmaMax = max(r.Raw.SigmaMax, sigmaRaw)
		r.Released.SigmaMax = max(r.Released.SigmaMax, int64(t)-through[t])
		r.Overtaken += over
	}
	fill := func(s *Stats, d []int64) {
		slices.Sort(d)
		for _, v := range d {
			s.D += v
		}
		if n > 0 {
			s.Mean, s.DMax = float64(s.D)/float64(n), d[n-1]
			s.P50, s.P90, s.P99 = d[int(math.Ceil(0.5*float64(n)))-1], d[int(math.Ceil(0.9*float64(n)))-1],
				d[int(math.Ceil(0.99*float64(n)))-1]
		}
	}
	fill(&r.Raw, d)
	fill(&r.Released, released)
	r.FIFOTax = r.Released.D - r.Raw.D
	return r
}

// fifo returns LearnedThrough of each decision when rounds are released in order.
func fifo(raw []int64) []int64 {
	through := make([]int64, len(raw))
	next := int64(0) // rounds released
	for t := range raw {
		for next < int64(t) && raw[next] != Never && int64(t)-next-1 >= raw[next] {
			next++
		}
		through[t] = next
	}
	return through
}

func TestMeasureDelaysAgainstTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw := rapid.SliceOfN(rapid.OneOf(rapid.Int64Range(0, 5), rapid.Int64Range(Never, 60),
			rapid.Just(int64(grammar.MaxCount))), 0, 60).Draw(t, "raw")
		through := fifo(raw)
		if rapid.Bool().Draw(t, "arrival") { // any τ(t) < t is possible, growing or not
			for i := range through {
				through[i] = rapid.Int64Range(0, int64(i)).Draw(t, "through")
			}
		}
		want := twin(raw, through)
		want.Spec = "x"
		if got, _ := Measure("x", raw, through); got != want {
			t.Fatalf("got  %+v\nwant %+v", got, want)
		}
	})
}

// TestOutcomesBeforeDecisions: an outcome whose time is before its decision's comes with that.
func TestOutcomesBeforeDecisions(t *testing.T) {
	decided, early := []int64{10, 20, 30, 40}, []int64{5, 5, 25, 70}
	if d := recorded(decided, early); !slices.Equal(d, []int64{0, 0, 0, 0}) {
		t.Errorf("delays %v", d)
	}
	got, want := Describe(decided, early, func(int) {}), Describe(decided, []int64{10, 20, 30, 70}, func(int) {})
	if !reflect.DeepEqual(got.Stats, want.Stats) {
		t.Errorf("%+v, want %+v", got.Stats, want.Stats)
	}
}

// TestFIFOTax holds that FIFO never releases earlier than outcomes arrive, and
// that Σ d_t = Σ σ_t for what is released.
func TestFIFOTax(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := rapid.SampledFrom([]string{"none", "constant:7", "exp:20", "pareto:1.5,10", "exp:5+never:0.01"}).Draw(
			t, "spec")
		d, err := Parse(spec, Options{Seed: rapid.Uint64().Draw(t, "seed")})
		if err != nil {
			t.Fatal(err)
		}
		raw := make([]int64, 300)
		for i := range raw {
			raw[i] = d.Delay(&Play{Round: i})
		}
		through := fifo(raw)
		r, _ := Measure(spec, raw, through)
		sigma := int64(0)
		for i, tau := range through {
			sigma += int64(i) - tau
		}
		if r.FIFOTax < 0 || r.Released.D != sigma {
			t.Fatalf("%+v, Σσ = %d", r, sigma)
		}
		if (spec == "none" || spec == "constant:7") && (r.FIFOTax != 0 || r.Overtaken != 0 || r.Raw != r.Released) {
			t.Fatalf("a delay that keeps the order has a tax: %+v", r)
		}
	})
}

// TestHeadOfLine is a hand-worked example: the first of four rounds waits for 2,
// the others are known at once, so FIFO holds them back.
func TestHeadOfLine(t *testing.T) {
	got, _ := Measure("x", []int64{2, 0, 0, 0}, []int64{0, 0, 0, 3})
	want := Report{
		Spec:      "x",
		Raw:       Stats{D: 2, DMax: 2, SigmaMax: 1, Mean: 0.5, P50: 0, P90: 2, P99: 2},
		Released:  Stats{D: 3, DMax: 2, SigmaMax: 2, Mean: 0.75, P50: 0, P90: 2, P99: 2},
		FIFOTax:   1,
		Overtaken: 1,
	}
	if got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// Named outcomes have delays of their own, or those before them together; what the data records is theirs where nothing
// else is said.
func TestDelaysOfOutcomes(t *testing.T) {
	o := Options{Seed: 1, Outcomes: []string{"cost", "quality", "tokens"}, Decided: []int64{0, 10, 20, 30},
		Named: map[string][]int64{"cost": {5, 15, 25, 35}, "quality": {25, 35, 45, 55}}}
	at := func(d *Delays, round int) int64 { return d.Delay(&Play{Round: round}) }
	d, err := Parse("lognormal:20,1.5, quality=exp:50+never:0.5,cost=none", o)
	if err != nil {
		t.Fatal(err)
	}
	if d.Spec != "lognormal:20,1.5,cost=none,quality=exp:50+never:0.5" || len(d.Of) != 2 || at(d.Of["cost"], 1) != 0 {
		t.Errorf("%+v", d)
	}
	if again, err := Parse(d.Spec, o); err != nil || at(again, 3) != at(d, 3) ||
		at(again.Of["quality"], 3) != at(d.Of["quality"], 3) {
		t.Errorf("%+v, %v", again, err)
	}
	d, err = Parse("recorded,tokens=constant:3", o)
	if err != nil || d.Delay != nil || at(d.Of["cost"], 0) != 0 || at(d.Of["quality"], 0) != 2 ||
		at(d.Of["tokens"], 0) != 3 {
		t.Errorf("%+v, %v", d, err)
	}
	d, err = Parse("exp:50,cost=exp:50", o)
	if err != nil {
		t.Fatal(err)
	}
	same := 0
	for r := range 100 {
		if at(d, r) == at(d.Of["cost"], r) {
			same++
		}
	}
	if same > 20 {
		t.Errorf("%d of 100 delays of two outcomes are the same", same)
	}
	if d, err = Parse("none,cost=lognormal:20,1", o); err != nil || d.Of["cost"].Spec != "lognormal:20,1" {
		t.Errorf("delays of two numbers: %+v, %v", d, err)
	}
	for spec, says := range map[string]string{"recorded": "tokens: ", "cost=none": "tokens: ",
		"none,price=none": "no outcome is called", "none,cost=none,cost=none": "twice", "none,cost=slow:1": "cost: "} {
		if _, err := Parse(spec, o); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", spec, err)
		}
	}
}

// The parts of a round come each at its time, and the last of those that come says so; a round is there when all of it
// is.
func TestScheduleParts(t *testing.T) {
	s := NewSchedule(4, nil)
	s.AddParts([]Part{{Delay: 1}, {Delay: 0}, {Delay: Never}}, 0)
	if s.Cut != Never || s.Silent {
		t.Errorf("cut %d, silent %v", s.Cut, s.Silent)
	}
	if got := s.After(0); len(got) != 1 || got[0].Part != 1 || got[0].Last {
		t.Errorf("%+v", got)
	}
	s.AddParts([]Part{{Delay: 9}, {Delay: 7}}, 1)
	if s.Cut != 2 || s.Silent {
		t.Errorf("cut %d, silent %v", s.Cut, s.Silent)
	}
	if got := s.After(1); len(got) != 1 || got[0].Round != 0 || got[0].Part != 0 || !got[0].Last {
		t.Errorf("%+v", got)
	}
	s.AddParts([]Part{{Delay: Never}, {Delay: Never}}, 1)
	if s.Cut != Never || !s.Silent {
		t.Errorf("cut %d, silent %v", s.Cut, s.Silent)
	}
	if got := s.Rest(); len(got) != 2 || got[0].Part != 1 || got[0].Last || !got[1].Last {
		t.Errorf("%+v", got)
	}
	for first, times := range [][]int64{nil, {6, 5}} { // so are rounds, where there are times
		s = NewSchedule(4, times)
		s.Add(9, 0)
		s.Add(9, 0)
		if got := s.Rest(); int(got[0].Round) != first {
			t.Errorf("of rounds at %v round %d comes first", times, got[0].Round)
		}
	}
	s = NewSchedule(4, nil)
	s.Timed = true // behind the end they are in the order of their times
	s.AddParts([]Part{{Delay: 9, Time: 5}, {Delay: 7, Time: 6}}, 1)
	if got := s.Rest(); got[0].Part != 0 || got[0].Last || !got[1].Last {
		t.Errorf("%+v", got)
	}
}
