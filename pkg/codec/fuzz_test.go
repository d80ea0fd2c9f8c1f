package codec

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"math"
	"reflect"
	"testing"
	"unicode/utf8"
)

// seed adds the samples, and their golden bytes' neighbours, to the corpus.
func seed(f *testing.F, more ...string) {
	for _, k := range kinds() {
		b := k.append()
		f.Add(b)
		f.Add(b[:len(b)/2])
	}
	for _, s := range more {
		f.Add([]byte(s))
	}
}

// again checks that x, which was parsed, is written to bytes that mean x.
func again[T any](t *testing.T, x *T, appendTo func([]byte, *T) []byte, parse func(*T, []byte) error) {
	t.Helper()
	var back T
	b := appendTo(nil, x)
	if err := parse(&back, b); err != nil || !same(back, *x) {
		t.Fatalf("%v\n got %+v\nwant %+v\nfrom %q", err, back, *x, b)
	}
}

// pure checks that parsing into used memory gives what it gives in fresh memory.
func pure[T any](t *testing.T, used *T, b []byte, parse func(*T, []byte) error) (fresh T, ok bool) {
	t.Helper()
	err, usedErr := parse(&fresh, b), parse(used, b)
	if (err == nil) != (usedErr == nil) || err != nil && err.Error() != usedErr.Error() {
		t.Fatalf("fresh: %v, used: %v", err, usedErr)
	}
	if err == nil && !same(fresh, *used) {
		t.Fatalf("fresh: %+v\nused: %+v", fresh, *used)
	}
	return fresh, err == nil
}

func FuzzParseContext(f *testing.F) {
	seed(f,
		`{"id":"e","specversion":"1.0","source":"/x","type":"y","data":{"features":{"hour":14},"actions":["a"]}}`,
		`{"data":{"id":"i","features":[1,-2.5e3]},"specversion":"1.0","id":"e","actions":7}`,
		`{"id":"\u00e9\ud83d\ude00\n","features":{"a\"b":1e-7,"t":"\\"},"v":1,"more":[{"x":null}]}`,
		"\x82\xa8features\x93\x01\xca\x3f\x00\x00\x00\xd3\xff\xff\xff\xff\xff\xff\xff\xff\xa1x\xc7\x01\x05\xff",
	)
	f.Add([]byte("{\"unit\":\"use\xff-17\",\"v\":1}"))
	f.Fuzz(func(t *testing.T, b []byte) {
		used := sampleContext()
		c, ok := pure(t, &used, b, ParseContext)
		if !ok {
			return
		}
		if IsJSON(b) && !json.Valid(b) {
			t.Fatalf("accepted what is not JSON: %q", b)
		}
		again(t, &c, AppendContext, ParseContext)
		if c.Validate() == nil && c.CheckUnit() == nil { // only models with units check them
			again(t, &c, AppendContextJSON, ParseContext)
		}
	})
}

func FuzzParseOutcome(f *testing.F) {
	seed(f,
		`{"id":"e","specversion":"1.0","data":{"id":"i","reward":1}}`,
		`{"id":"i","withdrawn":false,"loss":-0.0,"outcome_id":null}`,
		`{"id":"i","outcomes":{"quality":0.9,"tokens":null},"loss":null}`,
		"\x82\xa2id\xa1i\xa8outcomes\x82\xa1a\xc0\xa1b\xca\x3f\x00\x00\x00",
		"\x82\xa2id\xc4\x01a\xa4loss\xca\x3f\x00\x00\x00",
	)
	f.Fuzz(func(t *testing.T, b []byte) {
		used := sampleOutcome()
		o, ok := pure(t, &used, b, ParseOutcome)
		if !ok {
			return
		}
		if IsJSON(b) && !json.Valid(b) {
			t.Fatalf("accepted what is not JSON: %q", b)
		}
		again(t, &o, AppendOutcome, ParseOutcome)
		if o.Validate() == nil {
			again(t, &o, AppendOutcomeJSON, ParseOutcome)
		}
	})
}

func FuzzParseDecision(f *testing.F) {
	x := sampleRepeat()
	seed(f, string(bytes.Replace(AppendDecision(nil, &x), []byte("\xa4unit"), []byte("\xa4none"), 1)))
	f.Fuzz(func(t *testing.T, b []byte) {
		used := sampleDecision()
		if d, ok := pure(t, &used, b, ParseDecision); ok && d.Validate() == nil {
			again(t, &d, AppendDecision, ParseDecision)
			stored(t, d, AppendDecision, ParseDecision, withContext(d, d.Context))
			if !json.Valid(AppendDecisionJSON(nil, &d, "", false)) {
				t.Fatalf("the reply to %+v is not JSON", d)
			}
		}
	})
}

