package certify

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"hindsight/internal/latelosses"
	"hindsight/internal/words"
	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

// regressing is a learner with a given certificate.
type regressing struct {
	*learner.UniformLearner
	c learner.Certificate
}

func (r regressing) Certificate() learner.Certificate { return r.c }

// policed is one with policies.
type policed struct {
	*learner.UniformLearner
	c learner.PolicyCertificate
}

func (p policed) PolicyCertificate() learner.PolicyCertificate { return p.c }

func (c *Certificate) state(name string) string {
	i := slices.IndexFunc(c.Assumptions, func(a Assumption) bool { return a.Name == name })
	if i < 0 {
		return "not there"
	}
	return c.Assumptions[i].State
}

// lateLosses are n that came late with a mean of 0.7, beside one of 0.5 in time.
func lateLosses(n int64, differ bool) *latelosses.Comparison {
	late, onTime, se := .7, .5, .02
	l := &latelosses.Comparison{OnTime: latelosses.Figures{N: 1, Mean: &onTime}, Late: latelosses.Figures{N: n,
		Mean: &late}, Differ: differ}
	if n > 1 {
		l.Late.SE = &se
	}
	return l
}

// TestLateLosses holds the words: one loss has no standard error.
func TestLateLosses(t *testing.T) {
	for _, c := range []struct {
		n      int64
		differ bool
		want   string
	}{
		{1, false, "mean loss 0.700 of 1, against 0.500 of 1 in time"},
		{40, false, "mean loss 0.700 ± 0.020 of 40, against 0.500 of 1 in time"},
		{40, true, "mean loss 0.700 ± 0.020 of 40, against 0.500 of 1 in time: what is missing depends on the loss"},
	} {
		if got := strings.ReplaceAll(late(lateLosses(c.n, c.differ)).Detail, words.NoBreak, " "); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// TestStates holds which state each assumption has, in what is there to say of it.
func TestStates(t *testing.T) {
	set := func(change func(p *learner.Plausible)) learner.Certificate {
		p := learner.Plausible{Functions: 100, Surviving: 3, Alpha: .05, Bound: 40, Random: 30, Charged: 10,
			Alarm: true}
		if change != nil {
			change(&p)
		}
		return learner.Certificate{Rounds: 1000, Learned: 990, Bounded: true, Beta: 1, Plausible: p}
	}
	for _, c := range []struct {
		name  string
		cert  learner.Certificate
		o     Options
		which string
		state string
		note  string // in the notes; "": nothing is asked
	}{
		{"losses", set(nil), Options{}, Losses, Enforced, ""},
		{"the alarm is silent", set(nil), Options{}, Realizability, NotRefuted, ""},
		{"the alarm was raised", set(func(p *learner.Plausible) { p.Raised = 77 }), Options{}, Realizability, refuted,
			"the bounds that need one are void"},
		{"nothing survives, the alarm is silent", set(func(p *learner.Plausible) {
			p.Surviving, p.Bound = 0, math.Inf(1)
		}),
			Options{}, Realizability, NotRefuted, ""},
		{"nothing survives, the alarm is off", set(func(p *learner.Plausible) {
			p.Surviving, p.Bound, p.Alarm = 0,
				math.Inf(1), false
		}), Options{}, Realizability, refuted, "the bounds that need one are void"},
		{"the alarm is off", set(func(p *learner.Plausible) { p.Alarm = false }), Options{}, Realizability,
			assumed, ""},
		{"no models", learner.Certificate{Rounds: 10, Bounded: true}, Options{}, Realizability, assumed, ""},
		{"linear", learner.Certificate{Rounds: 10}, Options{}, Realizability, assumed, "no theorem"},
		{"certified ridge", learner.Certificate{Rounds: 10, Bounded: true, Linear: learner.Determinant{Lambda: 1,
			Bad: 3}}, Options{}, Realizability, assumed, "may charge 1 each: 3"},
		{"FIFO", set(nil), Options{}, Order, Enforced, ""},
		{"arrival", set(nil), Options{Arrival: true}, Order, Measured, ""},
		{"early", learner.Certificate{Rounds: 10}, Options{Early: true}, Order, Measured, ""},
		{"nothing skipped", set(nil), Options{}, atRandom, Holds, ""},
		{"skipped", learner.Certificate{Rounds: 10, Skipped: 4}, Options{}, atRandom, assumed, "charged 1 each: 4"},
		{"imputed", learner.Certificate{Rounds: 10, Imputed: 4}, Options{}, Silence, Void, "imputed: 4"},
		{"nothing late", set(nil), Options{Late: &latelosses.Comparison{}}, LateLosses, Holds, ""},
		{"late, alike", set(nil), Options{Late: lateLosses(40, false)}, LateLosses, NotRefuted, ""},
		{"late, different", set(nil), Options{Late: lateLosses(40, true)}, LateLosses, refuted, ""},
		{"late, unknown", set(nil), Options{}, LateLosses, assumed, ""},
		{"outstanding", set(nil), Options{Outstanding: 7}, Losses, Enforced, "charged 1 each: 7"},
		{"elimination", learner.Certificate{Rounds: 10, Eliminates: true}, Options{}, Losses, Enforced,
			"only while the truth survives"},
	} {
		got := Of(regressing{learner.NewUniform(), c.cert}, c.o)
		if s := got.state(c.which); s != c.state {
			t.Errorf("%s: %s is %s, want %s", c.name, c.which, s, c.state)
		}
		if notes := strings.Join(got.Notes, "; "); !strings.Contains(notes, c.note) {
			t.Errorf("%s: notes %q, want %q", c.name, notes, c.note)
		}
	}
}

// TestBoundsOf holds the values: what is outstanding is charged in each, and T counts it; a
// bound that is not below T is vacuous, an infinite one has no value.
func TestBoundsOf(t *testing.T) {
	cert := learner.Certificate{Rounds: 100, Learned: 100, Bounded: true, Barrier: 90, Drift: 5, Explored: 3,
		Plausible: learner.Plausible{Functions: 9, Surviving: 2, Alpha: .05, Bound: 40, Random: 30}}
	l := regressing{learner.NewUniform(), cert}
	c := Of(l, Options{Outstanding: 10})
	if c.T != 110 || *c.PlausibleSet.Value != 50 || *c.PlausibleSet.MissingAtRandom != 40 || c.PlausibleSet.Vacuous ||
		*c.MeasuredDrift.Value != 105 || c.MeasuredDrift.Vacuous || !c.APriori.Vacuous || c.APriori.Value != nil {
		t.Errorf("%+v", c)
	}
	if c := Of(l, Options{Rounds: 40}); c.T != 40 || !c.PlausibleSet.Vacuous {
		t.Errorf("of 40 rounds: %+v", c)
	}
	b, err := json.Marshal(c)
	if err != nil || !strings.Contains(string(b),
		`"plausible_set":{"value":50,"vacuous":false,"alpha":0.05,"surviving":2,"functions":9,"missing_at_random":40}`) ||
		!strings.Contains(string(b), `"a_priori":{"value":null,"vacuous":true}`) {
		t.Errorf("%s, %v", b, err)
	}
	f, ok := Measure(l, &Options{Outstanding: 10})
	if !ok || f.T != 110 || f.Bounds[KindPlausibleSet] != 50 || f.Bounds[kindMeasuredDrift] != 105 ||
		!math.IsInf(f.Bounds[kindAPriori], 1) || f.Exploration != 3 || f.Surviving != 2 || f.Functions != 9 ||
		f.Refuted {
		t.Errorf("%+v", f)
	}
	p := policed{learner.NewUniform(), learner.PolicyCertificate{Rounds: 50, Measured: 7, MeasuredDrift: 20,
		APriori: 60}}
	c = Of(p, Options{})
	if *c.Measured.Value != 7 || *c.MeasuredDrift.Value != 20 || !c.APriori.Vacuous || c.PlausibleSet != nil ||
		c.state(Realizability) != NotNeeded {
		t.Errorf("policies: %+v", c)
	}
	if f, ok := Measure(p, &Options{}); !ok || f.Bounds[kindMeasured] != 7 || len(f.Bounds) != 3 {
		t.Errorf("policies: %+v", f)
	}
	if c := Of(learner.NewUniform(), Options{}); len(c.Notes) != 1 || c.T != 0 {
		t.Errorf("uniform: %+v", c)
	}
	if _, ok := Measure(learner.NewUniform(), &Options{}); ok {
		t.Error("uniform has figures")
	}
}

// TestVoid holds which bounds a refuted class makes void: those that need a truth in it. They
// have no value in words or figures, and say by name why.
func TestVoid(t *testing.T) {
	cert := learner.Certificate{Rounds: 100, Learned: 100, Bounded: true, Beta: 1, Barrier: 5, Lost: 10, Counted: true,
		Plausible: learner.Plausible{Functions: 9, Surviving: 2, Alpha: .05, Bound: 40, Random: 30, Alarm: true}}
	for _, raised := range []int64{0, 32} {
		cert.Plausible.Raised = raised
		l := regressing{learner.NewUniform(), cert}
		c := Of(l, Options{})
		f, _ := Measure(l, &Options{})
		for kind, b := range map[string]*Bound{KindPlausibleSet: &c.PlausibleSet.Bound,
			kindMeasuredDrift: c.MeasuredDrift, kindAPriori: c.APriori, KindRealisedLoss: &c.RealisedLoss.Bound} {
			want, void := "", raised > 0 && kind != KindRealisedLoss
			if void {
				want = ClassRefuted
			}
			if b.Void != want || (b.Value == nil) != void || math.IsInf(f.Bounds[kind], 1) != void || void &&
				!b.Vacuous {
				t.Errorf("raised %d: %s is %+v, and %v in figures", raised, kind, b, f.Bounds[kind])
			}
		}
		if (c.PlausibleSet.MissingAtRandom == nil) != (raised > 0) {
			t.Errorf("raised %d: missing at random: %v", raised, c.PlausibleSet.MissingAtRandom)
		}
	}
}

// TestChanges: what an oracle noticed stands among the assumptions, and the notes say against
// what figures compare then. One that watches for nothing says nothing.
func TestChanges(t *testing.T) {
	learn := func(version, right, wrong int) Certificate {
		reg, err := oracle.NewLinear(oracle.LinearOptions{Version: version})
		if err != nil {
			t.Fatal(err)
		}
		l := learner.NewDAFA(reg, learner.Root{C: 20})
		x := &oracle.Input{Actions: []oracle.Action{{Name: "a"}}}
		for i := range right + wrong {
			loss := 0.0
			if i >= right {
				loss = 1
			}
			l.Learn(&learner.Round{Input: x, Propensities: []float64{1}, N: int64(i + 1), LearnedThrough: int64(i),
				Fate: learner.Observed, Loss: loss})
		}
		return Of(l, Options{})
	}
	if c := learn(1, 120, 30); c.Changes != nil || c.state(stillness) != "not there" {
		t.Errorf("version 1: %+v", c)
	}
	c := learn(2, 120, 0)
	if c.Changes == nil || c.Changes.Count != 0 || c.state(stillness) != NotRefuted {
		t.Errorf("still: %+v", c)
	}
	if b, err := json.Marshal(c.Changes); string(b) != `{"count":0,"last":[]}` {
		t.Errorf("%s, %v", b, err)
	}
	c = learn(2, 120, 30)
	if c.Changes == nil || c.Changes.Count != 1 || c.state(stillness) != refuted ||
		!strings.Contains(c.Assumptions[len(c.Assumptions)-1].Detail, "probability at most 0.002") ||
		!slices.ContainsFunc(c.Notes, func(n string) bool { return strings.Contains(n, "between alarms (2)") }) {
		t.Errorf("changed: %+v", c)
	}
}

// TestPoliciesOnArrival holds that delays which depend on losses void the bounds of policies in the order of arrival,
// and in no other.
func TestPoliciesOnArrival(t *testing.T) {
	p := policed{learner.NewUniform(), learner.PolicyCertificate{Rounds: 50, Measured: 7, MeasuredDrift: 20,
		APriori: 30}}
	for _, arrival := range []bool{true, false} {
		o := Options{Arrival: arrival, Late: lateLosses(40, true)}
		c := Of(p, o)
		f, _ := Measure(p, &o)
		for kind, b := range map[string]*Bound{kindMeasured: c.Measured, kindMeasuredDrift: c.MeasuredDrift,
			kindAPriori: c.APriori} {
			if (b.Void == delaysLook) != arrival || math.IsInf(f.Bounds[kind], 1) != arrival {
				t.Errorf("arrival %v: %s is %+v, %v in figures", arrival, kind, b, f.Bounds[kind])
			}
		}
		if strings.Contains(strings.Join(c.Notes, ";"), "all bounds are void; use order: fifo") != arrival {
			t.Errorf("arrival %v: %q", arrival, c.Notes)
		}
	}
}

// TestAPriori holds by which theorem the a-priori bound is, and on what it stands then: by theorem 3 while
// delays are not seen to depend on losses; in the order of arrival, too, where the drift is void then.
func TestAPriori(t *testing.T) {
	cert := learner.Certificate{Rounds: 20000, Learned: 20000, Bounded: true, Beta: 2, Barrier: 1000, Regret: 9,
		MaxGamma: 500, MaxSigma: 50, SumSigma: 50 * 20000, SumSqSig: 2500 * 20000,
		Potential: learner.Potential{Eta: .5, Scale: math.Log(100)}}
	additive, _ := cert.Additive()
	slow := cert
	slow.Slowed, slow.Potential.Eta, slow.Plausible = true, 1./64, learner.Plausible{Functions: 9, Surviving: 9}
	for _, c := range []struct {
		name  string
		cert  learner.Certificate
		o     Options
		want  float64
		blind string // state of that assumption
		drift string // what voids the measured drift
	}{
		{"nothing was late", cert, Options{Late: lateLosses(0, false)}, additive, assumed, ""},
		{"not known", cert, Options{}, additive, assumed, ""},
		{"late, alike", cert, Options{Late: lateLosses(40, false)}, additive, NotRefuted, ""},
		{"late, different", cert, Options{Late: lateLosses(40, true)}, cert.APriori(), "not there", ""},
		{"arrival", cert, Options{Arrival: true}, additive, assumed, ""},
		{"arrival, different", cert, Options{Arrival: true, Late: lateLosses(40, true)}, math.Inf(1), "not there",
			delaysLook},
		{"outstanding, arrival, different", slow, Options{Arrival: true, Late: lateLosses(40, true)}, slow.AnyDelay(),
			"not there", delaysLook},
	} {
		l := regressing{learner.NewUniform(), c.cert}
		got := Of(l, c.o)
		f, _ := Measure(l, &c.o)
		if v := f.Bounds[kindAPriori]; v != c.want || !(math.IsInf(v, 1) || *got.APriori.Value == v) {
			t.Errorf("%s: a priori %v, in figures %v, want %v", c.name, got.APriori.Value, v, c.want)
		}
		if s := got.state(blindDelays); s != c.blind || got.MeasuredDrift.Void != c.drift {
			t.Errorf("%s: blindness is %s, want %s; measured drift %q, want %q", c.name, s, c.blind,
				got.MeasuredDrift.Void, c.drift)
		}
		notes := strings.Join(got.Notes, "; ")
		if strings.Contains(notes, "estimate") != (c.blind != "not there") ||
			strings.Contains(notes, "use order: fifo") != (c.drift != "") {
			t.Errorf("%s: notes %q", c.name, notes)
		}
	}
}
