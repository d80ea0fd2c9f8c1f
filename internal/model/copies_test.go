package model

import (
	"fmt"
	"strings"
	"testing"

	"hindsight/pkg/codec"
)

// TestClone: what is changed of a copy leaves the model as it was.
func TestClone(t *testing.T) {
	m := mustParse(t, "actions: [a, b]\nfeatures: {x: number}\ncandidates: [baseline, uniform]\n"+
		"baseline: uniform\noutcomes: {quality: {}, tokens: {max: 1000}}\nreward: quality\n"+
		"budget: {c: {of: tokens, mean_at_most: 1, about: 5}}")
	want := string(m.Canonical())
	c := m.Clone()
	c.Actions[0], c.Features[0].Name, c.Candidates[0] = "z", "z", c.Candidates[1]
	c.Named[0].Name, c.Budgets[0].Name = "z", "z"
	if got := string(m.Canonical()); got != want {
		t.Errorf("the model is now\n%s\nand was\n%s", got, want)
	}
}

// TestMostActions: a model lists as many actions as a context may have.
func TestMostActions(t *testing.T) {
	for n, ok := range map[int]bool{codec.MaxActions: true, codec.MaxActions + 1: false} {
		m := Default()
		m.MaxActions, m.Actions = codec.MaxActions, make([]string, n)
		if text := fmt.Sprint(m.Validate()); ok == strings.Contains(text, "at most 10000 are allowed") {
			t.Errorf("%d actions: %v", n, text)
		}
	}
}

// TestExploreFactor: a factor of exploration is above 0 and at most 1e9.
func TestExploreFactor(t *testing.T) {
	for text, ok := range map[string]bool{"1e-9": true, "1e9": true, "1.0000001e9": false, "0": false, "-1": false} {
		if e, err := ParseExplore(text); (err == nil) != ok || ok && e.Factor <= 0 {
			t.Errorf("%s: %+v, %v", text, e, err)
		}
	}
}
