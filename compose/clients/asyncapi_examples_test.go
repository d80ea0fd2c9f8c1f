package clients

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
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
		err = rare(b, codec.ParseEpoch)
	case "class":
		err = rare(b, codec.ParseClass)
	case "decisionMark":
		err = rare(b, codec.ParseDecisionMark)
	case "cut":
		err = rare(b, func(b []byte) (x codec.Cut, err error) { return x, codec.ParseCut(&x, b) })
	case "feedbackMark4":
		err = rare(b, codec.ParseFeedbackMark)
	case "snapshot":
		err = rare(b, codec.ParseSnapshot)
	case "reject":
		err = rare(b, codec.ParseReject)
	case "decisionReply", "stored", "error": // clients read them: the schema is all there is
	default:
		err = fmt.Errorf("no codec of %s", name)
	}
	return err
}

// rare parses a record, to which it adds the checksum that examples do not have.
func rare[T any](b []byte, parse func([]byte) (T, error)) error {
	b = append([]byte(nil), b...)
	if b[0] == 0xde { // a map of more than 15 keys
		b[2]++
	} else {
		b[0]++
	}
	sum := crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))
	_, err := parse(binary.BigEndian.AppendUint32(append(b, "\xa3crc\xce"...), sum))
	return err
}

// packed writes a JSON value as MessagePack, texts that the schema says are base64 as bin
// and whole numbers as integers where it asks for those.
func (d *described) packed(t *testing.T, s map[string]any, v any) []byte {
	t.Helper()
	var b bytes.Buffer
	e := msgpack.NewEncoder(&b)
	e.SetSortMapKeys(true) // as the programs write names
	if err := e.Encode(d.native(t, s, v)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
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
		each := asList(s["prefixItems"])
		out := []any{}
		for i, inner := range v {
			if i < len(each) {
				of = each[i].(map[string]any)
			}
			out = append(out, d.native(t, of, inner))
		}
		return out
	}
	return v
}
