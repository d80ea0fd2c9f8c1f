package model

import (
	"strings"
	"testing"

	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

// TestRidge holds what the oracle with a theorem needs of a model file, and what it is built with.
func TestRidge(t *testing.T) {
	const head, key = "actions: [red, green]\nfeatures: {age: {number: [0, 10]}, vip: bool}\n",
		"oracle: {kind: ridge, certified: true}\n"
	m := mustParse(t, head+key)
	if again := mustParse(t, string(m.Canonical())); string(again.Canonical()) != string(m.Canonical()) || m.Early {
		t.Errorf("%s", m.Canonical())
	}
	if cost := m.Cost(); !strings.HasSuffix(cost, "1 regression of 3 columns an action, 72 bytes each; at most "+
		"144 bytes in all; a decision among 2 actions reads 6 numbers of state, an update moves 9") {
		t.Error(cost)
	}
	d := build(t, head+key).(*learner.DAFA)
	lambda, square, _, _ := d.Oracle().(*oracle.Frozen).Determinant()
	if c := d.Certificate(); lambda != 3 || square != .5 || !c.Bounded || c.Linear.Lambda != 3 || c.Regret != 4.5 {
		t.Errorf("λ %v, b² %v, %+v", lambda, square, c)
	}
	for text, want := range map[string]string{
		head + "oracle: {kind: ridge}":                             "add certified: true",
		"actions: [a]\n" + key:                                     "all actions and features",
		"features: {vip: bool}\n" + key:                            "all actions and features",
		"actions: [a]\nfeatures: {age: number}\n" + key:            "age: ridge needs columns that are fixed",
		"actions: [a]\nfeatures: {place: {vector: 2}}\n" + key:     "place: ridge needs columns that are fixed",
		"actions: [a]\nfeatures: {kind: text}\n" + key:             "kind: ridge needs columns that are fixed",
		head + "oracle: {kind: ridge, certified: true, lambda: 2}": "at least 1 + 2 features, found 2",
		head + "oracle: {kind: ridge, certified: true, beta: 0.5}": "unknown key",
		head + "explore: {paper: 100}\n" + key:                     "the paper's preset is for a finite class",
		head + "order: early\n" + key:                              "early is for oracles over features",
	} {
		if _, err := Parse("m.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	_, warnings, err := ParseWithWarnings("m.yaml", []byte(head+key+"order: arrival\n"))
	if err != nil || len(warnings) != 1 || !strings.Contains(warnings.Error(), "up to twice the regret of fifo") {
		t.Errorf("%v, %v", warnings, err)
	}
}
