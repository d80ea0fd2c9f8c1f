package certify

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"hindsight/internal/words"
	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

var update = flag.Bool("update", false, "write testdata/certificates.txt anew")

// TestWords holds all that certificates say, of one in each state.
func TestWords(t *testing.T) {
	set := learner.Certificate{Rounds: 1000, Learned: 900, Skipped: 60, Imputed: 40, Bounded: true, Beta: 1,
		Barrier: 20, MaxGamma: 100, Regret: 2, Drift: 5, Explored: 30, SumSigma: 3000, SumSqSig: 9000, MaxSigma: 5,
		Plausible: learner.Plausible{Functions: 100, Surviving: 3, Alpha: .05, Bound: 140, Random: 60, Charged: 10,
			Alarm: true}}
	one := func(change func(c *learner.Certificate)) learner.Certificate {
		c := set
		change(&c)
		return c
	}
	free := one(func(c *learner.Certificate) { c.Plausible, c.Skipped, c.Imputed = learner.Plausible{}, 0, 0 })
	ridge := free
	ridge.Linear = learner.Determinant{Lambda: 1, Bad: 3}
	additive := learner.Certificate{Rounds: 20000, Learned: 20000, Bounded: true, Beta: 2, Barrier: 1000, Regret: 9,
		MaxGamma: 500, MaxSigma: 50, SumSigma: 50 * 20000, SumSqSig: 2500 * 20000,
		Potential: learner.Potential{Eta: .5, Scale: math.Log(100)}}
	slowed := additive
	slowed.Slowed, slowed.Potential.Eta = true, 1./64
	policies := learner.PolicyCertificate{Rounds: 50, Skipped: 1, Imputed: 1, Measured: 7, MeasuredDrift: 20,
		APriori: 30}
	named := *lateLosses(40, true)
	named.Outcome = "tokens"
	short, larger := slowed, slowed
	short.MaxGamma = 10
	slowedSet, refuted := short, short
	slowedSet.Plausible = learner.Plausible{Functions: 1, Surviving: 1, Alpha: .05, Bound: 9, Alarm: true}
	refuted.Plausible = learner.Plausible{Functions: 1, Alpha: .05, Alarm: true, Raised: 7}
	refutedAdditive := additive
	refutedAdditive.Plausible = refuted.Plausible
	larger.Beta, larger.SumSqSig = 1e-9, 1
	models := seenModels(t)
	uniform := learner.NewUniform()
	var out strings.Builder
	for _, c := range []struct {
		name string
		l    learner.Learner
		o    Options
	}{
		{"a set, imputed", regressing{uniform, set}, Options{}},
		{"a set of one function", regressing{uniform, one(func(c *learner.Certificate) {
			c.Plausible.Functions, c.Plausible.Surviving, c.Skipped, c.Imputed = 1, 1, 1, 1
		})}, Options{Outstanding: 1}},
		{"a set of one that is refuted, the alarm off", regressing{uniform, one(func(c *learner.Certificate) {
			c.Plausible.Functions, c.Plausible.Surviving, c.Plausible.Alarm = 1, 0, false
		})}, Options{}},
		{"rounds ahead", regressing{uniform, one(func(c *learner.Certificate) { c.Plausible.Ahead = 1 })},
			Options{Outstanding: 3}},
		{"refuted by the first feedback", regressing{uniform, one(func(c *learner.Certificate) {
			c.Plausible.Raised = 1
		})},
			Options{}},
		{"arrival, one waits", regressing{uniform, one(func(c *learner.Certificate) { c.Plausible.Waiting = 1 })},
			Options{Arrival: true}},
		{"arrival, delays look", regressing{uniform, set}, Options{Arrival: true, Late: lateLosses(40, true)}},
		{"arrival, no set", regressing{uniform, free}, Options{Arrival: true}},
		{"early", regressing{uniform, free}, Options{Early: true}},
		{"no set", regressing{uniform, free}, Options{Rounds: 1}},
		{"no set, imputed", regressing{uniform, one(func(c *learner.Certificate) {
			c.Plausible = learner.Plausible{}
		})},
			Options{Outstanding: 2}},
		{"linear", regressing{uniform, learner.Certificate{Rounds: 10, Regret: 3}}, Options{}},
		{"ridge", regressing{uniform, ridge}, Options{}},
		{"ridge, the additive bound", regressing{uniform, func() learner.Certificate {
			c := additive
			c.Linear.Lambda = .5
			return c
		}()}, Options{}},
		{"additive", regressing{uniform, additive}, Options{Late: lateLosses(1, false)}},
		{"additive, none late", regressing{uniform, additive}, Options{Late: lateLosses(0, false)}},
		{"arrival, slowed, no set", regressing{uniform, slowed}, Options{Arrival: true, Late: lateLosses(2, true)}},
		{"any delays", regressing{uniform, slowed}, Options{Late: lateLosses(2, true)}},
		{"realised loss", regressing{uniform, one(func(c *learner.Certificate) { c.Counted, c.Lost = true, 30 })},
			Options{}},
		{"elimination", regressing{uniform, one(func(c *learner.Certificate) { c.Eliminates = true })}, Options{}},
		{"policies", policed{uniform, policies}, Options{Outstanding: 1, Rounds: 9}},
		{"policies, arrival, delays look", policed{uniform, policies}, Options{Arrival: true,
			Late: lateLosses(40, true)}},
		{"nothing", uniform, Options{}},
		{"a set, an oracle without bounds",
			regressing{uniform, one(func(c *learner.Certificate) { c.Bounded = false })},
			Options{}},
		{"a set of one function, arrival", regressing{uniform, one(func(c *learner.Certificate) {
			c.Plausible.Functions, c.Plausible.Surviving = 1, 1
		})}, Options{Arrival: true}},
		{"losses of an outcome were late", regressing{uniform, set}, Options{Late: &named}},
		{"evidence", evidenced{regressing{uniform, set}, models}, Options{}},
		{"rounds decided, of a learner without functions", regressing{uniform, set}, Options{Outstanding: 1,
			Decided: func(func(*learner.Round) bool) {}}},
		{"any delays, arrival, a set of one function", regressing{uniform, slowedSet}, Options{Arrival: true,
			Late: lateLosses(40, true)}},
		{"any delays, late alike", regressing{uniform, short}, Options{Late: lateLosses(40, false)}},
		{"any delays, refuted", regressing{uniform, refuted}, Options{}},
		{"the additive bound, refuted", regressing{uniform, refutedAdditive}, Options{}},
		{"stability, any delays are worse", regressing{uniform, larger}, Options{Late: lateLosses(40, true)}},
		{"no bounds, delays look", regressing{uniform, learner.Certificate{Rounds: 10, Regret: 3}},
			Options{Arrival: true, Late: lateLosses(40, true)}},
		{"priced", regressing{uniform, one(func(c *learner.Certificate) { c.Priced = true })}, Options{}},
		{"realised loss, one waits", regressing{uniform, one(func(c *learner.Certificate) {
			c.Counted, c.Lost = true, 30
		})}, Options{Outstanding: 1}},
		{"policies, arrival", policed{uniform, policies}, Options{Arrival: true}},
	} {
		got := Of(c.l, c.o)
		b, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "%s: %s\n", c.name, b)
		for _, b := range got.Bounds() {
			fmt.Fprintf(&out, "%s: %s\n", b.Name(), b.Holds)
		}
		sharpest, ok := got.Sharpest()
		fmt.Fprintf(&out, "sharpest: %v %s\n", ok, sharpest.Kind)
		f, ok := Measure(c.l, &c.o)
		fmt.Fprintf(&out, "%v %d %v %v %v %v %v\n\n", ok, f.T, f.Bounds, f.Exploration, f.Surviving, f.Functions,
			f.Refuted)
	}
	if text := new(Certificate).Changed(); text != "" {
		t.Errorf("without changes: %q", text)
	}
	for _, n := range []int{0, 1, 3, 4, 5} {
		c := Certificate{Changes: &oracle.Changes{Count: int64(n)}}
		for i := range n {
			x := oracle.Change{Example: int64(100 * i)}
			if i == 1 {
				x.Outcome, x.Action = "tokens", "b"
			}
			c.Changes.Last = append(c.Changes.Last, x)
		}
		fmt.Fprintf(&out, "%d changes: %q\n", n, c.Changed())
	}
	text := strings.ReplaceAll(out.String(), words.NoBreak, " ")
	const golden = "testdata/certificates.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if text != string(want) {
		t.Errorf("certificates say something else than %s, which -update writes anew:\n%s", golden, text)
	}
}

