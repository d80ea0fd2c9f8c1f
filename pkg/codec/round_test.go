package codec

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

func sampleRound() Round {
	c := sampleContext()
	return Round{Context: c, Decided: true, Time: 1612456289246000000, Action: "a", Propensity: .25,
		LawActions: []string{"a", "b"}, Propensities: []float64{.25, .75},
		Kind: Reward, Value: 2.5, OutcomeTime: 1612456299246000000, Weight: 10, Baseline: []string{"b", "a"}, Defaulted: true,
		Inactive: true, Activated: true}
}

func TestRoundAgain(t *testing.T) {
	for _, change := range []func(o *Round){
		func(*Round) {},
		func(o *Round) { o.Time, o.OutcomeTime, o.Kind, o.Value, o.Weight = NoTime, NoTime, 0, 0, 0 },
		func(o *Round) { o.Kind, o.Value = Withdrawn, 0 },
		func(o *Round) { o.LawActions = []string{strings.Repeat("a", 32), strings.Repeat("b", MaxNameBytes)} },
		func(o *Round) { o.Kind, o.Value, o.Actions = Loss, -3, nil },
		func(o *Round) { o.Kind, o.Value, o.Values = Named, 0, sampleNamed().Values },
	} {
		want := sampleRound()
		change(&want)
		for _, b := range [][]byte{AppendRound(nil, &want), AppendRoundJSON(nil, &want)} {
			if IsJSON(b) && !json.Valid(b) {
				t.Fatalf("not JSON: %s", b)
			}
			var got Round
			if err := ParseRound(&got, b); err != nil || !same(got, want) {
				t.Errorf("%v\n got %+v\nwant %+v\nof %q", err, got, want, b)
			}
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

// A feedback is read as the outcomes that made it, one of an earlier stage with its number.
func TestRoundOfNamed(t *testing.T) {
	stage, last := sampleStage(), sampleLastStage()
	x := sampleContext()
	stage.Context, last.Context = AppendContext(nil, &x), AppendContext(nil, &x)
	skipped := last
	skipped.Fate, skipped.Loss = Skipped, 0
	for _, c := range []struct {
		f      Feedback
		kind   OutcomeKind
		values []Value
	}{
		{stage, Named, []Value{{Name: "tokens", X: 812}}},
		{last, Loss, []Value{{Name: "quality", X: .7}, {Name: "tokens", Withdrawn: true}}},
		{skipped, Named, []Value{{Name: "quality", X: .7}, {Name: "tokens", Withdrawn: true}}},
	} {
		var o Round
		if err := ParseRound(&o, AppendFeedback(nil, &c.f)); err != nil {
			t.Fatal(err)
		}
		if o.Kind != c.kind || o.Value != c.f.Loss || o.Stage != c.f.Stage || !same(o.Values, c.values) {
			t.Errorf("%+v", o)
		}
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

func TestRoundOfCloudEvent(t *testing.T) {
	var o Round
	if err := ParseRound(&o,
		[]byte(`{"specversion":"1.0","type":"x","source":"/s","id":"e1","time":"2021-02-04T16:45:00Z",`+
			`"data":{"features":{"h":1},"action":"a","propensity":0.5}}`)); err != nil ||
		o.ID != "e1" || o.Time != 1612457100000000000 || !o.Decided {
		t.Errorf("%v: %+v", err, o)
	}
	if err := ParseRound(&o,
		[]byte(`{"specversion":"1.0","type":"x","source":"/s","id":"e2","time":"2021-02-04T16:45:00Z","data":{"id":"e1",`+
			`"reward":1}}`)); err != nil ||
		o.ID != "e1" || o.OutcomeTime != 1612457100000000000 || o.Decided || o.Kind != Reward {
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
