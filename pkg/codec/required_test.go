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
	for _, k := range kinds() {
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
			if _, err := k.parse(gone); strings.HasPrefix(key, "warm_") { // optional: a new learner's record has none
				if !errors.Is(err, errCRC) {
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
	m, e := sampleFeedbackMark(), sampleEpoch()
	for _, key := range []string{"partition", "released", "decisions_from", "decisions_time", "outcomes_through", "outcomes_from", "outcomes_time"} {
		_, err := ParseFeedbackMark(replace(AppendFeedbackMark(nil, &m), key, "_"+key[1:]))
		checkError(t, err, "positions[0]."+key, errMissing)
	}
	_, err := ParseFeedbackMark(replace(AppendFeedbackMark(nil, &m), "offset", "_ffset"))
	checkError(t, err, "epochs[0].offset", errMissing)
	_, err = ParseEpoch(replace(AppendEpoch(nil, &e), "size", "_ize"))
	checkError(t, err, "files[0].size", errMissing)
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
	for _, more := range []string{"\xa1x\xc7\x01\x05\xff", "\xa1x\x92\x01\x81\x02\xc0", "\xa1x\xd6\xff\x00\x00\x00\x00", "\xa1x\xc4\x01\x00"} {
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
