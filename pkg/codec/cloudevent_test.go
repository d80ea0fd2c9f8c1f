package codec

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

func TestCloudEventContext(t *testing.T) {
	for _, c := range []struct{ in, id, action string }{
		{`{"specversion":"1.0","id":"e1","source":"/s","type":"t","data":{"id":"own","actions":["a"]}}`, "own", "a"},
		{`{"specversion":"1.0","id":"e1","source":"/s","type":"t","data":{"actions":["a"]}}`, "e1", "a"},
		{`{"id":"e1","data":{"actions":["a"]},"type":"t","specversion":"1.0"}`, "e1", "a"},
		// Extension attributes may have the names of an event's keys, with other types.
		{`{"id":"e1","actions":7,"v":9,"data":{"actions":["a"]},"specversion":"1.0"}`, "e1", "a"},
		{`{"actions":7,"deep":` + strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth) +
			`,"id":"e1","data":{"actions":["a"]},"specversion":"1.0"}`, "e1", "a"},
		// Inside the data the mark is a key like any other.
		{`{"id":"e1","data":{"specversion":"0.1","actions":["a"]},"specversion":"1.0"}`, "e1", "a"},
		{`{"id":"e1","data" : {"actions":["a"]} , "specversion":"1.0" } `, "e1", "a"},
	} {
		var got Context
		if err := ParseContext(&got, []byte(c.in)); err != nil {
			t.Errorf("%s: %v", c.in, err)
			continue
		}
		if got.ID != c.id || len(got.Actions) != 1 || got.Actions[0].Name != c.action {
			t.Errorf("%s: %+v", c.in, got)
		}
	}
}

func TestCloudEventOutcome(t *testing.T) {
	var o Outcome
	if err := ParseOutcome(&o, []byte(`{"specversion":"1.0","id":"e1","data":{"id":"r","loss":1}}`)); err != nil ||
		!reflect.DeepEqual(o, Outcome{ID: "r", Kind: Loss, Value: 1, OutcomeID: "e1"}) {
		t.Errorf("%+v, %v", o, err)
	}
	if err := ParseOutcome(&o,
		[]byte(`{"specversion":"1.0","id":"e1","data":{"id":"r","loss":1,"outcome_id":"o"}}`)); err != nil ||
		o.OutcomeID != "o" {
		t.Errorf("%+v, %v", o, err)
	}
	// The event's id never stands in for the round's.
	if err := ParseOutcome(&o, []byte(`{"specversion":"1.0","id":"e1","data":{"loss":1}}`)); !errors.Is(err,
		errMissing) {
		t.Error(err)
	}
}

func TestCloudEventID(t *testing.T) {
	for _, c := range []struct {
		headers map[string]string
		id      string
		ok      bool
	}{
		{nil, "", false},
		{map[string]string{"ce_id": "e"}, "", false},
		{map[string]string{"ce_specversion": "1.0"}, "", false},
		{map[string]string{"ce_specversion": "0.3", "ce_id": "e"}, "", false},
		{map[string]string{"ce_specversion": "1.0", "ce_id": "e"}, "e", true},
		{map[string]string{"ce-specversion": "1.0", "ce-id": "e"}, "e", true},
	} {
		id, ok := CloudEventID(func(key string) string { return c.headers[key] })
		if id != c.id || ok != c.ok {
			t.Errorf("%v: %q, %v", c.headers, id, ok)
		}
	}
}
