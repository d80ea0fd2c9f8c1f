package model

import (
	"reflect"
	"strings"
	"testing"

	"hindsight/internal/loop"
)

// TestSlots holds which slots a model may name, and that the canonical form is the same model.
func TestSlots(t *testing.T) {
	m := mustParse(t, "actions: [a, b, c]\nfeatures: {slot: text}\nslots: {side: [a, b], hero: any}")
	want := []loop.SlotRule{{Name: "hero"}, {Name: "side", Actions: []string{"a", "b"}}}
	if !reflect.DeepEqual(m.Slots, want) {
		t.Errorf("%+v", m.Slots)
	}
	if back := mustParse(t, string(m.Canonical())); !reflect.DeepEqual(back, m) {
		t.Errorf("it reads back as %+v", back.Slots)
	}
	if mustParse(t, "slots: any").Slots != nil {
		t.Error("any lists slots")
	}
	for text, want := range map[string]string{
		"slots: {}":                                 "m.yaml:1:8: slots: expected any or the names of slots",
		"slots: [hero]":                             "m.yaml:1:8: slots: expected any or the names of slots",
		"slots: {hero: a}":                          "m.yaml:1:15: slots.hero: expected any or a list of names",
		"slots: {hero: [a, a]}":                     `slots.hero: "a" is there twice`,
		"slots: {hero: any, hero: any}":             `slots: the key "hero" is there twice`,
		"slots: {\"a:b\": any}":                     `slots: the name "a:b" has a colon`,
		"actions: [a]\nslots: {hero: [b]}":          `m.yaml:2:8: slots: hero has "b", which is not in actions`,
		"features: {hour: number}\nslots: {h: any}": "m.yaml:2:8: slots: the learner does not see which slot",
		"features: {slot: number}\nslots: {h: any}": "add slot: text to features",
	} {
		if _, err := Parse("m.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
