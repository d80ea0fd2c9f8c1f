package model

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"hindsight/internal/loop"
	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

const policyText = `{"hindsight_policies":1,"actions":["red","green"]}
{"prior":2,"rules":[{"if":{"vip":true,"country":"DE","age":[18,30]},"then":"red"},{"then":"green"}]}

 {"rules":[{"if":{"n":3},"then":"green"},{"if":{"n":-0},"then":"red"},{"then":"red"}]}
`

func TestPolicyFile(t *testing.T) {
	f, err := ParsePolicies("p.jsonl", []byte(policyText))
	if err != nil {
		t.Fatal(err)
	}
	want := &PolicyFile{Actions: []string{"red", "green"}, Policies: []PolicyLine{
		{2, learner.DecisionList{{If: []learner.Condition{{Feature: "age", Kind: oracle.Number, Lo: 18, Hi: 30},
			{Feature: "country", Kind: oracle.Text, Text: "DE"}, {Feature: "vip", Kind: oracle.Bool, Lo: 1, Hi: 1}},
			Then: "red"}, {Then: "green"}}},
		{1, learner.DecisionList{{If: []learner.Condition{{Feature: "n", Kind: oracle.Number, Lo: 3, Hi: 3}},
			Then: "green"},
			{If: []learner.Condition{{Feature: "n", Kind: oracle.Number}}, Then: "red"}, {Then: "red"}}},
	}}
	if !reflect.DeepEqual(f, want) {
		t.Fatalf("got  %+v\nwant %+v", f, want)
	}
	if q := f.Priors(); !reflect.DeepEqual(q, []float64{2, 1}) {
		t.Errorf("priors %v", q)
	}
	c, err := f.Class()
	if err != nil || c.Size() != 2 {
		t.Fatal(err)
	}
}

func TestPolicyErrors(t *testing.T) {
	head := policyHeaderExample + "\n"
	for _, c := range []struct{ text, want string }{
		{"", "f:1: the policy file is empty"},
		{"{}", "f:1:1: the first line is not a policy header"},
		{`{"hindsight_class":1}`, `f:1:2: unknown key "hindsight_class"; expected hindsight_policies, actions`},
		{`{"hindsight_policies":2,"actions":["a"]}`, "f:1:2: hindsight_policies is 2, this version reads 1"},
		{`{"hindsight_policies":1,"actions":[]}`, "f:1:1: actions: expected at least one name"},
		{`{"hindsight_policies":1,"actions":["a","a"]}`, `f:1:40: the action "a" is there twice`},
		{`{"hindsight_policies":1,"actions":["a",""]}`, "f:1:40: an action's name is empty"},
		{`{"hindsight_policies":1`, "f:1:24: the line ends inside a JSON object"},
		{head, "f:1: there is no policy"},
		{head + "\n[]", "f:3:1: expected an object {…}, found ["},
		{head + `{"rules":[]}`, "f:2:1: rules: expected at least one"},
		{head + `{"rules":[{"if":{"x":1},"then":"red"}]}`, `f:2:1: the last rule must have no "if"`},
		{head + `{"rules":[{"then":"pink"}]}`, `f:2:12: then: "pink" is not among the actions`},
		{head + `{"rules":[{"if":{"x":1}}]}`, "f:2:11: a rule has no then"},
		{head + `{"rules":[{"then":"red"},{"then":"red"}]}`, "f:2:26: the rule before this one has no conditions"},
		{head + `{"rules":[{"if":{"x":null},"then":"red"}]}`, `f:2:22: if: "x": expected a text, a number`},
		{head + `{"rules":[{"if":{"x":{}},"then":"red"}]}`, `f:2:22: if: "x": expected a text, a number`},
		{head + `{"rules":[{"if":{"x":[3,1]},"then":"red"}]}`, `f:2:22: if: "x": expected the least and the largest`},
		{head + `{"rules":[{"if":{"x":1,"x":2},"then":"red"}]}`, `f:2:24: the key "x" is there twice`},
		{head + `{"rules":[{"if":{"":1},"then":"red"}]}`, "f:2:18: a feature's name is empty"},
		{head + `{"prior":0,"rules":[{"then":"red"}]}`, "f:2:2: prior: expected a positive number"},
		{head + `{"prior":1e999,"rules":[{"then":"red"}]}`, "f:2:10: not a number that a float64 holds, found 1e999"},
		{head + `{"rules":[{"then":"red"}]} {}`, "f:2:28: more than one JSON object"},
		{head + `{"rules":[{"then":red}]}`, `f:2:19: expected a text "…", found red`},
	} {
		_, err := ParsePolicies("f", []byte(c.text))
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%q:\ngot  %v\nwant %s…", c.text, err, c.want)
		}
		if e := new(Error); err != nil && (!errors.As(err, &e) || e.Line == 0) {
			t.Errorf("%q: the error has no line: %v", c.text, err)
		}
	}
}

