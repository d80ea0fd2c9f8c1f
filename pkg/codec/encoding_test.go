package codec

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// stored holds what is true of every record that a model in JSON has: it is JSON, it reads as want,
// into used memory alike, and is written again to the same bytes.
func stored[T any](t failer, x T, appendTo func([]byte, *T) []byte, parse func(*T, []byte) error, want T) {
	t.Helper()
	b := AppendJSON([]byte("before"), "", appendTo(nil, &x))[len("before"):]
	if !json.Valid(b) {
		t.Fatalf("not JSON: %q", b)
	}
	var fresh T
	if err := parse(&fresh, b); err != nil || !same(fresh, want) {
		t.Fatalf("%v\n got %+v\nwant %+v\nfrom %q", err, fresh, want, b)
	}
	used := x
	if err := parse(&used, b); err != nil || !same(used, want) {
		t.Fatalf("into used memory: %v\n got %+v\nwant %+v", err, used, want)
	}
	if again := AppendJSON(nil, "", appendTo(nil, &fresh)); string(again) != string(b) {
		t.Fatalf("written again: %q, was %q", again, b)
	}
}

// withContext returns a record with the context that is read where raw was written.
func withContext[T any](x T, raw []byte) T {
	if text := CarriedContext(nil, raw); text[0] == '{' {
		raw = text
	}
	reflect.ValueOf(&x).Elem().FieldByName("Context").SetBytes(raw)
	return x
}

// genCarried draws the bytes of a context that came: in both encodings, as a CloudEvent, with keys that no
// context has, with white space, and bytes that are no context.
func genCarried() *rapid.Generator[[]byte] {
	return rapid.Custom(func(t *rapid.T) []byte {
		c := genContext().Draw(t, "context")
		text := AppendContextJSON(nil, &c)
		switch rapid.IntRange(0, 6).Draw(t, "form") {
		case 0:
			return text
		case 1:
			return []byte(` {"specversion":"1.0","id":"e","data":` + string(text) + "}\n")
		case 2:
			return append([]byte("{\"more\":[{\"x\":\"\xff\"}],\r\n\t"), text[1:]...)
		case 3:
			b := AppendContext(nil, &c)
			b[0]++
			return append(b, "\xa4more\x93\xd4\x01\x00\x81\x07\xc4\x01x\xcf\xff\xff\xff\xff\xff\xff\xff\xff"...)
		case 4:
			return rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")
		}
		return AppendContext(nil, &c)
	})
}

// TestStoredEqual: records in JSON read to the bit as those in MessagePack, and their contexts mean the same.
func TestStoredEqual(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, f, raw := genDecision().Draw(t, "d"), genFeedback().Draw(t, "f"), genCarried().Draw(t, "raw")
		d.Context, f.Context = raw, raw
		stored(t, d, AppendDecision, ParseDecision, withContext(d, raw))
		stored(t, f, AppendFeedback, ParseFeedback, withContext(f, raw))
		var came, carried Context
		unread, err := ReadContext(&came, raw, nil)
		if err != nil {
			return
		}
		text := CarriedContext(nil, raw)
		more, err := ReadContext(&carried, text, nil)
		if err != nil || !same(came, carried) || unread != more {
			t.Fatalf("%v\n got %+v\nwant %+v\nfrom %q", err, carried, came, text)
		}
		if !SameContext(raw, text) || !bytes.Equal(CarriedContext(nil, text), text) {
			t.Fatalf("%q is carried as %q", raw, text)
		}
	})
}

