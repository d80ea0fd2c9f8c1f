package model

import "testing"

// TestDefaultOrder holds which models release rounds decided early as their outcomes come,
// where they name no order: those over features that take silence for nothing, with one
// outcome a round, and no guard; and that logs from before there was another order keep fifo.
func TestDefaultOrder(t *testing.T) {
	for text, want := range map[string]bool{
		"":                                      true,
		"oracle: {kind: linear}":                true,
		"oracle: {kind: hybrid}":                true,
		"learner: {egreedy: 0.1}":               true,
		"oracle: {kind: hedge, class: f.jsonl}": false,
		"learner: uniform":                      false,
		"missing: impute":                       false,
		"outcomes: mean":                        false,
		"guard: {worse_by: 0.05}\nbaseline: first": false,
	} {
		m, err := Parse("m.yaml", []byte(text))
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if old, err := ParseLogged("m.yaml", []byte(text)); err != nil || old.Early {
			t.Errorf("%q: in an old log it is early: %v", text, err)
		}
		if m.Early != want || m.Rules().Early != want || m.Arrival {
			t.Errorf("%q: early is %v", text, m.Early)
		}
		if err := m.Validate(); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}
