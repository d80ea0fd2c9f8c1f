package loop

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"testing"

	"hindsight/pkg/codec"
	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

// moded is a replica with its decider in one partition, whose feedback comes at once.
type moded struct {
	t       testing.TB
	replica *Replica
	decider *Decider
	epoch   int64
	dec     codec.Decision
}

func newModed(t testing.TB, rules *Rules, l learner.Learner) *moded {
	m := &moded{t: t, replica: NewReplica(), epoch: 1}
	m.no(m.replica.Begin(Epoch{Number: 1, Rules: rules, Learner: l}))
	m.decider = NewDecider(m.replica, []byte("seed"), "m", 0, 1000)
	return m
}

func (m *moded) no(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
}

// goOn begins an epoch that goes on with the learner under changed rules.
func (m *moded) goOn(change func(r *Rules)) {
	m.t.Helper()
	rules := *m.replica.epoch.Rules
	change(&rules)
	m.epoch++
	m.no(m.replica.Begin(Epoch{Number: m.epoch, Rules: &rules, Since: 1}))
}

func (m *moded) switchTo(mode codec.Mode) { m.goOn(func(r *Rules) { r.Mode = mode }) }

// decide decides a context.
func (m *moded) decide(context string) *codec.Decision {
	m.t.Helper()
	if r := m.decider.Decide(&m.dec, []byte(context), "", Source{Offset: RequestSource}); r.Verdict != Decided {
		m.t.Fatalf("%s: %v", context, r.Err)
	}
	m.no(m.dec.Validate())
	return &m.dec
}

// feedback is that of a decision, next in the log.
func (m *moded) feedback(d *codec.Decision, fate codec.Fate, loss float64) *codec.Feedback {
	d2 := *d
	var back codec.Decision
	m.no(codec.ParseDecision(&back, codec.AppendDecision(nil, &d2)))
	return &codec.Feedback{N: m.replica.through + 1, Round: back.N, ID: back.ID, Epoch: back.Epoch,
		LearnedThrough: back.LearnedThrough, Gamma: back.Gamma,
		Actions: back.Actions, Propensities: back.Propensities, Action: back.Action, Fate: fate, Loss: loss,
		Context: back.Context, Mode: back.Mode, Would: back.Would}
}

func (m *moded) learn(f *codec.Feedback) {
	m.t.Helper()
	m.no(m.replica.Learn(f, nil))
}

func (m *moded) state() []byte {
	m.t.Helper()
	b, err := m.replica.epoch.Learner.AppendBinary(nil)
	m.no(err)
	return b
}

func modedRules() *Rules {
	return &Rules{Actions: []string{"a", "b", "c"}, MaxActions: 5, Range: Range{Max: 1}, Window: Window{Rounds: 10}}
}

// TestModesByHand holds who answers in each mode, and with what propensity.
func TestModesByHand(t *testing.T) {
	uniform := []float64{1. / 3, 1. / 3, 1. / 3}
	for _, c := range []struct {
		mode     codec.Mode
		baseline Baseline
		context  string
		law      []float64
		would    bool
	}{
		{codec.Live, Baseline{}, `{"baseline":"b"}`, uniform, false},
		{codec.Shadow, Baseline{}, `{}`, []float64{1, 0, 0}, true},
		{codec.Shadow, Baseline{}, `{"actions":["c","b"]}`, []float64{1, 0}, true},
		{codec.Shadow, Baseline{}, `{"baseline":"b"}`, []float64{0, 1, 0}, true},
		{codec.Shadow, Baseline{Kind: FixedAction, Action: "c"}, `{}`, []float64{0, 0, 1}, true},
		{codec.Shadow, Baseline{Kind: FixedAction, Action: "c"}, `{"actions":["a","b"]}`, []float64{.5, .5}, true},
		{codec.Apprentice, Baseline{Kind: UniformAction}, `{}`, uniform, false},
		{codec.Apprentice, Baseline{Kind: NamedAction}, `{"baseline":{"b":0.25,"a":0.75}}`, []float64{.75, .25, 0},
			false},
		{codec.Paused, Baseline{}, `{"baseline":{"b":1}}`, []float64{0, 1, 0}, false},
	} {
		rules := modedRules()
		rules.Mode, rules.Baseline = c.mode, c.baseline
		d := newModed(t, rules, newDAFA(t)).decide(c.context)
		if d.Mode != c.mode || (len(d.Would) > 0) != c.would {
			t.Errorf("%s %s: mode %s, would %v", c.mode, c.context, d.Mode, d.Would)
		}
		for i, p := range d.Propensities {
			if math.Abs(p-c.law[i]) > 1e-15 {
				t.Errorf("%s %s: law %v, want %v", c.mode, c.context, d.Propensities, c.law)
			}
		}
		if d.Propensities[d.Action] == 0 {
			t.Errorf("%s %s: %s was drawn with probability 0", c.mode, c.context, d.Actions[d.Action])
		}
	}
}