func FuzzParseFeedback(f *testing.F) {
	x := sampleRepeatFeedback()
	seed(f, string(bytes.Replace(AppendFeedback(nil, &x), []byte("\xa4unit"), []byte("\xa4none"), 1)))
	f.Fuzz(func(t *testing.T, b []byte) {
		used := sampleFeedback()
		if x, ok := pure(t, &used, b, ParseFeedback); ok && x.Validate() == nil {
			again(t, &x, AppendFeedback, ParseFeedback)
			stored(t, x, AppendFeedback, ParseFeedback, withContext(x, x.Context))
		}
	})
}

func FuzzParseCut(f *testing.F) {
	seed(f, "\x85\xa1v\x01\xa3cut\x01\xa4time\x00\xa9decisions\x91\x93\x00\x01\x00\xa8outcomes\x90"+crcKey+"0000")
	f.Fuzz(func(t *testing.T, b []byte) {
		used := sampleCut()
		if x, ok := pure(t, &used, repair(b), ParseCut); ok {
			x.V = Version
			again(t, &x, AppendCut, ParseCut)
		}
	})
}

func FuzzParseRare(f *testing.F) {
	seed(f, "\x81\xa1v\x01", "\x82\xa1v\x01\xa5files\xdd\x7f\xff\xff\xff")
	for _, pos := range []OldPosition{{Ahead: []int64{7}, AheadBits: []byte{6, 0x81}},
		{Released: math.MaxInt64 - 15, AheadBits: []byte{6, 0x81}}} {
		f.Add(appendOldMark(&OldMark{Positions: []OldPosition{pos}}))
	}
	m := sampleCutMark()
	b := AppendFeedbackMark(nil, &m)
	for _, key := range []string{"eras", "limits", "positions", "lost"} {
		at := bytes.Index(b, append([]byte{0xa0 | byte(len(key))}, key...)) + 1 + len(key)
		for _, head := range []byte{mpNil, 0x90, 0x91, 0x9f} {
			f.Add(append(append(bytes.Clone(b[:at]), head), b[at+1:]...))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		b = repair(b)
		againRare(t, b, AppendEpoch, ParseEpoch)
		againRare(t, b, AppendClass, ParseClass)
		againRare(t, b, AppendFeedbackMark, ParseFeedbackMark)
		againRare(t, b, AppendDecisionMark, ParseDecisionMark)
		againRare(t, b, AppendSnapshot, ParseSnapshot)
		againRare(t, b, AppendReject, ParseReject)
	})
}

// repair returns b with the right checksum, if it has any, so that what is wrong
// with the rest is seen.
func repair(b []byte) []byte {
	b = bytes.Clone(b)
	if body := len(b) - crcBytes; body >= 0 && string(b[body:len(b)-4]) == crcKey {
		binary.BigEndian.PutUint32(b[len(b)-4:], crc32.Checksum(b[:body], castagnoli))
	} else if i := bytes.LastIndex(b, []byte(jsonCRC)); i > 0 && IsJSON(b) {
		b = fmt.Appendf(b[:i], "%s%d}", jsonCRC, crc32.Checksum(b[:i], castagnoli))
	}
	return b
}

func againRare[T any](t *testing.T, b []byte, appendTo func([]byte, *T) []byte, parse func([]byte) (T, error)) {
	t.Helper()
	x, err := parse(b)
	if err != nil {
		return
	}
	back, err := parse(appendTo(nil, &x))
	v := func(x *T) reflect.Value { return reflect.ValueOf(x).Elem().FieldByName("V") }
	v(&x).Set(v(&back)) // it is written in the least version that has it
	if err != nil || !same(back, x) {
		t.Fatalf("%v\n got %+v\nwant %+v", err, back, x)
	}
	text := AppendJSON(nil, "", appendTo(nil, &x))
	if !json.Valid(text) {
		t.Fatalf("not JSON: %q", text)
	}
	if back, err = parse(text); err != nil || !same(back, x) && utf8.Valid(b) {
		t.Fatalf("%v\n got %+v\nwant %+v\nfrom %q", err, back, x, text)
	}
}
