package loop

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"hindsight/pkg/codec"
	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

func wideRules() *Rules {
	return &Rules{Actions: []string{"a", "b"}, MaxActions: 2, Features: []FeatureRule{
		{Name: "embedding", Kind: VectorFeature, Hi: 2}, {Name: "hour", Kind: NumberFeature},
		{Name: "prompt", Kind: NgramsFeature}, {Name: "title", Kind: NgramsFeature}}}
}

// TestWideInput: a learner sees statistics and terms of texts and vectors in place of them, beside named
// features, of the context and of actions.
func TestWideInput(t *testing.T) {
	r := newReader(wideRules())
	if err := r.parse([]byte(`{"features":{"prompt":"Two words","hour":3,"embedding":[3,4],"other":1},
		"actions":["a",{"name":"b","features":{"title":"Two words","price":7,"embedding":[0,-2]}}]}`)); err != nil {
		t.Fatal(err)
	}
	in := r.input()
	names := ""
	for _, f := range in.Features {
		names += f.Name + " "
	}
	const statistics = "prompt.chars prompt.words prompt.word_length prompt.lines prompt.digits prompt.capitals " +
		"prompt.signs prompt.code "
	if names != statistics+"hour " {
		t.Errorf("features %s", names)
	}
	if r.unread() != 1 {
		t.Errorf("%d are not read, want other alone", r.unread())
	}
	if v := in.Features[1].Value; math.Abs(v-math.Log(3)) > 1e-12 {
		t.Errorf("two words: %v", v)
	}
	terms := in.Terms
	if len(terms) != 5 || terms[3].Place != 0 || math.Abs(terms[3].Value-.6) > 1e-12 || terms[4].Place != 1 {
		t.Fatalf("terms of the context: %v", terms)
	}
	for _, x := range terms[:3] { // two words and their pair
		if x.Place < 2 || x.Place >= 2+oracle.TextPlaces || math.Abs(x.Value*x.Value-1.0/3) > 1e-12 {
			t.Errorf("term %v", x)
		}
	}
	own := in.ActionTerms
	if len(own) != 2 || len(own[0]) != 0 || len(own[1]) != 5 || own[1][4] != (oracle.Term{Place: 1, Value: -1}) {
		t.Fatalf("terms of actions: %v", own)
	}
	for i, x := range own[1][:3] { // the same words of another text lie behind
		if x.Place != terms[i].Place+oracle.TextPlaces {
			t.Errorf("term %v of the title, %v of the prompt", x, terms[i])
		}
	}
	if fs := in.Actions[1].Features; len(fs) != oracle.TextStatistics+1 || fs[0].Name != "title.chars" ||
		fs[oracle.TextStatistics].Name != "price" {
		t.Errorf("features of the action: %v", fs)
	}
	if err := r.parse([]byte(`{"features":{"hour":3}}`)); err != nil || len(r.in.Terms) != 0 ||
		r.in.ActionTerms != nil {
		t.Errorf("%v: terms of the context before: %v %v", err, r.in.Terms, r.in.ActionTerms)
	}
}

// TestWideRefused: each wrong value is refused by its name.
func TestWideRefused(t *testing.T) {
	nan := codec.AppendContext(nil, &codec.Context{Features: []codec.Feature{
		codec.VectorOf("embedding", []float64{1, math.NaN()})}})
	long := `"` + strings.Repeat("x", codec.MaxTextBytes+1) + `"`
	for _, c := range []struct{ raw, want string }{
		{`{"features":{"embedding":[1]}}`, "context: features.embedding: wrong length of a vector: it has 1 numbers, " +
			"and the model says 2"},
		{`{"features":{"embedding":[1,2,3]}}`, "features.embedding: wrong length"},
		{string(nan), "context: features.embedding[1]: is not a finite number"},
		{`{"features":{"embedding":[1,1e999]}}`, "features.embedding[1]: corrupt record: number out of range"},
		{`{"features":{"embedding":"text"}}`, "features.embedding: wrong type of value: the model says vector"},
		{`{"features":{"embedding":3}}`, "features.embedding: wrong type of value"},
		{`{"features":{"prompt":3}}`, "features.prompt: wrong type of value: the model says {text: ngrams}"},
		{`{"features":{"prompt":[1,2]}}`, "features.prompt: wrong type of value"},
		{`{"features":{"hour":"3"}}`, "features.hour: wrong type of value: the model says number"},
		{`{"features":{"hour":[3,4]}}`, "features.hour: is a list of numbers, which the model must declare"},
		{`{"features":{"other":` + long + `}}`, "features.other: is too long"},
		{`{"features":{"prompt":"` + strings.Repeat("x", 1<<20) + `"}}`, "context: record too large"},
		{`{"actions":[{"name":"a","features":{"embedding":[1]}}]}`, "actions.a.features.embedding: wrong length"},
		{`{"actions":[{"name":"a","features":{"x":[1]}}]}`, "actions[0].features.x: is a list of numbers"},
	} {
		if err := newReader(wideRules()).parse([]byte(c.raw)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.80s: %v, want %s", c.raw, err, c.want)
		}
	}
	for _, raw := range []string{`{"features":{"prompt":` + long + `,"embedding":[0,0]}}`,
		`{"features":{"prompt":""}}`, `{}`} {
		if err := newReader(wideRules()).parse([]byte(raw)); err != nil {
			t.Errorf("%.80s: %v", raw, err)
		}
	}
	free := newReader(&Rules{Actions: []string{"a"}, MaxActions: 1})
	if err := free.parse([]byte(`{"features":{"x":[1]}}`)); err == nil || !strings.Contains(err.Error(),
		"must declare") {
		t.Errorf("a vector that nothing declares: %v", err)
	}
}