func drawPolicies(t *rapid.T) *PolicyFile {
	f := &PolicyFile{Actions: rapid.SliceOfNDistinct(names(8), 1, 4, rapid.ID[string]).Draw(t, "actions")}
	number := rapid.Map(rapid.Float64Range(-1e12, 1e12), func(v float64) float64 { return v + 0 })
	for range rapid.IntRange(1, 4).Draw(t, "size") {
		l := PolicyLine{Prior: rapid.Float64Range(1e-9, 1e9).Draw(t, "prior")}
		for range rapid.IntRange(0, 3).Draw(t, "rules") {
			r := learner.Rule{Then: rapid.SampledFrom(f.Actions).Draw(t, "then")}
			features := rapid.SliceOfNDistinct(names(8), 1, 3, rapid.ID[string]).Draw(t, "features")
			slices.Sort(features)
			for _, name := range features {
				c := learner.Condition{Feature: name,
					Kind: rapid.SampledFrom([]oracle.FeatureKind{oracle.Number, oracle.Text, oracle.Bool}).Draw(t,
						"kind")}
				switch c.Kind {
				case oracle.Text:
					c.Text = rapid.String().Draw(t, "text")
				case oracle.Bool:
					c.Lo = float64(rapid.IntRange(0, 1).Draw(t, "bool"))
					c.Hi = c.Lo
				default:
					a, b := number.Draw(t, "lo"), number.Draw(t, "hi")
					c.Lo, c.Hi = min(a, b), max(a, b)
				}
				r.If = append(r.If, c)
			}
			l.Rules = append(l.Rules, r)
		}
		l.Rules = append(l.Rules, learner.Rule{Then: rapid.SampledFrom(f.Actions).Draw(t, "then")})
		f.Policies = append(f.Policies, l)
	}
	return f
}

func TestPolicyRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawPolicies(t)
		b := f.Append(nil)
		got, err := ParsePolicies("f", b)
		if err != nil || !reflect.DeepEqual(got, f) {
			t.Fatalf("%s\nreads as %+v, %v\nwant %+v", b, got, err, f)
		}
		if _, err := got.Class(); err != nil {
			t.Fatalf("no class of it: %v", err)
		}
	})
}

func FuzzParsePolicies(f *testing.F) {
	f.Add([]byte(policyText))
	f.Add([]byte(policyHeaderExample + "\n" + policyExample))
	f.Add([]byte(`{"hindsight_policies":1,"actions":["\ud800"]}` + "\n" +
		`{"rules":[{"if":{"x":[-0,0]},"then":"\ud800"},{"then":"\ufffd"}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := ParsePolicies("f", b)
		if err != nil {
			if e := new(Error); !errors.As(err, &e) || e.Column < 0 {
				t.Fatalf("%q: %v", b, err)
			}
			return
		}
		text := p.Append(nil)
		back, err := ParsePolicies("f", text)
		if err != nil || string(back.Append(nil)) != string(text) {
			t.Fatalf("%q → %q: %v", b, text, err)
		}
		if _, err := p.Class(); err != nil {
			t.Fatalf("%q: accepted, but no class: %v", b, err)
		}
	})
}

// TestCandidatesOfFiles: each policy of a file is a candidate, in the place of the file.
func TestCandidatesOfFiles(t *testing.T) {
	const one = `{"hindsight_policies":1,"actions":["red"]}` + "\n" + `{"rules":[{"then":"red"}]}`
	files := map[string][]byte{"p": []byte(policyText), "one": []byte(one), "c": []byte(`{"hindsight_class":1,` +
		`"kind":"linear","features":["x"],"actions":["red"]}` + "\n" + `{"w":[[0,1]]}`), "bad": []byte("{}"),
		"many": []byte(policyHeaderExample + strings.Repeat("\n"+policyExample, 17))}
	judging := func(text string) ([]string, error) {
		m, err := Parse("m", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if again := mustParse(t, string(m.Canonical())); !reflect.DeepEqual(again, m) {
			t.Errorf("%s is read again as another model", m.Canonical())
		}
		r, err := m.Judging(files)
		if err != nil {
			return nil, err
		}
		return each(r.Candidates, func(c *loop.Candidate) string { return c.String() }), nil
	}
	got, err := judging("actions: [red]\ncandidates: [{policies: one}, uniform, {policies: c}]\n" +
		"promote: {of: {policies: one}}")
	if want := []string{"policies:one", "uniform", "policies:c"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v", got, err)
	}
	got, err = judging("candidates: [learner, {policies: p}, uniform]")
	if want := []string{"learner", "policies:p#1", "policies:p#2", "uniform"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v", got, err)
	}
	for _, c := range []struct{ text, want string }{
		{"candidates: [{policies: away}]", `policies "away": the file is not there`},
		{"candidates: [{policies: bad}]", "neither a policy file nor a class file"},
		{"candidates: [{policies: many}]", "with policies:many there are more than 16"},
		{"candidates: [{policies: c}]", "the functions of c know some actions only: list actions in the model"},
		{"actions: [red, blue]\ncandidates: [{policies: c}]", `c does not know the action "blue" of the model`},
		{"actions: [red, blue]\ncandidates: [{policies: p}]", `p plays "green", which is not in actions`},
		{"candidates: [{policies: p}]\npromote: {of: {policies: p}}", "promote: p has several policies"},
	} {
		if _, err := judging(c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %s", c.text, err, c.want)
		}
	}
}

// TestRejudged: a rule stays, is replaced or ends; outcomes that come early become those in order.
func TestRejudged(t *testing.T) {
	was := mustParse(t, "version: 3\ncandidates: [uniform, learner]\npromote: {of: uniform}")
	for _, c := range []struct{ promote, want string }{{"null", "uniform"}, {`{"of":"learner"}`, "learner"},
		{`"none"`, ""}} {
		m, err := was.Rejudged([]byte(`["learner",{"always":"é<\u2028"},"uniform"]`), []byte(c.promote))
		if err != nil || len(m.Candidates) != 3 || m.Candidates[1].Action != "é<\u2028" || m.Version != 4 ||
			!m.Warm.Keep ||
			m.Promote.On() != (c.want != "") || m.Promote.On() && m.Promote.Of.String() != c.want {
			t.Errorf("%s: %+v, %v", c.promote, m, err)
		}
	}
	if m, err := Default().Rejudged([]byte(`["uniform"]`), []byte("null")); err != nil || m.Early {
		t.Errorf("%+v, %v", m, err)
	}
}
