package loop

import (
	"bytes"
	"errors"
	"reflect"
	"strconv"
	"testing"

	"hindsight/pkg/codec"
)

// A decision that is given as it is does what its bytes do, and nothing of it is kept.
func TestDecidedIsTheDecision(t *testing.T) {
	rules := &Rules{Range: Range{Min: 0, Max: 1}, Window: Window{Rounds: 2}}
	joiner := func() *Joiner {
		return NewJoiner(JoinerOptions{Partitions: 1, MaxPending: 10, Dedup: 10}, func(int64) *Rules { return rules })
	}
	parsed, given := joiner(), joiner()
	raw := []byte("context of its own")
	names := []byte("onetwo")
	d := codec.Decision{ID: "a", Epoch: 1, Gamma: 2.5, Actions: []string{"x", "", "y"}, Propensities: []float64{.25, .5, .25},
		Action: 2, Mode: codec.Shadow, Would: []float64{.5, 0, .5}, Context: raw}
	for n := int64(1); n <= 6; n++ {
		d.N, d.ID, d.Time, d.Source, d.ContextsThrough = n, "round "+string(rune('a'+n)), 7*n, n-1, n
		d.LearnedThrough, d.Learned = n-1, n-1
		d.Actions[1], _ = cut(names, 3) // an alias
		if err := parsed.AddDecision(Place{Offset: n}, 10*n, codec.AppendDecision(nil, &d)); err != nil {
			t.Fatal(err)
		}
		if err := given.AddDecided(Place{Offset: n}, 10*n, &d); err != nil {
			t.Fatal(err)
		}
		raw[0]++
		names[0]++
		want, got := parsed.AppendReady(nil), given.AppendReady(nil)
		if len(want) != len(got) || len(want) > 0 && !reflect.DeepEqual(got, want) {
			t.Fatalf("round %d: feedback is %+v, not %+v", n, got, want)
		}
		if n > 3 && len(want) == 0 {
			t.Fatalf("round %d: nothing is released", n)
		}
	}
	d.N = 9
	if given.AddDecided(Place{Offset: 9}, 90, &d) == nil {
		t.Error("a gap is taken")
	}
}

// Contexts and outcomes at hand do what their bytes do: decisions, feedback, rejects and
// what is learned are the same but for the bytes of contexts.
func TestGivenIsWhatBytesAreParsedTo(t *testing.T) {
	rules := &Rules{Actions: []string{"a", "b", "c"}, MaxActions: 3, Range: Range{Min: 0, Max: 1}, Window: Window{Rounds: 2},
		Features: []FeatureRule{{Name: "x", Kind: NumberFeature}, {Name: "t", Kind: TextFeature}}}
	type side struct {
		r *Replica
		d *Decider
		j *Joiner
	}
	start := func() side {
		s := side{r: NewReplica(), j: NewJoiner(JoinerOptions{Partitions: 1, MaxPending: 10, Dedup: 10}, func(int64) *Rules { return rules })}
		if err := s.r.Begin(Epoch{Number: 1, Rules: rules, Learner: newDAFA(t)}); err != nil {
			t.Fatal(err)
		}
		s.d = NewDecider(s.r, []byte("seed"), "m", 0, 1)
		return s
	}
	parsed, given := start(), start()
	contexts := map[int64]*codec.Context{}
	for n := int64(1); n <= 40; n++ {
		c := &codec.Context{ID: "round " + strconv.FormatInt(n, 10), Features: []codec.Feature{
			{Name: "x", Kind: codec.Number, Value: float64(n * n % 7)}, {Name: "t", Kind: codec.Text, Text: "even odd"[n%2*4:]}, {Name: "unknown", Kind: codec.Bool, Value: 1}}}
		contexts[n] = c
		src := Source{Offset: n, Through: n + 1}
		var want, got codec.Decision
		raw := codec.AppendContext(nil, c)
		if r := parsed.d.Decide(&want, raw, "", src); r.Verdict != Decided {
			t.Fatal(r.Err)
		}
		if r := given.d.DecideContext(&got, c, src); r.Verdict != Decided || r.N != n || r.ID != c.ID {
			t.Fatalf("%+v", r)
		}
		if want.Context = nil; !reflect.DeepEqual(got, want) {
			t.Fatalf("decision is %+v, not %+v", got, want)
		}
		want.Context = raw
		at := Place{Offset: n}
		if err := errors.Join(parsed.j.AddDecision(at, 2*n, codec.AppendDecision(nil, &want)), given.j.AddDecided(at, 2*n, &got)); err != nil {
			t.Fatal(err)
		}
		o := codec.Outcome{ID: "round " + strconv.FormatInt(n-n%5, 10), Kind: codec.Loss, Value: float64(n%3) / 2} // some repeat, are late, or come first
		parsed.j.AddOutcome(at, 2*n+1, codec.AppendOutcome(nil, &o), "")
		given.j.AddGiven(at, 2*n+1, &o, false)
		parsed.j.Orphans(1)
		given.j.Orphans(1)
		feedback, other := parsed.j.AppendReady(nil), given.j.AppendReady(nil)
		for i := range feedback {
			if err := errors.Join(parsed.r.Learn(&feedback[i]), given.r.LearnContext(&other[i], contexts[other[i].Round])); err != nil {
				t.Fatal(err)
			}
			if feedback[i].Context, other[i].Context = nil, nil; !reflect.DeepEqual(feedback[i], other[i]) {
				t.Fatalf("feedback is %+v, not %+v", other[i], feedback[i])
			}
		}
		if w, g := parsed.j.AppendRejects(nil), given.j.AppendRejects(nil); !reflect.DeepEqual(g, w) {
			t.Fatalf("rejects are %+v, not %+v", g, w)
		}
	}
	want, err := parsed.r.Epoch().Learner.AppendBinary(nil)
	got, err2 := given.r.Epoch().Learner.AppendBinary(nil)
	if err != nil || err2 != nil || !bytes.Equal(got, want) || given.r.LearnedThrough() < 30 {
		t.Errorf("what was learned through %d differs", given.r.LearnedThrough())
	}
	if r := given.d.DecideContext(new(codec.Decision), &codec.Context{ID: "q", Features: []codec.Feature{{Name: "x", Kind: codec.Text}}}, Source{}); r.Verdict != Invalid {
		t.Error("a text is taken for a number")
	}
}
