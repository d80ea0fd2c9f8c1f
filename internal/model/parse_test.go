package model

import (
	"errors"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hindsight/internal/loop"
	"hindsight/pkg/oracle"
)

func mustParse(t *testing.T, text string) *Model {
	t.Helper()
	m, err := Parse("model.yaml", []byte(text))
	if err != nil {
		t.Fatalf("Parse:\n%s\n%v", text, err)
	}
	return m
}

// mustParseLogged reads a model as a log from before oracles had versions keeps it.
func mustParseLogged(t *testing.T, text string) *Model {
	t.Helper()
	m, err := ParseLogged("model.yaml", []byte(text))
	if err != nil {
		t.Fatalf("ParseLogged:\n%s\n%v", text, err)
	}
	return m
}

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestEveryKey(t *testing.T) {
	got := mustParse(t, read(t, "full.yaml"))
	want := &Model{
		Name: "shop", Version: 7, MaxFeatures: 64,
		rules: rules{
			Actions: []string{"red", "green:2", "3"}, MaxActions: 5,
			Features: []loop.FeatureRule{
				{Name: "age", Kind: loop.NumberFeature},
				{Name: "country", Kind: loop.TextFeature},
				{Name: "price", Kind: loop.NumberFeature, Bounded: true, Lo: 0, Hi: 100},
				{Name: "vip", Kind: loop.BoolFeature},
			},
			Reward: true, Range: loop.Range{Min: -1, Max: 3.5, Clip: true},
			Window: loop.Window{Nanos: int64(36 * time.Hour)}, Impute: true, DefaultLoss: 0.75,
			Outcomes: loop.Mean, Activation: true,
		},
		Learner: Learner{Kind: eGreedy, Epsilon: 0.1}, Explore: Explore{Factor: 4},
		Oracle:      Oracle{Kind: Linear, Version: oracle.Newest, Lambda: Number{Value: 2.5}},
		Certificate: certificate{Alpha: 0.01},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if c := string(got.Canonical()); c != read(t, "full.golden") {
		t.Errorf("canonical form:\n%s", c)
	}
}

func TestDefaults(t *testing.T) {
	for _, text := range []string{"", "# nothing\n", "name: hindsight\n", "actions: any"} {
		m := mustParse(t, text)
		if !reflect.DeepEqual(m, Default()) {
			t.Errorf("%q: got %+v, want the default", text, m)
		}
	}
	if c := string(Default().Canonical()); c != read(t, "default.golden") {
		t.Errorf("canonical form of the default:\n%s", c)
	}
	if err := Default().Validate(); err != nil {
		t.Errorf("the default model is not valid: %v", err)
	}
}

func TestVariants(t *testing.T) {
	hedge := func(eta float64) Oracle { return Oracle{Kind: Hedge, Eta: eta, Class: "f.jsonl"} }
	for _, c := range []struct {
		text string
		want func(*Model)
	}{
		{"learner: greedy", func(m *Model) { m.Learner = Learner{Kind: greedy} }},
		{"learner: uniform", func(m *Model) { m.Learner = Learner{Kind: Uniform} }},
		{"learner: egreedy:0.05", func(m *Model) { m.Learner = Learner{Kind: eGreedy, Epsilon: 0.05} }},
		{"learner: egreedy", func(m *Model) { m.Learner = Learner{Kind: eGreedy, Epsilon: 0.05} }},
		{"learner:\n  egreedy: 0.2", func(m *Model) { m.Learner = Learner{Kind: eGreedy, Epsilon: 0.2} }},
		{"learner: {fixed: red}", func(m *Model) { m.Learner = Learner{Kind: Fixed, Action: "red"} }},
		{"learner: fixed:a:b", func(m *Model) { m.Learner = Learner{Kind: Fixed, Action: "a:b"} }},
		{"explore: cautious", func(m *Model) { m.Explore = Explore{Name: cautious} }},
		{"explore: 12.5", func(m *Model) { m.Explore = Explore{Factor: 12.5} }},
		{"oracle: {kind: hedge, class: f.jsonl}", func(m *Model) { m.Oracle = hedge(0.5) }},
		{"oracle: {kind: hedge, class: f.jsonl, eta: 0.25}", func(m *Model) { m.Oracle = hedge(0.25) }},
		{"oracle: {kind: hedge, class: f.jsonl, eta: 2, unproved: true}", func(m *Model) {
			m.Oracle = hedge(2)
			m.Oracle.Unproved = true
		}},
		{"oracle: {kind: hedge, class: f.jsonl}\nexplore: {paper: 20000}", func(m *Model) {
			m.Oracle, m.Explore = hedge(PaperEta), Explore{Name: Paper, Horizon: 20000}
		}},
		{"oracle: {kind: hedge, class: f.jsonl}\norder: arrival",
			func(m *Model) { m.Oracle, m.Arrival = hedge(0.5), true }},
		{"order: early", func(m *Model) { m.Early = true }},
		{"oracle: {kind: hybrid, hashed: 64}", func(m *Model) { m.Oracle = oracleOf(Hybrid); m.Oracle.Hashed = 64 }},
		{"oracle: {forget: 0.99}", func(m *Model) { m.Oracle = oracleOf(Linear); m.Oracle.Forget = 0.99 }},
		{"oracle: {kind: linear, fourier: 64}", func(m *Model) {
			m.Oracle = Oracle{Kind: Linear, Version: oracle.Newest, Beta: Number{Auto: true},
				Lambda:  Number{Auto: true},
				Fourier: Number{Value: 64}, Columns: Number{Auto: true}, Bandwidth: 1, Seed: 1}
		}},
		{"oracle: {fourier: auto, bandwidth: 0.5, columns: 17, seed: 9}", func(m *Model) {
			m.Oracle = oracleOf(Linear)
			m.Oracle.expectRandom()
			m.Oracle.Fourier = Number{Auto: true}
			m.Oracle.Bandwidth, m.Oracle.Columns, m.Oracle.Seed = .5, Number{Value: 17}, 9
		}},
		{"oracle: {kind: auto, share: steered}", func(m *Model) { m.Oracle.Steered = true }},
		{"oracle: {kind: auto, share: fixed}", func(m *Model) { m.Oracle = oracleOf(Auto) }},
		{"oracle: {fourier: 0}", func(m *Model) { m.Oracle = oracleOf(Linear) }},
		{"oracle: auto", func(m *Model) { m.Oracle = oracleOf(Auto) }},
		{"oracle: linear", func(m *Model) { m.Oracle = oracleOf(Linear) }},
		{"oracle: shared", func(m *Model) { m.Oracle = oracleOf(Shared) }},
		{"oracle: hybrid", func(m *Model) { m.Oracle = oracleOf(Hybrid) }},
		{"oracle: {kind: auto, beta: 0, columns: 17, fourier: 64, seed: 7}", func(m *Model) {
			m.Oracle = Oracle{Kind: Auto, Version: oracle.Newest, Columns: Number{Value: 17},
				Fourier: Number{Value: 64},
				Seed:    7}
		}},
		{"certificate: {}", func(*Model) {}},
		{"certificate: {alarm: false}", func(m *Model) { m.Certificate.Alarm = false }},
		{"certificate: none", func(m *Model) { m.Certificate = certificate{} }},
		{"oracle: {kind: hedge, class: f.jsonl}\nlearner: elimination", func(m *Model) {
			m.Oracle, m.Learner = hedge(0.5), Learner{Kind: elimination}
		}},
		{"oracle: {beta: 1}", func(m *Model) { m.Oracle = oracleOf(Linear); m.Oracle.Beta = Number{Value: 1} }},
		{"window: 200", func(m *Model) { m.Window = loop.Window{Rounds: 200} }},
		{"window: 200 rounds", func(m *Model) { m.Window = loop.Window{Rounds: 200} }},
		{"missing: impute", func(m *Model) { m.Impute = true }},
		{"actions: [a, b]", func(m *Model) { m.Actions, m.MaxActions = []string{"a", "b"}, 2 }},
		{"loss: {max: 10}", func(m *Model) { m.Range.Max = 10 }},
		{"loss: {clip: true}", func(m *Model) { m.Range.Clip = true }},
	} {
		want := Default()
		c.want(want)
		want.DefaultOrder()
		if got := mustParse(t, c.text); !reflect.DeepEqual(got, want) {
			t.Errorf("%q:\ngot  %+v\nwant %+v", c.text, got, want)
		}
	}
}

// TestErrors pins place and content of what is said about wrong files.
func TestErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"nane: shop", `m.yaml:1:1: unknown key "nane" (did you mean "name"?); expected one of name, version,`},
		{"name: Shop", `m.yaml:1:7: name: expected 1 to 40 of a-z`},
		{"name: [a]", `m.yaml:1:7: name: expected a text, found a list; for example: name: shop`},
		{"name:", `m.yaml:1:6: name: expected a text, found nothing`},
		{"name: a\nname: b", `m.yaml:2:1: the key "name" is there twice`},
		{"version: 1.5", `m.yaml:1:10: version: expected a whole number in 1…9007199254740992, found 1.5`},
		{"version: 0", `m.yaml:1:10: version: expected a whole number in 1…`},
		{"version: '2'", `m.yaml:1:10: version: expected a whole number in 1…9007199254740992, found "2"`},
		{"actions: []", `m.yaml:1:10: actions: expected any or a list of names`},
		{"actions: [a, b, a]", `m.yaml:1:17: actions: "a" is there twice`},
		{"actions: [\"a\\tb\"]", `m.yaml:1:11: actions: the name has a control character`},
		{"actions: [a, ~]", `m.yaml:1:14: actions: expected a name, found nothing`},
		{"actions: [a, b]\nmax_actions: 1", `m.yaml:2:14: max_actions: it is 1, but 2 actions are listed`},
		{"features: {age: nummer}",
			`m.yaml:1:17: features.age: expected number | text | bool, found "nummer" (did you mean "number"?)`},
		{"features: {p: {text: words}}", `m.yaml:1:22: features.p.text: expected ngrams, found "words"`},
		{"features: {p: {text: ngrams, number: [0, 1]}}", `m.yaml:1:15: features.p: expected a type`},
		{"features: {p: {}}", `m.yaml:1:15: features.p: expected a type`},
		{"features: {p: {ngram: 2}}", `m.yaml:1:16: features.p: unknown key "ngram"; expected one of number, text, vector`},
		{"features: {e: {vector: 0}}", `m.yaml:1:24: features.e.vector: expected a whole number in 1…8192, found 0`},
		{"features: {e: {vector: 1.5e0}}",
			`m.yaml:1:24: features.e.vector: expected a whole number in 1…8192, found 1.5e0`},
		{"version: 9007199254740993",
			`m.yaml:1:10: version: expected a whole number in 1…9007199254740992, found 9007199254740993`},
		{"features: {p: {text: ngrams}, p.words: number}",
			`m.yaml:1:40: features.p.words: that is the name of a statistic`},
		{"actions: [a, b]\nfeatures: {p: {text: ngrams}}\noracle: {kind: ridge, certified: true}",
			`m.yaml:2:11: features: p: ridge needs columns that are fixed`},
		{"features: {e: {vector: 9}}\noracle: linear",
			`m.yaml:1:11: features: e is a vector, which the oracle linear does not learn; use oracle: auto`},
		{"features: {age: {number: [3, 2]}}", `m.yaml:1:26: features.age: the least value 3 is not below the largest 2`},
		{"features: {age: {numbr: [3, 2]}}", `m.yaml:1:18: features.age: unknown key "numbr" (did you mean "number"?)`},
		{"features: {a: text, a: text}", `m.yaml:1:21: features: the key "a" is there twice`},
		{"loss: {min: 1, max: 1}", `m.yaml:1:7: loss: expected min below max`},
		{"loss: {min: .nan}", `m.yaml:1:13: loss.min: expected a finite number, found .nan`},
		{"loss: {max: 1e999}", `m.yaml:1:13: loss.max: expected a finite number`},
		{"loss: {clip: 1}", `m.yaml:1:14: loss.clip: expected true or false`},
		{"loss: {max: 2}\nreward: {max: 2}", `m.yaml:2:9: reward: loss is given too`},
		{"learner: dafaa", `m.yaml:1:10: learner: unknown learner "dafaa" (did you mean "dafa"?): expected dafa`},
		{"learner: egreedy: 0.05",
			`m.yaml:1: not YAML: mapping values are not allowed in this context; a key with a parameter goes in braces`},
		{"learner: {egreedy: 2}", `m.yaml:1:10: learner: learner egreedy: "2" is not a number in [0,1]`},
		{"learner: {a: 1, b: 2}",
			`m.yaml:1:10: learner: expected one name with one parameter, not several or none, found keys`},
		{"learner: {fixed: c}\nactions: [a, b]", `m.yaml:1:10: learner: fixed plays "c", which is not in actions`},
		{"explore: lots", `m.yaml:1:10: explore: unknown explore "lots"`},
		{"explore: -1", `m.yaml:1:10: explore: unknown explore "-1"`},
		{"explore: paper", `m.yaml:1:10: explore: explore paper needs the number of rounds T`},
		{"explore: {paper: 100}", `m.yaml:1:10: explore: the paper's preset is for a finite class`},
		{"oracle: hedge", `m.yaml:1:9: oracle: expected a kind and its parameters, found "hedge"`},
		{"oracle: {forget: 1}", `m.yaml:1:18: oracle.forget: expected a number in [0.5, 1)`},
		{"oracle: {kind: shared, hashed: 1}", `m.yaml:1:32: oracle.hashed: expected a whole number in 2…8192`},
		{"oracle: {kind: shared, lambda: 0}", `m.yaml:1:32: oracle.lambda: expected auto or a number`},
		{"oracle: {kind: auto, lambda: 1}",
			`m.yaml:1:22: oracle: unknown key "lambda"; expected one of kind, version, beta, columns, fourier, seed, share`},
		{"oracle: {kind: auto, fourier: 5000}",
			`m.yaml:1:31: oracle.fourier: expected auto or a whole number in 0…4096`},
		{"oracle: {kind: auto, columns: 1.5}",
			`m.yaml:1:31: oracle.columns: expected auto or a whole number in 0…65537`},
		{"oracle: {kind: auto, seed: -1}", `m.yaml:1:28: oracle.seed: expected a whole number in 0…`},
		{"oracle: {kind: auto, version: 1, fourier: 4000}",
			`max_features: with up to 1000 actions and 257 columns the auto oracle may need 68.`},
		{"certificate: off", `m.yaml:1:14: certificate: expected none, or some of alpha, alarm, found "off"`},
		{"certificate: {alpha: 0.9}", `m.yaml:1:22: certificate.alpha: expected a level in (0, 0.5], found 0.9`},
		{"certificate: {beta: 1}", `m.yaml:1:15: certificate: unknown key "beta"`},
		{"learner: elimination",
			`m.yaml:1:10: learner: elimination leaves out what no surviving function of a class thinks best`},
		{"oracle: {kind: hedge, class: f}\ncertificate: none\nlearner: elimination",
			`m.yaml:3:10: learner: elimination needs the surviving functions`},
		{"oracle: {kind: hedge, class: f}\norder: arrival\nlearner: elimination",
			`m.yaml:3:10: learner: elimination needs outcomes in the order of decisions`},
		{"oracle: {kind: hegde}",
			`m.yaml:1:16: oracle.kind: expected auto | linear | hedge | shared | hybrid | diagonal | ridge, found "hegde" ` +
				`(did you mean "hedge"?)`},
		{"oracle: {kind: linear, eta: 1}",
			`m.yaml:1:24: oracle: unknown key "eta" (did you mean "beta"?); expected one of kind, version, beta, lambda, ` +
				`forget`},
		{"oracle: {kind: hedge}", `m.yaml:1:9: oracle: hedge needs a class file`},
		{"oracle: {kind: hedge, class: f, eta: 1}", `m.yaml:1:38: oracle.eta: above 1/2 no regret bound is proved`},
		{"oracle: {kind: hedge, class: f, eta: 0}",
			`m.yaml:1:38: oracle.eta: expected outstanding or a number in (0, 1e+06], found 0`},
		{"oracle: {kind: hedge, class: f, eta: 0.5}\nexplore: {paper: 9}",
			`m.yaml:1:38: oracle.eta: explore: {paper: T} stands for eta = 1/18`},
		{"oracle: {beta: 2}", `m.yaml:1:16: oracle.beta: expected auto or a number in [0, 1]`},
		{"oracle: {lambda: 0}", `m.yaml:1:18: oracle.lambda: expected auto or a number in [1e-09, 1e+09]`},
		{"window: 0", `m.yaml:1:9: window: a window of 0 rounds is not in 1…`},
		{"window: inf",
			`m.yaml:1:9: window: "inf" is no window: expected a duration or a number of rounds, positive and finite`},
		{"window: -3m", `m.yaml:1:9: window: "-3m" is no window in (0, 10 years]`},
		{"missing: imputed", `m.yaml:1:10: missing: expected skip | impute, found "imputed" (did you mean "impute"?)`},
		{"default_loss: 1", `m.yaml:1:15: default_loss: it has no effect without missing: impute`},
		{"missing: impute\ndefault_loss: 1.5",
			`m.yaml:2:15: default_loss: expected a loss, on the scale where 1 is worst, in [0, 1]`},
		{"outcomes: median", `m.yaml:1:11: outcomes: expected first | last | sum | mean | max | min`},
		{"activation: yes", `m.yaml:1:13: activation: expected none | required`},
		{"order: arrival", `m.yaml:1:8: order: arrival needs an oracle that does not depend on order`},
		{"order: arrival\noutcomes: last\nlearner: uniform",
			`m.yaml:1:8: order: arrival releases at the first outcome`},
		{"order: early\nmissing: impute", `m.yaml:1:8: order: early learns outcomes before silence`},
		{"order: early\noutcomes: last", `m.yaml:1:8: order: early releases at the first outcome, and outcomes: last waits`},
		{"order: early\nlearner: uniform", `m.yaml:1:8: order: early is for oracles over features`},
		{"order: early\noracle: {kind: hedge, class: f}", `m.yaml:1:8: order: early is for oracles over features`},
		{"warm: hot",
			`m.yaml:1:7: warm: expected none, keep, refit or the number of a feedback, from 1, found "hot"; ` +
				`for example: warm: refit`},
		{"warm: 0", `m.yaml:1:7: warm: expected none, keep, refit or the number of a feedback, from 1, found`},
		{"warm: -3", `m.yaml:1:7: warm: expected none, keep, refit or the number of a feedback, from 1, found`},
		{"max_features: 4000\noracle: {version: 1}",
			`m.yaml:1:15: max_features: with up to 1000 actions and 4001 columns the linear oracle may need 59.7 GiB`},
		{"a: &x 1\nname: *x", `m.yaml:2:7: name: expected a text, found an alias`},
		{"- a", `m.yaml:1:1: expected keys and values, found a list`},
		{"name: a\n---\nname: b", `m.yaml:2:1: a second document starts here`},
		{"name: [a", `m.yaml:1: not YAML: did not find expected`},
		{"{[a]: 1}", `m.yaml:1:2: expected a key, found a list`},
	} {
		_, err := Parse("m.yaml", []byte(c.text))
		if err == nil {
			t.Errorf("%q is accepted, want %s", c.text, c.want)
			continue
		}
		if !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q:\ngot  %v\nwant %s…", c.text, err, c.want)
		}
		if first := new(Error); !errors.As(err, &first) || first.File != "m.yaml" {
			t.Errorf("%q: %v holds no *Error", c.text, err)
		}
	}
}

