package codec

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
)

func sampleRound() Round {
	c := sampleContext()
	return Round{Context: c, Decided: true, Time: 1612456289246000000, Action: "a", Propensity: .25,
		LawActions: []string{"a", "b"}, Propensities: []float64{.25, .75},
		Kind: Reward, Value: 2.5, OutcomeTime: 1612456299246000000, Weight: 10, Baseline: []string{"b", "a"},
		Defaulted: true,
		Inactive:  true, Activated: true}
}

func TestRoundAgain(t *testing.T) {
	for _, change := range []func(o *Round){
		func(*Round) {},
		func(o *Round) { o.Time, o.OutcomeTime, o.Kind, o.Value, o.Weight = NoTime, NoTime, 0, 0, 0 },
		func(o *Round) { o.Kind, o.Value = Withdrawn, 0 },
		func(o *Round) { o.LawActions = []string{strings.Repeat("a", 32), strings.Repeat("b", MaxNameBytes)} },
		func(o *Round) { o.Kind, o.Value, o.Actions = Loss, -3, nil },
		func(o *Round) { // one propensity alone tells that it was decided, beside one feature
			o.Features, o.Actions, o.Propensity, o.Time, o.Weight = o.Features[:1], nil, 0, NoTime, 0
			o.LawActions, o.Propensities = []string{"a"}, []float64{1}
		},
		func(o *Round) { // or beside one number
			o.Features, o.Vector, o.Actions, o.Propensity = nil, []float64{1}, nil, 0
			o.Time, o.Weight = NoTime, 0
			o.LawActions, o.Propensities = []string{"a"}, []float64{1}
		},
		func(o *Round) {
			o.Kind, o.Value = Named, 0
			o.Values = []TimedValue{{Value{Name: "quality", X: .9}, 7}, {Value{Name: "cost", Withdrawn: true}, NoTime},
				{Value{Name: "z", Withdrawn: true}, -1e18}, {Value{Name: strings.Repeat("y", 40), X: -1e-300}, NoTime}}
		},
		func(o *Round) { o.Kind, o.Value, o.Values = Named, 0, []TimedValue{{Value{Name: "q", X: .5}, NoTime}} },
		func(o *Round) {
			o.Kind, o.Value, o.Values = Named, 0, []TimedValue{{Value{Name: "q", X: .5}, NoTime}}
			o.Arms = []Arm{{"a", []Value{{Name: "q", X: 1}}}}
		},
		func(o *Round) {
			o.Arms = []Arm{{"a", []Value{{Name: "cost", X: 3e-5}, {Name: "q", X: 1}}}, {"b", []Value{{Name: "q"}}}}
		},
	} {
		want := sampleRound()
		change(&want)
		for _, b := range [][]byte{AppendRound(nil, &want), AppendRoundJSON(nil, &want)} {
			if IsJSON(b) && !json.Valid(b) {
				t.Fatalf("not JSON: %s", b)
			}
			if len(want.Values)+len(want.Arms) > 0 && versionOf(b) != saysMore {
				t.Errorf("an older program would pass over outcomes: %q", b)
			}
			var got Round
			if err := ParseRound(&got, b); err != nil || !same(got, want) {
				t.Errorf("%v\n got %+v\nwant %+v\nof %q", err, got, want, b)
			}
		}
	}
}

// TestRoundKeysTwice holds that each key that a round has is read once.
func TestRoundKeysTwice(t *testing.T) {
	for key, value := range map[string]string{
		"v": "1", "id": `"i"`, "features": "{}", "actions": "null", "context": "{}", "unit": `"u"`,
		"first": `{"partition":0,"n":1}`, "time": "null", "action": `"a"`, "propensity": "1", "propensities": `{"a":1}`,
		"weight": "1", "baseline": `["a"]`, "inactive": "true", "loss": "1", "reward": "1", "withdrawn": "true",
		"activated": "true", "outcome_time": "null", "closed_at": "null", "defaulted": "true", "fate": `"imputed"`,
		"outcomes": `{}`, "arms": "{}", "stage": "1",
	} {
		var o Round
		once := `"` + key + `":` + value
		if err := ParseRound(&o, []byte("{"+once+"}")); err != nil {
			t.Errorf("%s: %v", key, err)
		}
		err := ParseRound(&o, []byte("{"+once+","+once+"}"))
		if !errors.Is(err, errTwice) && !errors.Is(err, errTwoWorth) {
			t.Errorf("%s twice: %v", key, err)
		}
	}
}