// TestStoredRare: so do all rare records.
func TestStoredRare(t *testing.T) {
	text := rapid.StringMatching(`[\pL"\\/<>& ]{0,9}`)
	rapid.Check(t, func(t *rapid.T) {
		n, b, s := rapid.Int64().Draw(t, "n"), rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"), text.Draw(t, "text")
		wide := rapid.Uint32().Draw(t, "sum")
		x := Epoch{V: 1, Epoch: n, Name: s, Model: append(b, '!'), Files: []FileRef{{Name: s, Size: n}}, WarmTo: n}
		m4 := FeedbackMark{V: 4, Cut: n, Limits: Limits{Heart: 1, Bytes: n}, Guard: b, Candidates: b,
			Positions: []Position{{Round: n, DecisionsSum: wide, Done: []Run{{n, n}}}}}
		r := Reject{V: 1, Offset: n, Detail: s, ID: s, Bytes: b}
		c := Cut{V: 1, Cut: max(1, n), Time: n, Decisions: []Range{{Partition: 0, Next: max(1, n), Sum: wide}}}
		equalRare(t, x, AppendEpoch, ParseEpoch)
		equalRare(t, m4, AppendFeedbackMark, ParseFeedbackMark)
		equalRare(t, r, AppendReject, ParseReject)
		equalRare(t, c, AppendCut, func(b []byte) (c Cut, err error) { return c, ParseCut(&c, b) })
		equalRare(t, Class{V: 1, File: s, Bytes: b}, AppendClass, ParseClass)
		equalRare(t, Snapshot{V: 1, Nonce: s, Bytes: b, Era: n}, AppendSnapshot, ParseSnapshot)
		equalRare(t, DecisionMark{V: 1, N: n, Mode: s}, AppendDecisionMark, ParseDecisionMark)
	})
}

func equalRare[T any](t *rapid.T, x T, appendTo func([]byte, *T) []byte, parse func([]byte) (T, error)) {
	t.Helper()
	packed := appendTo(nil, &x)
	want, err := parse(packed)
	if err != nil {
		t.Fatal(err)
	}
	b := AppendJSON(nil, "kind", packed)
	if got, err := parse(b); err != nil || !same(got, want) || !json.Valid(b) {
		t.Fatalf("%v\n got %+v\nwant %+v\nfrom %q", err, got, want, b)
	}
}

// TestStoredRequired: no key of a record in JSON may be missing either.
func TestStoredRequired(t *testing.T) {
	for _, k := range kinds() {
		if _, ok := controlOf(k.name); !ok || !IsJSON(k.append()) || strings.HasPrefix(k.name, "feedback-mark-4") {
			continue
		}
		var keys map[string]json.RawMessage
		if err := json.Unmarshal(k.append(), &keys); err != nil {
			t.Fatal(err)
		}
		delete(keys, typeKey)
		for key, value := range keys {
			if key == "crc" || optionalKey(k.name, key) {
				continue
			}
			gone := bytes.Replace(k.append(), []byte(`"`+key+`":`), []byte(`"_`+key[1:]+`":`), 1)
			var e *Error
			if _, err := k.parse(gone); !errors.Is(err, errMissing) || !errors.As(err, &e) || e.Field != key {
				t.Errorf("%s without %s: %v", k.name, key, err)
			}
			other := bytes.Replace(k.append(), []byte(`"`+key+`":`+string(value)), []byte(`"`+key+`":true`), 1)
			if _, err := k.parse(other); !errors.As(err, &e) || e.Field != key {
				t.Errorf("%s with %s: true: %v", k.name, key, err)
			}
		}
	}
}

// TestStoredTooLarge: what would not fit a log as JSON stays MessagePack.
func TestStoredTooLarge(t *testing.T) {
	d := sampleDecision()
	d.Context = bytes.Repeat([]byte{0xff}, MaxRecordBytes*3/4)
	packed := AppendDecision(nil, &d)
	if b := Stored(nil, JSON, "", packed); EncodingOf(b) != MessagePack {
		t.Errorf("%d bytes are stored as JSON of %d", len(packed), len(b))
	}
	d.Context = d.Context[:len(d.Context)*9/10]
	if b := Stored(nil, JSON, "", AppendDecision(nil, &d)); EncodingOf(b) != JSON {
		t.Error("what fits is not JSON")
	}
}

// TestWholeNumbers: whole numbers in JSON keep all their bits.
func TestWholeNumbers(t *testing.T) {
	for _, c := range []struct {
		in   string
		want int64
		ok   bool
	}{
		{"9223372036854775807", math.MaxInt64, true}, {"9007199254740993", 1<<53 + 1, true}, {"-1", -1, true},
		{"9223372036854775808", 0, false}, {"-", 0, false}, {"01", 0, false}, {"1e3", 1000, true}, {"1.5", 0, false},
		{"1-1", 0, false}, {"", 0, false}, {"true", 0, false},
	} {
		r := reader{b: []byte(c.in), json: true}
		if got := r.int(); got != c.want || (r.err == nil) != c.ok {
			t.Errorf("%q: %d, %v", c.in, got, r.err)
		}
	}
}
