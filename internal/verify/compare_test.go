package verify

import (
	"reflect"
	"strings"
	"testing"

	"hindsight/pkg/codec"
)

// TestUnequal holds by which field two records are called different, and what is shown of both.
func TestUnequal(t *testing.T) {
	base := codec.Decision{N: 1, ID: "a", Context: []byte("abc"), Actions: []string{"a", "b"},
		Propensities: []float64{0.5, 0.5}}
	for _, c := range []struct {
		change           func(d *codec.Decision)
		field, want, got string
	}{
		{func(*codec.Decision) {}, "", "", ""},
		{func(d *codec.Decision) { d.Would = []float64{} }, "", "", ""}, // nil and empty
		{func(d *codec.Decision) { d.N = 2 }, "n", "1", "2"},
		{func(d *codec.Decision) { d.N, d.Context = 2, []byte("abd") }, "context", "3 bytes, with 0x63 at 2",
			"3 bytes, with 0x64 at 2"},
		{func(d *codec.Decision) { d.Partition = 1 }, "partition", "0", "1"},
		{func(d *codec.Decision) { d.Partition, d.Context = 1, []byte("xbc") }, "context", "3 bytes, with 0x61 at 0",
			"3 bytes, with 0x78 at 0"},
		{func(d *codec.Decision) { d.Context = []byte("ab") }, "context", "3 bytes, with 0x63 at 2", "2 bytes"},
		{func(d *codec.Decision) { d.Context = []byte("abcd") }, "context", "3 bytes", "4 bytes, with 0x64 at 3"},
		{func(d *codec.Decision) { d.Gamma = 0.5 }, "gamma", "0 (0000000000000000)", "0.5 (3fe0000000000000)"},
		{func(d *codec.Decision) { d.Propensities = []float64{0.5, 0.25} }, "propensities.b",
			"0.5 (3fe0000000000000)", "0.25 (3fd0000000000000)"},
		{func(d *codec.Decision) { d.Propensities = []float64{0.5} }, "propensities", "[0.5 0.5]", "[0.5]"},
		{func(d *codec.Decision) { d.Propensities = []float64{0.5, 0.5, 0} }, "propensities", "[0.5 0.5]",
			"[0.5 0.5 0]"},
		{func(d *codec.Decision) { d.Would = []float64{1} }, "would", "[]", "[1]"},
		{func(d *codec.Decision) { d.Actions = []string{"a", "c"} }, "propensities", "[a b]", "[a c]"},
		{func(d *codec.Decision) { d.Action = 1 }, "action", "a", "b"},
		{func(d *codec.Decision) { d.LearnedThrough = 7 }, "learned_through", "0", "7"},
	} {
		d := base
		c.change(&d)
		if field, want, got := unequal(&base, &d); field != c.field || want != c.want || got != c.got {
			t.Errorf("%s: %s, %s; want %s: %s, %s", field, want, got, c.field, c.want, c.got)
		}
	}
	long := [2]codec.Decision{{Actions: []string{"a"}, Propensities: []float64{1, 0}},
		{Actions: []string{"a"}, Propensities: []float64{1, 1}}}
	if field, want, got := unequal(&long[0], &long[1]); field != "propensities" || want != "[1 0]" || got != "[1 1]" {
		t.Errorf("%s: %s, %s", field, want, got)
	}
	prices := [2]codec.Decision{{Prices: []codec.Price{{Name: "a"}, {Name: "b", X: 1}}},
		{Prices: []codec.Price{{Name: "a"}, {Name: "c", X: 1}}}}
	if field, want, got := unequal(&prices[0], &prices[1]); field != "prices[1].name" || want != "b" || got != "c" {
		t.Errorf("%s: %s, %s", field, want, got)
	}
}

// TestWireNames: tags of fields name them as they are called where they have none. The tails that marks say are lost
// are not compared as a field.
func TestWireNames(t *testing.T) {
	tagged := 0
	for _, x := range []any{codec.Decision{}, codec.Feedback{}, codec.Cut{}, codec.Range{}, codec.FeedbackMark{},
		codec.DecisionMark{}, codec.Position{}, codec.Epoch{}, codec.FileRef{}, codec.Snapshot{}, codec.Reject{}} {
		for f := range reflect.TypeOf(x).Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("msgpack"), ",")
			if name == "" || name == "-" || f.Name == "LostTails" {
				continue
			}
			if tagged++; wireName(f) != name {
				t.Errorf("%T: %s is called %s", x, name, wireName(f))
			}
		}
	}
	if tagged == 0 {
		t.Error("no field has a tag")
	}
}

// TestShorten holds how much of a value stands in a line.
func TestShorten(t *testing.T) {
	for n, want := range map[int]string{400: strings.Repeat("x", 400), 401: strings.Repeat("x", 400) + "…"} {
		if got := shorten(strings.Repeat("x", n)); got != want {
			t.Errorf("of %d: %s", n, got)
		}
	}
}
