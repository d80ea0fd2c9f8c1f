package model

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// drawUnit gives a model the key unit where it may have it.
func drawUnit(t *rapid.T, m *Model) {
	if m.Arrival || m.Early || m.Slots != nil || m.Guard.LoseAtMost > 0 || rapid.Bool().Draw(t, "no unit") {
		return
	}
	m.Sticky = rapid.Int64Range(1e9, maxWindowNanos).Draw(t, "sticky")
}

func TestUnit(t *testing.T) {
	for text, want := range map[string]int64{
		"unit: {sticky: 30d}":                30 * 24 * 3600 * 1e9,
		"unit: {credit: first, sticky: 90s}": 90 * 1e9,
		"unit: none":                         0,
		"":                                   0,
	} {
		m, err := Parse("m.yaml", []byte(text))
		if err != nil || m.Rules().Sticky != want || want > 0 && m.Early {
			t.Errorf("%s: %+v, %v", text, m, err)
		} else if again, err := Parse("m.yaml", m.Canonical()); err != nil || again.Sticky != want {
			t.Errorf("%s is written as %s: %v", text, m.Canonical(), err)
		} else if written := strings.Contains(string(m.Canonical()), "\nunit:"); written != (want > 0) {
			t.Errorf("%s is written as %s", text, m.Canonical())
		}
	}
	for text, want := range map[string]string{
		"unit: 30d": `m.yaml:1:7: unit: expected none, or some of sticky, credit, found "30d"`,
		"unit: {}":  `m.yaml:1:7: unit: sticky is missing: for how long does a draw hold? For example: unit: {sticky: 30d`,
		"unit: " +
			"{sticky: 30}": `m.yaml:1:16: unit.sticky: expected a duration from 1s to 10 years, found "30"; for example: sticky:`,
		"unit: {sticky: 1ms}":   `unit.sticky: expected a duration from 1s to 10 years, found "1ms"`,
		"unit: {sticky: 9999d}": `unit.sticky: expected a duration from 1s to 10 years, found "9999d"`,
		"unit: {sticky: 1h, " +
			"credit: last}": `m.yaml:1:28: unit.credit: last would be first: a repeat is no draw`,
		"unit: {sticky: 1h, credit: all}":        `unit.credit: with all what a draw is worth would depend on`,
		"unit: {sticky: 1h, credit: none}":       `unit.credit: expected`,
		"unit: {sticky: 1h, for: user}":          `unit: unknown key "for"; expected one of sticky, credit`,
		"unit: {sticky: 1h}\norder: early":       `m.yaml:1:7: unit: repeats of a draw wait for it; use order: fifo`,
		"unit: {sticky: 1h}\nslots: {hero: any}": `m.yaml:1:7: unit: draws of slots do not hold for a unit yet`,
		"unit: {sticky: 1h}\noracle: {kind: ridge, certified: true}\nactions: [a, b]\nfeatures: {x: {number: " +
			"[0, 1]}}\nguard: {lose_at_most: 0.02}": `unit: it does not go with guard: {lose_at_most: …}`,
	} {
		if _, err := Parse("m.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngot  %v\nwant %s…", text, err, want)
		}
	}
}
