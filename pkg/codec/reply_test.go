package codec

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/vmihailenco/msgpack/v5"
)

func TestDecisionReply(t *testing.T) {
	d := sampleDecision()
	d.Actions[0] = `a "quoted"` + "\x00\u2028\xff"
	const want = `{"id":"8f3a","action":"b","propensity":0.5,` +
		`"propensities":{"a \"quoted\"\u0000` + "\u2028\ufffd" + `":0.25,"b":0.5,"c":0.25},` +
		`"partition":3,"n":70000,"epoch":2,"learned_through":69123,"duplicate":true}`
	got := AppendDecisionJSON(nil, &d, "", true)
	if string(got) != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	d.Actions[0] = "a"
	sameReply(t, AppendDecisionJSON(nil, &d, "", false), AppendDecisionReply(nil, &d, "", false))
	sameReply(t, AppendDecisionJSON(nil, &d, "", true), AppendDecisionReply(nil, &d, "", true))
	sameReply(t, AppendDecisionJSON(nil, &d, "contry, vpi", true), AppendDecisionReply(nil, &d, "contry, vpi", true))
	d.Prices = []Price{{"cost", .065}}
	sameReply(t, AppendDecisionJSON(nil, &d, "", false), AppendDecisionReply(nil, &d, "", false))
	d.Prices = []Price{{"cost", .065}, {"speed", 0}}
	const prices = `,"prices":{"cost":0.065,"speed":0},"duplicate"`
	if got := string(AppendDecisionJSON(nil, &d, "", false)); !strings.Contains(got, prices) {
		t.Errorf("of a model with budgets: %s", got)
	}
	sameReply(t, AppendDecisionJSON(nil, &d, "vpi", false), AppendDecisionReply(nil, &d, "vpi", false))
	for u, want := range map[Unknown]string{
		UnknownRest: `"propensity":0.30000000000000004,"propensities":{"a":null,"b":0.30000000000000004,"c":null}`,
		UnknownLaw:  `"propensity":null,"propensities":{"a":null,"b":null,"c":null}`} {
		d := sampleExternal(u)
		if got := string(AppendDecisionJSON(nil, &d, "", false)); !strings.Contains(got, want) {
			t.Errorf("%d is unknown: %s, want %s", u, got, want)
		}
		sameReply(t, AppendDecisionJSON(nil, &d, "", false), AppendDecisionReply(nil, &d, "", false))
	}
}

func TestErrorReply(t *testing.T) {
	const want = `{"error":{"code":409,"message":"used \"before\"","id":"8f3a"}}`
	text := ErrorReply(nil, 409, `used "before"`, "8f3a", true)
	if string(text) != want {
		t.Errorf("got %s, want %s", text, want)
	}
	sameReply(t, text, ErrorReply(nil, 409, `used "before"`, "8f3a", false))
	sameReply(t, ErrorReply(nil, 400, "", "", true), ErrorReply(nil, 400, "", "", false))
}

func TestStoredReply(t *testing.T) {
	text := AppendStored(nil, `a"b`, true)
	if want := `{"id":"a\"b","stored":true}`; string(text) != want {
		t.Errorf("got %s, want %s", text, want)
	}
	sameReply(t, text, AppendStored(nil, `a"b`, false))
}

// sameReply checks that JSON and MessagePack say the same.
func sameReply(t *testing.T, text, packed []byte) {
	t.Helper()
	var a, b map[string]any
	if err := json.Unmarshal(text, &a); err != nil {
		t.Fatal(err)
	}
	if err := msgpack.Unmarshal(packed, &b); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(a, floats(b)) {
		t.Errorf("\n%v\n%v", a, b)
	}
}

// floats turns integers into floats, as JSON has them.
func floats(x any) any {
	switch x := x.(type) {
	case map[string]any:
		for k, v := range x {
			x[k] = floats(v)
		}
		return x
	case bool, string, float64, nil:
		return x
	}
	return reflect.ValueOf(x).Convert(reflect.TypeFor[float64]()).Float()
}
