package loop

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"hindsight/pkg/codec"
	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

// TestAssignedByHand holds what a decision says that another system made, in any mode of the model.
func TestAssignedByHand(t *testing.T) {
	for _, mode := range []codec.Mode{codec.Live, codec.Shadow, codec.Apprentice, codec.Paused} {
		for _, c := range []struct {
			context string
			action  string
			law     []float64
			unknown codec.Unknown
		}{
			{`{"id":"1","assigned":{"action":"c","propensities":{"a":0.5,"c":0.5}}}`, "c", []float64{.5, 0, .5}, 0},
			{`{"id":"1","actions":["c","a"],"assigned":{"action":"c","propensities":{"a":0.9,"c":0.1}}}`, "c",
				[]float64{.1, .9}, 0},
			{`{"id":"1","assigned":{"action":"a","propensity":0.4}}`, "a", []float64{.4, .3, .3}, codec.UnknownRest},
			{`{"id":"1","assigned":{"action":"a","propensity":1}}`, "a", []float64{1, 0, 0}, 0},
			{`{"id":"1","assigned":{"action":"b"}}`, "b", []float64{0, 1, 0}, codec.UnknownLaw},
			{`{"id":"1","actions":["a"],"assigned":{"action":"a"}}`, "a", []float64{1}, codec.UnknownLaw},
			// what the model masks another system may play
			{`{"id":"1","assigned":{"action":"d","propensity":1}}`, "d", []float64{0, 0, 0, 1}, 0},
			{`{"id":"1","actions":["d","a"],"assigned":{"action":"d","propensity":0.25}}`, "d", []float64{.25, .75},
				codec.UnknownRest},
		} {
			rules := modedRules()
			rules.Mode, rules.Baseline = mode, Baseline{Kind: NamedAction}
			if c.action == "d" {
				rules.Actions, rules.Masked = append(rules.Actions, "d"), []string{"d"}
			}
			m := newModed(t, rules, newDAFA(t))
			d := m.decide(c.context)
			if d.Mode != codec.External || d.Actions[d.Action] != c.action || d.Unknown != c.unknown || d.Gamma != 0 ||
				len(d.Would) > 0 || len(d.Propensities) != len(c.law) {
				t.Errorf("%s, %s: %+v", mode, c.context, d)
				continue
			}
			for i, p := range d.Propensities {
				if math.Abs(p-c.law[i]) > 1e-15 {
					t.Errorf("%s, %s: law %v, want %v", mode, c.context, d.Propensities, c.law)
				}
			}
			var back codec.Decision
			m.no(codec.ParseDecision(&back, codec.AppendDecision(nil, d)))
			if !bytes.Equal(codec.AppendDecision(nil, &back), codec.AppendDecision(nil, d)) ||
				back.Unknown != d.Unknown {
				t.Errorf("%s: read back it is %+v", c.context, back)
			}
		}
	}
}

// TestAssignedRefused holds how a decision of another system is refused that cannot be.
func TestAssignedRefused(t *testing.T) {
	m := newModed(t, modedRules(), newDAFA(t))
	for context, field := range map[string]string{
		`{"assigned":{"action":"a"}}`:                                                  "id",
		`{"id":"1","assigned":{"action":"d"}}`:                                         "assigned.action",
		`{"id":"1","actions":["a","b"],"assigned":{"action":"c"}}`:                     "assigned.action",
		`{"id":"1","assigned":{"action":"a","propensities":{"a":0.5,"d":0.5}}}`:        "assigned.propensities",
		`{"id":"1","assigned":{"action":"a","propensities":{"a":1e-300,"b":1}}}`:       "assigned.propensities",
		`{"id":"1","assigned":{"action":"a","propensity":1e-300}}`:                     "assigned.propensity",
		`{"id":"1","actions":["a"],"assigned":{"action":"a","propensity":0.5}}`:        "assigned.propensity",
		`{"id":"1","assigned":{"action":"a","propensities":{"a":0.5,"b":0.4}}}`:        "assigned.propensities",
		`{"id":"1","actions":["a","b"],"assigned":{"action":"a","propensity":1.0001}}`: "assigned.propensity",
	} {
		r := m.decider.Decide(&m.dec, []byte(context), "", Source{Offset: RequestSource})
		if e := (*codec.Error)(nil); r.Verdict != Invalid || !errors.As(r.Err, &e) || e.Field != field {
			t.Errorf("%s: %v %v, want %s", context, r.Verdict, r.Err, field)
		}
	}
	if m.decider.Next() != 1 {
		t.Errorf("round %d is next", m.decider.Next())
	}
}

