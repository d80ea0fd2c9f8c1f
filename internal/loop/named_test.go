package loop

import (
	"fmt"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"hindsight/pkg/codec"
	"hindsight/pkg/learner"
)

// namedRules are those of a model whose costs are known soon and whose quality is known late.
func namedRules(t testing.TB, formula string) *Rules {
	r := &Rules{MaxActions: 10, Range: Range{Min: -1, Max: 1}, Window: Window{Nanos: 100}, Named: []OutcomeRule{
		{Name: "cost", Range: Range{Max: 10}, Window: Window{Nanos: 10}, Impute: true, Default: 5},
		{Name: "quality", Range: Range{Max: 1}, Window: Window{Nanos: 100}, Take: Last},
	}}
	worth, err := learner.NewFormula(formula, &learner.Scope{Actions: []string{"a", "b"}, Outcomes: []learner.Variable{
		{Name: "cost", Hi: 10}, {Name: "quality", Hi: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	r.Worth = worth
	return r
}

func namedAt(time int64, id string, values ...codec.Value) OutcomeEvent {
	return OutcomeEvent{Time: time, O: codec.Outcome{ID: id, Kind: codec.Named, Values: values}}
}

func cost(x float64) codec.Value    { return codec.Value{Name: "cost", X: x} }
func quality(x float64) codec.Value { return codec.Value{Name: "quality", X: x} }

// tells fails unless the cut gives these records, of stages and of rounds, and these rejects.
func (h *cutByHand) tells(time int64, decisions []DecisionEvent, outcomes []OutcomeEvent, records, rejects []string) {
	h.t.Helper()
	if err := h.cut(time, decisions, outcomes); err != nil {
		h.t.Fatal(err)
	}
	var r Ready
	h.j.Ready(&r)
	var fs, rs []string
	for _, f := range r.Feedback {
		text := fmt.Sprintf("%d %s", f.N, f.ID)
		if f.Stage > 0 {
			text += fmt.Sprintf(" stage %d", f.Stage)
		} else {
			text += fmt.Sprintf(" %v %s%v by %d", f.Fate, f.Reason, f.Loss, f.OutcomeOffset)
		}
		for _, c := range f.Outcomes {
			text += fmt.Sprintf(", %s %v %v by %d at %d", c.Name, c.Fate, c.Value, c.Offset, c.ClosedAt)
			if c.Stage > 0 {
				text += " told"
			}
		}
		fs = append(fs, text)
	}
	for _, x := range r.Rejects {
		rs = append(rs, fmt.Sprintf("%d %s %s", x.Offset, x.Reason, x.Detail))
	}
	if !reflect.DeepEqual(fs, records) || !reflect.DeepEqual(rs, rejects) {
		h.t.Fatalf("cut %d gives\n%q\n%q\nwant\n%q\n%q", h.j.LastCut(), fs, rs, records, rejects)
	}
}

// Costs are told in their order while the quality of the rounds before is awaited; the last record tells all.
func TestStages(t *testing.T) {
	h := newCutByHand(t, unlimited, namedRules(t, "quality - cost/10"))
	h.tells(5, []DecisionEvent{decidedAt(1, 1, "a"), decidedAt(2, 2, "b"), decidedAt(3, 3, "c")},
		[]OutcomeEvent{namedAt(4, "b", cost(2), quality(.5)), namedAt(5, "a", quality(1))}, nil, nil)
	h.tells(12, nil, []OutcomeEvent{namedAt(12, "c", codec.Value{Name: "cost", Withdrawn: true})}, []string{
		"1 a stage 1, cost imputed 5 by -1 at 11",
		"2 b stage 1, cost observed 2 by 0 at 4",
		"3 c stage 1, cost withdrawn 0 by 2 at 12"}, nil)
	// What is late does not count, and the rest of its record does.
	h.tells(20, nil, []OutcomeEvent{namedAt(20, "a", cost(1), quality(.75)), namedAt(20, "b", cost(1))}, nil, []string{
		"3 late only of cost; the others of the record count", "4 duplicate "})
	if due, known := h.j.Due(); !known || due != 101 {
		t.Errorf("due at %d, %v", due, known)
	}
	h.tells(103, nil, nil, []string{
		"4 a imputed 0.375 by -1, cost imputed 5 by -1 at 11 told, quality observed 0.75 by 3 at 101",
		"5 b observed 0.35 by 0, cost observed 2 by 0 at 4 told, quality observed 0.5 by 0 at 102"}, nil)
	h.tells(104, nil, []OutcomeEvent{namedAt(104, "b", quality(1)), namedAt(104, "nobody", cost(1))}, []string{
		"6 c skipped 0 by -1, cost withdrawn 0 by 2 at 12 told, quality skipped 0 by -1 at 103"},
		[]string{"5 late ", "6 orphan "})
}

// A round that is withdrawn tells no stage more, and holds no other up. A record that is wrong in one outcome counts in
// none.
func TestStagesEnd(t *testing.T) {
	h := newCutByHand(t, unlimited, namedRules(t, "quality"))
	h.tells(5, []DecisionEvent{decidedAt(1, 1, "a"), decidedAt(2, 2, "b"), decidedAt(3, 2, "b")}, []OutcomeEvent{
		{Time: 4, O: codec.Outcome{ID: "b", Kind: codec.Withdrawn}},
		namedAt(4, "a", quality(1), cost(11)),
		namedAt(4, "a", quality(1), codec.Value{Name: "costs", X: 1}),
		lossAt(4, "a", 1),
		{Time: 4, O: codec.Outcome{ID: "a", Kind: codec.Activated}},
		{Time: 4, O: codec.Outcome{ID: "a", Kind: codec.Named, Action: "b", Values: []codec.Value{quality(1)}}},
	}, nil, []string{
		"1 malformed cost: out of the model's range: 11 is not in [0, 10]",
		`2 malformed the model names no such outcome: "costs"`,
		`3 malformed the model names no such outcome: "loss"`,
		"4 malformed the model does not ask for activations",
		`5 mismatch the outcome is for action "b", the decision was "a"`})
	h.tells(6, []DecisionEvent{decidedAt(6, 3, "c")}, []OutcomeEvent{namedAt(6, "c", cost(1), quality(1))}, nil, nil)
	h.tells(12, nil, nil, []string{"1 a stage 1, cost imputed 5 by -1 at 11",
		"2 c stage 1, cost observed 1 by 6 at 6"}, nil)
	// The formula does not use costs: what became of them does not decide the fate.
	h.tells(End, nil, nil, []string{
		"3 a skipped 0 by -1, cost imputed 5 by -1 at 11 told, quality skipped 0 by -1 at 101",
		"4 b withdrawn 0 by 0, cost withdrawn 0 by -1 at 4, quality withdrawn 0 by -1 at 4",
		"5 c observed 0 by 6, cost observed 1 by 6 at 6 told, quality observed 1 by 6 at 106"}, nil)
}

// Limits close a round and tell its stages first; a round of a repeated id tells none.
func TestStagesOverflow(t *testing.T) {
	limits := unlimited
	limits.Pending = 1
	h := newCutByHand(t, limits, namedRules(t, "quality - cost/10"))
	h.tells(5, []DecisionEvent{decidedAt(1, 1, "a"), decidedAt(2, 2, "a"), decidedAt(3, 3, "c")},
		[]OutcomeEvent{namedAt(4, "a", quality(1))}, []string{"1 a stage 1, cost imputed 5 by -1 at 5",
			"2 a imputed overflow0.25 by -1, cost imputed 5 by -1 at 5 told, quality observed 1 by 0 at 5",
			"3 a skipped duplicate-id0 by -1, cost skipped 0 by -1 at 2, quality skipped 0 by -1 at 2"}, nil)
}

// TestNamedIsLoss: a model with one named outcome and one window gives the same feedback, but for its keys, and the
// same rejects as the one with a loss of which that is the case.
func TestNamedIsLoss(t *testing.T) {
	checkWorlds(t, 4, func(t *rapid.T) {
		w := genWorld(14).Draw(t, "world")
		named := *w
		named.rules = nil
		for _, r := range w.rules {
			r.Activation, r.Arrival, r.Early = false, false, false
			if r.Outcomes == Mean {
				r.Range.Min, r.Range.Max = 0, 1 // elsewhere its rounding is another
			}
			named.rules = append(named.rules, asNamed(t, r))
		}
		for _, part := range w.outcomes {
			for i := range part {
				var o codec.Outcome
				if codec.ParseOutcome(&o, part[i].raw) == nil && o.Kind == codec.Reward {
					o.Kind = codec.Loss
					part[i].raw = codec.AppendOutcome(nil, &o)
				}
			}
		}
		one, other := newCutLog(w), newCutLog(&named)
		cuts := drawCuts(t, one, rapid.Bool().Draw(t, "legal"), int64(rapid.IntRange(0, 5).Draw(t, "lead")))
		want, got := startCutRun(t, one, w.limits()), startCutRun(t, other, w.limits())
		for _, at := range cuts {
			want.step(t, at, End>>1)
			got.step(t, at, End>>1)
		}
		sameFeedback(t, withoutOutcomes(t, other.fed()), one.fed())
		for at, x := range want.rejects {
			y := got.rejects[at]
			if y.Detail = x.Detail; !reflect.DeepEqual(x, y) {
				t.Fatalf("%+v\nwant %+v", y, x)
			}
		}
		if len(got.rejects) != len(want.rejects) {
			t.Fatalf("%d rejects, want %d", len(got.rejects), len(want.rejects))
		}
	})
}

// asNamed returns rules that name the loss.
func asNamed(t *rapid.T, r *Rules) *Rules {
	n := *r
	n.Named = []OutcomeRule{{Name: "loss", Range: r.Range, Window: r.Window, Impute: r.Impute,
		Default: r.Range.FromLoss(r.DefaultLoss), Take: r.Outcomes}}
	var err error
	n.Worth, err = learner.NewFormula("-loss", &learner.Scope{Actions: []string{"a", "b"},
		Outcomes: []learner.Variable{{Name: "loss", Lo: r.Range.Min, Hi: r.Range.Max}}})
	if err != nil {
		t.Fatal(err)
	}
	return &n
}

func withoutOutcomes(t *rapid.T, records [][]byte) (out [][]byte) {
	for _, b := range records {
		var f codec.Feedback
		if err := codec.ParseFeedback(&f, b); err != nil || len(f.Outcomes) != 1 {
			t.Fatal(err, f.Outcomes)
		}
		f.Outcomes = nil
		out = append(out, codec.AppendFeedback(nil, &f))
	}
	return out
}

// The audit finds what a joiner must never write.
func TestStageFaults(t *testing.T) {
	stage := codec.Feedback{N: 1, Round: 1, ID: "a", Epoch: 1, Actions: []string{"a"}, Propensities: []float64{1},
		Stage: 1, OutcomePartition: -1, OutcomeOffset: -1, Outcomes: []codec.Closed{{Name: "cost", Fate: codec.Observed,
			Value: 2}}}
	last := stage
	last.N, last.Stage, last.Fate = 2, 0, codec.Skipped
	last.Outcomes = []codec.Closed{stage.Outcomes[0], {Name: "quality", Fate: codec.Skipped, Partition: -1, Offset: -1}}
	last.Outcomes[0].Stage = 1
	change := func(f codec.Feedback, x func(*codec.Feedback)) codec.Feedback {
		f.Outcomes = append([]codec.Closed(nil), f.Outcomes...)
		x(&f)
		return f
	}
	for name, records := range map[string][]codec.Feedback{
		"":                   {stage, last},
		"twice":              {stage, stage, last},
		"behind its round":   {last, stage},
		"another value":      {stage, change(last, func(f *codec.Feedback) { f.Outcomes[0].Value = 0.2 })},
		"told by none":       {last},
		"not told of":        {stage, change(last, func(f *codec.Feedback) { f.Outcomes[0].Stage = 0 })},
		"an outcome dropped": {change(stage, func(f *codec.Feedback) { f.Outcomes = nil }), last},
	} {
		a := cutAudit{seen: map[Place]int{}}
		var err error
		for i := range records {
			if err == nil {
				err = a.inOrder(&records[i])
			}
		}
		if (err == nil) != (name == "") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// pupil is a learner that notes what it is taught, and charges.
type pupil struct {
	learner.Learner
	seen []learner.Round
}

func (p *pupil) Learn(r *learner.Round) {
	x := *r
	x.Outcomes = append([]learner.Outcome(nil), r.Outcomes...)
	p.seen = append(p.seen, x)
	p.Learner.Learn(r)
}

func (p *pupil) Prices(dst []float64) []float64 { return append(dst, .5, 0) }

// What a learner sees of named outcomes: each once, from the first record that tells of it, on [0,1]; the loss by the
// formula at work. A mode that forbids to learn shows none.
func TestTeachNamed(t *testing.T) {
	rules := namedRules(t, "quality - cost/10")
	other := namedRules(t, "quality")
	stage := codec.Feedback{N: 1, Round: 1, ID: "a", Epoch: 1, Actions: []string{"a", "b"},
		Propensities: []float64{.5, .5}, Context: []byte(`{"actions":["a","b"]}`), Stage: 1, OutcomePartition: -1,
		OutcomeOffset: -1,
		Outcomes:      []codec.Closed{{Name: "cost", Fate: codec.Observed, Value: 4}}}
	last := stage
	last.N, last.Stage, last.Fate, last.Loss = 2, 0, codec.Observed, .45
	last.Outcomes = []codec.Closed{{Name: "cost", Fate: codec.Observed, Value: 4, Stage: 1},
		{Name: "quality", Fate: codec.Observed, Value: .5}}
	known := func(x float64) learner.Outcome { return learner.Outcome{Known: true, Value: x} }
	none := learner.Outcome{}
	skipped := last
	skipped.Fate, skipped.Loss = codec.Skipped, 0
	skipped.Outcomes = []codec.Closed{{Name: "cost", Fate: codec.Skipped, Stage: 1}, last.Outcomes[1]}
	for _, c := range []struct {
		rules    *Rules
		mode     codec.Mode // at work
		feedback []codec.Feedback
		outcomes [][]learner.Outcome
		fate     learner.Fate
		loss     float64
	}{
		{rules, codec.Live, []codec.Feedback{stage, last}, [][]learner.Outcome{{known(.4), none}, {none, known(.5)}},
			learner.Observed, .45},
		{other, codec.Live, []codec.Feedback{stage, last}, [][]learner.Outcome{{known(.4), none}, {none, known(.5)}},
			learner.Observed, .5},
		{other, codec.Live, []codec.Feedback{stage, skipped}, [][]learner.Outcome{{known(.4), none}, {none, known(.5)}},
			learner.Observed, .5}, // this formula does not use what is missing
		{rules, codec.Paused, []codec.Feedback{stage, last}, [][]learner.Outcome{{none, none}}, learner.Skipped, .45},
		{&Rules{MaxActions: 9}, codec.Live, []codec.Feedback{stage, last}, [][]learner.Outcome{nil}, learner.Observed,
			.45},
	} {
		p, r := &pupil{Learner: newDAFA(t)}, NewReplica()
		rules := *c.rules
		rules.Mode = c.mode
		if err := r.Begin(Epoch{Number: 1, Rules: &rules, Learner: p}); err != nil {
			t.Fatal(err)
		}
		for i := range c.feedback {
			if err := r.Learn(&c.feedback[i], nil); err != nil {
				t.Fatal(err)
			}
		}
		var got [][]learner.Outcome
		for _, x := range p.seen {
			got = append(got, x.Outcomes)
		}
		end := p.seen[len(p.seen)-1]
		if !reflect.DeepEqual(got, c.outcomes) || end.Fate != c.fate || end.Loss != c.loss || r.LearnedThrough() != 2 ||
			end.Partial || len(p.seen) == 2 && !p.seen[0].Partial {
			t.Errorf("%v in mode %v: %v, then %v of loss %v; want %v, %v of %v", rules.Worth, c.mode, got,
				end.Fate, end.Loss, c.outcomes, c.fate, c.loss)
		}
	}
}

// A decision says what the learner charged, where it was asked.
func TestDecidePrices(t *testing.T) {
	want := []codec.Price{{Name: "cost", X: .5}, {Name: "time"}}
	for mode, prices := range map[codec.Mode][]codec.Price{codec.Live: want, codec.Shadow: want,
		codec.Apprentice: nil} {
		rules := namedRules(t, "quality")
		rules.Mode, rules.Budgets = mode, []string{"cost", "time"}
		r := NewReplica()
		if err := r.Begin(Epoch{Number: 1, Rules: rules, Learner: &pupil{Learner: newDAFA(t)}}); err != nil {
			t.Fatal(err)
		}
		d := codec.Decision{Prices: []codec.Price{{Name: "old"}}}
		NewDecider(r, testSeed, "m", 0, 9).Decide(&d, []byte(`{"actions":["a","b"]}`), "i",
			Source{Offset: RequestSource})
		err := d.Validate()
		if err != nil || len(d.Prices) != len(prices) || len(prices) > 0 && !reflect.DeepEqual(d.Prices, prices) {
			t.Errorf("%v: %v, %v; want %v", mode, d.Prices, err, prices)
		}
	}
}

// How many rounds are remembered does not depend on how many stages they have.
func TestStagesRemembered(t *testing.T) {
	limits := unlimited
	limits.Dedup = 2
	h := newCutByHand(t, limits, namedRules(t, "quality"))
	steps := func(time int64, ds []DecisionEvent, os []OutcomeEvent) (rejects []string) {
		if err := h.cut(time, ds, os); err != nil {
			t.Fatal(err)
		}
		var r Ready
		h.j.Ready(&r)
		for _, x := range r.Rejects {
			rejects = append(rejects, x.ID+" "+x.Reason)
		}
		return rejects
	}
	steps(106, []DecisionEvent{decidedAt(1, 1, "a"), decidedAt(2, 2, "b"), decidedAt(3, 3, "c")}, nil)
	steps(130, []DecisionEvent{decidedAt(110, 4, "d"), decidedAt(110, 5, "e"), decidedAt(110, 6, "f")}, nil)
	got := steps(131, nil, []OutcomeEvent{namedAt(131, "a", cost(1)), namedAt(131, "b", cost(1)),
		namedAt(131, "c", cost(1))})
	if want := []string{"a orphan", "b late", "c late"}; h.j.LastN() != 9 || !reflect.DeepEqual(got, want) {
		t.Errorf("%d records, %v; want 9, %v", h.j.LastN(), got, want)
	}
}
