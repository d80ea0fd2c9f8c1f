package codec

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
)

func TestParseNamed(t *testing.T) {
	many := `{"id":"i","outcomes":{`
	for i := range MaxOutcomes + 1 {
		many += fmt.Sprintf(`"o%d":1,`, i)
	}
	many = many[:len(many)-1] + "}}"
	for _, c := range []struct {
		b, field string
		err      error
	}{
		{`{"id":"i","outcomes":{}}`, "", errSilent},
		{`{"id":"i","outcomes":null}`, "", errSilent},
		{`{"id":"i","outcomes":{"a":1},"loss":1}`, "loss", errSeveral},
		{`{"id":"i","withdrawn":true,"outcomes":{"a":1}}`, "outcomes", errSeveral},
		{`{"id":"i","outcomes":{"a":1},"outcomes":{"b":1}}`, "outcomes", errTwice},
		{`{"id":"i","outcomes":[1]}`, "outcomes", errWantMap},
		{`{"id":"i","outcomes":{"a":true}}`, "outcomes.a", errWantNum},
		{"\x82\xa2id\xa1i\xa8outcomes\x81\xa1a\xcb\x7f\xf0\x00\x00\x00\x00\x00\x00", "outcomes.a", errRange},
		{many, "outcomes.o32", errManyOutcomes},
	} {
		var o Outcome
		checkError(t, ParseOutcome(&o, []byte(c.b)), c.field, c.err)
	}
	var o Outcome
	if err := ParseOutcome(&o, []byte(strings.Replace(many, `,"o32":1`, "", 1))); err != nil ||
		len(o.Values) != MaxOutcomes || o.Validate() != nil {
		t.Errorf("%d outcomes, %v", len(o.Values), err)
	}
	event := `{"specversion":"1.0","id":"e","data":{"id":"i","outcomes":{"b":1,"a":null},"loss":null}}`
	want := Outcome{ID: "i", Kind: Named, OutcomeID: "e", Values: []Value{{Name: "b", X: 1}, {Name: "a",
		Withdrawn: true}}}
	if err := ParseOutcome(&o, []byte(event)); err != nil || !same(o, want) {
		t.Errorf("%+v, %v", o, err)
	}
}

func TestValidateNamed(t *testing.T) {
	for _, c := range []struct {
		field  string
		err    error
		change func(o *Outcome)
	}{
		{"outcomes", errNamed, func(o *Outcome) { o.Values = nil }},
		{"outcomes", errNamed, func(o *Outcome) { o.Kind = Loss }},
		{"outcomes", errValueless, func(o *Outcome) { o.Value = 1 }},
		{"outcomes", errManyOutcomes, func(o *Outcome) { o.Values = make([]Value, MaxOutcomes+1) }},
		{`outcomes.""`, errEmpty, func(o *Outcome) { o.Values[0].Name = "" }},
		{"outcomes.quality", errDuplicate, func(o *Outcome) { o.Values[0].Name = "quality" }},
		{"outcomes.tokens", errNotFinite, func(o *Outcome) { o.Values[0].X = math.Inf(-1) }},
		{"outcomes.größe", errValueless, func(o *Outcome) { o.Values[2].X = 1 }},
	} {
		o := sampleNamed()
		if err := o.Validate(); err != nil {
			t.Fatal(err)
		}
		c.change(&o)
		checkError(t, o.Validate(), c.field, c.err)
	}
}

