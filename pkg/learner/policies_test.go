package learner_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
	"hindsight/pkg/oracle/oracletest"
)

// TestArgmin holds that each policy plays the first of the best actions by its
// function.
func TestArgmin(t *testing.T) {
	g := given{{0.5, 0.1, 0.3}, {0.2, 0.1, 0.4}, {0.2, 0.3, 0.1}}
	got := make([]int32, 3)
	learner.NewArgmin(g).Advise(got, &oracle.Input{Actions: actions(3)})
	if want := []int32{1, 0, 2}; !reflect.DeepEqual(got, want) {
		t.Errorf("advice %v, want %v", got, want)
	}
}

// TestDecisionLists is worked by hand.
func TestDecisionLists(t *testing.T) {
	text := func(f, v string) learner.Condition {
		return learner.Condition{Feature: f, Kind: oracle.Text, Text: v}
	}
	lists := []learner.DecisionList{
		{{If: []learner.Condition{text("country", "DE")}, Then: "red"}, {Then: "green"}},
		{{If: []learner.Condition{{Feature: "age", Kind: oracle.Number, Lo: 18, Hi: 30}, text("country", "DE")},
			Then: "blue"}, {Then: "red"}},
		{{If: []learner.Condition{{Feature: "vip", Kind: oracle.Bool, Lo: 1, Hi: 1}}, Then: "blue"}, {Then: "green"}},
	}
	d := must(learner.NewDecisionLists([]string{"red", "green", "blue"}, lists))
	input := func(names string, fs ...oracle.Feature) *oracle.Input {
		x := &oracle.Input{Features: fs}
		for _, n := range names {
			x.Actions = append(x.Actions,
				oracle.Action{Name: map[rune]string{'r': "red", 'g': "green", 'b': "blue", '?': "unknown"}[n]})
		}
		return x
	}
	de := oracle.Feature{Name: "country", Kind: oracle.Text, Text: "DE"}
	age := func(v float64) oracle.Feature { return oracle.Feature{Name: "age", Kind: oracle.Number, Value: v} }
	for i, c := range []struct {
		x    *oracle.Input
		want []int32
	}{
		{input("rgb"), []int32{1, 0, 1}},
		{input("rgb", de, age(18)), []int32{0, 2, 1}},
		{input("rgb", age(30), de), []int32{0, 2, 1}},
		{input("rgb", de, age(30.5)), []int32{0, 0, 1}},
		{input("gbr", de, age(20)), []int32{2, 1, 0}}, // by name, not position
		// blue is not eligible: the rule does not apply
		{input("gr", de, age(20)), []int32{1, 1, 0}},
		// nothing that applies is eligible
		{input("?b", de), []int32{0, 0, 0}},
		{input("rgb", oracle.Feature{Name: "vip", Kind: oracle.Bool, Value: 1}), []int32{1, 0, 2}},   // a bool
		{input("rgb", oracle.Feature{Name: "vip", Kind: oracle.Bool}), []int32{1, 0, 1}},             // is false
		{input("rgb", oracle.Feature{Name: "vip", Kind: oracle.Number, Value: 1}), []int32{1, 0, 1}}, // is no number
	} {
		got := make([]int32, 3)
		if d.Advise(got, c.x); !reflect.DeepEqual(got, c.want) {
			t.Errorf("case %d: advice %v, want %v", i, got, c.want)
		}
	}
	for i, bad := range [][]learner.DecisionList{
		nil, {{}}, {{{Then: "pink"}}}, {{{If: []learner.Condition{de2()}, Then: "red"}}},
	} {
		if _, err := learner.NewDecisionLists([]string{"red"}, bad); err == nil {
			t.Errorf("bad lists %d are accepted", i)
		}
	}
}

// TestOneDecisionList: one list over one action is a class.
func TestOneDecisionList(t *testing.T) {
	d := must(learner.NewDecisionLists([]string{"red"}, []learner.DecisionList{{{Then: "red"}}}))
	if d.Size() != 1 || len(d.Actions()) != 1 {
		t.Errorf("%d lists over %v", d.Size(), d.Actions())
	}
}

func de2() learner.Condition {
	return learner.Condition{Feature: "country", Kind: oracle.Text, Text: "DE"}
}

// TestAdviceAllocates holds that advice needs no memory once warm.
func TestAdviceAllocates(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for name, p := range map[string]learner.Policies{"argmin": sigmoidPolicies(), "lists": someLists()} {
		dst := make([]int32, p.Size())
		var inputs []*oracle.Input
		for range 50 {
			inputs = append(inputs, oracletest.Input(rng))
		}
		i := 0
		round := func() { p.Advise(dst, inputs[i%50]); i++ }
		for range inputs {
			round()
		}
		if n := testing.AllocsPerRun(100, round); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// adviceGiven is a class of policies whose advice is given.
type adviceGiven []int32

func (g adviceGiven) Size() int                           { return len(g) }
func (g adviceGiven) Advise(dst []int32, _ *oracle.Input) { copy(dst, g) }

// BenchmarkEXP4 times one decision over 10,000 policies whose advice is given, with 10
// actions: ×sum is beside a plain sum over the same bytes (the weights, and the advice
// as whole numbers) with one running total, ×wide-sum with four. learn-ns is one
// Learn, which takes an exp a policy.
func BenchmarkEXP4(b *testing.B) {
	const size, k = 10_000, 10
	rng := rand.New(rand.NewPCG(1, 1))
	advice := make(adviceGiven, size)
	for i := range advice {
		advice[i] = int32(rng.IntN(k))
	}
	e := must(learner.NewEXP4(advice, learner.EXP4Options{}))
	x := &oracle.Input{Actions: actions(k)}
	law, _ := e.Propensities(nil, x)
	r := learner.Round{Input: x, Propensities: law, N: 1, Fate: learner.Observed, Loss: 0.5}
	w := e.AppendWeights(nil)
	b.ReportAllocs()
	for b.Loop() {
		law, _ = e.Propensities(law[:0], x)
	}
	decide := measure(func() { law, _ = e.Propensities(law[:0], x) })
	total, whole := 0.0, int32(0)
	sum := measure(func() {
		s, n := 0.0, int32(0)
		for _, v := range w {
			s += v
		}
		for _, v := range advice {
			n += v
		}
		total, whole = total+s, whole+n
	})
	wide := measure(func() {
		var s0, s1, s2, s3 float64
		var n0, n1, n2, n3 int32
		for v, a := w, advice; len(v) >= 4 && len(a) >= 4; v, a = v[4:], a[4:] {
			s0, s1, s2, s3 = s0+v[0], s1+v[1], s2+v[2], s3+v[3]
			n0, n1, n2, n3 = n0+a[0], n1+a[1], n2+a[2], n3+a[3]
		}
		total, whole = total+s0+s1+s2+s3, whole+n0+n1+n2+n3
	})
	b.ReportMetric(decide*1e9, "least-ns")
	b.ReportMetric(decide/sum, "×sum")
	b.ReportMetric(decide/wide, "×wide-sum")
	b.ReportMetric(measure(func() { e.Learn(&r) })*1e9, "learn-ns")
	if fmt.Sprint(total, whole) == "0 0" {
		b.Error("the sums were not made")
	}
}