// TestRoundDecided holds what of a round says that it was decided, beside its action.
func TestRoundDecided(t *testing.T) {
	for text, want := range map[string]bool{
		`"id":"i"`: false, `"loss":1`: false, `"features":{}`: true, `"actions":null`: true, `"context":{}`: true,
		`"propensity":0.5`: true, `"propensities":{"a":1}`: true, `"weight":2`: true,
		`"time":"2021-02-04T16:45:00Z"`: true,
	} {
		for _, action := range []string{"", `"action":"a",`} {
			var o Round
			if err := ParseRound(&o, []byte("{"+action+text+"}")); err != nil || o.Decided != (want && action != "") {
				t.Errorf("%s%s: decided %v, %v", action, text, o.Decided, err)
			}
		}
	}
}

// TestRoundParts holds what is read of keys with parts: the first round of a unit, whether the baseline is the round's
// or its context's, and of the arms the numbers.
func TestRoundParts(t *testing.T) {
	share := sampleContext()
	share.Baseline = []Share{{Name: "b", P: 1}}
	packed := func(o Round, keys ...string) []byte { // the context between other keys
		b := append(appendMap(nil, 1+len(keys)/2), strings.Join(keys, "")...)
		return appendBytes(appendKey(b, "context"), AppendContext(nil, &o.Context))
	}
	for _, c := range []struct {
		in   []byte
		want Round
	}{
		{[]byte(`{"first":{"partition":0,"n":1}}`), Round{Repeat: true}},
		{[]byte(`{"first":"of all"}`), Round{}},
		{packed(Round{Context: share}), Round{Baseline: []string{"b"}}},
		{packed(Round{Context: share}, "\xa8baseline", "\x91\xa1a"), Round{Baseline: []string{"a"}}},
		{[]byte(`{"arms":{"a":{"note":"x","cost":2},"b":{}}}`),
			Round{Arms: []Arm{{"a", []Value{{Name: "cost", X: 2}}}, {Action: "b"}}}},
		{[]byte(`{"outcomes":{"a":{"fate":"skipped"},"b":2}}`),
			Round{Values: []TimedValue{{Value{Name: "b", X: 2}, NoTime}}}},
	} {
		var got Round
		err := ParseRound(&got, c.in)
		if got = (Round{Repeat: got.Repeat, Baseline: got.Baseline, Arms: got.Arms, Values: got.Values}); err != nil ||
			!same(got, c.want) {
			t.Errorf("%q: %+v, %v; want %+v", c.in, got, err, c.want)
		}
	}
}

// TestRecordLength holds where one of the records that follow each other in a file ends.
func TestRecordLength(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("\x81\xa1x", n) + "\x80" }
	for in, want := range map[string]struct {
		n          int
		incomplete bool
		err        error
	}{
		"": {0, true, errWantMap}, "\x80": {1, false, nil}, "\x80\x80": {1, false, nil},
		"\x90": {0, false, errWantMap}, "\x81\xa1x": {0, true, errTruncated}, "\x81\xa1x\xc1": {0, false, errNoValue},
		deep(maxDepth - 1): {3*maxDepth - 2, false, nil}, deep(maxDepth): {0, false, errDepth},
	} {
		n, incomplete, err := RecordLength([]byte(in))
		if n != want.n || incomplete != want.incomplete || !errors.Is(err, want.err) {
			t.Errorf("%q: %d, %v, %v; want %+v", in, n, incomplete, err, want)
		}
	}
}

// A 0 is not taken for a key that is not there: the action was played, and the round counts.
func TestRoundWithZeros(t *testing.T) {
	for key, want := range map[string]string{
		"propensity": "propensity: must be in (0,1]", "weight": "weight: must be",
	} {
		var o Round
		err := ParseRound(&o, []byte(`{"id":"x","action":"a","loss":0,"`+key+`":0}`))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", key, err)
		}
	}
}

// A round's JSON without what was decided and came is read as its context.
func TestRoundIsContext(t *testing.T) {
	o := sampleRound()
	want := o.Context
	want.Baseline = []Share{{Name: o.Baseline[0], P: 1}}
	var c Context
	if err := ParseContext(&c, AppendRoundJSON(nil, &o)); err != nil || !same(c, want) {
		t.Errorf("%v: %+v", err, c)
	}
}

