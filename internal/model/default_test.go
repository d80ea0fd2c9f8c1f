package model

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

// TestDefaultOracle: a model that names no oracle has the aggregate; in logs from before
// oracles had versions, where that fits 1 GiB at the model's limits, else the linear oracle.
// What is named stays.
func TestDefaultOracle(t *testing.T) {
	for _, c := range []struct{ text, kind, resolved string }{
		{"", Auto, "{kind: auto, beta: 0, columns: 0, fourier: 0, seed: 1}"},
		{"actions: [a, b]\nfeatures: {x: number}", Auto, "{kind: auto, beta: 0.5, columns: 0, fourier: 128, seed: 1}"},
		{"max_actions: 10\nmax_features: 16", Auto, "{kind: auto, beta: 0.5, columns: 0, fourier: 128, seed: 1}"},
		{"max_features: 360", Auto, "{kind: auto, beta: 0, columns: 0, fourier: 0, seed: 1}"},
		{"max_features: 370", Linear, "{kind: linear, beta: 0, lambda: 1}"}, // 1000·371² numbers are 1.1e9 bytes
		{"max_features: 4000\nactions: [a, b]", Auto, "{kind: auto, beta: 0, columns: 0, fourier: 0, seed: 1}"},
		{"max_features: 10000\nactions: [a, b]", Linear, "{kind: linear, beta: 0, lambda: 1}"},
		{"max_features: 65536\nlearner: uniform", Linear, "{kind: linear, beta: 0, lambda: 1}"},
		{"oracle: {beta: 1}", Linear, "{kind: linear, beta: 1, lambda: 1}"},
		{"oracle: {kind: linear}", Linear, "{kind: linear, beta: 0, lambda: 1}"},
	} {
		if strings.Contains(c.text, "max_") {
			if m := mustParse(t, c.text); m.Oracle != oracleOf(Auto) {
				t.Errorf("%q: oracle %+v, want auto", c.text, m.Oracle)
			}
		}
		m := mustParseLogged(t, c.text)
		if m.Oracle.Kind != c.kind {
			t.Errorf("%q: oracle %s, want %s", c.text, m.Oracle.Kind, c.kind)
		}
		m.Resolve(0, 0)
		if got := string(m.Canonical()); !strings.Contains(got, "\noracle: "+c.resolved+"\n") {
			t.Errorf("%q: canonical form\n%s\nwant %s", c.text, got, c.resolved)
		}
		if _, err := m.Build(nil); err != nil {
			t.Errorf("%q: %v", c.text, err)
		}
	}
}

