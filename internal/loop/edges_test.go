package loop

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"hindsight/pkg/codec"
	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

// TestDueByHand: when the oldest round is due, how many decisions are missing until that is known, and who waits.
func TestDueByHand(t *testing.T) {
	for _, c := range []struct {
		window    Window
		decisions int // at the times 10, 20, 30, …
		due       int64
		known     bool
		missing   int64
	}{
		{Window{Nanos: 15}, 0, End, false, 0}, {Window{Nanos: 15}, 1, 25, true, 0}, {Window{Nanos: 15}, 2, 25, true, 0},
		{Window{Rounds: 3}, 1, End, false, 3}, {Window{Rounds: 3}, 3, End, false, 1},
		{Window{Rounds: 3}, 4, 40, true, 0},
		{Window{Rounds: 1}, 1, End, false, 1},
	} {
		h := newByHand(t, &Rules{Range: Range{Max: 1}, Window: c.window})
		var want []int64
		for i := range c.decisions {
			h.decide(int64(10*(i+1)), fmt.Sprint("r", i))
			want = append(want, int64(i+1))
		}
		h.advance(int64(10 * c.decisions))
		due, known := h.j.Due()
		partition, missing := h.j.Missing()
		if due != c.due || known != c.known || missing != c.missing || partition != 0 {
			t.Errorf("%+v: due at %d, %t, %d of %d are missing", c, due, known, missing, partition)
		}
		var got []int64
		for _, n := range h.j.Waiting {
			got = append(got, n)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%+v: %d wait", c, got)
		}
		for _, n := range h.j.Waiting {
			if n > 1 {
				t.Errorf("%+v: asked on for %d", c, n)
			}
			break
		}
		time, d := h.j.Head()
		if (d == nil) != (c.decisions == 0) || d != nil && (d.N != 1 || time != 10) {
			t.Errorf("%+v: %+v at %d waits longest", c, d, time)
		}
	}
}

