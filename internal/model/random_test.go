package model

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

// TestResolveRandom: the random features of the linear oracle count in d, and where the rule
// gives none, the model is as if it had not named them.
func TestResolveRandom(t *testing.T) {
	for _, c := range []struct {
		text             string
		columns, actions int
		canonical        string
	}{
		// (17+128)/20; 10·145² > 1e5
		{"oracle: {fourier: 128}\nmax_actions: 10", 17, 10, "{kind: linear, beta: 0, lambda: 7.25, fourier: 128, " +
			"columns: 17, bandwidth: 1, seed: 1}"},
		// what is named stays
		{"oracle: {fourier: 128, columns: 20, beta: 1, lambda: 2}", 17, 10, "{kind: linear, beta: 1, lambda: 2, " +
			"fourier: 128, columns: 20, bandwidth: 1, seed: 1}"},
		// 2·145² ≤ 1e5
		{"oracle: {fourier: auto, seed: 3}\nmax_actions: 10", 17, 2, "{kind: linear, beta: 0.5, lambda: 7.25, " +
			"fourier: 128, columns: 17, bandwidth: 1, seed: 3}"},
		// 10·317² > 1e6
		{"oracle: {fourier: auto, seed: 3}\nmax_actions: 10", 189, 10, "{kind: linear, beta: 0, lambda: 9.45}"},
		// the limits stand
		{"oracle: {fourier: auto}", 0, 0, "{kind: linear, beta: 0, lambda: 1}"},
		// (5+128)/20
		{"oracle: {fourier: auto, columns: 5}\nactions: [a, b]", 0, 0, "{kind: linear, beta: 0.5, lambda: 6.65, " +
			"fourier: 128, columns: 5, bandwidth: 1, seed: 1}"},
		// d is not known
		{"oracle: {fourier: 40}\nactions: [a, b]\nfeatures: {x: number}", 0, 0, "{kind: linear, beta: 0.5, " +
			"lambda: 2.05, fourier: 40, columns: 0, bandwidth: 1, seed: 1}"},
	} {
		m := mustParseLogged(t, c.text)
		m.Resolve(c.columns, c.actions)
		if got := string(m.Canonical()); !strings.Contains(got, "\noracle: "+c.canonical+"\n") {
			t.Errorf("%q, d = %d, K = %d: canonical form\n%s\nwant %s", c.text, c.columns, c.actions, got, c.canonical)
		}
		if back := mustParseLogged(t, string(m.Canonical())); back.Oracle != m.Oracle {
			t.Errorf("%q: read back as %+v", c.text, back.Oracle)
		}
	}
}

// TestRandomRefused: what says something of random features that are not there, and numbers
// out of range, are errors with their place.
func TestRandomRefused(t *testing.T) {
	for text, want := range map[string]string{
		"oracle: {kind: linear, seed: 1}": "m.yaml:1:30: oracle.seed: it has no effect without random " +
			"features",
		"oracle: {fourier: 0, bandwidth: 2}":   "oracle.bandwidth: it has no effect without random features",
		"oracle: {fourier: 128, bandwidth: 0}": "bandwidth: expected a number in [0.001, 1000], found 0",
		"oracle: {fourier: 5000}": "fourier: expected auto or a whole number in 0…4096, " +
			"found 5000", "oracle: {fourier: 1.5}": "fourier: expected auto or a whole number",
		"oracle: {fourier: 8, columns: 70000}": "columns: expected auto or a whole number",
		"oracle: {version: 1, fourier: 2000}": "1000 actions and 257 columns the linear oracle may need " +
			"19 GiB", "oracle: {kind: shared, fourier: 8}": `unknown key "fourier"`,
		"oracle: {kind: auto, bandwidth: 1}":                   `unknown key "bandwidth"`,
		"oracle: {fourier: 8}\norder: arrival":                 "arrival needs an oracle that does not depend on order",
		"oracle: {fourier: 8}\nexplore: {paper: 100}":          "the paper's preset is for a finite class",
		"oracle: {fourier: auto, kind: linear, wavelength: 1}": `unknown key "wavelength"`,
	} {
		if _, err := Parse("m.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	m := Default()
	m.Oracle = oracleOf(Linear)
	m.Oracle.Seed = 1
	if m.Validate() == nil {
		t.Error("a seed of no random features is valid")
	}
}

// TestRandomRoundTrip: the canonical form says all, before and after what is open is decided.
func TestRandomRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := Default()
		m.MaxActions = rapid.IntRange(1, 20).Draw(t, "K")
		m.Oracle = newRandom(rapid.SampledFrom([]Number{{Auto: true}, {Value: 1}, {Value: 128}}).Draw(t, "fourier"))
		m.Oracle.Bandwidth = rapid.Float64Range(leastBandwidth, mostBandwidth).Draw(t, "bandwidth")
		m.Oracle.Seed = rapid.Int64Range(0, 1<<53).Draw(t, "seed")
		for range 2 {
			back, err := Parse("m.yaml", m.Canonical())
			if err != nil || back.Oracle != m.Oracle {
				t.Fatalf("%s\nread back as %+v, %v", m.Canonical(), back, err)
			}
			m.Resolve(rapid.IntRange(0, 300).Draw(t, "d"), 0)
		}
	})
}

// TestBuildRandom: the model file alone makes the oracle, and a flag has 128 of them.
func TestBuildRandom(t *testing.T) {
	l := build(t, "oracle: {kind: linear, fourier: 16, seed: 9}\nactions: [red, green]")
	o := l.(*learner.DAFA).Oracle().(*oracle.Linear)
	x := colours()
	for range 5 {
		o.Update(x, 0, 1)
	}
	b, err := o.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	plain := build(t, "oracle: {kind: linear}\nactions: [red, green]").(*learner.DAFA).Oracle().(*oracle.Linear)
	if plain.UnmarshalBinary(b) == nil {
		t.Error("a plain oracle takes the snapshot of one with random features")
	}
	if o, err := ParseOracle(Fourier); err != nil || o != newRandom(Number{Value: 128}) {
		t.Errorf("fourier: %+v, %v", o, err)
	}
}

// newRandom returns the linear oracle with random features and the other defaults.
func newRandom(n Number) Oracle {
	o := oracleOf(Linear)
	o.expectRandom()
	o.Fourier = n
	return o
}
