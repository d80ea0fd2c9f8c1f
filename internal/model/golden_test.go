package model_test

import (
	"bytes"
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"hindsight/internal/model"
	"hindsight/internal/testkit/daily"
	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

var writeGolden = flag.Bool("write-golden", false, "write testdata/models.golden from what the code says now")

// oracleOptions are the keys of oracles with values, right and wrong.
const oracleOptions = `bandwidth: 1 0.5 0 1e4
beta: auto 0 0.5 2 x
class: f.jsonl '' "a\tb"
columns: auto 0 17 70000 1.5
eta: 0.25 2 0 1e7
forget: 0.99 0.4 x
fourier: auto 0 64 5000 1.5 x
hashed: 64 1 9000
lambda: auto 1 0 1e10 [1]
seed: 0 9 -1
share: fixed steered none
substitution: mean vovk median
unproved: true 3
version: 1 2 0 x
wavelength: 1`

// oracles returns lines of the key oracle: each kind alone, with each option, and some with several.
func oracles() (out []string) {
	kinds := []string{"auto", "linear", "linear, fourier: 8", "linear, fourier: auto, version: 1", "auto, version: 1",
		"hedge", "hedge, class: f.jsonl", "shared", "hybrid", "hybrid, version: 1"}
	for _, kind := range kinds {
		out = append(out, "oracle: {kind: "+kind+"}")
		for line := range strings.Lines(oracleOptions) {
			option, values, _ := strings.Cut(strings.TrimSpace(line), ": ")
			for _, v := range strings.Fields(values) {
				out = append(out, "oracle: {kind: "+kind+", "+option+": "+v+"}")
			}
		}
	}
	return out
}

// wholes are whole files: what is wrong with YAML itself, and values that depend on each other.
var wholes = []string{"", "# nothing\n", "a", "[a]", "a: b: c", "learner: egreedy: 0.05", "{", "name: a\nname: b",
	"name: a\n---\nname: b", "name: a\n--- {", "\t", "x: *y", "name: &a b\nactions: [*a]", "1: 2", "? [a]\n: b",
	"mod: live\nwindw: 1", "version: 0\nname: Shop\nwindow: soon", strings.Repeat("#", 1<<20+1),
	"actions: [a, b]\nfeatures: {x: number}\noracle: {kind: auto, version: 1}",
	"max_features: 370", "max_features: 65536\nlearner: uniform", "max_features: 10000\nactions: [a, b]",
	"max_actions: 10\nmax_features: 16",
	"max_actions: 10\nmax_features: 16\noracle: {kind: linear, version: 1, fourier: 128}",
	"oracle: {kind: auto, version: 1, columns: 2}\nactions: [a]\nmax_features: 9500",
	"max_features: 4000\noracle: {kind: shared}", "max_features: 4000\noracle: {kind: linear, version: 1}",
	"oracle: {version: 1, fourier: 2000}", "actions: [a, b]\nwarm: keep"}

// named begins models with outcomes that have names.
const named = "actions: [llama, pro]\noutcomes: {quality: {window: 24h, missing: skip, take: last}, tokens: {max: " +
	"1e5, clip: true, missing: {impute: 600}, take: sum}}\nconstants: {usd: {llama: 1e-7, pro: 1e-5}}\n"

// richer are models whose keys depend on each other.
var richer = []string{named + "reward: quality - usd*tokens",
	named + "reward: quality\nbudget: {c: {of: usd*tokens, mean_at_most: 0.0005, about: {llama: 3e-5, pro: 0.015}}}",
	named + "reward: quality\nbudget: {c: {of: usd*tokens, mean_at_most: 0.0005, about: {pro: 0.015}, pay_back: " +
		"never}}",
	named + "reward: quality\nbudget: {c: {of: quality, mean_at_least: 0.5, about: {pro: 0.25}, pay_back: " +
		"1000 rounds}}",
	named + "reward: quality\nbudget: {c: {of: quality, mean_at_least: 0.5, about: {}}}",
	named + "reward: quality\nbudget: {c: {of: usd*tokens, mean_at_most: 0.0005, about: {other: 1}}}",
	named + "reward: quality\nguard: {lose_at_most: 0.1}", named + "reward: quality\nguard: {worse_by: 0.1}",
	named + "reward: quality\norder: arrival", named + "reward: latency", named + "reward: quality\nearly: median",
	named,
	named + "reward: quality*tokens\noracle: {kind: linear, fourier: 8}",
	"outcomes: {quality: {}}\nreward: quality\nbudget: {c: {of: quality, mean_at_most: 0.5, about: 0.25}}",
	"budget: {c: {of: quality, mean_at_most: 1}}", "constants: {usd: 1}", "early: median\nmissing: impute",
	"early: {after: 30m}\nwindow: 30m\nmissing: impute",
	"early: {after: 29m, silence: 0.5}\nwindow: 30m\nmissing: impute",
	"early: {after: 3 rounds}\nwindow: 4 rounds\nmissing: impute",
	"candidates: [uniform, {policies: p.jsonl}]\nactions: [a, b]",
	"candidates: [uniform, learner]\npromote: {of: uniform, only: switch, share: 0.25}\nguard: {lose_at_most: 0.1}",
	"candidates: [uniform]\npromote: {of: uniform, better_by: 0.1}", "hold_out: 0.1",
	"hold_out: 0.1\nguard: {lose_at_most: 0.1}\noracle: {kind: ridge, certified: true}\nactions: [a, b]\nfeatures: " +
		"{x: {number: [0, 1]}}", "oracle: {kind: ridge, certified: true}\nmax_actions: 10000",
	"oracle: {kind: ridge, certified: true}\nactions: [a, b]\nfeatures: {x: {number: [0, 1]}}",
	"actions: [" + strings.Repeat("x", 257) + "]", "features: {" + strings.Repeat("x", 257) + ": number}",
	"learner: elimination\noracle: {kind: hedge, class: f.jsonl}\nactions: [a, b]",
	"learner: elimination\noracle: {kind: hedge, class: f.jsonl}\ncertificate: none",
	"learner: {kind: exp4dale, policies: p.jsonl, d: 7, horizon: 100}\nactions: [a, b]",
	"features: {t: text, v: {vector: 3}, n: {ngrams: 2}}", "features: {v: {vector: 4096}}\nactions: [a, b]",
	"unit: {}", "unit: {sticky: 1h}", "unit: {sticky: 1h}\norder: early",
	"slots: {hero: any, side: [a, b]}\nactions: [a, b, c]"}

// modelFiles are the files of the golden test: wholes, richer, each line of testdata/models.txt and of [oracles] alone,
// and each pair of lines of testdata/models.txt that have two keys.
func modelFiles(t *testing.T) (singles, pairs []string) {
	text, err := os.ReadFile("testdata/models.txt")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	for i, a := range lines {
		for _, b := range lines[i+1:] {
			if k, _, _ := strings.Cut(a, ":"); !strings.HasPrefix(b, k+":") {
				pairs = append(pairs, a+"\n"+b)
			}
		}
	}
	return slices.Concat(wholes, lines, oracles(), richer), pairs
}

// A model reads back from its file, and as a log has it from the canonical form.
func TestModelsReadBack(t *testing.T) {
	singles, pairs := modelFiles(t)
	for i, text := range slices.Concat(singles, pairs) {
		if !daily.Turn(t, i, 4) {
			continue
		}
		m, err := model.Parse("m.yaml", []byte(text))
		if err != nil {
			continue
		}
		want := m.Canonical()
		if back, err := model.Parse("m.yaml", m.File()); err != nil || !bytes.Equal(back.Canonical(), want) {
			t.Fatalf("%q: its file\n%s%v", text, m.File(), err)
		}
		if back, err := model.ParseLogged("m.yaml", want); err != nil || !bytes.Equal(back.Canonical(), want) {
			t.Fatalf("%q: its canonical form\n%s%v", text, want, err)
		}
	}
}

const goldenClass = `{"hindsight_class":1,"kind":"linear","features":["age"],"actions":["a","b"]}
{"prior":2,"w":[[0.5,0.25],[-1,1]]}
{"w":[[0,0.75],[0,2]]}
`

// says writes all that a model file says: of a wrong one the message, else warnings, the canonical forms as
// read, as resolved and as a log has it, what it costs, and what is built.
func says(w *bytes.Buffer, text string) {
	if len(text) > 1000 {
		fmt.Fprintf(w, "# %d bytes\n", len(text))
	} else {
		fmt.Fprintf(w, "# %q\n", text)
	}
	m, warnings, err := model.ParseWithWarnings("m.yaml", []byte(text))
	old, oldErr := model.ParseLogged("m.yaml", []byte(text))
	if err != nil {
		fmt.Fprintln(w, err)
	} else {
		if len(warnings) > 0 {
			fmt.Fprintln(w, "warning:", warnings)
		}
		describe(w, m)
	}
	switch {
	case oldErr != nil && err == nil:
		fmt.Fprintln(w, "logged:", oldErr)
	case oldErr == nil && (err != nil || !bytes.Equal(old.Canonical(), m.Canonical())):
		fmt.Fprintln(w, "logged:")
		describe(w, old)
	}
}

// describe writes what a right model says, but for what the default model says, too.
func describe(w *bytes.Buffer, m *model.Model) {
	for line := range strings.Lines(described(m)) {
		if !slices.Contains(usual(), line) {
			w.WriteString(line)
		}
	}
}

var usual = sync.OnceValue(func() []string { return strings.SplitAfter(described(model.Default()), "\n") })

func described(m *model.Model) string {
	var w strings.Builder
	form := func(what string, b []byte) {
		fmt.Fprintf(&w, "%s %x\n%s", what, sha256.Sum256(b), b)
	}
	form("canonical", m.Canonical())
	for _, size := range [][2]int{{0, 0}, {17, 10}, {189, 3}} {
		c := m.Clone()
		c.Resolve(size[0], size[1])
		if !bytes.Equal(c.Canonical(), m.Canonical()) {
			form(fmt.Sprintf("resolved %v", size), c.Canonical())
		}
	}
	fmt.Fprintf(&w, "cost %v\npeak %q; %d bytes\n", m.Cost(), m.Peak(), m.Memory())
	fmt.Fprintf(&w, "files %q; oracle %v; learner %s; explore %s\n", m.Files(), m.UsesOracle(), m.Learner, m.Explore)
	since := strings.NewReplacer(" Named:[] Worth:<nil> Budgets:[]", "", " LoseAtMost:0", "", " Slots:[]", "",
		" Candidates:[] Policies:[] Promote:{Of:baseline BetterBy:0 Alpha:0 Switch:false Share:0} HoldOut:0 Provisional:<nil>", "",
		" Sticky:0", "")
	rules := *m.Rules()
	if p := rules.Provisional; p != nil {
		fmt.Fprintf(&w, "provisional %+v\n", *p)
		rules.Provisional = nil
	}
	fmt.Fprintf(&w, "rules %s\n", since.Replace(fmt.Sprintf("%+v", rules)))
	l, err := m.Build(map[string][]byte{"f.jsonl": []byte(goldenClass), "p.jsonl": []byte(goldenClass)})
	if err != nil {
		fmt.Fprintf(&w, "builds %v\n", err)
	} else {
		fmt.Fprintf(&w, "builds %T, %x after four rounds\n", l, taught(l))
	}
	if err := m.Validate(); err != nil {
		fmt.Fprintln(&w, "invalid:", err)
	}
	return w.String()
}

// classFiles are the class and policy files of testdata/classes.txt: a head after =, and one line below it in each.
func classFiles(t *testing.T) (files []string) {
	text, err := os.ReadFile("testdata/classes.txt")
	if err != nil {
		t.Fatal(err)
	}
	head := ""
	for line := range strings.Lines(string(text)) {
		if h, ok := strings.CutPrefix(line, "= "); ok {
			head = strings.TrimPrefix(h, "\n")
			continue
		}
		files = append(files, head+line)
	}
	return files
}

// read writes what a class file or policy file says: the message of a wrong one, else its bytes written again.
func read(w *bytes.Buffer, text string) {
	fmt.Fprintf(w, "# %q\n", text)
	c, err := model.ParseClass("f", []byte(text))
	if err != nil {
		fmt.Fprintln(w, "class:", err)
	} else {
		class, err := c.Class()
		fmt.Fprintf(w, "class: %s%v %v %T\n", c.Append(nil), c.Priors(), err, class)
	}
	p, err := model.ParsePolicies("p", []byte(text))
	if err != nil {
		fmt.Fprintln(w, "policies:", err)
	} else {
		class, err := p.Class()
		fmt.Fprintf(w, "policies: %s%v %v %T\n", p.Append(nil), p.Priors(), err, class)
	}
	for _, m := range []*model.Model{
		playing("learner: {kind: exp4dale, policies: p.jsonl}"),
		playing("oracle: {kind: hedge, class: p.jsonl}\nactions: [a, z]"),
		playing("oracle: {kind: hedge, class: p.jsonl}\nlearner: elimination"),
	} {
		if _, err := m.Build(map[string][]byte{"p.jsonl": []byte(text)}); err != nil {
			fmt.Fprintln(w, "build:", err)
		}
	}
}

func playing(text string) *model.Model {
	m, err := model.Parse("m.yaml", []byte(text))
	if err != nil {
		panic(err)
	}
	return m
}

// taught returns a hash of what a learner knows after four rounds: every option has its part in it.
func taught(l learner.Learner) []byte {
	for n := range int64(4) {
		age := oracle.Feature{Name: "age", Kind: oracle.Number, Value: float64(n) / 4}
		x := &oracle.Input{Features: []oracle.Feature{age}, Actions: []oracle.Action{{Name: "a"}, {Name: "b"}}}
		law, gamma := l.Propensities(nil, x)
		l.Learn(&learner.Round{Input: x, Action: int(n % 2), Propensities: law, Gamma: gamma, N: n + 1,
			LearnedThrough: n,
			Fate:           learner.Observed, Loss: float64(n%3) / 2})
	}
	b, err := l.AppendBinary(nil)
	if err != nil {
		return []byte(err.Error())
	}
	sum := sha256.Sum256(b)
	return sum[:8]
}

// TestGoldenModels pins what model files say, right ones and wrong ones, to the byte: every line alone in full, and
// every pair of lines by the hash of one of eight parts, of which two are at turn a day.
func TestGoldenModels(t *testing.T) {
	singles, pairs := modelFiles(t)
	var got bytes.Buffer
	for _, text := range singles {
		says(&got, text)
	}
	for _, text := range classFiles(t) {
		read(&got, text)
	}
	var all bytes.Buffer
	const parts = 8
	left := map[int]bool{} // lines that have their turn another day
	for part := range parts {
		if !*writeGolden && !daily.Turn(t, part, parts/2) {
			left[bytes.Count(got.Bytes(), []byte("\n"))] = true
			got.WriteString("\n")
			continue
		}
		from := all.Len()
		for i := part; i < len(pairs); i += parts {
			says(&all, pairs[i])
		}
		fmt.Fprintf(&got, "pairs of lines, %d of %d parts: %x\n", part+1, parts, sha256.Sum256(all.Bytes()[from:]))
	}
	if dump := os.Getenv("HINDSIGHT_GOLDEN_DUMP"); dump != "" {
		if err := os.WriteFile(dump, all.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	const name = "testdata/models.golden"
	if *writeGolden {
		if err := os.WriteFile(name, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	g, w := strings.SplitAfter(got.String(), "\n"), strings.SplitAfter(string(want), "\n")
	text := ""
	for i := range min(len(g), len(w)) {
		if strings.HasPrefix(w[i], "# ") {
			text = w[i]
		}
		if g[i] != w[i] && !left[i] {
			t.Fatalf("line %d of %s, of %sgot  %swant %s", i+1, name, text, g[i], w[i])
		}
	}
	if len(g) != len(w) {
		t.Fatalf("%d lines, want %d", len(g), len(w))
	}
}