// TestMask holds that a masked action is never eligible, and what then stands for it.
func TestMask(t *testing.T) {
	rules := modedRules()
	rules.Masked, rules.Mode = []string{"b"}, codec.Shadow
	m := newModed(t, rules, newDAFA(t))
	for context, want := range map[string]string{
		`{}`: "[a c]", `{"actions":["b","c"]}`: "[c]", `{"actions":[{"name":"a","features":{"x":1}},"b"]}`: "[a]",
		`{"baseline":"b"}`: "[a c]",
	} {
		if d := m.decide(context); fmt.Sprint(d.Actions) != want {
			t.Errorf("%s: %v, want %s", context, d.Actions, want)
		}
	}
	if d := m.decide(`{"baseline":"b"}`); d.Propensities[0] != .5 || len(d.Would) != 2 {
		t.Errorf("for a masked baseline: %v, would %v", d.Propensities, d.Would)
	}
	for context, want := range map[string]error{
		`{"actions":["b"]}`: errMasked, `{"baseline":"z"}`: errBaseline,
		`{"actions":["a"],"baseline":"c"}`: errBaseline,
	} {
		if r := m.decider.Decide(&m.dec, []byte(context), "", Source{Offset: RequestSource}); r.Verdict != Invalid ||
			!errors.Is(r.Err, want) {
			t.Errorf("%s: %v, want %v", context, r.Err, want)
		}
	}
	rules.Baseline.Kind = NamedAction
	m = newModed(t, rules, newDAFA(t))
	if r := m.decider.Decide(&m.dec, []byte(`{}`), "", Source{Offset: RequestSource}); !errors.Is(r.Err,
		errNoBaseline) {
		t.Errorf("without a baseline: %v", r.Err)
	}
}

// TestMatchOfMany holds that a law of many names is matched as one of few.
func TestMatchOfMany(t *testing.T) {
	var actions []oracle.Action
	var own []codec.Share
	for i := range 100 {
		actions = append(actions, oracle.Action{Name: fmt.Sprint("a", i)})
		own = append(own, codec.Share{Name: fmt.Sprint("a", (i*37)%101)})
	}
	for n := range own {
		r := &reader{}
		r.match(own[:n], actions, func(i, a int) {
			if want := (i * 37) % 101; want < 100 && a != want || want == 100 && a != -1 {
				t.Fatalf("of %d: %s is %d", n, own[i].Name, a)
			}
		})
	}
}

// TestModesLearn holds what each mode teaches: of the round, and of what is at work when
// its feedback comes.
func TestModesLearn(t *testing.T) {
	type counts struct{ learned, own, skipped int64 }
	for decided := codec.Live; decided <= codec.Paused; decided++ {
		for now := codec.Live; now <= codec.Paused; now++ {
			rules := modedRules()
			rules.Mode = decided
			l := newDAFA(t).(*learner.DAFA)
			m := newModed(t, rules, l)
			f := m.feedback(m.decide(`{"features":{"x":1}}`), codec.Observed, 1)
			m.switchTo(now)
			before := m.state()
			m.learn(f)
			var want counts
			switch {
			case decided == codec.Live && now == codec.Paused:
				want.skipped = 1
			case decided == codec.Live:
				want = counts{learned: 1, own: 1}
			case decided != codec.Paused && now != codec.Paused:
				want.learned = 1
			}
			c := l.Certificate()
			if got := (counts{l.Learned(), c.Learned, c.Skipped}); got != want {
				t.Errorf("decided %s, learned %s: %+v, want %+v", decided, now, got, want)
			}
			if frozen := bytes.Equal(before, m.state()); frozen != (want == counts{}) {
				t.Errorf("decided %s, learned %s: state changed: %v", decided, now, !frozen)
			}
		}
	}
}