// TestAssignedOnce holds that an id has one round, whoever decided it.
func TestAssignedOnce(t *testing.T) {
	m := newModed(t, modedRules(), newDAFA(t))
	first, own := `{"id":"1","assigned":{"action":"a"}}`, `{"id":"2"}`
	m.decide(first)
	m.decide(own)
	for context, want := range map[string]Verdict{first: Duplicate, own: Duplicate, `{"id":"1"}`: Conflict,
		`{"id":"1","assigned":{"action":"b"}}`: Conflict, `{"id":"2","assigned":{"action":"a"}}`: Conflict} {
		if r := m.decider.Decide(&m.dec, []byte(context), "", Source{Offset: RequestSource}); r.Verdict != want {
			t.Errorf("%s: verdict %d, want %d", context, r.Verdict, want)
		}
	}
	if d := m.decide(`{"id":"3"}`); d.N != 3 || d.Mode != codec.Live || d.Unknown != 0 {
		t.Errorf("an own decision behind it: %+v", d)
	}
}

// TestAssignedTeaches holds what learners make of what another system decided: a regression learns it whatever is known
// of its law, importance weights need the propensity. Certificate, guard and judge of candidates count no round of it.
func TestAssignedTeaches(t *testing.T) {
	exp4 := func() learner.Learner {
		l, err := learner.NewEXP4(constants{3}, learner.EXP4Options{})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	for _, c := range []struct {
		name    string
		l       func() learner.Learner
		said    string
		learned bool
	}{
		{"dafa, no propensity", func() learner.Learner { return newDAFA(t) }, "", true},
		{"dafa, a propensity", func() learner.Learner { return newDAFA(t) }, `,"propensity":0.5`, true},
		{"exp4, no propensity", exp4, "", false},
		{"exp4, a propensity", exp4, `,"propensity":0.5`, true},
		{"exp4, a law without one action", exp4, `,"propensities":{"a":0.5,"b":0.5}`, false},
	} {
		rules := modedRules()
		rules.Guard = GuardRules{Margin: .02, Alpha: .01}
		m := newModed(t, rules, c.l())
		rules.Candidates = []Candidate{{Kind: UniformCandidate}}
		var guard Guard
		var judge Judge
		guard.Begin(1, false, rules)
		judge.Begin(1, false, rules)
		m.decide(`{"id":"own"}`)
		f := m.feedback(&m.dec, codec.Observed, 0.5)
		guard.Add(f)
		judge.Add(f)
		m.learn(f)
		sums, before := guard.Sums(), certified(m)
		context := `{"id":"1","features":{"x":1},"assigned":{"action":"a"` + c.said + `}}`
		law := func() string {
			look, err := m.replica.Look([]byte(`{"id":"2","features":{"x":1}}`))
			m.no(err)
			text, _ := m.replica.epoch.Learner.AppendBinary(nil)
			return string(text) + string(codec.AppendContext(nil, &codec.Context{Vector: look.Law}))
		}
		was := m.replica.epoch.Learner.Learned()
		d := m.decide(context)
		f = m.feedback(d, codec.Observed, 1)
		guard.Add(f)
		judge.Add(f)
		text := law()
		m.learn(f)
		if got := m.replica.epoch.Learner.Learned() > was && law() != text; got != c.learned {
			t.Errorf("%s: learned is %v", c.name, got)
		}
		if guard.Sums() != sums {
			t.Errorf("%s: the guard has %+v, had %+v", c.name, guard.Sums(), sums)
		}
		if all, _ := judge.Ledger().Rounds(); all != 1 {
			t.Errorf("%s: candidates are judged on %d rounds", c.name, all)
		}
		if after := certified(m); after != before {
			t.Errorf("%s: the certificate is of %d rounds, was of %d", c.name, after, before)
		}
	}
}

func certified(m *moded) int64 {
	if l, ok := m.replica.epoch.Learner.(learner.Certified); ok {
		return l.Certificate().Rounds
	}
	return 0
}

// constants are policies that each always play one action.
type constants struct{ k int }

func (c constants) Size() int { return c.k }

func (c constants) Advise(dst []int32, _ *oracle.Input) {
	for i := range dst {
		dst[i] = int32(i)
	}
}
