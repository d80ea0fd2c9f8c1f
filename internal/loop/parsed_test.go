package loop

import (
	"bytes"
	"reflect"
	"strconv"
	"testing"

	"hindsight/pkg/codec"
)

// A context, a feedback's context and the names of actions that a caller has parsed do what their
// bytes do, and the joiner keeps nothing of them.
func TestParsedIsWhatBytesAreParsedTo(t *testing.T) {
	rules := &Rules{Actions: []string{"a", "b", "c"}, MaxActions: 3, Range: Range{Max: 1}, Window: Window{Rounds: 2},
		Features: []FeatureRule{{Name: "x", Kind: NumberFeature}, {Name: "t", Kind: TextFeature}}}
	type side struct {
		r *Replica
		d *Decider
		j *Joiner
	}
	start := func() side {
		s := side{r: NewReplica(), j: NewJoiner(1, unlimited, 1, func(int64) *Rules { return rules })}
		if err := s.r.Begin(Epoch{Number: 1, Rules: rules, Learner: newDAFA(t)}); err != nil {
			t.Fatal(err)
		}
		s.d = NewDecider(s.r, []byte("seed"), "m", 0, 1)
		return s
	}
	bytewise, parsed := start(), start()
	contexts := map[int64]*codec.Context{}
	for n := int64(1); n <= 40; n++ {
		c := &codec.Context{ID: "round " + strconv.FormatInt(n, 10), Features: []codec.Feature{
			{Name: "x", Kind: codec.Number, Value: float64(n * n % 7)}, {Name: "t", Kind: codec.Text,
				Text: "even odd"[n%2*4:]},
			{Name: "unknown", Kind: codec.Bool, Value: 1}}}
		contexts[n] = c
		src := Source{Offset: n, Through: n + 1}
		var want, got codec.Decision
		raw := codec.AppendContext(nil, c)
		if r := bytewise.d.Decide(&want, raw, "", src); r.Verdict != Decided {
			t.Fatal(r.Err)
		}
		src.Parsed = c
		if r := parsed.d.Decide(&got, nil, "", src); r.Verdict != Decided || r.N != n || r.ID != c.ID {
			t.Fatalf("%+v", r)
		}
		if want.Context = nil; !reflect.DeepEqual(got, want) {
			t.Fatalf("decision is %+v, not %+v", got, want)
		}
		want.Context = raw
		// Some outcomes repeat, or are late.
		o := codec.Outcome{ID: "round " + strconv.FormatInt(n-n%5, 10), Kind: codec.Loss, Value: float64(n%3) / 2}
		feedback, rejects := takeRound(t, bytewise.j, &want, &o, true)
		other, otherRejects := takeRound(t, parsed.j, &got, &o, false)
		if !reflect.DeepEqual(otherRejects, rejects) {
			t.Fatalf("rejects are %+v, not %+v", otherRejects, rejects)
		}
		for i := range feedback {
			if err := bytewise.r.Learn(&feedback[i], nil); err != nil {
				t.Fatal(err)
			}
			if err := parsed.r.Learn(&other[i], contexts[other[i].Round]); err != nil {
				t.Fatal(err)
			}
			if feedback[i].Context, other[i].Context = nil, nil; !reflect.DeepEqual(feedback[i], other[i]) {
				t.Fatalf("feedback is %+v, not %+v", other[i], feedback[i])
			}
		}
	}
	want, err := bytewise.r.Epoch().Learner.AppendBinary(nil)
	got, err2 := parsed.r.Epoch().Learner.AppendBinary(nil)
	if err != nil || err2 != nil || !bytes.Equal(got, want) || parsed.r.LearnedThrough() < 30 {
		t.Errorf("what was learned through %d differs", parsed.r.LearnedThrough())
	}
	c := &codec.Context{ID: "q", Features: []codec.Feature{{Name: "x", Kind: codec.Text}}}
	if r := parsed.d.Decide(new(codec.Decision), nil, "", Source{Parsed: c}); r.Verdict != Invalid {
		t.Error("a text is taken for a number")
	}
}

// takeRound cuts a decision and an outcome, which go through their bytes or not. The memory that the
// events point to is overwritten.
func takeRound(t *testing.T, j *Joiner, d *codec.Decision, o *codec.Outcome, bytewise bool) (
	[]codec.Feedback, []codec.Reject) {
	t.Helper()
	n := d.N
	de, oe := DecisionEvent{Offset: n, Time: 2 * n, D: *d}, OutcomeEvent{Offset: n, Time: 2*n + 1, O: *o}
	de.D.ID = string([]byte(d.ID))
	raw := codec.AppendDecision(nil, d)
	if bytewise {
		if err := de.Parse("", raw); err != nil {
			t.Fatal(err)
		}
		oe.Parse("", codec.AppendOutcome(nil, o), "")
	}
	c := codec.Cut{Cut: n, Time: 2*n + 1, Decisions: []codec.Range{{Next: n + 1}},
		Outcomes: []codec.Range{{Next: n + 1}}}
	if err := j.Take(&c, []Batch{{Decisions: []DecisionEvent{de}}, {Outcomes: []OutcomeEvent{oe}}}); err != nil {
		t.Fatal(err)
	}
	clear(raw)
	var r Ready
	j.Ready(&r)
	return r.Feedback, r.Rejects
}
