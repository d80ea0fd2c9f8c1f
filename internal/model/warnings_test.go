package model

import (
	"strings"
	"testing"
)

// What newcomers write and seldom mean is accepted, and warned at its place.
func TestWarnings(t *testing.T) {
	for yaml, want := range map[string]string{
		"explore: 0.05":  "m.yaml:1:10: explore: 0.05 is no ε",
		"explore: 0.999": "learner: {egreedy: 0.999}",
		"name: m\nwindow: 10": "m.yaml:2:9: window: 10 means rounds: a round waits until 10 later ones are decided; " +
			"for minutes write window: 10m, and if rounds are meant, window: 10 rounds",
		"window: 99":                "window: 99m",
		"window: '1'":               "window: 1m, and if rounds are meant, window: 1 round",
		"window: 5\nexplore: 0.1":   "m.yaml:1:9: window: 5",
		"window: 100":               "",
		"window: 10 rounds":         "",
		"window: 10r":               "",
		"window: 10m":               "",
		"explore: 1":                "",
		"explore: balanced":         "",
		"explore: {paper: 20000}":   "",
		"learner: {egreedy: 0.05}":  "",
		"":                          "",
		"explore: 12.5\nwindow: 7d": "",
	} {
		if strings.Contains(yaml, "paper") {
			yaml += "\noracle: {kind: hedge, class: f}"
		}
		m, warnings, err := ParseWithWarnings("m.yaml", []byte(yaml))
		if err != nil || m == nil || !strings.Contains(warnings.Error(), want) || len(warnings) > 0 != (want != "") {
			t.Errorf("%q: %v, %v; want %s", yaml, err, warnings, want)
			continue
		}
		if again, _, err := ParseWithWarnings("m.yaml", m.Canonical()); err != nil ||
			string(again.Canonical()) != string(
				m.Canonical()) {
			t.Errorf("%q: %v", yaml, err)
		}
	}
	if _, warnings, err := ParseWithWarnings("m.yaml", []byte("window: 5\nexplore: no")); err == nil ||
		warnings != nil {
		t.Errorf("of a wrong file: %v, %v", err, warnings)
	}
}
