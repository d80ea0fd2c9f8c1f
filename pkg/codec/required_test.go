package codec

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/vmihailenco/msgpack/v5"
)

// keysOf returns the keys of a record, in order.
func keysOf(t *testing.T, b []byte) (keys []string) {
	t.Helper()
	d := msgpack.NewDecoder(bytes.NewReader(b))
	n, err := d.DecodeMapLen()
	for ; n > 0 && err == nil; n-- {
		var key string
		if key, err = d.DecodeString(); err == nil {
			keys = append(keys, key)
			err = d.Skip()
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// No key of a record of ours may be missing, and none may be of another type.
func TestKeysAreRequired(t *testing.T) {
	for _, k := range packedKinds() {
		if strings.HasPrefix(k.name, "context") || strings.HasPrefix(k.name, "outcome") {
			continue // of users, mostly optional
		}
		b := k.append()
		for _, key := range keysOf(t, b) {
			if key == "crc" {
				continue // must be there, at the end: see TestRareChecksum
			}
			at := bytes.Index(b, append([]byte{0xa0 | byte(len(key))}, key...))
			gone := bytes.Clone(b)
			gone[at+1] = '_'
			var e *Error
			form4 := strings.HasPrefix(k.name, "feedback-mark-4")
			if _, err := k.parse(gone); form4 && key == "v" { // read as of another form
				if !errors.Is(err, ErrCorrupt) {
					t.Errorf("%s without %s: %v", k.name, key, err)
				}
			} else if optionalKey(k.name, key) {
				if key != "stage" && err != nil && !errors.Is(err, errCRC) {
					t.Errorf("%s without %s: %v", k.name, key, err)
				}
			} else if !errors.Is(err, errMissing) || !errors.As(err, &e) || e.Field != key {
				t.Errorf("%s without %s: %v", k.name, key, err)
			}
			end := at + 1 + len(key)
			boolean := append(append(bytes.Clone(b[:end]), mpTrue), b[end+valueLength(t, b[end:]):]...)
			if _, err := k.parse(boolean); !errors.As(err, &e) || e.Field != key {
				t.Errorf("%s with %s: true: %v", k.name, key, err)
			}
		}
	}
}

// optionalKey reports whether records of a kind may leave a key out.
func optionalKey(name, key string) bool {
	switch key {
	case "prices", "outcomes", "mode", "would", "unit", "first":
		return !strings.HasPrefix(name, "cut")
	case "stage": // see TestStage
		return true
	case "era":
		return !strings.HasPrefix(name, "feedback-mark-4")
	case "cut":
		return strings.HasPrefix(name, "reject")
	case "rejects", "rejects_from", "rejects_to":
		return strings.HasPrefix(name, "decision-mark")
	}
	return key == "guard" || strings.HasPrefix(key, "warm_")
}

func valueLength(t *testing.T, b []byte) int {
	t.Helper()
	r := bytes.NewReader(b)
	if err := msgpack.NewDecoder(r).Skip(); err != nil {
		t.Fatal(err)
	}
	return len(b) - r.Len()
}

// Nor may a key of the records inside.
func TestInnerKeysAreRequired(t *testing.T) {
	e := sampleEpoch()
	mark := golden(t, "feedback-mark")
	for _, key := range []string{"partition", "released", "decisions_from", "decisions_time", "outcomes_from",
		"outcomes_time"} {
		_, err := ParseFeedbackMark(replace(mark, key, "_"+key[1:]))
		checkError(t, err, "positions[0]."+key, errMissing)
	}
	_, err := ParseFeedbackMark(replace(mark, "offset", "_ffset"))
	checkError(t, err, "epochs[0].offset", errMissing)
	_, err = ParseEpoch(replace(AppendEpoch(nil, &e), "size", "_ize"))
	checkError(t, err, "files[0].size", errMissing)
}

// Where what is inside is lists, each has one value for each field, and of its type.
func TestRows(t *testing.T) {
	m, c := sampleCutMark(), sampleCut()
	mark, cut := string(AppendFeedbackMark(nil, &m)), string(AppendCut(nil, &c))
	for _, x := range []struct {
		b, old, new string
		field       string
		err         error
	}{
		{mark, "limits\x94\x01", "limits\x93\x01", "limits", errRow},
		{mark, "limits\x94\x01", "limits\x94\xa1", "limits.heart", errWantInt},
		{mark, "eras\x92\x92\x01\x00\x92", "eras\x92\x92\x01\x00\x80", "eras[1]", errWantList},
		{mark, "eras\x92", "eras\xc0", "eras", errWantList},
		{mark, "positions\x92\x9b", "positions\x92\x9a", "positions[0]", errRow},
		{mark, "\x92\xcd\x01\xc4\xcd\x01\xc4", "\x92\xcd\x01\xc4\xa2\x01\xc4", "positions[1].done[1].to", errWantInt},
		{mark, "\xce\xff\xff\xff\xff", "\xd2\xff\xff\xff\xff", "positions[0].decisions_sum", errRange},
		{mark, "lost\x91\x94\xa8outcomes\x01", "lost\x91\x94\xa8outcomes\xc0", "lost[0].partition", errWantInt},
		{cut, "outcomes\x91\x93\x01\x01", "outcomes\x91\x93\x01\xa0", "outcomes[0].next", errWantInt},
		{cut, "outcomes\x91\x93\x01\x01", "outcomes\x91\x93\x01\x00", "outcomes[0]", errNext},
		{cut, "outcomes\x91\x93\x01", "outcomes\x91\x93\xff", "outcomes[0]", errPartitions},
		{cut, "\x93\x02\xcf", "\x93\x00\xcf", "decisions[1]", errPartitions},
		{cut, "cut\xcc\xfa", "cut\xd0\xfa", "cut", errCutNumber},
		{cut, "outcomes\x91\x93", "outcomes\xcb\x93", "outcomes", errWantList},
	} {
		var err error
		if b := replace([]byte(x.b), x.old, x.new); x.b == cut {
			err = ParseCut(new(Cut), repair(b))
		} else {
			_, err = ParseFeedbackMark(repair(b))
		}
		checkError(t, err, x.field, x.err)
	}
}

// The library would cut a float to an integer.
func TestRareFloats(t *testing.T) {
	x := sampleDecisionMark()
	b := replace(AppendDecisionMark(nil, &x), "\xa1n\xcd\x03\xe8", "\xa1n\xca\x44\x7a\x00\x00") // 1000.0
	_, err := ParseDecisionMark(b)
	checkError(t, err, "n", errWantInt)
}

// Keys that are not known are skipped, whatever they hold.
func TestRareUnknownKeys(t *testing.T) {
	x := sampleDecisionMark()
	b := AppendDecisionMark(nil, &x)
	b = b[:len(b)-crcBytes]
	b[0]++
	for _, more := range []string{"\xa1x\xc7\x01\x05\xff", "\xa1x\x92\x01\x81\x02\xc0", "\xa1x\xd6\xff\x00\x00\x00\x00",
		"\xa1x\xc4\x01\x00"} {
		got, err := ParseDecisionMark(repair([]byte(string(b) + more + crcKey + "0000")))
		if err != nil || got != x {
			t.Errorf("%q: %+v, %v", more, got, err)
		}
	}
}

// What a rare record holds does not change with the bytes it came from.
func TestRareSharesNothing(t *testing.T) {
	x := sampleReject()
	b := AppendReject(nil, &x)
	got, err := ParseReject(b)
	clear(b)
	if err != nil || !same(got, x) {
		t.Errorf("%+v, %v", got, err)
	}
}
