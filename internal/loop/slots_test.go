package loop

import (
	"fmt"
	"strings"
	"testing"

	"hindsight/pkg/codec"
)

func slotted(t *testing.T, text string) *codec.Context {
	t.Helper()
	var c codec.Context
	if err := codec.ParseContext(&c, []byte(text)); err != nil {
		t.Fatal(err)
	}
	return &c
}

// TestCheckSlots holds which contexts with slots are refused before any slot is decided, and how that is said.
func TestCheckSlots(t *testing.T) {
	any := Rules{MaxActions: 100}
	listed := Rules{MaxActions: 100, Actions: []string{"a", "b", "c"}, Masked: []string{"c"}}
	ruled := Rules{MaxActions: 100, Slots: []SlotRule{{Name: "hero"}, {Name: "side", Actions: []string{"a", "b"}}}}
	typed := Rules{MaxActions: 100, Features: []FeatureRule{{Name: "slot.size", Kind: NumberFeature}}}
	for _, x := range []struct {
		rules      *Rules
		text, want string
	}{
		{&any, `"id":"e","actions":["a","b"],"slots":["hero","side"]`, ""},
		{&any, `"actions":["a","b"],"slots":["hero","side"]`, "id: is missing"},
		{&any, `"id":"e","features":[1],"actions":["a","b"],"slots":["hero","side"]`,
			"features: are a list of numbers"},
		{&any, `"id":"e","features":{"slot":1},"actions":["a","b"],"slots":["hero"]`,
			"slots[0]: features.slot: occurs twice"},
		{&any, `"id":"e","assigned":{"action":"a"},"actions":["a","b"],"slots":["hero"]`,
			"assigned: is not for a context with"},
		{&any, `"id":"e","logged_propensity":0.5,"actions":["a","b"],"slots":["x"]`, "logged_propensity: is not for a"},
		{&any, `"id":"e","actions":["a","b"],"slots":["hero:1"]`, "slots[0].name: has a colon"},
		{&any, `"id":"e","slots":["hero"]`, "slots[0]: actions: no actions"},
		{&any, `"id":"e","slots":[{"name":"hero","actions":["a"]},{"name":"side","actions":["b"]}]`, ""},
		{&any, `"id":"e","slots":[{"name":"hero","actions":["a"]},{"name":"side","actions":["a"]}]`,
			"slots[1]: the slots before it may leave it no action: it has 1, and 1 of them may take one"},
		{&any, `"id":"e","actions":["a","b"],"slots":["1","2","3"]`, "slots[2]: the slots before it may leave"},
		{&any, `"id":"e","actions":["a","b"],"slots":["1",{"name":"2","actions":["x"]}]`,
			`slots[1].actions: "x" is not among`},
		{&any, `"id":"` + strings.Repeat("e", codec.MaxIDBytes) + `","actions":["a"],"slots":["hero"]`,
			"slots[0]: id: is too long"},
		{&listed, `"id":"e","slots":["hero","side"]`, ""},
		{&listed, `"id":"e","slots":["hero","side","third"]`,
			"slots[2]: the slots before it may leave it no action: it has 2"},
		{&listed, `"id":"e","slots":[{"name":"hero","actions":["c"]}]`,
			"slots[0]: the slots before it may leave it no action: it has 0"},
		{&ruled, `"id":"e","actions":["a","b","c"],"slots":["hero","side"]`, ""},
		{&ruled, `"id":"e","actions":["a","b","c"],"slots":["hero","top"]`,
			`slots[1].name: is not a slot of the model: "top"`},
		{&ruled, `"id":"e","actions":["a","c"],"slots":["hero","side"]`,
			"slots[1]: the slots before it may leave it no action"},
		{&typed, `"id":"e","actions":["a"],"slots":[{"name":"x","features":{"size":"big"}}]`,
			"slots[0]: features.slot.size: wrong type of value: the model says number"},
	} {
		err := x.rules.CheckSlots(slotted(t, "{"+x.text+"}"))
		if x.want == "" && err != nil || x.want != "" && (err == nil || !strings.Contains(err.Error(), x.want)) {
			t.Errorf("%s: %v, want %q", x.text, err, x.want)
		}
	}
}

// TestSlotContext holds what the round of a slot is decided by, given the draws before.
func TestSlotContext(t *testing.T) {
	c := slotted(t, `{"id":"e","features":{"hour":7},"actions":["a",{"name":"b","features":{"x":1}},"c"],
		"baseline":{"a":0.5,"b":0.25,"c":0.25},"slots":["hero",
		{"name":"side","features":{"size":2},"actions":["a","b"]},
		{"name":"top","baseline":"a"}]}`)
	r := Rules{MaxActions: 100}
	for i, want := range []string{
		`{"id":"e:hero","features":{"hour":7,"slot":"hero"},"baseline":{"a":0.5,"b":0.25,"c":0.25},` +
			`"actions":["a",{"name":"b","features":{"x":1}},"c"]}`,
		`{"id":"e:side","features":{"hour":7,"slot":"side","slot.size":2},"baseline":"b",` +
			`"actions":[{"name":"b","features":{"x":1}}]}`,
		`{"id":"e:top","features":{"hour":7,"slot":"top"},"baseline":"c","actions":["c"]}`,
	} {
		one := r.SlotContext(c, i, []string{"a", "b"}[:i])
		if got := string(codec.AppendContextJSON(nil, &one)); got != want {
			t.Errorf("slot %d is decided by\n%s, want\n%s", i, got, want)
		}
	}
}

// TestSlotsAreNoContext holds that a context with slots is decided by nobody: in a topic it is refused by name.
func TestSlotsAreNoContext(t *testing.T) {
	err := (&Rules{MaxActions: 100}).Check()([]byte(`{"id":"e","actions":["a"],"slots":["hero"]}`))
	if want := "context: slots: are decided by request only"; !strings.HasPrefix(fmt.Sprint(err), want) {
		t.Errorf("%v, want %q", err, want)
	}
}
