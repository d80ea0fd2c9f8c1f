package codec

import (
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Each case is a record and a part of its error, or "" if it is fine.
type textCase struct{ in, err string }

func bytesOf(t *testing.T, in string) []byte {
	t.Helper()
	rest, isHex := strings.CutPrefix(in, "hex:")
	if !isHex {
		return []byte(in)
	}
	b, err := hex.DecodeString(strings.ReplaceAll(rest, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func checkCases(t *testing.T, cases []textCase, event string, parse func(b []byte) error) {
	t.Helper()
	for _, c := range cases {
		err := parse(bytesOf(t, c.in))
		if c.err == "" {
			if err != nil {
				t.Errorf("%s: %v", c.in, err)
			}
			continue
		}
		var e *Error
		if !errors.As(err, &e) || e.Event != event || !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v; want %q", c.in, err, c.err)
		}
	}
}

func TestParseContextCases(t *testing.T) {
	deep := strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth)
	cases := []textCase{
		{"", "end too early"},
		{" ", "want a map"},
		{"[]", "want a map"},
		{"{}", ""},
		{" \t\r\n{ } \n", ""},
		{"{} {}", "follow"},
		{"{", "not valid JSON: the bytes end too early"},
		{`{"id"`, "end too early"},
		{`{"id":`, "end too early"},
		{"hello", "context: not JSON: want a map, as a JSON object or in MessagePack (at byte 0)"},
		{`{"id" "x"}`, "context: \"\": not valid JSON (at byte 6)"},
		{`{,}`, "want text"},
		{`{"id":"x",}`, "want text"},
		{`{"id":"x" "v":1}`, "not valid JSON"},
		{`{'id':'x'}`, "want text"},
		{`{"id":7}`, "id: corrupt record: want text"},
		{`{"id":null,"features":null,"actions":null,"more":[{"x":[null,true,false,-1e3,"\u00e9"]}]}`, ""},
		{`{"more":` + deep + `}`, ""},
		{`{"more":[` + deep + `]}`, "too deeply"},
		{`{"more":[1,]}`, "not valid JSON"},
		{`{"more":{"x":nul}}`, "not valid JSON"},
		{`{"more":tru}`, "not valid JSON"},
		{`{"more":01}`, "not valid JSON"},
		{"{\"id\":\"a\nb\"}", "not valid JSON"},
		{`{"id":"\x"}`, "not valid JSON"},
		{`{"id":"\ud800"}`, "not valid JSON"},
		{`{"id":"\ud800\u0041"}`, "surrogate"},
		{`{"id":"x","id":"x"}`, "id: corrupt record: the key occurs twice"},
		{`{"features":{},"features":{}}`, "twice"},
		{`{"v":1}`, ""},
		{`{"v":0}`, "start at 1"},
		{fmt.Sprintf(`{"v":%d}`, Newest+1), "newer"},
		{`{"v":1.5}`, "whole"},
		{`{"v":"1"}`, "want a number"},
		{`{"features":7}`, "features: corrupt record: want a map of features or a list"},
		{`{"features":{"age":{"years":7}}}`, "features.age: corrupt record: a feature is"},
		{`{"features":{"age":{}}}`, "features.age: corrupt record: a feature is"},
		{`{"features":{"a\n":{}}}`, `features."a\n": corrupt`},
		{`{"features":{"age":1e999}}`, "features.age: corrupt record: number out of range"},
		{`{"features":{"age":null,"b":1}}`, ""},
		{`{"features":{"age":}}`, "features.age: not valid JSON"},
		{`{"features":[1,"2"]}`, "features[1]: corrupt record: want a number"},
		{`{"features":[1,null]}`, "features[1]: corrupt record: want a number"},
		{`{"actions":"a"}`, "actions: corrupt record: want a list"},
		{`{"actions":["a",7]}`, "actions[1]: corrupt record: an action is"},
		{`{"actions":[{"id":"b","features":{}}]}`,
			`actions[0]: an action has a "name", and this one an "id": call the key name`},
		{`{"actions":[{"id":7,"name":"b"}]}`, ""},
		{`{"actions":[{"features":{}}]}`, "actions[0].name: corrupt record: the key is missing"},
		{`{"actions":["a",{"name":"b","features":{"x":{}}}]}`, "actions[1].features.x: corrupt"},
		{`{"features":{"e":[1,"2"]}}`, "features.e[1]: corrupt record: want a number"},
		{`{"features":{"e":[1,null]}}`, "features.e[1]: corrupt record: want a number"},
		{`{"features":{"e":[[1]]}}`, "features.e[0]: corrupt record: want a number"},
		{`{"actions":[{"name":"b","features":{"x":[1,]}}]}`, "actions[0].features.x"},
		{`{"actions":[{"name":"b","features":[1]}]}`, "actions[0].features: corrupt record: want a map"},
		{`{"actions":[{"name":"b","name":"b"}]}`, "actions[0].name: corrupt record: the key occurs twice"},
		{`{"actions":[{"name":"b","features":null,"x":1}]}`, ""},
		{`{"specversion":"0.3","id":"e","data":{}}`, "specversion: corrupt record: only CloudEvents"},
		{`{"specversion":"1.0","id":"e"}`, "data: corrupt"},
		{`{"specversion":"1.0","id":"e","data":"x"}`, "data: corrupt"},
		{`{"specversion":"1.0","data":{}}`, "id: corrupt record: the key is missing"},
		{`{"specversion":"1.0","id":"e","data":{"actions":7}}`, "actions: corrupt"},
		{`{"specversion":"1.0","id":"e","data":{"actions":["a"]}}x`, "follow"},
		{`{"specversion":"1.0","id":"e","data":{},"data":{}}`, "twice"},
		{"hex:80", ""},
		{"hex:80 80", "follow"},
		{"hex:81", "end too early"},
		{"hex:81 a2 69 64", "end too early"},
		{"hex:81 a2 69 64 a3 61", "end too early"},
		{"hex:81 a2 69 64 c0", ""},
		{"hex:81 a2 69 64 01", "id: corrupt record: want text"},
		{"hex:81 01 02", "want text"},
		{"hex:c1", "want a map"},
		{"hex:81 a1 78 c1", "x: corrupt"},
		{"hex:81 a1 78 c7 01 05 ff", ""},       // ext8
		{"hex:81 a1 78 d6 ff 00 00 00 00", ""}, // timestamp 32
		{"hex:81 a1 78 d8 01" + strings.Repeat("00", 16), ""},
		{"hex:81 a1 78 c9 ff ff ff ff 01", "end too early"},
		{"hex:81 a1 78 81 01 02", ""}, // unknown values may have keys of any kind
		{"hex:df ff ff ff ff", "end too early"},
		{"hex:81 a7 61 63 74 69 6f 6e 73 dd ff ff ff ff", "end too early"},
		{"hex:81 a8 66 65 61 74 75 72 65 73 df 7f ff ff ff", "end too early"},
		{"hex:81 a8 66 65 61 74 75 72 65 73 81 a1 61 db ff ff ff ff", "end too early"},
		{"hex:81 a8 66 65 61 74 75 72 65 73 81 a1 61 d6 ff 00 00 00 00", "features.a: corrupt record: a feature is"},
		{"hex:81 a1 78 df 00 00 00 01 01 02", ""}, // maps and lists whose smallest entries just fit
		{"hex:81 a1 78 de 00 01 01 02", ""},
		{"hex:81 a1 78 dd 00 00 00 01 01", ""},
		{"hex:81 a1 78 dc 00 01 01", ""},
		{"hex:81 a1 78 df 00 00 00 02 01 02 03", "end too early"},
		{"hex:81 a1 78 " + strings.Repeat("81 a1 79", maxDepth) + "00", ""},
		{"hex:81 a1 78 " + strings.Repeat("81 a1 79", maxDepth+1) + "00", "too deeply"},
		{"hex:81 a1 78 81" + strings.Repeat("91", maxDepth-1) + "00 00", ""}, // a key
		{"hex:81 a1 78 81" + strings.Repeat("91", maxDepth) + "00 00", "too deeply"},
		{`{"more":` + strings.Repeat(`{"a":`, maxDepth) + "1" + strings.Repeat("}", maxDepth) + "}", ""},
		{`{"more":` + strings.Repeat(`{"a":`, maxDepth+1) + "1" + strings.Repeat("}", maxDepth+1) + "}", "too deeply"},
		{"hex:81 a1 78 " + strings.Repeat("91", maxDepth) + "00", ""},
		{"hex:81 a1 78 " + strings.Repeat("91", maxDepth+1) + "00", "too deeply"},
	}
	checkCases(t, cases, "context", func(b []byte) error { return ParseContext(new(Context), b) })
}

func TestParseOutcomeCases(t *testing.T) {
	cases := []textCase{
		{`{"id":"a","loss":0.5}`, ""},
		{`{"id":"a","loss":0.5,"reward":null,"withdrawn":false,"activated":null,"action":null,"outcome_id":null}`, ""},
		{`{"loss":0.5}`, "id: corrupt record: the key is missing"},
		{`{"unit":7,"loss":0.5}`, "unit: is not a text; write it in quotes"},
		{`{"unit":7,"id":"a","loss":0.5}`, ""},
		{`{"unit":null,"loss":0.5}`, "id: corrupt record: the key is missing"},
		{`{"id":null,"loss":0.5}`, "id: corrupt record: want text"},
		{`{"id":"a"}`, "say one of"},
		{`{"id":"a","withdrawn":false}`, "say one of"},
		{`{"id":"a","loss":null}`, "say one of"},
		{`{"id":"a","withdrawn":1}`, "withdrawn: corrupt record: want true or false"},
		{`{"id":"a","loss":1,"reward":1}`, "say only one"},
		{`{"id":"a","withdrawn":true,"activated":true}`, "say only one"},
		{`{"id":"a","loss":1,"loss":1}`, "loss: corrupt record: the key occurs twice"},
		{`{"id":"a","loss":"1"}`, "loss: corrupt record: want a number"},
		{`{"id":"a","loss":NaN}`, "loss: corrupt"},
		{`{"id":"a","loss":`, "not valid JSON: the bytes end too early"},
		{`{"id":"a","loss":-`, "not valid JSON"},
		{`{"id":"a","loss":-1e400}`, "loss: corrupt record: number out of range"},
		{"hex:82 a2 69 64 a1 61 a4 6c 6f 73 73 01", ""},
		{"hex:82 a2 69 64 c4 01 61 a4 6c 6f 73 73 ca 3f 00 00 00", ""}, // bin as text, float32
		{"hex:82 a2 69 64 a1 61 a4 6c 6f 73 73 cb 7f f8 00 00 00 00 00 01", "loss: corrupt record: number out " +
			"of range"},
		{"hex:82 a2 69 64 a1 61 a4 6c 6f 73 73 ca 7f 80 00 00", "loss: corrupt record: number out of range"},
		{"hex:82 a2 69 64 a1 61 a6 72 65 77 61 72 64 cb ff f0 00 00 00 00 00 00",
			"reward: corrupt record: number out of range"},
		{"hex:82 a2 69 64 a1 61 a9 77 69 74 68 64 72 61 77 6e c3", ""},
	}
	checkCases(t, cases, "outcome", func(b []byte) error { return ParseOutcome(new(Outcome), b) })
}

func TestParseTooLarge(t *testing.T) {
	b := []byte(`{"id":"a","loss":1,"x":"` + strings.Repeat("x", MaxRecordBytes) + `"}`)
	if err := ParseContext(new(Context), b); !errors.Is(err, ErrTooLarge) {
		t.Error(err)
	}
	if err := ParseOutcome(new(Outcome), b); !errors.Is(err, ErrTooLarge) {
		t.Error(err)
	}
	many := []byte(`{"features":[` + strings.Repeat("0,", MaxFeatures) + `0]}`)
	if err := ParseContext(new(Context), many); !errors.Is(err, errManyFeatures) {
		t.Error(err)
	}
	many = []byte(`{"actions":[` + strings.Repeat(`"a",`, MaxActions) + `"a"]}`)
	if err := ParseContext(new(Context), many); !errors.Is(err, errManyActions) {
		t.Error(err)
	}
}

// replace changes the first occurrence of one byte string in a record.
func replace(b []byte, from, to string) []byte {
	return []byte(strings.Replace(string(b), from, to, 1))
}

func TestParseDecisionCases(t *testing.T) {
	d := sampleDecision()
	b := AppendDecision(nil, &d)
	for _, c := range []struct{ from, to, err string }{
		{"\xa1v\x01", "\xa1v" + string(rune(Newest+1)), "v: record version is newer"},
		{"\xa1v\x01", "\xa1v\x00", "v: corrupt"},
		{"\x8f\xa1v\x01", "\x8e", "v: corrupt record: the key is missing"},
		{"\xa5gamma", "\xa5gemma", "gamma: corrupt record: the key is missing"},
		{"\xa5gamma", "\xa1n\x01\xa1m", "n: corrupt record: the key occurs twice"},
		{"\xa6action\xa1b", "\xa6action\xa1d", "action: corrupt record: the action is not among"},
		{"\xa6action\xa1b", "\xa6action\xa1a", "propensity: corrupt record: differs"},
		{"propensity\xcb\x3f\xe0", "propensity\xcb\x3f\xe1", "propensity: corrupt record: differs"},
		{"\xa1c\xcb", "\xa1c\xc3", "propensities.c: corrupt record: want a number"},
		{"\xa6source\xff", "\xa6source\xc3", "source: corrupt record: want a whole number"},
		{"\xa7context\xc4", "\xa7context\xd9", ""}, // str for bin
		{"\xa6source\xff", "\xa6source\xca\xbf\x80\x00\x00", ""},
		{"\xa6source\xff", "\xa6source\xd3\xff\xff\xff\xff\xff\xff\xff\xff", ""},
		{"\xa6source\xff", "\xa6source\xcb\x3f\xe0\x00\x00\x00\x00\x00\x00", "source: corrupt record: want a whole"},
		{"\xa6source\xff", "\xa6source\xcf\xff\xff\xff\xff\xff\xff\xff\xff", "source: corrupt record: want a whole"},
	} {
		changed := replace(b, c.from, c.to)
		if string(changed) == string(b) {
			t.Fatalf("%q is not in the record", c.from)
		}
		var got Decision
		err := ParseDecision(&got, changed)
		switch {
		case c.err == "" && (err != nil || !same(got, d)):
			t.Errorf("%q to %q: %v, %+v", c.from, c.to, err, got)
		case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
			t.Errorf("%q to %q: %v; want %q", c.from, c.to, err, c.err)
		}
	}
}

// TestModeTwice: the mode of a decision, and what it would have drawn from, are read once.
func TestModeTwice(t *testing.T) {
	d := sampleDecision()
	d.Mode, d.Would = Shadow, slices.Clone(d.Propensities)
	b := string(AppendJSON(nil, "", AppendDecision(nil, &d)))
	for _, one := range []string{`"mode":"shadow"`, `"would":[0.25,0.5,0.25]`} {
		twice := strings.Replace(b, one, one+","+one, 1)
		if err := ParseDecision(new(Decision), []byte(twice)); !errors.Is(err, errTwice) {
			t.Errorf("%s: %v", one, err)
		}
	}
}

// TestNoActions: an empty list of actions is not one that is left out.
func TestNoActions(t *testing.T) {
	var c Context
	err := ParseContext(&c, []byte(`{"features":{},"actions":[]}`))
	if err == nil {
		err = c.Validate()
	}
	if !errors.Is(err, errNoActions) {
		t.Error(err)
	}
}

// TestEscapeAtEnd: an escape may end what there is.
func TestEscapeAtEnd(t *testing.T) {
	for in, want := range map[string]error{`\n`: nil, `\`: errTruncated} {
		if _, n, err := AppendEscape(nil, []byte(in)); err != want || want == nil && n != len(in) {
			t.Errorf("%s: %d, %v", in, n, err)
		}
	}
}

func TestParseFeedbackCases(t *testing.T) {
	f := sampleFeedback()
	b := AppendFeedback(nil, &f)
	for _, c := range []struct{ from, to, err string }{
		{"observed", "observes", "fate: corrupt record: want observed"},
		{"\xa4fate\xa8observed", "\xa4fate\x01", "fate: corrupt record: want text"},
		{"closed_at", "closed_in", "closed_at: corrupt record: the key is missing"},
		{"\xa6reason", "\xa6rounds", "reason: corrupt record: the key is missing"},
	} {
		err := ParseFeedback(new(Feedback), replace(b, c.from, c.to))
		if err == nil || !strings.Contains(err.Error(), c.err) {
			t.Errorf("%q to %q: %v; want %q", c.from, c.to, err, c.err)
		}
	}
}
