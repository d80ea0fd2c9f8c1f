package codec

import (
	"strings"
	"testing"
)

// TestSlotsCases holds what may be said of slots, and how what may not is named.
func TestSlotsCases(t *testing.T) {
	for text, want := range map[string]string{
		`null`: "", `[]`: "", `["hero","side"]`: "",
		`[{"name":"hero","features":null,"actions":null,"baseline":null,"size":7},"side"]`:      "",
		`[{"name":"hero","features":{"x":1},"actions":["a","b"],"baseline":{"a":0.5,"b":0.5}}]`: "",
		`"hero"`:                              "slots: corrupt record: want a list",
		`[7]`:                                 "slots[0]: corrupt record: a slot is a name or a map with a name",
		`["a",{"x":1}]`:                       "slots[1].name: corrupt record: the key is missing",
		`["a",""]`:                            "slots[1].name: is empty",
		`["a","b","a"]`:                       "slots[2].name: occurs twice",
		`[{"name":"a","baseline":{"x":0.5}}]`: "slots[0].baseline: has probabilities that do not sum to 1",
		`[` + strings.Repeat(`"a",`, MaxSlots) + `"b"]`: "slots: too many slots: at most 32 are taken",
	} {
		var c Context
		err := ParseContext(&c, []byte(`{"id":"x","slots":`+text+`}`))
		if err == nil {
			err = c.Validate()
		}
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestSlotsVersion holds that a program which decides one action only refuses a context with slots by name.
func TestSlotsVersion(t *testing.T) {
	c := sampleSlots()
	if b := AppendContext(nil, &c); !strings.Contains(string(b[:8]), "\xa1v\x04") {
		t.Errorf("it begins with %x", b[:8])
	}
	if b := AppendContextJSON(nil, &c); !strings.HasSuffix(string(b), `"v":4}`) {
		t.Errorf("%s", b)
	}
}