// TestPausedModelStandsStill holds that the kill switch freezes the oracle to the bit,
// whatever comes, and that the learner goes on from there.
func TestPausedModelStandsStill(t *testing.T) {
	l := newDAFA(t).(*learner.DAFA)
	m := newModed(t, modedRules(), l)
	var waiting []*codec.Feedback
	for i := range 20 {
		d := m.decide(fmt.Sprintf(`{"features":{"x":%d}}`, i%4))
		if f := m.feedback(d, codec.Observed, float64(d.Action)/2); i < 10 {
			m.learn(f)
		} else {
			waiting = append(waiting, f)
		}
	}
	was, err := l.Oracle().AppendBinary(nil)
	m.no(err)
	m.switchTo(codec.Paused)
	for _, f := range waiting {
		f.N = m.replica.through + 1
		m.learn(f)
		m.learn(m.feedback(m.decide(`{"features":{"x":9}}`), codec.Observed, 1))
	}
	is, err := l.Oracle().AppendBinary(nil)
	m.no(err)
	if !bytes.Equal(was, is) {
		t.Error("the oracle learned while paused")
	}
	if c := l.Certificate(); c.Skipped != 10 || c.Learned != 10 || l.Learned() != 10 {
		t.Errorf("%d learned, %+v", l.Learned(), c)
	}
	m.switchTo(codec.Live)
	m.learn(m.feedback(m.decide(`{}`), codec.Observed, 1))
	if l.Learned() != 11 {
		t.Errorf("%d learned", l.Learned())
	}
}

// TestBegunLearnerIsTheSame holds that a learner that goes on by itself and one that goes
// on as a copy made for more actions end with the same bits.
func TestBegunLearnerIsTheSame(t *testing.T) {
	var states [2][]byte
	for i := range states {
		m := newModed(t, modedRules(), newDAFA(t))
		step := func(n int) {
			for k := range n {
				d := m.decide(fmt.Sprintf(`{"features":{"x":%d}}`, k%5))
				m.learn(m.feedback(d, codec.Observed, float64(k%3)/2))
			}
		}
		step(20)
		rules := modedRules()
		rules.Actions, rules.Masked = []string{"c", "d", "a"}, []string{"a"}
		e := Epoch{Number: 2, Rules: rules, Since: 1}
		if i == 1 {
			e.Learner = newDAFA(t)
		}
		m.no(m.replica.Begin(e))
		step(20)
		states[i] = m.state()
	}
	if !bytes.Equal(states[0], states[1]) {
		t.Error("the states differ")
	}
}

// TestBeginNeedsTheLearner holds that an epoch that goes on with a learner that is not
// there is refused, and changes nothing.
func TestBeginNeedsTheLearner(t *testing.T) {
	r := NewReplica()
	e := Epoch{Number: 3, Rules: modedRules(), Since: 2}
	if err := r.Begin(e); !errors.Is(err, ErrNoEpoch) || r.Epoch() != nil {
		t.Error(err)
	}
	if err := r.Begin(Epoch{Number: 1, Rules: modedRules(), Learner: newDAFA(t)}); err != nil {
		t.Fatal(err)
	}
	if err := r.Begin(e); !errors.Is(err, ErrNoEpoch) || r.Epoch().Number != 1 {
		t.Error(err)
	}
}

// TestDecidingInModesDoesNotAllocate holds that the hot path does not either way.
func TestDecidingInModesDoesNotAllocate(t *testing.T) {
	for mode := codec.Live; mode <= codec.Paused+1; mode++ {
		m := heldBack(t, .02)
		if mode <= codec.Paused {
			rules := modedRules()
			rules.Mode = mode
			m = newModed(t, rules, newDAFA(t))
		}
		contexts := make([][]byte, 400)
		for i := range contexts {
			contexts[i] = fmt.Appendf(nil, `{"id":"r%03d","features":{"x":1},"baseline":"b"}`, i)
		}
		i := 0
		decide := func() {
			if res := m.decider.Decide(&m.dec, contexts[i], "", Source{Offset: RequestSource}); res.Verdict != Decided {
				t.Fatalf("%s: %+v", mode, res)
			}
			i++
		}
		for range 150 {
			decide()
		}
		if n := testing.AllocsPerRun(100, decide); n > 0 {
			t.Errorf("%s: %v allocations a decision", mode, n)
		}
	}
}