func TestSeveralErrorsAtOnce(t *testing.T) {
	_, err := Parse("m.yaml", []byte("windw: 3m\nversion: x\nlearner: foo\n"))
	var all Errors
	if !errors.As(err, &all) || len(all) != 3 {
		t.Fatalf("got %v, want three errors", err)
	}
	for i, e := range all {
		if e.Line != int64(i+1) {
			t.Errorf("error %d is on line %d", i, e.Line)
		}
	}
	if n := strings.Count(err.Error(), "\n"); n != 2 {
		t.Errorf("%d line breaks, want one error a line:\n%v", n, err)
	}
}

func TestMemoryLimit(t *testing.T) {
	ridge := Default()
	ridge.Oracle = oracleOf(Linear)
	if got := ridge.Memory(); got < 262e6 || got > 270e6 {
		t.Errorf("the linear oracle needs %d bytes, want about 1000·257²/2·8", got)
	}
	if got := Default().Memory(); got < 524e6 || got > 540e6 {
		t.Errorf("the default model needs %d bytes, want about twice 1000·257²/2·8", got)
	}
	for _, text := range []string{
		"actions: [a, b]\nmax_features: 4000",                     // few actions
		"max_features: 65536\nlearner: uniform",                   // no oracle
		"max_features: 65536\noracle: {kind: hedge, class: a.js}", // another oracle
	} {
		mustParse(t, text)
	}
}

