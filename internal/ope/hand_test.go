package ope

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
)

// byHand is four rows of two actions, judged for the policy that plays action 1 with
// probability 3/4.
func byHand() (*Sample, Policy) {
	s := &Sample{Actions: 2, Action: []int32{0, 1, 1, 0}, Propensity: []float64{.5, .5, .125, .25},
		Reward: []float64{1, 0, 1, 0}}
	return s, func(dst []float64, _ int) { dst[0], dst[1] = .25, .75 }
}

func near(t *testing.T, what string, got Figure, want float64) {
	t.Helper()
	if math.Abs(float64(got)-want) > 1e-12 {
		t.Errorf("%s is %.15g, want %.15g", what, float64(got), want)
	}
}

// TestByHand: w = ½, 3/2, 6, 1; q̂(0) = q̂(1) = (1+1)/(2+2) = ½ with a prior of 2 rows
// of mean ½, so dm = ½ everywhere and e = ±½.
func TestByHand(t *testing.T) {
	s, policy := byHand()
	o := Defaults()
	o.Model = rewardModel{Mean: .5, Count: 2}
	o.Lambda = 2
	e, err := Evaluate(s, "three quarters", policy, o)
	if err != nil {
		t.Fatal(err)
	}
	get := func(name string) *Estimate {
		v := e.Estimates.Get(name)
		if v == nil {
			t.Fatalf("no %s", name)
		}
		return v
	}
	near(t, "ESS", e.ESS, 81/(.25+2.25+36+1))
	near(t, "mean weight", e.MeanWeight, 9./4)
	near(t, "overlap", Figure(e.Overlap), 3.5/4)
	near(t, "IPS", get("ips").Value, 6.5/4)
	near(t, "SNIPS", get("snips").Value, 6.5/9)
	near(t, "DM", get("dm").Value, .5)
	const we = .5*.5 - 1.5*.5 + 6*.5 - 1*.5 // = 2
	near(t, "DR", get("dr").Value, .5+we/4.)
	near(t, "SNDR", get("sndr").Value, .5+we/9.)
	near(t, "cIPS", get("cips2").Value, 2.5/4)
	near(t, "Switch", get("switchdr2").Value, .5-1./4)
	near(t, "DRos", get("dros2").Value, .5+.5/4*(1/2.25-3/4.25+12./38-2./3))
	// Terms ½, 0, 6, 0 around 13/8.
	m := 13. / 8
	near(t, "IPS se", get("ips").SE, math.Sqrt(((.5-m)*(.5-m)+m*m+(6-m)*(6-m)+m*m)/3/4))
	r := 6.5 / 9
	near(t, "SNIPS se", get("snips").SE, math.Sqrt(.25*(1-r)*(1-r)+2.25*r*r+36*(1-r)*(1-r)+r*r)/9)
	near(t, "IPS high", get("ips").High, m+math.Sqrt2*math.Erfinv(.95)*float64(get("ips").SE))
	// Weights are at most .75/.125 = 6.
	half := math.Sqrt(2*float64(get("ips").SE*get("ips").SE)*math.Log(80)) + 7*6*math.Log(80)/9
	near(t, "IPS Bernstein", get("ips").Bernstein.High-Figure(m), half)
	if v := get("snips").Bernstein.Low; !math.IsNaN(float64(v)) {
		t.Errorf("a ratio has a Bernstein interval: %v", v)
	}
}

