package codec

import (
	"errors"
	"strings"
	"testing"
)

// TestUnitCases holds what a unit may be, and how what may not is named. A unit that is no text is refused only where a
// model asks for it: to others the key has always meant what they like.
func TestUnitCases(t *testing.T) {
	for raw, want := range map[string]error{
		`{"unit":"user-17"}`: nil, `{"unit":null}`: nil, `{}`: nil, `{"unit":17}`: errUnitText,
		`{"unit":["a"]}`:  errUnitText,
		`{"unit":"a\tb"}`: errControl, `{"unit":"` + strings.Repeat("u", MaxIDBytes+1) + `"}`: errLong,
	} {
		var c Context
		if err := ParseContext(&c, []byte(raw)); err != nil || c.Validate() != nil {
			t.Errorf("%s: %v, %v", raw, err, c.Validate())
		}
		if err := c.CheckUnit(); want != nil {
			checkError(t, err, "unit", want)
		} else if err != nil {
			t.Errorf("%s: %v", raw, err)
		}
	}
	d := sampleRepeat()
	for _, x := range []struct {
		field string
		err   error
		edit  func(d *Decision)
	}{
		{"unit", errControl, func(d *Decision) { d.Unit = "\n" }},
		{"first", errUnitAlone, func(d *Decision) { d.Unit = "" }},
		{"first", errFirstAhead, func(d *Decision) { d.First.N = d.N }},
		{"first", errFirstAhead, func(d *Decision) { d.First.N = -1 }},
		{"first", errFirstAhead, func(d *Decision) { d.First.Partition++ }},
	} {
		bad := d
		x.edit(&bad)
		checkError(t, bad.Validate(), x.field, x.err)
	}
}

// TestUnitOrID holds that an outcome names its round or its unit; one that names both, as one could before units were
// known, is of its round.
func TestUnitOrID(t *testing.T) {
	var o Outcome
	for raw, want := range map[string][2]string{
		`{"unit":"u","loss":1}`: {"", "u"}, `{"unit":"u","loss":1,"id":"r"}`: {"r"},
		`{"id":"r","unit":5,"loss":1}`: {"r"},
	} {
		if err := ParseOutcome(&o, []byte(raw)); err != nil || o.Validate() != nil || o.ID != want[0] ||
			o.Unit != want[1] {
			t.Errorf("%s: %+v, %v", raw, o, err)
		}
	}
	for _, raw := range []string{`{"loss":1}`, `{"unit":null,"loss":1}`, `{"unit":"","loss":1}`} {
		checkError(t, ParseOutcome(&o, []byte(raw)), "id", errMissing)
	}
	checkError(t, ParseOutcome(&o, []byte(`{"unit":5,"loss":1}`)), "unit", errUnitText)
	if err := ParseOutcome(&o, []byte(`{"unit":"a\tb","loss":1}`)); err != nil || !errors.Is(o.Validate(), errControl) {
		t.Errorf("%v, %v", err, o.Validate())
	}
}

// TestRoundOfAUnit holds that a feedback tells readers of logs whose round it was, and whether it repeats a draw.
func TestRoundOfAUnit(t *testing.T) {
	f := sampleRepeatFeedback()
	var o Round
	if err := ParseRound(&o, AppendFeedback(nil, &f)); err != nil || o.Unit != "user-17" || !o.Repeat {
		t.Errorf("%+v, %v", o, err)
	}
	if f.First = (RoundRef{}); ParseRound(&o, AppendFeedback(nil, &f)) != nil || o.Repeat {
		t.Errorf("%+v", o)
	}
}
