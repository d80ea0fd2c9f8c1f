package model

import (
	"reflect"
	"strings"
	"testing"

	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

const wideFile = "actions: [a, b]\nfeatures: {hour: number, prompt: {text: ngrams}, embedding: {vector: 3}}\n"

// TestWideSchema: the canonical form has texts and vectors, and is read back to the same model.
func TestWideSchema(t *testing.T) {
	m, err := Parse("m.yaml", []byte(wideFile))
	if err != nil {
		t.Fatal(err)
	}
	text := m.Canonical()
	for _, want := range []string{"\n  ? \"embedding\"\n  : {vector: 3}", "\n  ? \"prompt\"\n  : {text: ngrams}"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s\nlacks %q", text, want)
		}
	}
	again, err := Parse("again", text)
	if err != nil || !reflect.DeepEqual(again, m) {
		t.Errorf("%v: %+v", err, again)
	}
	if n := m.Places(); n != oracle.TextPlaces+3 {
		t.Errorf("%d places", n)
	}
}

// TestWideMember: auto has its diagonal member where the model has a text or a vector, and nowhere else; the
// diagonal oracle has all places.
func TestWideMember(t *testing.T) {
	for _, c := range []struct {
		file    string
		members int
	}{
		{"actions: [a, b]\nfeatures: {hour: number, prompt: text}", 3}, {wideFile, 4},
		{"actions: [a, b]\nfeatures: {embedding: {vector: 3}}\noracle: {fourier: 0, kind: auto}", 3},
	} {
		m, err := Parse("m.yaml", []byte(c.file))
		if err != nil {
			t.Fatal(err)
		}
		l, err := m.Build(nil)
		if err != nil {
			t.Fatal(err)
		}
		o := l.(*learner.DAFA).Oracle().(*oracle.Aggregate)
		if q := o.AppendWeights(nil); len(q) != c.members {
			t.Errorf("%s: weights %v", c.file, q)
		}
	}
	m, err := Parse("m.yaml", []byte(wideFile+"oracle: diagonal"))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := m.Oracle.canonical(), "{kind: diagonal, version: 2, beta: auto, lambda: auto}"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if cost := m.Cost(); !strings.Contains(cost, "4099 places") {
		t.Error(cost)
	}
	l, err := m.Build(nil)
	if err != nil {
		t.Fatal(err)
	}
	x := &oracle.Input{Actions: []oracle.Action{{Name: "a"}},
		Terms: []oracle.Term{{Place: oracle.TextPlaces + 2, Value: 1}}}
	l.(*learner.DAFA).Oracle().Update(x, 0, 1)
}
