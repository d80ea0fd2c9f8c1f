package loop

import (
	"testing"

	"hindsight/pkg/codec"
)

// A decision tells how much of its context nobody reads; a model that lists no features reads
// all of them.
func TestUnread(t *testing.T) {
	listed := anyRules()
	listed.Features = []FeatureRule{{Name: "hour", Kind: NumberFeature}, {Name: "device", Kind: TextFeature}}
	for _, c := range []struct {
		rules *Rules
		raw   string
		names string
	}{
		{listed, `{"features":{"hour":3,"device":"phone"},"actions":["a"]}`, ""},
		{listed, `{"features":{"huor":3,"devise":"phone"},"actions":["a"]}`, "huor, devise"},
		{listed, `{"features":{"Device":"phone","hour":3},"actions":["a"]}`, "Device"},
		{listed, `{"fatures":{"hour":9},"actions":["a"]}`, "fatures"},
		{listed, `{"features":{"huor":null},"actions":[{"name":"a","features":{"price":1}}]}`, ""},
		{listed, `{"features":{"huor":3},"acions":["news"],"actions":["a"]}`, "acions, huor"},
		{anyRules(), `{"features":{"huor":3,"devise":"phone"},"actions":["a"]}`, ""},
		{anyRules(), `{"features":[1,2,3],"actions":["a"]}`, ""},
		{anyRules(), `{"fatures":{"hour":9},"actions":["a"]}`, "fatures"},
	} {
		d := NewDecider(newReplica(t, c.rules), testSeed, "m", 0, 10)
		var dec codec.Decision
		for range 2 { // what one context has is not the next one's
			res := d.Decide(&dec, []byte(c.raw), "", Source{Offset: RequestSource})
			n, names := Unread(c.rules, []byte(c.raw))
			if res.Verdict != Decided || res.Unread != n || names.String() != c.names || n == 0 != (c.names == "") {
				t.Errorf("%s: %+v, %d, %s; want %s", c.raw, res, n, &names, c.names)
			}
		}
		if res := d.Decide(&dec, []byte(`{"features":{"hour":1},"actions":["a"]}`), "",
			Source{Offset: RequestSource}); res.Unread != 0 {
			t.Errorf("after %s: %+v", c.raw, res)
		}
	}
	if n, names := Unread(nil, []byte(`{"features":{"huor":3},"acions":[]}`)); n != 1 || names.String() != "acions" {
		t.Errorf("without rules: %d %s", n, &names)
	}
}
