package codec

import (
	"errors"
	"math"
	"strings"
	"testing"
)

// TestAssignedCases holds what may be said of a decision of another system, and how what may not is named.
func TestAssignedCases(t *testing.T) {
	for text, want := range map[string]string{
		`null`: "", `{"action":"a"}`: "", `{"action":"a","by":null,"propensity":null,"propensities":null}`: "",
		`{"action":"a","propensity":1}`: "", `{"action":"a","propensity":1e-9,"by":"x"}`: "",
		`{"action":"a","propensities":{"b":0.3333333,"a":0.6666666}}`: "",
		`{}`:            "assigned.action: corrupt record: the key is missing",
		`{"action":""}`: "assigned.action: is empty",
		`{"action":7}`:  "assigned.action: corrupt record: want text", `"a"`: "assigned: corrupt record: want a map",
		`{"action":"a","propensity":0}`:    "assigned.propensity: must be in (0,1]",
		`{"action":"a","propensity":-0.1}`: "assigned.propensity: must be in (0,1]",
		`{"action":"a","propensity":1.01}`: "assigned.propensity: must be in (0,1]",
		`{"action":"a","propensity":"1"}`:  "assigned.propensity: corrupt record: want a number",
		`{"action":"a","propensities":{"a":0.5}}`: "assigned.propensities: has probabilities that do " +
			"not sum to 1",
		`{"action":"a","propensities":{"a":0.5,"b":2}}`:        "assigned.propensities.b: must be in [0,1]",
		`{"action":"a","propensities":{"b":1}}`:                "assigned.propensities.a: must be in (0,1]",
		`{"action":"a","propensities":{"b":1,"a":0}}`:          "assigned.propensities.a: must be in (0,1]",
		`{"action":"a","propensities":{"a":.5,"a":.5}}`:        "assigned.propensities",
		`{"action":"a","propensity":1,"propensities":{"a":1}}`: "assigned.propensity: is given beside propensities",
		`{"action":"a","action":"b"}`:                          "assigned.action: corrupt record: the key occurs twice",
	} {
		var c Context
		err := ParseContext(&c, []byte(`{"id":"x","assigned":`+text+`}`))
		if err == nil {
			err = c.Validate()
		}
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestAssignedVersion holds that programs which know of no such rounds refuse the records by name, and that all other
// records keep the version that they read.
func TestAssignedVersion(t *testing.T) {
	plain, assigned := sampleContext(), sampleAssigned()
	d, e, f, g := sampleDecision(), sampleExternal(0), sampleFeedback(), sampleExternalFeedback(UnknownLaw)
	for i, b := range [][]byte{AppendContext(nil, &plain), AppendDecision(nil, &d), AppendFeedback(nil, &f),
		AppendContext(nil, &assigned), AppendDecision(nil, &e), AppendFeedback(nil, &g)} {
		want := "\xa1v\x01"
		if i >= 3 {
			want = "\xa1v\x04"
		}
		if !strings.Contains(string(b[:8]), want) {
			t.Errorf("record %d begins with %x", i, b[:8])
		}
	}
	if b := AppendContextJSON(nil, &assigned); !strings.Contains(string(b), `"v":4`) {
		t.Errorf("%s", b)
	}
}

// TestGridWraps holds that probabilities whose sum is 2⁶⁴ units too much do not sum to 1.
func TestGridWraps(t *testing.T) {
	law := make([]float64, MaxActions)
	for i := range 1<<11 + 1 {
		law[i] = 1
	}
	if err := checkGrid(law); !errors.Is(err, errSum) {
		t.Error(err)
	}
}

// TestFill holds that a law which is known in part can be drawn from, has the propensity that was said, and is the
// same when it is filled again.
func TestFill(t *testing.T) {
	for _, k := range []int{2, 3, 7, 1000} {
		for _, p := range []float64{0x1p-53, 1e-12, 0.1, 1. / 3, 0.5 + 0x1p-53, 1 - 0x1p-53, 1} {
			for _, u := range []Unknown{UnknownRest, UnknownLaw} {
				law, again := make([]float64, k), make([]float64, k)
				for i := range k {
					law[i] = float64(i) // of another round
				}
				got := u.Fill(law, k/2, p)
				if err := checkGrid(law); err != nil {
					t.Fatalf("%d actions, %v: %v", k, p, err)
				}
				own, rest := law[k/2], 1-p
				switch {
				case u == UnknownLaw && (own != 1 || got != UnknownLaw):
					t.Errorf("%d actions, %v: %v of the action, %d is unknown", k, p, own, got)
				case u == UnknownRest && (math.Abs(p-own) > 0x1p-54 || (got == 0) != (p == 1)):
					t.Errorf("%d actions, %v: %v of the action, %d is unknown", k, p, own, got)
				case u == UnknownRest && math.Abs(law[0]-rest/float64(k-1)) > 0x1p-52:
					t.Errorf("%d actions, %v: %v of the first", k, p, law[0])
				}
				u.Fill(again, k/2, own)
				for i := range law {
					if law[i] != again[i] {
						t.Fatalf("%d actions, %v: filled again action %d has %v, not %v", k, p, i, again[i], law[i])
					}
				}
			}
		}
	}
}

// TestNullsAreChecked holds that null stands for what is unknown as a whole, of a round of mode external.
func TestNullsAreChecked(t *testing.T) {
	d := sampleExternal(UnknownRest)
	text := string(AppendJSON(nil, "", AppendDecision(nil, &d)))
	for _, c := range []struct {
		from, to string
		want     error
	}{
		{"", "", nil},
		{`"a":null`, `"a":0.1`, errHalfLaw},
		{`"propensity":0.30000000000000004`, `"propensity":null,"x":0`, errUnequal},
		{`0.30000000000000004`, `0`, errHalfLaw},
		{`0.30000000000000004`, `1`, errHalfLaw},
		{`"mode":"external",`, "", errUnsaid},
		{`"mode":"external"`, `"mode":"shadow"`, errUnsaid},
	} {
		bad := strings.ReplaceAll(text, c.from, c.to)
		var got Decision
		err := ParseDecision(&got, []byte(bad))
		if err == nil {
			err = got.Validate()
		}
		if !errors.Is(err, c.want) || err == nil != (c.want == nil) {
			t.Errorf("%s: %v, want %v", bad, err, c.want)
		}
	}
}

// TestRoundOfExternal holds what a file of feedback says of propensities that are unknown.
func TestRoundOfExternal(t *testing.T) {
	for u, want := range map[Unknown]Round{0: {Propensity: 0.5, Propensities: []float64{0.25, 0.5, 0.25}},
		UnknownRest: {Propensity: 0.3}, UnknownLaw: {Unsaid: true}} {
		f := sampleExternalFeedback(u)
		packed := AppendFeedback(nil, &f)
		for _, b := range [][]byte{packed, AppendJSON(nil, "", packed)} {
			var o Round
			err := ParseRound(&o, b)
			if err != nil && !strings.Contains(err.Error(), "time") { // ns are of MessagePack
				t.Error(err)
			}
			if err == nil && (math.Abs(o.Propensity-want.Propensity) > 1e-15 ||
				len(o.Propensities) != len(want.Propensities) || o.Unsaid != want.Unsaid || !o.Decided ||
				o.Kind != Loss) {
				t.Errorf("%d is unknown: %+v", u, o)
			}
		}
	}
}