func TestRoundOfFeedback(t *testing.T) {
	for _, c := range []struct {
		fate      Fate
		loss      float64
		kind      OutcomeKind
		defaulted bool
	}{{Observed, .5, Loss, false}, {Imputed, 1, Loss, true}, {Skipped, 0, 0, false},
		{WithdrawnRound, 0, Withdrawn, false}} {
		f := sampleFeedback()
		f.Fate, f.Loss = c.fate, c.loss
		x := sampleContext()
		f.Context = AppendContext(nil, &x)
		var o Round
		if err := ParseRound(&o, AppendFeedback(nil, &f)); err != nil {
			t.Fatal(err)
		}
		if !o.Decided || o.Kind != c.kind || o.Value != c.loss || o.Defaulted != c.defaulted ||
			o.Action != f.Actions[f.Action] || o.ID != f.ID ||
			o.Time != f.Time || o.OutcomeTime != f.ClosedAt || !reflect.DeepEqual(o.Propensities, f.Propensities) ||
			!same(o.Features, x.Features) {
			t.Errorf("%v: %+v", c.fate, o)
		}
	}
}

// What a feedback says of named outcomes is read, but for values that stand for silence; its stage tells it from the
// round's last.
func TestRoundOfNamedFeedback(t *testing.T) {
	var o Round
	err := ParseRound(&o, []byte(`{"id":"i","action":"a","propensity":1,"stage":2,"outcomes":{"q":{"fate":"observed",`+
		`"value":0.5,"partition":0,"offset":7},"c":{"fate":"imputed","value":3},"l":{"fate":"skipped"},`+
		`"w":{"fate":"withdrawn"}}}`))
	if want := []TimedValue{{Value{Name: "q", X: .5}, NoTime}, {Value{Name: "w", Withdrawn: true},
		NoTime}}; err != nil || o.Stage != 2 || o.Kind != Named || !reflect.DeepEqual(o.Values, want) {
		t.Errorf("%v: %+v", err, o)
	}
	if err := ParseRound(&o, []byte(`{"context":{"features":{"x":1}},"id":"i"}`)); err != nil || o.ID != "i" ||
		len(o.Features) > 0 { // the context of a round in JSON is what its own keys say
		t.Errorf("%v: %+v", err, o)
	}
	for _, bad := range []string{`{"id":"i","outcomes":{"q":1,"q":2}}`, `{"id":"i","outcomes":{"q":1e999}}`,
		`{"id":"i","outcomes":{"q":"x"}}`, `{"id":"i","v":5}`} {
		if err := ParseRound(&o, []byte(bad)); err == nil {
			t.Errorf("%s is read: %+v", bad, o)
		}
	}
}

func TestRoundOfCloudEvent(t *testing.T) {
	var o Round
	if err := ParseRound(&o,
		[]byte(`{"specversion":"1.0","type":"x","source":"/s","id":"e1","time":"2021-02-04T16:45:00Z",`+
			`"data":{"features":{"h":1},"action":"a","propensity":0.5}}`)); err != nil ||
		o.ID != "e1" || o.Time != 1612457100000000000 || !o.Decided {
		t.Errorf("%v: %+v", err, o)
	}
	if err := ParseRound(&o,
		[]byte(
			`{"specversion":"1.0","type":"x","source":"/s","id":"e2","time":"2021-02-04T16:45:00Z","data":{"id":"e1",`+
				`"reward":1}}`)); err != nil || o.ID != "e1" || o.OutcomeTime != 1612457100000000000 || o.Decided ||
		o.Kind != Reward {
		t.Errorf("%v: %+v", err, o)
	}
}

func FuzzParseRound(f *testing.F) {
	o := sampleRound()
	seed(f, string(AppendRound(nil, &o)), string(AppendRoundJSON(nil, &o)))
	f.Fuzz(func(t *testing.T, b []byte) {
		used := sampleRound()
		got, ok := pure(t, &used, b, ParseRound)
		if n, _, err := RecordLength(b); err == nil && (n < 1 || n > len(b)) {
			t.Fatalf("a record of %d bytes in %d", n, len(b))
		}
		if ok && got.Validate() == nil && len(got.LawActions) == 0 && got.Time == NoTime && got.OutcomeTime == NoTime {
			again(t, &got, AppendRound, ParseRound)
		}
	})
}

// TestRoundTimes holds which times of a round in JSON are taken.
func TestRoundTimes(t *testing.T) {
	for text, ok := range map[string]bool{"1699-12-31T23:59:59Z": false, "1700-01-01T00:00:00Z": true,
		"2200-12-31T23:59:59.5+01:00": true, "2201-01-01T00:00:00Z": false, "2021-02-30T00:00:00Z": false, "": false} {
		var o Round
		if err := ParseRound(&o, []byte(`{"id":"a","time":"`+text+`"}`)); errors.Is(err, errRoundTime) == ok {
			t.Errorf("%s: %v", text, err)
		}
	}
}