// TestDefaultFits: the default is valid whatever the limits: it sizes itself by what comes.
func TestDefaultFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := Default()
		m.MaxActions = rapid.IntRange(1, 5000).Draw(t, "actions")
		m.MaxFeatures = rapid.IntRange(1, 5000).Draw(t, "features")
		m.DefaultOracle()
		if err := m.Validate(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestOlderDefault: an epoch record that was written when the linear oracle was the default
// is still that model, to the byte, and builds that oracle.
func TestOlderDefault(t *testing.T) {
	old := read(t, "default-linear.golden")
	m := mustParseLogged(t, old)
	want := Default()
	want.Oracle = oracleOf(Linear)
	want.Oracle.Version, want.Early = 1, false
	if !reflect.DeepEqual(m, want) || !bytes.Equal(m.Canonical(), []byte(old)) {
		t.Errorf("read as %+v", m)
	}
	l, err := m.Build(nil)
	if err != nil {
		t.Fatal(err)
	}
	if o, ok := l.(*learner.DAFA).Oracle().(*oracle.Linear); !ok {
		t.Errorf("built %T", o)
	}
	m.Resolve(0, 0)
	if got := string(m.Canonical()); !strings.Contains(got, "oracle: {kind: linear, beta: 0, lambda: 1}\n") {
		t.Errorf("resolved:\n%s", got)
	}
}

// TestCost holds the line at the start, with the arithmetic.
func TestCost(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		// Weights 10·(17+17+145) = 1,790, the matrix of core 1 10·17·18/2 = 1,530, frequencies
		// 128·16 = 2,048; an update 2·(17+153) + 145 + 145·146/2 = 11,070 numbers. Bytes: those,
		// and 16·(17+145) more.
		{"max_actions: 10\nmax_features: 16",
			"oracle auto; with random features, because 10 actions × (17 + 128)² ≤ 1e6; 3 regressions of 17, 17 " +
				"and 145 columns an action, 91.2 kB each; at most 912 kB in all; a decision among 10 actions reads " +
				"5368 numbers of state, an update moves 11070"},
		// 1000·2·257; 2·(257 + 257·258/2).
		{"", "oracle auto; without random features, because 1000 actions × (257 + 128)² > 1e6; 2 regressions of 257 " +
			"columns an action, 539 kB each; at most 539 MB in all; a decision among 1000 actions reads 514000 " +
			"numbers of state, an update moves 66820"},
		{"max_actions: 10\noracle: {kind: auto, columns: 17, fourier: 0}",
			"oracle auto; without random features, because the model says so; 2 regressions of 17 columns an action, " +
				"2.99 kB each; at most 5.39 MB in all; a decision among 10 actions reads 1870 numbers of state, an " +
				"update moves 340"},
		{"max_actions: 10\noracle: {kind: auto, columns: 17, fourier: 1}",
			"oracle auto; with 1 random features, because the model names them; 3 regressions of 17, 17 and 18 " +
				"columns an action, 4.79 kB each; at most 8.12 MB in all; a decision among 10 actions reads 2066 " +
				"numbers of state, an update moves 529"},
		{"oracle: {kind: auto, columns: 2}\nactions: [a]\nmax_features: 9500",
			"oracle auto; without random features, because the limits of actions and columns leave no memory for " +
				"them; 2 regressions of 2 columns an action, 112 bytes each; at most 723 MB in all; a decision among " +
				"1 actions reads 7 numbers of state, an update moves 10"},
		{"max_features: 370", "oracle linear; because auto would need up to 1.12 GB, more than 1.07 GB; 1 " +
			"regression of 371 columns an action, 555 kB each; at most 555 MB in all; a decision among 1000 actions " +
			"reads 371000 numbers of state, an update moves 69377"},
		{"max_actions: 10\nmax_features: 16\noracle: {kind: linear}", "oracle linear; the model names it; 1 " +
			"regression of 17 columns an action, 1.36 kB each; at most 13.6 kB in all; a decision among 10 actions " +
			"reads 1700 numbers of state, an update moves 170"},
		// 10·145; 145 + 145·146/2; frequencies 128·16
		{"max_actions: 10\nmax_features: 16\noracle: {kind: linear, fourier: 128}",
			"oracle linear; the model names it; 1 regression of 145 columns, 128 of them random features, an action, " +
				"85.8 kB each; at most 858 kB in all; a decision among 10 actions reads 3498 numbers of state, an " +
				"update moves 10730"},
		{"max_actions: 10\noracle: {kind: shared, hashed: 64}", "oracle shared; the model names it; 1 " +
			"regression of 64 columns, 17.2 kB; a decision among 10 actions reads 21440 numbers of state, an update " +
			"moves 2144"},
		{"oracle: {kind: hedge, class: f.jsonl}", "oracle hedge; the model names it; one weight a function of f.jsonl"},
		{"learner: uniform", "oracle none; the learner uniform does not regress"},
	} {
		m := mustParseLogged(t, c.text)
		before := m.Clone()
		if got := m.Cost(); got != c.want {
			t.Errorf("%q:\n got %s\nwant %s", c.text, got, c.want)
		}
		if !reflect.DeepEqual(m, before) {
			t.Errorf("%q: describing a model changes it", c.text)
		}
	}
}

// TestBytesText: sizes are in the largest unit of which there is one.
func TestBytesText(t *testing.T) {
	for n, want := range map[int64]string{999: "999 bytes", 1000: "1 kB", 1e6 - 1e3: "999 kB", 1e6: "1 MB",
		1e9: "1 GB"} {
		if got := bytesText(n); got != want {
			t.Errorf("%d bytes are %q", n, got)
		}
	}
}

// TestCostOfFollowing holds the line of oracles that size themselves by what comes.
func TestCostOfFollowing(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "oracle auto; the default; 3 regressions an action, as large as the columns seen, the third on random " +
			"features while actions × (columns + 128)² ≤ 1e6; at most 1.08 GB in all: actions and columns beyond are " +
			"counted and not learned"},
		{"actions: [a, b]\nmax_features: 16\noracle: {kind: auto, fourier: 0}", "oracle auto; the default; 2 " +
			"regressions an action, as large as the columns seen; at most 5.98 kB in all: actions and columns beyond " +
			"are counted and not learned"},
		{"actions: [a, b]\noracle: {kind: linear, fourier: 128}", "oracle linear; the model names it; 1 " +
			"regression an action, as large as the columns seen; at most 1.2 MB in all: actions and columns beyond " +
			"are counted and not learned"},
	} {
		if got := mustParse(t, c.text).Cost(); got != c.want {
			t.Errorf("%q:\n got %s\nwant %s", c.text, got, c.want)
		}
	}
}
