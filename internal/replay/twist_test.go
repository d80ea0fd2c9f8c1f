package replay

import (
	"math"
	"slices"
	"strings"
	"testing"

	"hindsight/internal/dataset"
	"hindsight/internal/logs"
	"hindsight/pkg/codec"
)

const threeRows = "label,n_x\na,1\nb,2\nc,3\na,4\nb,5\nc,6\n"

func threeLabels(t *testing.T) *Rounds {
	t.Helper()
	m, err := readLabelled("three.csv", strings.NewReader(threeRows))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func twisted(t *testing.T, env *Rounds, spec string) *Rounds {
	t.Helper()
	out, err := Twist(env, spec, 1)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestPermute: before its round all is as it was; from there on every action has the
// losses of another, each of one only, and contexts stay; in another row order the
// change comes at the same round.
func TestPermute(t *testing.T) {
	m := threeLabels(t)
	for _, env := range []*Rounds{m, Order(m, 1, 1)} {
		p := twisted(t, env, "permute:0.5")
		if env != m {
			p = Order(twisted(t, m, "permute:0.5"), 1, 1)
		}
		var was, is codec.Context
		old, now := make([]float64, 3), make([]float64, 3)
		for round := range 6 {
			env.Context(&was, round)
			p.Context(&is, round)
			env.Truth(old, round)
			p.Truth(now, round)
			if was.Features[0] != is.Features[0] {
				t.Fatalf("round %d: context %v, was %v", round, is, was)
			}
			sum := 0.0
			for a := range now {
				sum += now[a]
				if now[a] != p.Loss(round, a) {
					t.Errorf("round %d: action %d has the mean loss %v and the loss %v", round, a, now[a],
						p.Loss(round, a))
				}
				if same := old[a] == 0 && now[a] == 0; old[a] == 0 && same != (round < 3) {
					t.Errorf("round %d: %v became %v", round, old, now)
				}
			}
			if sum != 2 {
				t.Errorf("round %d: losses %v", round, now)
			}
		}
		if name := p.Name; name != "three.csv permute:0.5" {
			t.Errorf("name %q", name)
		}
	}
}

// TestRewards: the mean loss is 1 − high where there was none and 1 − low elsewhere,
// and losses are drawn with these means.
func TestRewards(t *testing.T) {
	e := twisted(t, environment(t, "bandit:2,0,1", 1, 20_000), "rewards:.6,.3")
	f := make([]float64, 2)
	if e.Truth(f, 0); math.Abs(math.Min(f[0], f[1])-.4) > 1e-12 || math.Abs(math.Max(f[0], f[1])-.7) > 1e-12 {
		t.Fatalf("means %v", f)
	}
	for a, want := range f {
		sum := 0.0
		for round := range e.Len() {
			sum += e.Loss(round, a)
		}
		if got := sum / float64(e.Len()); math.Abs(got-want) > 4*math.Sqrt(want*(1-want)/float64(e.Len())) {
			t.Errorf("action %d: mean loss %v, want %v", a, got, want)
		}
	}
}

func TestTwistErrors(t *testing.T) {
	for spec, want := range map[string]string{
		"":             `unknown twist ""`,
		"permute":      "permute takes the parameters share, found 0 parameters",
		"permute:2":    `permute: share is "2": it must be a number in [0, 1]`,
		"rewards:.5":   "rewards takes the parameters high,low, found 1 parameters",
		"rewards:.5,x": `rewards: low is "x"`,
	} {
		if _, err := Twist(threeLabels(t), spec, 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", spec, err, want)
		}
	}
}

// TestDescribe: what is said of data, and which models, twists and delays it allows.
func TestDescribe(t *testing.T) {
	log := targetLog(t)
	d := Describe(log)
	if p := d.Propensities; d.Rounds != 4 || d.Observed != 3 || d.Actions != 3 || d.Truth || d.First != nil ||
		*p != (Propensities{Min: .25, P1: .25, Median: .5, Max: 1, Inverse: (2 + 4 + 2 + 1) / 4.}) {
		t.Errorf("%+v, %+v", d, p)
	}
	if d := Describe(threeLabels(t)); d.Rounds != 6 || d.Observed != 6 || !d.Truth || d.Propensities != nil {
		t.Errorf("%+v", d)
	}
	if d := Describe(timedLog(t)); d.First.Unix() != 1577836800 || d.Last.Unix() != 1577836830 || d.Observed != 3 ||
		d.Propensities != nil {
		t.Errorf("%+v", d)
	}
	for _, e := range Twists() {
		if e.Name != "permute" && e.Name != "rewards" {
			t.Errorf("a twist %s", e.Name)
		}
	}
	if _, err := Twist(log, "permute:0.5", 1); err == nil || !strings.Contains(err.Error(), "does not tell") {
		t.Errorf("a log of decisions is twisted: %v", err)
	}
	var runs []Result
	for _, spec := range []string{"exp:9", "recorded", "exp:9", "none"} {
		r := Result{}
		r.Delays.Spec, r.Delays.Invented = spec, spec != "recorded"
		runs = append(runs, r)
	}
	if got := InventedDelays(runs); got != "Artificial delays, not those of the data: exp:9, none" ||
		InventedDelays(runs[1:2]) != "" {
		t.Errorf("%q", got)
	}
}

// TestUseActions: a model takes the actions of data where it lists none, and one that cannot play them is named.
func TestUseActions(t *testing.T) {
	const line = `{"actions":["p","q","r"],"action":"q","propensity":0.5,"loss":1}` + "\n"
	all := readEvents(t, line+line, dataset.Options{}, logs.Options{})
	some := readEvents(t, line+strings.Replace(line, `"r"`, `"s","t"`, 1), dataset.Options{}, logs.Options{})
	for _, c := range []struct {
		of    *Rounds
		model string
		want  string // the actions, or the error
	}{
		{threeLabels(t), "", "a b c"}, {threeLabels(t), "actions: [a, b, c]", "a b c"},
		{threeLabels(t), "actions: [a, c, b]", "the model lists the actions a, c, b, but the data has a, b, c: list"},
		{threeLabels(t), "actions: [a, b, c, d, e, f, g, h, i, j]", "actions a, b, c, d, e, f, g, h, i, j, but the"},
		{threeLabels(t), "actions: [a, b, c, d, e, f, g, h, i, j, k]", "c, d, e, f, g, h, i, j, …, but the data"},
		{all, "", "p q r"}, {all, "actions: [r, q, p, z]", "r q p z"}, {some, "", ""},
		{all, "actions: [p, q, z]", `the model does not list the action "r" of the log`},
		{all, "max_actions: 2", "a round of the log has 3 actions, and the model's max_actions is 2"},
		{some, "max_actions: 4", ""}, {some, "max_actions: 3", "a round of the log has 4 actions"},
	} {
		m := namedModel(t, c.model)
		err := UseActions(m, c.of)
		if got := strings.Join(m.Actions, " "); err == nil && got != c.want || err != nil &&
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s of %s: %q, %v, want %q", c.model, c.of.Name, got, err, c.want)
		}
	}
}

// TestPartsOfParts: heads, tails and picks of each other are the rows that they say, with what belongs to them.
func TestPartsOfParts(t *testing.T) {
	all := threeLabels(t) // n_x is 1 … 6
	for name, c := range map[string]struct {
		of   *Rounds
		want []float64
	}{
		"tail": {Tail(all, 2), []float64{3, 4, 5, 6}}, "all of it": {Tail(all, 0), []float64{1, 2, 3, 4, 5, 6}},
		"no tail": {Tail(all, 9), nil}, "head": {Head(all, 2), []float64{1, 2}}, "head of 0": {Head(Tail(all, 4), 0),
			[]float64{5, 6}}, "pick": {all.Pick([]int32{4, 0}), []float64{5, 1}},
		"pick of a tail": {Tail(all, 2).Pick([]int32{1, 0}), []float64{4, 3}},
		"pick of a pick": {all.Pick([]int32{4, 0, 2}).Pick([]int32{2, 0}), []float64{3, 5}},
		"tail of a pick": {Tail(all.Pick([]int32{4, 0, 2}), 1), []float64{1, 3}},
		"head of a tail": {Head(Tail(all, 3), 2), []float64{4, 5}},
	} {
		var got []float64
		truth, rounds := make([]float64, 3), c.of.Reader()
		for i := range c.of.Len() {
			ctx := rounds.given(i)
			got = append(got, ctx.Features[0].Value)
			if c.of.Truth(truth, i); truth[int(ctx.Features[0].Value-1)%3] != 0 || ctx.ID != dataset.RoundID(i) {
				t.Errorf("%s: round %d, %s, loses %v", name, i, ctx.ID, truth)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: rows %v, want %v", name, got, c.want)
		}
	}
	const arms = `{"actions":["p",{"name":"q","features":{"y":3}}],"arms":{"q":{"c":1},"p":{"c":2}}}` + "\n"
	for text, featured := range map[string]bool{arms: true,
		strings.Replace(arms, `,"features":{"y":3}`, "", 1): false} {
		r := readEvents(t, text, dataset.Options{}, logs.Options{})
		if r.ActionsBringFeatures() != featured || r.WithFeatures().Featured != featured || r.HasBaseline() {
			t.Errorf("%s: actions bring features: %t", text, r.ActionsBringFeatures())
		}
	}
	if targetLog(t).ActionsBringFeatures() || targetLog(t).WithFeatures().Featured || targetLog(t).RecordsDelays() ||
		!timedLog(t).RecordsDelays() || !timedLog(t).Timed() || targetLog(t).Timed() {
		t.Error("a log of one schema has features of actions, or times that it has not")
	}
}