func TestValidateClosed(t *testing.T) {
	for _, c := range []struct {
		field  string
		err    error
		change func(f *Feedback)
	}{
		{"stage", errStage, func(f *Feedback) { f.Stage = -1 }},
		{"stage", errStageFate, func(f *Feedback) { f.Fate = Skipped }},
		{"stage", errStageFate, func(f *Feedback) { f.Reason = ReasonLost }},
		{"stage", errStageFate, func(f *Feedback) { f.Loss = 1 }},
		{"stage", errStageFate, func(f *Feedback) { f.OutcomePartition = 0 }},
		{"stage", errStageFate, func(f *Feedback) { f.OutcomeOffset = 0 }},
		{"outcomes", errMissing, func(f *Feedback) { f.Outcomes = nil }},
		{"outcomes", errManyOutcomes, func(f *Feedback) { f.Outcomes = make([]Closed, MaxOutcomes+1) }},
		{"outcomes.latency", errOrder, func(f *Feedback) { f.Outcomes[1].Name = "latency" }},
		{`outcomes.""`, errEmpty, func(f *Feedback) { f.Outcomes[0].Name = "" }},
		{"outcomes.latency", errUnknown, func(f *Feedback) { f.Outcomes[0].Fate = 0 }},
		{"outcomes.latency", errNoLoss, func(f *Feedback) { f.Outcomes[0].Value = 1 }},
		{"outcomes.tokens", errNotFinite, func(f *Feedback) { f.Outcomes[1].Value = math.NaN() }},
		{"outcomes.tokens", errSource, func(f *Feedback) { f.Outcomes[1].Partition = -2 }},
		{"outcomes.tokens", errHalfOutcome, func(f *Feedback) { f.Outcomes[1].Offset = -1 }},
		{"outcomes.tokens", errNoOutcome, func(f *Feedback) { f.Outcomes[1].Partition, f.Outcomes[1].Offset = -1, -1 }},
		{"outcomes.tokens", errNegative, func(f *Feedback) { f.Outcomes[1].ClosedAt = -1 }},
		{"outcomes.tokens", errStage, func(f *Feedback) { f.Outcomes[1].Stage = 1 }},
	} {
		f := sampleStage()
		if err := f.Validate(); err != nil {
			t.Fatal(err)
		}
		c.change(&f)
		checkError(t, f.Validate(), c.field, c.err)
	}
	for _, c := range []struct {
		field  string
		err    error
		change func(d *Decision)
	}{
		{"prices", errManyOutcomes, func(d *Decision) { d.Prices = make([]Price, MaxOutcomes+1) }},
		{"prices.cost", errOrder, func(d *Decision) { d.Prices[1].Name = "cost" }},
		{`prices.""`, errEmpty, func(d *Decision) { d.Prices[0].Name = "" }},
		{"prices.cost", errNegative, func(d *Decision) { d.Prices[0].X = -1 }},
		{"prices.latency", errNotFinite, func(d *Decision) { d.Prices[1].X = math.Inf(1) }},
	} {
		d := samplePrices()
		if err := d.Validate(); err != nil {
			t.Fatal(err)
		}
		c.change(&d)
		checkError(t, d.Validate(), c.field, c.err)
	}
	var d Decision
	many := samplePrices()
	many.Prices = make([]Price, MaxOutcomes+1)
	for i := range many.Prices {
		many.Prices[i].Name = fmt.Sprintf("%02d", i)
	}
	checkError(t, ParseDecision(&d, AppendDecision(nil, &many)), "prices.32", errManyOutcomes)
}

// A record has either a fate or a stage: a program that reads one never takes it for the other.
func TestStage(t *testing.T) {
	stage, last := sampleStage(), sampleLastStage()
	var f Feedback
	gone := replace(AppendFeedback(nil, &stage), "\xa5stage", "\xa5_tage")
	checkError(t, ParseFeedback(&f, gone), "fate", errMissing)
	both := append(AppendFeedback(nil, &last), "\xa5stage\x01"...)
	both[2]++ // the number of keys
	checkError(t, ParseFeedback(&f, both), "stage", errStageFate)
	zero := replace(AppendFeedback(nil, &stage), "\xa5stage\x01", "\xa5stage\x00")
	checkError(t, ParseFeedback(&f, zero), "stage", errStage)
	inner := replace(AppendFeedback(nil, &stage), "\xa5value", "\xa5_alue")
	checkError(t, ParseFeedback(&f, inner), "outcomes.latency.value", errMissing)
	for _, b := range [][]byte{AppendFeedback(nil, &stage), AppendFeedback(nil, &last)} {
		b = replace(b, "\xa1v\x04", "\xa1v\x05")
		if err := ParseFeedback(&f, b); !errors.Is(err, ErrVersion) {
			t.Error(err)
		}
	}
}
