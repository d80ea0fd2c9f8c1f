package model

import "testing"

func TestDiffering(t *testing.T) {
	a := mustParse(t, "name: shop\nfeatures: {age: number}\noracle: {kind: linear}").Canonical()
	for _, c := range []struct {
		text        string
		keys        []string
		key, second string
	}{
		{"name: shop\nfeatures: {age: number}\noracle: {kind: linear}", []string{"name", "features", "oracle"}, "", ""},
		{"name: shop\nfeatures: {age: text}\nwindow: 1h", []string{"window", "features"}, "window", "window: 1h"},
		{"name: shop\nfeatures: {age: text}", []string{"name", "features"}, "features",
			"features:\n  ? \"age\"\n  : text"},
		{"name: shop\nmasked: [red]", []string{"masked"}, "masked", "masked:\n  - \"red\""},
		{"name: shop\nreward: {}", []string{"loss", "reward"}, "loss", ""},
		{"name: shop\nwindow: 1h", []string{"name"}, "", ""},
	} {
		b := mustParse(t, c.text).Canonical()
		if key, second := Differing(a, b, c.keys...); key != c.key || second != c.second {
			t.Errorf("%q: %q, %q", c.text, key, second)
		}
	}
	short := []byte("name: shop\noracle: {kind: linear, beta: auto, lambda: auto}\n") // as an older program wrote it
	if key, second := Differing(short, mustParse(t, "name: shop\noracle: {kind: linear, version: 1}").Canonical(),
		"oracle", "explore"); key != "" {
		t.Errorf("%s: %s", key, second)
	}
}