// TestBiasByHand: of the weights ½, 3/2, 6, 1 of byHand λ = 2 cuts the third. DM lies −w·e =
// −¼, ¾, −3, ½ above DR in the rows, −½ on average. What may be biased has that in place of
// a standard error and intervals.
func TestBiasByHand(t *testing.T) {
	s, policy := byHand()
	o := Defaults()
	o.Model, o.Lambda = rewardModel{Mean: .5, Count: 2}, 2
	e, err := Evaluate(s, "x", policy, o)
	if err != nil {
		t.Fatal(err)
	}
	spread := func(x ...float64) float64 {
		mean, square := (x[0]+x[1]+x[2]+x[3])/4, 0.0
		for _, v := range x {
			square += (v - mean) * (v - mean)
		}
		return math.Sqrt(square / 3 / 4)
	}
	u := []float64{1 / 2.25, 3 / 4.25, 12. / 38, 2. / 3}
	for name, want := range map[string][2]float64{
		"dm":        {-.5, spread(-.25, .75, -3, .5)},
		"cips2":     {-1, spread(0, 0, -4, 0)},
		"switchdr2": {-.75, spread(0, 0, -3, 0)},
		"dros2": {(u[0] - .5 - u[1] + 1.5 + u[2] - 6 - u[3] + 1) / 8,
			spread((u[0]-.5)/2, (1.5-u[1])/2, (u[2]-6)/2, (1-u[3])/2)},
	} {
		v := e.Estimates.Get(name)
		if v.Bias == nil {
			t.Errorf("%s says nothing of a bias", name)
			continue
		}
		near(t, name+" bias", v.Bias.Value, want[0])
		if got := v.Mark(); got != "*" { // at most one standard error
			t.Errorf("%s is marked %q", name, got)
		}
		near(t, name+" bias se", v.Bias.SE, want[1])
		for _, none := range []Figure{v.SE, v.Low, v.High, v.Bootstrap.Low, v.Bootstrap.High, v.Bernstein.Low,
			v.Bernstein.High} {
			if !math.IsNaN(float64(none)) {
				t.Errorf("%s may be biased and has a standard error or an interval: %+v", name, v)
			}
		}
	}
	for _, name := range []string{"ips", "snips", "dr", "sndr"} {
		if v := e.Estimates.Get(name); v.Bias != nil || !(v.SE > 0) || v.Mark() != "" {
			t.Errorf("%s: %+v", name, v)
		}
	}
	s.Reward = make([]float64, 4) // what λ cuts was 0 in these four rows, and may not be in others
	if e, err = Evaluate(s, "x", policy, o); err != nil {
		t.Fatal(err)
	}
	if b := e.Estimates.Get("cips2").Bias; b == nil || !math.IsNaN(float64(b.Value)) || !math.IsNaN(float64(b.SE)) {
		t.Errorf("rows that show nothing of a bias: %+v", b)
	}
}

// TestLambdaByHand: Switch keeps a weight of λ. Where λ cuts nothing, estimates are unbiased
// and have their intervals: terms of DR are .75, −.25, 3.5 and 0 in the rows of byHand, and
// as weights are at most 6, they are in an interval of length 1 + 2·6.
func TestLambdaByHand(t *testing.T) {
	s, policy := byHand()
	at := func(lambda float64, name string) *Estimate {
		o := Defaults()
		o.Model, o.Lambda = rewardModel{Mean: .5, Count: 2}, lambda
		e, err := Evaluate(s, "x", policy, o)
		if err != nil {
			t.Fatal(err)
		}
		return e.Estimates.Get(name)
	}
	near(t, "Switch", at(1.5, "switchdr1.5").Value, .5+(.25-.75-.5)/4)
	variance := (.0625 + 1.5625 + 6.25 + 1) / 3
	dr := math.Sqrt(2*variance/4*math.Log(80)) + 7*13*math.Log(80)/9
	m := 6.5 / 4
	ips := math.Sqrt(2*((.5-m)*(.5-m)+m*m+(6-m)*(6-m)+m*m)/12*math.Log(80)) + 7*6*math.Log(80)/9
	for name, want := range map[string]struct{ lambda, value, half float64 }{
		"dr": {10, 1, dr}, "switchdr6": {6, 1, dr}, "dros+Inf": {math.Inf(1), 1, dr}, "cips6": {6, m, ips},
	} {
		v := at(want.lambda, name)
		near(t, name, v.Value, want.value)
		near(t, name+" Bernstein", v.Bernstein.High-v.Value, want.half)
		if v.Bias != nil || !(v.SE > 0) || !(v.Bootstrap.High > v.Value) {
			t.Errorf("%s cuts nothing: %+v", name, v)
		}
	}
}