func TestWindowText(t *testing.T) {
	for text, want := range map[string]loop.Window{
		"10m": {Nanos: 600e9}, "1h30m": {Nanos: 5400e9}, "7d": {Nanos: 7 * 86400e9}, "1500ms": {Nanos: 1.5e9},
		"200": {Rounds: 200}, "200r": {Rounds: 200}, "200 rounds": {Rounds: 200}, "1 round": {Rounds: 1},
		" 5 r ": {Rounds: 5},
	} {
		got, err := ParseWindow(text)
		if err != nil || got != want {
			t.Errorf("ParseWindow(%q) = %+v, %v, want %+v", text, got, err, want)
		}
		if back, err := ParseWindow(FormatWindow(want)); err != nil || back != want {
			t.Errorf("FormatWindow(%+v) = %q reads as %+v, %v", want, FormatWindow(want), back, err)
		}
	}
	for _, text := range []string{"", "0", "-1", "1.5", "inf", "none", "0s", "-10m", "rounds", "1e400h", "100000000h",
		"2000000000", "1d2h", "+Inf", "NaN"} {
		if w, err := ParseWindow(text); err == nil {
			t.Errorf("ParseWindow(%q) = %+v, want an error", text, w)
		}
	}
}

func TestResolve(t *testing.T) {
	const linear = "oracle: {kind: linear}\n"
	for _, c := range []struct {
		text             string
		columns, actions int
		beta, lambda     float64
	}{
		{linear, 17, 10, 0.5, 1},                                          // pendigits
		{linear, 118, 2, 0.5, 5.9},                                        // mushroom
		{linear, 129, 10, 0, 6.45},                                        // 10·129² > 1e5
		{linear, 0, 0, 0, 1},                                              // nothing known: the limits stand
		{linear + "actions: [a, b]", 17, 0, 0.5, 1},                       // K from the list
		{linear + "actions: [a, b]\nfeatures: {x: number}", 0, 0, 0.5, 1}, // d from the list
		{"oracle: {beta: 1, lambda: 3}", 1000, 10, 1, 3},
	} {
		m := mustParseLogged(t, c.text)
		m.Resolve(c.columns, c.actions)
		if m.Oracle.Beta != (Number{Value: c.beta}) || m.Oracle.Lambda != (Number{Value: c.lambda}) {
			t.Errorf("%q, d = %d, K = %d: got %+v, want β = %v, λ = %v", c.text, c.columns, c.actions, m.Oracle,
				c.beta, c.lambda)
		}
		mustParseLogged(t, string(m.Canonical()))
	}
}