// TestWideOfEarlierEpochs: a context that was decided under another schema is read again without what does not fit.
func TestWideOfEarlierEpochs(t *testing.T) {
	r := newReader(wideRules())
	if err := r.parseAgain([]byte(`{"features":{"prompt":3,"embedding":[1,2,3],"hour":3}}`)); err != nil {
		t.Fatal(err)
	}
	in, err := r.played([]string{"a", "b"})
	if err != nil || len(in.Features) != 1 || len(in.Terms) != 0 {
		t.Errorf("%v: %+v", err, in)
	}
}

// TestWideAllocatesNothing: reading a context with a text and a vector takes no memory once warm.
func TestWideAllocatesNothing(t *testing.T) {
	r := newReader(wideRules())
	raw := codec.AppendContext(nil, &codec.Context{Features: []codec.Feature{
		{Name: "prompt", Kind: codec.Text, Text: strings.Repeat("A few words of 17. ", 30)},
		codec.VectorOf("embedding", []float64{1, 2})},
		Actions: []codec.Action{{Name: "a", Features: []codec.Feature{{Name: "title", Kind: codec.Text,
			Text: "one"}}}}})
	read := func() {
		if err := r.parse(raw); err != nil {
			t.Fatal(err)
		}
	}
	read()
	if n := testing.AllocsPerRun(50, read); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// wideHeat decides contexts in MessagePack, in turn, and learns from each decision.
type wideHeat struct {
	t       testing.TB
	replica *Replica
	decider *Decider
	dec     codec.Decision
	raws    [][]byte
	n       int64
	fb      codec.Feedback
}

// newWideHeat decides among four actions by the default oracle, from prompts of some 300 bytes.
func newWideHeat(t testing.TB) *wideHeat {
	rules := &Rules{Actions: []string{"a", "b", "c", "d"}, MaxActions: 4,
		Features: []FeatureRule{{Name: "prompt", Kind: NgramsFeature}}}
	o, err := oracle.NewAggregate(oracle.AggregateOptions{Beta: oracle.ByWhatComes, Fourier: oracle.ByWhatComes,
		Seed: 1, Version: oracle.Newest, Places: rules.Places()})
	if err != nil {
		t.Fatal(err)
	}
	h := &wideHeat{t: t, replica: NewReplica()}
	h.replica.Begin(Epoch{Number: 1, Rules: rules, Learner: learner.NewDAFA(o, learner.Root{C: learner.RootBalanced})})
	h.decider = NewDecider(h.replica, testSeed, "wide", 0, 1000)
	for i := range 64 {
		words := strings.Builder{}
		for k := 0; words.Len() < 300; k++ {
			words.WriteString("word" + strconv.Itoa((i*k*k+7*k)%997) + "x ")
		}
		h.raws = append(h.raws, codec.AppendContext(nil, &codec.Context{Features: []codec.Feature{
			{Name: "prompt", Kind: codec.Text, Text: words.String()}}}))
	}
	for range 2000 {
		h.decide()
		h.learn()
	}
	return h
}

func (h *wideHeat) decide() {
	h.n++
	if r := h.decider.Decide(&h.dec, h.raws[h.n%int64(len(h.raws))], "",
		Source{Offset: RequestSource}); r.Verdict != Decided {
		h.t.Fatal(r.Err)
	}
}

func (h *wideHeat) learn() {
	d := &h.dec
	h.fb = codec.Feedback{N: h.n, Round: h.n, Epoch: 1, ID: "x", LearnedThrough: h.n - 1, Gamma: d.Gamma,
		Actions: d.Actions, Propensities: d.Propensities, Action: d.Action, Context: d.Context, Fate: codec.Observed,
		Loss: float64(h.n%5) / 4}
	if err := h.replica.Learn(&h.fb, nil); err != nil {
		h.t.Fatal(err)
	}
}

// TestWideDecisionAllocatesNothing: deciding by a text, and learning it, takes no memory once warm.
func TestWideDecisionAllocatesNothing(t *testing.T) {
	h := newWideHeat(t)
	if n := testing.AllocsPerRun(200, func() {
		h.decide()
		h.learn()
	}); n != 0 {
		t.Errorf("%v allocations a round", n)
	}
}

// BenchmarkWideDecide is a decision with 4 actions, 8 statistics and 4,096 places, from the bytes to the draw.
func BenchmarkWideDecide(b *testing.B) {
	h := newWideHeat(b)
	b.ReportAllocs()
	for b.Loop() {
		h.decide()
	}
}

func BenchmarkWideLearn(b *testing.B) {
	h := newWideHeat(b)
	b.ReportAllocs()
	for b.Loop() {
		h.n++
		h.learn()
	}
}