// TestKnows: an outcome that no later decision matters to.
func TestKnows(t *testing.T) {
	h := newByHand(t, &Rules{Range: Range{Max: 1}, Window: Window{Nanos: 100}})
	h.decide(10, "r1")
	h.advance(10)
	for name, c := range map[string]struct {
		e    OutcomeEvent
		want bool
	}{"waits": {OutcomeEvent{O: codec.Outcome{ID: "r1"}}, true},
		"unknown": {OutcomeEvent{O: codec.Outcome{ID: "r2"}}, false},
		"none":    {OutcomeEvent{}, false}, "passed over": {OutcomeEvent{Pass: true}, true},
		"damaged": {OutcomeEvent{Err: codec.ErrCorrupt}, true}} {
		if got := h.j.Knows(&c.e); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// tutor is a learner that notes what it is taught and plays the first action with ¾.
type tutor struct {
	learner.Learner
	taught []learner.Round
}

func (l *tutor) Learn(r *learner.Round) { l.taught = append(l.taught, *r) }
func (l *tutor) Propensities(dst []float64, x *oracle.Input) ([]float64, float64) {
	dst = append(dst, 0.75)
	for range x.Actions[1:] {
		dst = append(dst, 0.25/float64(len(x.Actions)-1))
	}
	return dst, 7
}

// adviser is a tutor of policies, which advise on whole rounds.
type adviser struct{ tutor }

func (*adviser) Policies() learner.Policies { return nil }

// seer is a tutor whose oracle predicts the place of an action.
type seer struct{ tutor }

func (*seer) Oracle() oracle.Regressor { return places{} }

type places struct{ oracle.Regressor }

func (places) Predict(dst []float64, _ *oracle.Input) {
	for i := range dst {
		dst[i] = float64(i) / 8
	}
}

// warmFeedback is one that played b, of an epoch whose context listed a and b.
func warmFeedback() *codec.Feedback {
	return &codec.Feedback{N: 5, Round: 3, Epoch: 1, ID: "x", Actions: []string{"a", "b"}, Action: 1,
		Propensities: []float64{.75, .25}, Gamma: 4, LearnedThrough: 2, Fate: codec.Observed, Loss: .5,
		Context: []byte(`{"actions":["a","b"]}`)}
}

// TestRefit: what of a round the rules of a new epoch take, pass over, and learn as one that another law played.
func TestRefit(t *testing.T) {
	list := func(names ...string) func(*Rules) { return func(r *Rules) { r.Actions = names } }
	for name, c := range map[string]struct {
		rules    func(*Rules)
		change   func(*codec.Feedback)
		l        learner.Learner
		taught   int
		borrowed bool
		passed   int64
	}{
		"as it was":  {rules: list("a", "b", "c"), taught: 1},
		"any action": {rules: list(), taught: 1},
		"stage":      {rules: list("a", "b"), change: func(f *codec.Feedback) { f.Stage = 1 }},
		"shadow": {rules: list("a", "b"), change: func(f *codec.Feedback) { f.Mode = codec.Shadow }, taught: 1,
			borrowed: true},
		"paused":     {rules: list("a", "b"), change: func(f *codec.Feedback) { f.Mode = codec.Paused }, passed: 1},
		"damaged":    {rules: list("a", "b"), change: func(f *codec.Feedback) { f.Context = []byte(`{`) }, passed: 1},
		"gone":       {rules: list("a", "c"), passed: 1},
		"other gone": {rules: list("b", "c"), taught: 1, borrowed: true},
		"others now": {rules: list("a", "b"), change: func(f *codec.Feedback) {
			f.Context, f.Actions = []byte(`{}`), []string{"c", "b"}
		}, taught: 1, borrowed: true},
		"of policies": {rules: list("b", "c"), l: &adviser{}, passed: 1},
	} {
		rules, f := modedRules(), warmFeedback()
		c.rules(rules)
		if c.change != nil {
			c.change(f)
		}
		l := &tutor{}
		e := Epoch{Number: 2, Rules: rules, Learner: l}
		if a, ok := c.l.(*adviser); ok {
			e.Learner, l = a, &a.tutor
		}
		w := NewWarm(e)
		w.Refit(f)
		if len(l.taught) != c.taught || w.Learned != int64(c.taught) || w.Passed != c.passed {
			t.Errorf("%s: taught %d, learned %d, passed over %d", name, len(l.taught), w.Learned, w.Passed)
			continue
		}
		for _, r := range l.taught {
			if r.Borrowed != c.borrowed || r.Fate != learner.Observed || r.Loss != .5 || r.Action != 1 || r.N != 5 ||
				r.Decision != 3 || r.LearnedThrough != 2 || r.Gamma != 4 || r.Partial {
				t.Errorf("%s: taught %+v", name, r)
			}
		}
	}
}

// TestRefitNamed: a model of named outcomes takes stages, which count with their rounds, and no round without outcomes.
func TestRefitNamed(t *testing.T) {
	l := &tutor{}
	w := NewWarm(Epoch{Number: 2, Rules: namedRules(t, "quality - cost/10"), Learner: l})
	f := warmFeedback()
	f.Context = []byte(`{"actions":["a","b"]}`)
	if w.Refit(f); len(l.taught) != 0 || w.Passed != 1 {
		t.Errorf("without outcomes: taught %d, passed over %d", len(l.taught), w.Passed)
	}
	f.Outcomes = []codec.Closed{{Name: "cost", Fate: codec.Observed, Value: 2}}
	f.Stage = 1
	if w.Refit(f); len(l.taught) != 1 || w.Learned != 0 || w.Passed != 1 {
		t.Errorf("a stage: taught %d, learned %d, passed over %d", len(l.taught), w.Learned, w.Passed)
	}
	f.Context = []byte(`{`)
	if w.Refit(f); len(l.taught) != 1 || w.Learned != 0 || w.Passed != 1 {
		t.Errorf("a damaged stage: taught %d, learned %d, passed over %d", len(l.taught), w.Learned, w.Passed)
	}
	f.Stage, f.Context = 0, []byte(`{"actions":["a","b"]}`)
	f.Outcomes = append(f.Outcomes, codec.Closed{Name: "quality", Fate: codec.Observed, Value: 1})
	if w.Refit(f); len(l.taught) != 2 || w.Learned != 1 || l.taught[1].Partial {
		t.Errorf("a round: taught %d, learned %d", len(l.taught), w.Learned)
	}
}

// TestAgain: a round is learned as the replica learned it, paused or not; the record of a stage is no round.
func TestAgain(t *testing.T) {
	l := &tutor{}
	w := NewWarm(Epoch{Number: 1, Rules: namedRules(t, "quality - cost/10"), Learner: l})
	f := warmFeedback()
	f.Outcomes = []codec.Closed{{Name: "cost", Fate: codec.Observed, Value: 2},
		{Name: "quality", Fate: codec.Observed, Value: 1}}
	for i, c := range []struct {
		stage, taught int
		paused        bool
		fate          learner.Fate
		learned       int64
	}{{0, 1, false, learner.Observed, 1}, {1, 2, false, learner.Observed, 1}, {1, 2, true, learner.Observed, 1},
		{0, 3, true, learner.Skipped, 2}} {
		f.Stage = c.stage
		if err := w.Again(f, c.paused); err != nil {
			t.Fatal(err)
		}
		if len(l.taught) != c.taught || w.Learned != c.learned || l.taught[len(l.taught)-1].Fate != c.fate {
			t.Errorf("%d: taught %+v, learned %d", i, l.taught, w.Learned)
		}
	}
	f.Context = nil
	if err := w.Again(f, false); err == nil || w.Learned != 2 {
		t.Errorf("%v after %d", err, w.Learned)
	}
}

// TestLook: what the learner at work thinks of a context, and how likely it would play what was played.
func TestLook(t *testing.T) {
	r := NewReplica()
	if _, err := r.Look([]byte(`{}`)); !errors.Is(err, ErrNoEpoch) {
		t.Errorf("without an epoch: %v", err)
	}
	f := warmFeedback()
	if _, ok := r.Match(f); ok {
		t.Error("without an epoch it matches")
	}
	if _, err := r.Decided(&codec.Decision{Epoch: 1}); !errors.Is(err, ErrNoEpoch) {
		t.Errorf("without an epoch: %v", err)
	}
	m := newModed(t, modedRules(), &seer{})
	got, err := m.replica.Look([]byte(`{"actions":["b","a"]}`))
	if err != nil || !slices.Equal(got.Actions, []string{"b", "a"}) || !slices.Equal(got.Law, []float64{.75, .25}) ||
		got.Gamma != 7 || !slices.Equal(got.Predicted, []float64{0, .125}) {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := m.replica.Look([]byte(`{`)); err == nil {
		t.Error("a damaged context is looked at")
	}
	plain := newModed(t, modedRules(), &tutor{})
	if got, err := plain.replica.Look([]byte(`{}`)); err != nil || got.Predicted != nil || len(got.Actions) != 3 {
		t.Errorf("of a learner that predicts nothing: %+v, %v", got, err)
	}
	f.N = 1
	for name, c := range map[string]struct {
		change func(f *codec.Feedback)
		p      float64
		ok     bool
	}{
		"next":           {func(*codec.Feedback) {}, .25, true},
		"the other":      {func(f *codec.Feedback) { f.Action = 0 }, .75, true},
		"later":          {func(f *codec.Feedback) { f.N = 2 }, 0, false},
		"before":         {func(f *codec.Feedback) { f.N = 0 }, 0, false},
		"a stage":        {func(f *codec.Feedback) { f.Stage = 1 }, 0, false},
		"an older epoch": {func(f *codec.Feedback) { f.Epoch = 0 }, 0, false},
		"damaged":        {func(f *codec.Feedback) { f.Context = []byte(`{`) }, 0, false},
		"other actions":  {func(f *codec.Feedback) { f.Actions = []string{"a"} }, 0, false},
		"no action":      {func(f *codec.Feedback) { f.Action = 2 }, 0, false},
		"less than none": {func(f *codec.Feedback) { f.Action = -1 }, 0, false},
	} {
		f := *f
		c.change(&f)
		if p, ok := m.replica.Match(&f); p != c.p || ok != c.ok {
			t.Errorf("%s: %v, %t", name, p, ok)
		}
	}
}

// TestDecidedRound: a decision as a round whose feedback is still to come.
func TestDecidedRound(t *testing.T) {
	m := newModed(t, modedRules(), &tutor{})
	d := codec.Decision{N: 9, Epoch: 1, Actions: []string{"a", "b"}, Action: 1, Propensities: []float64{.75, .25},
		Gamma: 3, LearnedThrough: 4, Context: []byte(`{"actions":["a","b"]}`)}
	r, err := m.replica.Decided(&d)
	if err != nil || r.Action != 1 || r.Gamma != 3 || r.LearnedThrough != 4 || r.Decision != 9 || r.Borrowed ||
		len(r.Input.Actions) != 2 || !slices.Equal(r.Propensities, d.Propensities) || r.Fate != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	for name, c := range map[string]struct {
		change func(d *codec.Decision)
		no     bool // epoch
	}{
		"another epoch": {func(d *codec.Decision) { d.Epoch = 0 }, true},
		"a repeat":      {func(d *codec.Decision) { d.First.N = 1 }, true},
		"damaged":       {func(d *codec.Decision) { d.Context = []byte(`{`) }, false},
		"other actions": {func(d *codec.Decision) { d.Actions = []string{"c", "d"} }, false},
	} {
		d := d
		c.change(&d)
		if r, err := m.replica.Decided(&d); r != nil || err == nil || errors.Is(err, ErrNoEpoch) != c.no {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
	d.Mode = codec.Shadow
	if r, err := m.replica.Decided(&d); err != nil || !r.Borrowed {
		t.Errorf("in shadow: %+v, %v", r, err)
	}
}

// TestOutside: the features whose values lie outside of their range, at its ends and beyond.
func TestOutside(t *testing.T) {
	rules := modedRules()
	rules.Features = []FeatureRule{{Name: "x", Kind: NumberFeature, Bounded: true, Lo: 1, Hi: 3},
		{Name: "y", Kind: NumberFeature}, {Name: "z", Kind: NumberFeature, Bounded: true, Lo: 0, Hi: 0}}
	for raw, want := range map[string]string{
		`{"features":{"x":1,"y":99}}`: "", `{"features":{"x":3,"z":0}}`: "", `{"features":{"x":0.9}}`: "x",
		`{"features":{"x":3.1,"z":1}}`: "x, z", `{"features":{"other":9}}`: "", `{`: ""} {
		names := Outside(rules, []byte(raw))
		if got := names.String(); got != want {
			t.Errorf("%s: %s", raw, got)
		}
	}
}

// TestRestoreRefuses: a damaged state of the guard, or of the candidates, is refused, wherever it is cut or spoilt.
func TestRestoreRefuses(t *testing.T) {
	for name, holds := range map[string]float64{"alarms": 0, "holds": 0.1} {
		rules := guardRules(.25)
		rules.Guard.LoseAtMost = holds
		var g Guard
		g.Begin(1, false, rules)
		g.Add(&codec.Feedback{N: 1, Epoch: 1, Actions: []string{"a", "b"}, Propensities: []float64{.25, .75},
			Fate: codec.Observed, Loss: .5, Context: []byte(`{}`)})
		b := g.Append(nil)
		var back Guard
		if err := back.Restore(b, 1, rules); err != nil || back.Sums() != g.Sums() {
			t.Errorf("%s: %v", name, err)
		}
		if err := back.Restore(nil, 1, rules); err != nil || back.Sums() == g.Sums() {
			t.Errorf("%s: of nothing: %v", name, err)
		}
		for n := 1; n <= len(b)+1; n++ {
			if err := back.Restore(append(slices.Clone(b), 0)[:n], 1, rules); (err == nil) != (n == len(b)) ||
				err != nil && !errors.Is(err, codec.ErrCorrupt) {
				t.Errorf("%s: %d bytes of %d: %v", name, n, len(b), err)
			}
		}
		for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
			spoilt := g
			spoilt.sums.Excess = x
			if err := back.Restore(spoilt.Append(nil), 1, rules); !errors.Is(err, codec.ErrCorrupt) {
				t.Errorf("%s: an excess of %v: %v", name, x, err)
			}
		}
		b[0] = guardHolds + 1
		if err := back.Restore(b, 1, rules); !errors.Is(err, codec.ErrVersion) {
			t.Errorf("%s: of a later version: %v", name, err)
		}
	}
	var j, back Judge
	if j.Fired() != 0 || j.Estimates() != nil || j.Rules() != nil {
		t.Error("a judge of nothing tells something")
	}
	j.Begin(3, false, judgedRules())
	f := judged()
	f.Epoch = 3
	j.Add(f)
	b := j.Append(nil)
	for n := 1; n <= len(b)+1; n++ {
		if err := back.Restore(append(slices.Clone(b), 0)[:n], 4, judgedRules()); (err == nil) != (n == len(b)) ||
			err != nil && !errors.Is(err, codec.ErrCorrupt) {
			t.Errorf("%d bytes of %d: %v", n, len(b), err)
		}
	}
	if err := back.Restore(b, 4, judgedRules()); err != nil || back.Since() != 3 || back.Fired() != 0 {
		t.Errorf("%v, since %d", err, back.Since())
	}
	negative := append([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, b[1:]...)
	if err := back.Restore(negative, 4, judgedRules()); !errors.Is(err, codec.ErrCorrupt) {
		t.Errorf("since before the first epoch: %v", err)
	}
	for i, e := range j.Estimates() {
		want := judgedRules().Candidates[i].String()
		if e.Policy != want || e.Value != j.Ledger().Estimates(nil)[i].Value {
			t.Errorf("candidate %d is %q, not %q", i, e.Policy, want)
		}
	}
}

// TestJudgeOfBaselines: a candidate's law in a round needs the baseline only if one is asked for, and a record whose
// actions are not its context's is no round.
func TestJudgeOfBaselines(t *testing.T) {
	for name, c := range map[string]struct {
		change func(f *codec.Feedback)
		rounds int64
	}{
		"no context":     {func(f *codec.Feedback) { f.Context = nil }, 1},
		"external":       {func(f *codec.Feedback) { f.Mode = codec.External }, 0},
		"a repeat":       {func(f *codec.Feedback) { f.First.N = 1 }, 0},
		"other actions":  {func(f *codec.Feedback) { f.Context = []byte(`{"actions":["c","d","e"]}`) }, 0},
		"nothing played": {func(f *codec.Feedback) { f.Propensities = []float64{1, 0} }, 0},
	} {
		var j Judge
		rules := judgedRules()
		rules.Actions = nil
		rules.Candidates, rules.Policies = rules.Candidates[:2], nil
		j.Begin(1, false, rules)
		f := judged()
		c.change(f)
		j.Add(f)
		if all, _ := j.Ledger().Rounds(); all != c.rounds {
			t.Errorf("%s: %d rounds", name, all)
		}
	}
}

// TestFind: the ids and the units that are remembered.
func TestFind(t *testing.T) {
	rules := modedRules()
	rules.Sticky = 100
	m := newModed(t, rules, newDAFA(t))
	m.decide(`{"id":"r1"}`)
	m.decide(`{"id":"r2"}`)
	for id, want := range map[string]int64{"r1": 1, "r2": 2, "r3": 0} {
		if n, ok := m.decider.Find(id); n != want || ok != (want > 0) {
			t.Errorf("%s is round %d, %t", id, n, ok)
		}
	}
	if m.decider.At(3) != m.decider || m.decider.partition != 3 {
		t.Error("it judges contexts of another partition")
	}
}

// TestSumsAreFinite: a sum that is infinite is refused where the range clips, too, on either side.
func TestSumsAreFinite(t *testing.T) {
	for x, want := range map[float64]float64{1e308: math.Inf(1), -1e308: math.Inf(-1), 5e307: 1, -5e307: -1} {
		f := outcomeFate{count: 1, total: x, kind: codec.Named}
		value, total, err := f.add(&Range{Min: -1, Max: 1, Clip: true}, codec.Named, x)
		if infinite := math.IsInf(want, 0); errors.Is(err, errInfinite) != infinite || !infinite && (value != want ||
			total != 2*x) {
			t.Errorf("twice %v: %v of %v, %v", x, value, total, err)
		}
	}
}