// names draws texts that may be names.
func names(most int) *rapid.Generator[string] {
	return rapid.StringN(1, most, 3*most).Filter(func(s string) bool { return checkText(s) == nil })
}

// drawModel makes any valid model.
func drawModel(t *rapid.T) *Model {
	m := Default()
	name := names(20)
	pos := rapid.Float64Range(1e-9, 1e9)
	m.Name = rapid.StringMatching(`[a-z0-9_-]{1,40}`).Draw(t, "name")
	m.Version = rapid.Int64Range(1, 1<<53).Draw(t, "version")
	m.MaxActions = rapid.IntRange(6, 2000).Draw(t, "max_actions")
	m.MaxFeatures = rapid.IntRange(1, 300).Draw(t, "max_features")
	if rapid.Bool().Draw(t, "listed") {
		m.Actions = rapid.SliceOfNDistinct(name, 1, 6, rapid.ID[string]).Draw(t, "actions")
	}
	if rapid.Bool().Draw(t, "typed") {
		names := rapid.SliceOfNDistinct(name, 1, 6, rapid.ID[string]).Draw(t, "features")
		for _, n := range names {
			f := loop.FeatureRule{Name: n, Kind: loop.FeatureKind(rapid.IntRange(1, 3).Draw(t, "kind"))}
			if f.Kind == loop.NumberFeature && rapid.Bool().Draw(t, "bounded") {
				f.Bounded, f.Lo = true, rapid.Float64Range(-1e9, 1e9).Draw(t, "lo")
				f.Hi = f.Lo + 1 + pos.Draw(t, "span")
			}
			m.Features = append(m.Features, f)
		}
		slices.SortFunc(m.Features, func(a, b loop.FeatureRule) int { return strings.Compare(a.Name, b.Name) })
	}
	m.Reward = rapid.Bool().Draw(t, "reward")
	m.Range.Min = rapid.Float64Range(-1e6, 1e6).Draw(t, "min")
	m.Range.Max = m.Range.Min + 1 + pos.Draw(t, "range")
	m.Range.Clip = rapid.Bool().Draw(t, "clip")
	m.Learner = rapid.SampledFrom([]Learner{{Kind: DAFA}, {Kind: greedy}, {Kind: Uniform},
		{Kind: eGreedy, Epsilon: rapid.Float64Range(0, 1).Draw(t, "epsilon")}}).Draw(t, "learner")
	if m.Actions != nil && rapid.Bool().Draw(t, "fixed") {
		m.Learner = Learner{Kind: Fixed, Action: rapid.SampledFrom(m.Actions).Draw(t, "action")}
	}
	m.Certificate = rapid.SampledFrom([]certificate{{}, defaultCertificate, {Alpha: 0.01},
		{Alpha: 0.5, Alarm: true}}).Draw(t, "certificate")
	m.Explore = rapid.SampledFrom([]Explore{{Name: cautious}, {Name: guaranteed}, {Name: balanced}, {Name: theory},
		{Factor: pos.Draw(t, "factor")}}).Draw(t, "explore")
	if rapid.Bool().Draw(t, "hedge") {
		m.Oracle = Oracle{Kind: Hedge, Eta: rapid.Float64Range(1e-3, 0.5).Draw(t, "eta"), Class: name.Draw(t, "class"),
			Unproved: rapid.Bool().Draw(t, "unproved")}
		if rapid.Bool().Draw(t, "paper") {
			m.Explore, m.Oracle.Eta = Explore{Name: Paper, Horizon: rapid.Int64Range(1, 1<<40).Draw(t, "T")}, PaperEta
		}
		m.Arrival = rapid.Bool().Draw(t, "arrival")
	} else if rapid.Bool().Draw(t, "auto") {
		m.Oracle = oracleOf(Auto)
		m.MaxFeatures = min(m.MaxFeatures, 150) // its matrices are twice as many
		m.Oracle.Seed = rapid.Int64Range(0, 1<<53).Draw(t, "seed")
		m.Oracle.Steered = rapid.Bool().Draw(t, "steered")
		if rapid.Bool().Draw(t, "whole") {
			m.Oracle.Columns = Number{Value: float64(rapid.IntRange(0, maxColumns).Draw(t, "columns"))}
			m.Oracle.Fourier = Number{Value: float64(rapid.IntRange(0, 16).Draw(t, "fourier"))}
		}
	} else if rapid.Bool().Draw(t, "default") {
		m.DefaultOracle()
	} else if m.Oracle = oracleOf(Linear); rapid.Bool().Draw(t, "numbers") {
		m.Oracle.Beta = Number{Value: rapid.Float64Range(0, 1).Draw(t, "beta")}
		m.Oracle.Lambda = Number{Value: pos.Draw(t, "lambda")}
	}
	if rapid.Bool().Draw(t, "rounds") {
		m.Window = loop.Window{Rounds: rapid.Int64Range(1, maxWindowRounds).Draw(t, "window")}
	} else {
		m.Window = loop.Window{Nanos: rapid.Int64Range(1, maxWindowNanos).Draw(t, "nanos")}
	}
	if m.Impute = rapid.Bool().Draw(t, "impute"); m.Impute {
		m.DefaultLoss = rapid.Float64Range(0, 1).Draw(t, "default_loss")
	}
	if !m.Arrival {
		m.Outcomes = loop.Aggregate(rapid.IntRange(0, 5).Draw(t, "outcomes"))
	}
	m.Early = m.earlyProblem() == "" && rapid.Bool().Draw(t, "early")
	m.Activation = rapid.Bool().Draw(t, "activation")
	drawHurry(t, m)
	m.Warm = rapid.SampledFrom([]Warm{{}, {Refit: true}, {Keep: true}, {Through: 1}, {Through: 12_000}}).Draw(t, "warm")
	drawModes(t, m)
	drawUnit(t, m)
	return m
}

func TestCanonicalRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawModel(t)
		if err := m.Validate(); err != nil {
			t.Fatalf("drawn model is not valid: %v", err)
		}
		c := m.Canonical()
		got, err := Parse("model.yaml", c)
		if err != nil {
			t.Fatalf("canonical form does not parse: %v\n%s", err, c)
		}
		if !reflect.DeepEqual(got, m) {
			t.Fatalf("got  %+v\nwant %+v\n%s", got, m, c)
		}
		if again := got.Canonical(); string(again) != string(c) {
			t.Fatalf("not a fixed point:\n%s\n%s", c, again)
		}
		if clone := m.Clone(); !reflect.DeepEqual(clone, m) {
			t.Fatalf("clone differs: %+v", clone)
		}
	})
}

// TestFlagText holds that the texts of flags read back.
func TestFlagText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawModel(t)
		if l, err := ParseLearner(m.Learner.String()); m.Learner.Kind != Fixed && (err != nil || l != m.Learner) {
			t.Fatalf("learner %q reads as %+v, %v", m.Learner, l, err)
		}
		if e, err := ParseExplore(m.Explore.String()); err != nil || e != m.Explore {
			t.Fatalf("explore %q reads as %+v, %v", m.Explore, e, err)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, name := range []string{"full.yaml", "full.golden", "default.golden", "named.yaml", "named.golden"} {
		b, err := os.ReadFile("testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte("oracle: {kind: hedge, class: f.jsonl, eta: 2, unproved: true}\nwindow: 200 rounds\n"))
	f.Add([]byte("a: &a [*a]\nname: *a\n"))
	f.Add([]byte("learner: {fixed: \"\\u2028\"}\n---\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Parse("m.yaml", b)
		if err != nil {
			var all Errors
			if !errors.As(err, &all) || len(all) == 0 {
				t.Fatalf("not an Errors: %v", err)
			}
			return
		}
		c := m.Canonical()
		back, err := Parse("m.yaml", c)
		if err != nil || !reflect.DeepEqual(back, m) {
			t.Fatalf("%q → %q: %v", b, c, err)
		}
	})
}

// TestExplores: which share of decisions is drawn uniformly, of the learners that say so.
func TestExplores(t *testing.T) {
	for text, want := range map[string]float64{"uniform": 1, "egreedy:0.25": .25, "greedy": 0, "fixed:a": 0,
		"dafa": -1} {
		l, err := ParseLearner(text)
		if err != nil {
			t.Fatal(err)
		}
		if share, ok := l.Explores(); ok != (want >= 0) || share != max(want, 0) {
			t.Errorf("%s: %v, %t", text, share, ok)
		}
	}
}