// TestOneBootstrapSample: of one sample both ends are its estimate, which is that of rows drawn again.
func TestOneBootstrapSample(t *testing.T) {
	s, policy := byHand()
	o := Defaults()
	o.Bootstrap = 1
	e, err := Evaluate(s, "one", policy, o)
	if err != nil {
		t.Fatal(err)
	}
	if b := e.Estimates.Get("ips").Bootstrap; b.Low != b.High || !(b.Low > 0) {
		t.Errorf("got %v", b)
	}
}

// TestCrossFitByHand: with one row a fold, q̂ of a row is that of the others.
func TestCrossFitByHand(t *testing.T) {
	s, policy := byHand()
	o := Defaults()
	o.Model = rewardModel{Mean: .5, Count: 2, Folds: 4}
	e, err := Evaluate(s, "x", policy, o)
	if err != nil {
		t.Fatal(err)
	}
	// Without row 0: q̂(0) = 1/3, q̂(1) = ½; 1: ½, ⅔; 2: ½, ⅓; 3: ⅔, ½.
	dm := []float64{.25/3 + .375, .125 + .5, .125 + .25, .5/3 + .375}
	want := (dm[0] + dm[1] + dm[2] + dm[3]) / 4
	near(t, "DM", e.Estimates.Get("dm").Value, want)
	near(t, "DR", e.Estimates.Get("dr").Value, want+(.5*2/3-1.5*2/3+6*2./3-2./3)/4)
}

// TestFlags plants what each flag is for.
func TestFlags(t *testing.T) {
	log := func(n int, p float64, actions ...int32) *Sample {
		s := &Sample{Actions: 3}
		for i := range n {
			s.Action = append(s.Action, actions[i%len(actions)])
			s.Propensity = append(s.Propensity, p)
			s.Reward = append(s.Reward, float64(i/3%2))
		}
		return s
	}
	uniform := func(dst []float64, _ int) { spread(dst, 1) }
	always := func(a int) Policy { return func(dst []float64, _ int) { dst[a] = 1 } }
	silent := log(3000, 1./3, 0, 1, 2)
	clear(silent.Reward)
	rare := log(20000, 1./3, 0, 1, 2)
	for t := range rare.Propensity { // one row in 150 carries nearly all weight
		if rare.Propensity[t] = .9; t%50 == 1 {
			rare.Propensity[t] = .001
		}
	}
	for name, c := range map[string]struct {
		s      *Sample
		policy Policy
		want   []string // beginnings
	}{
		"nothing": {log(3000, 1./3, 0, 1, 2), uniform, nil},
		"few":     {log(999, 1./3, 0, 1, 2), uniform, []string{"few events: 999 rows, fewer than 1000"}},
		"propensities": {log(3000, 2./3, 0, 1, 2), always(1), []string{"mean weight 0.5 is 38.7 standard " +
			"errors below 1"}},
		"all alike": {log(3000, 2./3, 0, 1, 2), uniform, []string{"mean weight 0.5 is below 1 in every row"}},
		"one missing": {log(3000, 1./3, 0, 1), uniform, []string{"support missing: the policy plays an action " +
			"that the log never played, in 33.3% of"}},
		"two missing": {log(3000, 1./3, 0), uniform, []string{"support missing: the policy plays 2 actions that the " +
			"log never played, in 66.7%"}},
		"no overlap": {log(3000, 1./2, 0, 1), always(2), []string{"support missing", "no overlap",
			"mean weight 0 is below 1 in every row"}},
		"small ESS": {log(1002, .1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1), always(1),
			[]string{"effective sample size 91 is below 100 (of 1002 rows)"}},
		"small ESS share": {rare, always(1), []string{"effective sample size 149 is below 1% of 20000 rows",
			"mean weight"}},
		"silent": {silent, always(1), []string{"all 1000 matched rows have the outcome 0"}},
		"overflow": {log(3000, 1e-200, 0, 1, 2), always(1), []string{"weights are so large that their effective " +
			"sample size is no number"}},
	} {
		o := Defaults()
		o.Bootstrap = 0
		e, err := Evaluate(c.s, name, c.policy, o)
		if err != nil {
			t.Fatal(err)
		}
		if len(e.Flags) != len(c.want) {
			t.Errorf("%s: %q", name, e.Flags)
			continue
		}
		for i, want := range c.want {
			if !strings.HasPrefix(e.Flags[i], want) {
				t.Errorf("%s: %q, want %q…", name, e.Flags[i], want)
			}
		}
	}
}