// evidenced is a learner that keeps models.
type evidenced struct {
	regressing
	models *learner.Models
}

func (e evidenced) Models() *learner.Models { return e.models }

// seenModels are those of a class of two functions, of which one foretold what was observed.
func seenModels(t *testing.T) *learner.Models {
	t.Helper()
	class, err := oracle.NewLinearClass([]string{"x"}, []string{"a", "b"},
		[][][]float64{{{0, 0}, {0, .25}}, {{0, 1}, {0, 0}}})
	if err != nil {
		t.Fatal(err)
	}
	reg, err := oracle.NewHedge(class, oracle.HedgeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	l := learner.NewDAFA(reg, learner.Root{C: 20})
	m, err := learner.NewModels(class, learner.ModelsOptions{Alarm: true})
	if err == nil {
		err = l.Watch(m)
	}
	if err != nil {
		t.Fatal(err)
	}
	for n := int64(1); n <= 3; n++ {
		m.Add(&learner.Round{Input: &oracle.Input{Actions: []oracle.Action{{Name: "a"}, {Name: "b"}}}, N: n,
			Decision:     n,
			Propensities: []float64{.5, .5}, Action: 0, Fate: learner.Observed, Loss: 1, Gamma: 20})
	}
	return m
}

// TestNewBound holds which bounds have a value, and which say nothing: those of T rounds and more.
func TestNewBound(t *testing.T) {
	for _, c := range []struct {
		x       float64
		vacuous bool
		value   bool
	}{{9.5, false, true}, {10, true, true}, {11, true, true}, {0, false, true}, {math.Inf(1), true, false},
		{math.Inf(-1), false, false}, {math.NaN(), true, false}} {
		b := NewBound(c.x, 10)
		if b.Vacuous != c.vacuous || (b.Value != nil) != c.value || c.value && *b.Value != c.x {
			t.Errorf("%v of 10 rounds: %+v", c.x, b)
		}
	}
}

// TestDecidedRounds holds that rounds without feedback cost what the functions of a class say, where both are
// known: 1 each otherwise.
func TestDecidedRounds(t *testing.T) {
	class, err := oracle.NewLinearClass([]string{"x"}, []string{"a", "b"},
		[][][]float64{{{0, 0}, {0, .25}}, {{0, .5}, {0, 0}}})
	if err != nil {
		t.Fatal(err)
	}
	make := func(watched bool) *learner.DAFA {
		reg, err := oracle.NewHedge(class, oracle.HedgeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		l := learner.NewDAFA(reg, learner.Root{C: 20})
		if !watched {
			return l
		}
		models, err := learner.NewModels(class, learner.ModelsOptions{})
		if err == nil {
			err = l.Watch(models)
		}
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	waits := &learner.Round{Input: &oracle.Input{Actions: []oracle.Action{{Name: "a"}, {Name: "b"}}},
		Propensities: []float64{.5, .5}, Decision: 1}
	decided := func(yield func(*learner.Round) bool) { yield(waits) }
	for _, c := range []struct {
		watched, known bool
		want           string
	}{{true, true, "in the plausible set 1 of them cost what its functions say"}, {true, false, "charged 1 each: 1"},
		{false, true, "charged 1 each: 1"}} {
		o := Options{Outstanding: 1}
		if c.known {
			o.Decided = decided
		}
		got := Of(make(c.watched), o)
		if notes := strings.Join(got.Notes, "; "); !strings.Contains(notes, c.want) {
			t.Errorf("%+v: notes %q", c, notes)
		}
		if (got.PlausibleSet != nil) != c.watched {
			t.Fatalf("%+v: %+v", c, got.PlausibleSet)
		}
		// By the worse of both functions the law ½, ½ costs ½·½ = ¼.
		if c.watched && *got.PlausibleSet.Value != map[bool]float64{true: .25, false: 1}[c.known] {
			t.Errorf("%+v: the bound is %v", c, *got.PlausibleSet.Value)
		}
	}
}
