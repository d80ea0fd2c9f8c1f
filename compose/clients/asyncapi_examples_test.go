package clients

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/vmihailenco/msgpack/v5"

	"hindsight/pkg/codec"
)

// TestAsyncAPIExamples decodes every example by the codec, as MessagePack and, where it
// is accepted, as JSON.
func TestAsyncAPIExamples(t *testing.T) {
	d := readAsyncAPI(t)
	for name, m := range d.at("components", "messages") {
		examples := asList(m.(map[string]any)["examples"])
		if len(examples) == 0 {
			t.Errorf("%s has no example", name)
		}
		for i, e := range examples {
			if m.(map[string]any)["payload"] == nil {
				break
			}
			payload := e.(map[string]any)["payload"]
			if err := d.schema(name).Validate(payload); err != nil {
				t.Errorf("%s, example %d: %v", name, i, err)
			}
			if err := decodes(name, d.packed(t, d.at("components", "schemas", name), payload)); err != nil {
				t.Errorf("%s, example %d: %v", name, i, err)
			}
			text, err := json.Marshal(payload)
			if err != nil {
				t.Fatal(err)
			}
			if name != "context" && name != "outcome" {
				continue
			}
			if err := decodes(name, text); err != nil {
				t.Errorf("%s, example %d as JSON: %v", name, i, err)
			}
		}
	}
}

// decodes reads a record by the codec.
func decodes(name string, b []byte) (err error) {
	switch name {
	case "context":
		var c codec.Context
		if err = codec.ParseContext(&c, b); err == nil {
			err = c.Validate()
		}
	case "outcome":
		var o codec.Outcome
		if err = codec.ParseOutcome(&o, b); err == nil {
			err = o.Validate()
		}
	case "decision":
		var x codec.Decision
		if err = codec.ParseDecision(&x, b); err == nil {
			err = x.Validate()
		}
	case "feedback":
		var x codec.Feedback
		if err = codec.ParseFeedback(&x, b); err == nil {
			err = x.Validate()
		}
	case "epoch":
		err = rare(b, codec.AppendEpoch, codec.ParseEpoch)
	case "class":
		err = rare(b, codec.AppendClass, codec.ParseClass)
	case "decisionMark":
		err = rare(b, codec.AppendDecisionMark, codec.ParseDecisionMark)
	case "feedbackMark":
		err = rare(b, codec.AppendFeedbackMark, codec.ParseFeedbackMark)
	case "snapshot":
		err = rare(b, codec.AppendSnapshot, codec.ParseSnapshot)
	case "reject":
		err = rare(b, codec.AppendReject, codec.ParseReject)
	case "decisionReply", "stored", "error": // clients read them: the schema is all there is
	default:
		err = fmt.Errorf("no codec of %s", name)
	}
	return err
}

// rare reads a record whose checksum examples do not have: as the codec's own struct, all
// of whose keys it must know, written and parsed by the codec.
func rare[T any](b []byte, write func([]byte, *T) []byte, parse func([]byte) (T, error)) error {
	var x T
	r := msgpack.NewDecoder(bytes.NewReader(b))
	r.DisallowUnknownFields(true)
	if err := r.Decode(&x); err != nil {
		return err
	}
	_, err := parse(write(nil, &x))
	return err
}

// packed writes a JSON value as MessagePack, texts that the schema says are base64 as bin
// and whole numbers as integers where it asks for those.
func (d *described) packed(t *testing.T, s map[string]any, v any) []byte {
	t.Helper()
	b, err := msgpack.Marshal(d.native(t, s, v))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (d *described) native(t *testing.T, s map[string]any, v any) any {
	s = d.resolve(s)
	switch v := v.(type) {
	case string:
		if s["contentEncoding"] != "base64" {
			return v
		}
		b, err := base64.StdEncoding.DecodeString(v)
		if err != nil {
			t.Fatal(err)
		}
		return b
	case json.Number:
		if n, err := v.Int64(); err == nil && s["type"] == "integer" {
			return n
		}
		x, err := v.Float64()
		if err != nil {
			t.Fatal(err)
		}
		return x
	case map[string]any:
		properties, _ := s["properties"].(map[string]any)
		out := map[string]any{}
		for name, inner := range v {
			of, _ := properties[name].(map[string]any)
			out[name] = d.native(t, of, inner)
		}
		return out
	case []any:
		of, _ := s["items"].(map[string]any)
		out := []any{}
		for _, inner := range v {
			out = append(out, d.native(t, of, inner))
		}
		return out
	}
	return v
}