// TestRefused: rows and policies that cannot be are named.
func TestRefused(t *testing.T) {
	for want, change := range map[string]func(s *Sample, p *Policy, o *Options){
		"row 2: propensity 0 of":       func(s *Sample, _ *Policy, _ *Options) { s.Propensity[2] = 0 },
		"row 1: propensity 1.5 of":     func(s *Sample, _ *Policy, _ *Options) { s.Propensity[1] = 1.5 },
		"row 1: propensity NaN of":     func(s *Sample, _ *Policy, _ *Options) { s.Propensity[1] = math.NaN() },
		"row 3: action 2 is none of 2": func(s *Sample, _ *Policy, _ *Options) { s.Action[3] = 2 },
		"row 0: reward +Inf":           func(s *Sample, _ *Policy, _ *Options) { s.Reward[0] = math.Inf(1) },
		"no rows":                      func(s *Sample, _ *Policy, _ *Options) { *s = Sample{Actions: 2} },
		"policy p: row 0: the policy's prob": func(_ *Sample, p *Policy, _ *Options) {
			*p = func(dst []float64,
				_ int) {
				dst[0] = .5
			}
		},
		"policy p: row 0: the policy plays acti": func(_ *Sample, p *Policy, _ *Options) {
			*p = func(dst []float64,
				_ int) {
				dst[0], dst[1] = -.5, 1.5
			}
		},
		"λ is -1":            func(_ *Sample, _ *Policy, o *Options) { o.Lambda = -1 },
		"-1 bootstrap":       func(_ *Sample, _ *Policy, o *Options) { o.Bootstrap = -1 },
		"shrinks means by 0": func(_ *Sample, _ *Policy, o *Options) { o.Model.Count = 0 },
		"the range is empty": func(_ *Sample, _ *Policy, o *Options) { o.Range = Range{1, 1} },
	} {
		s, p := byHand()
		o := Defaults()
		change(s, &p, &o)
		if _, err := Evaluate(s, "p", p, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// fewRooms gives room so many times.
type fewRooms struct {
	left, given int
}

var errNoRoom = errors.New("no room")

func (m *fewRooms) Drop() {}

func (m *fewRooms) Floats(n int) ([]float64, func(), error) {
	if m.left--; m.left < 0 {
		return nil, nil, errNoRoom
	}
	m.given++
	return make([]float64, n), func() { m.given-- }, nil
}

// TestNoRoom: a judgement says that its memory gives no room, wherever it asks for some, and gives back what it had.
func TestNoRoom(t *testing.T) {
	for rooms := range 5 {
		s, p := byHand()
		m := &fewRooms{left: rooms}
		s.Memory, s.Unit, s.Units = m, []int32{0, 1, 2, 2}, 3
		if _, err := Evaluate(s, "p", p, Defaults()); errors.Is(err, errNoRoom) != (rooms < 4) || m.given != 0 {
			t.Errorf("of %d rooms %d are kept: %v", rooms, m.given, err)
		}
	}
	s, p := byHand()
	s.Propensity[3] = .999 // the law of the last row is refused
	m := &fewRooms{left: 9}
	s.Memory = m
	if _, err := Evaluate(s, "p", func(dst []float64, t int) {
		if p(dst, t); t == 3 {
			dst[0] = 0
		}
	}, Defaults()); err == nil || m.given != 0 {
		t.Errorf("%d rooms are kept of a law that is refused: %v", m.given, err)
	}
}

// TestSharedFlags: a flag is shared if each of several policies has it.
func TestSharedFlags(t *testing.T) {
	of := func(flags ...string) *Evaluation { return &Evaluation{Flags: flags} }
	for _, c := range []struct {
		policies []*Evaluation
		want     string
	}{{nil, ""}, {[]*Evaluation{of("a")}, ""}, {[]*Evaluation{of("a", "b", "c"), of("c", "a")}, "a c"},
		{[]*Evaluation{of("a", "b"), of("b"), of("a")}, ""}} {
		if got := strings.Join(SharedFlags(c.policies), " "); got != c.want {
			t.Errorf("%d policies share %q, want %q", len(c.policies), got, c.want)
		}
	}
}

// TestMerge: sums of two parts are those of the whole, also by unit, and a part is taken away again.
func TestMerge(t *testing.T) {
	var whole, first, second Weighted
	for i, x := range []float64{1, 2, .5, 4} {
		part := &first
		if i > 1 {
			part = &second
		}
		part.Add(x, x/8)
		whole.Add(x, x/8)
	}
	was := first
	if first.Merge(&second, 1); first != whole {
		t.Errorf("%+v, want %+v", first, whole)
	}
	if first.Merge(&second, -1); first != was {
		t.Errorf("%+v, want %+v", first, was)
	}
	var one Weighted
	if one.Add(1, 1); !math.IsNaN(one.SE()) || one.Mean() != 1 || math.IsNaN(was.SE()) {
		t.Errorf("of one value the mean is %v ± %v, of two ± %v", one.Mean(), one.SE(), was.SE())
	}
}

// TestJSON: figures that are not defined are null, keys come in order.
func TestJSON(t *testing.T) {
	s, _ := byHand()
	s.Action = []int32{0, 0, 0, 0}
	o := Defaults()
	o.Lambda = math.Inf(1)
	e, err := Evaluate(s, "x", func(dst []float64, _ int) { dst[1] = 1 }, o)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"ess":null`, `"ips":{"value":0,"se":null,"low":null,`,
		`"bias":{"value":null,"se":null}`,
		`"snips":{"value":null,"se":null,"low":null,"high":null,"bootstrap":{"low":null,`,
		`"cips+Inf":{`, `"lambda":null`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
}

// TestChooseByHand: where all weights are 20 and all rewards 1, clipping below 20 is bias
// and no variance; where all are 1, nothing is clipped and the smallest λ will do.
func TestChooseByHand(t *testing.T) {
	for _, w := range []float64{20, 1} {
		s := &Sample{Actions: 1, Action: make([]int32, 50)}
		for range s.Action {
			s.Propensity, s.Reward = append(s.Propensity, 1/w), append(s.Reward, 1)
		}
		o := Defaults()
		o.Lambda, o.Bootstrap = 0, 0
		e, err := Evaluate(s, "x", func(dst []float64, _ int) { dst[0] = 1 }, o)
		if err != nil {
			t.Fatal(err)
		}
		near(t, "λ", *e.Estimates.Get("cips_auto").Lambda, w)
		near(t, "cIPS", e.Estimates.Get("cips_auto").Value, w)
	}
}

// TestFewOfEach: the quantiles of one sample are that, two folds are dealt, one is not, and the error of an outcome is
// that of a mean of units: here of 1 and 3.
func TestFewOfEach(t *testing.T) {
	if got := percentiles([]float64{math.NaN(), 3}); got != (interval{3, 3}) {
		t.Errorf("one sample: %+v", got)
	}
	s, _ := byHand()
	for folds, dealt := range map[int]bool{1: false, 2: true} {
		f, err := rewardModel{Count: 1, Folds: folds}.fit(s, Range{0, 1})
		if err != nil || (f.deal != nil) != dealt {
			t.Errorf("%d folds: dealt %v, %v", folds, !dealt, err)
		}
	}
	var w, of Weighted
	for _, x := range []float64{1, 3} {
		w.Add(1, x)
		of.Add(1, x)
	}
	o := OutcomeOf("q", &w, &of, 2, 2)
	near(t, "IPS of an outcome", o.Estimates.Get("ips").Value, 2)
	near(t, "its error", o.Estimates.Get("ips").SE, 1)
}
