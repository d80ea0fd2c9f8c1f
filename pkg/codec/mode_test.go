package codec

import (
	"encoding/hex"
	"errors"
	"strings"
	"testing"
)

// TestModesAreLeftOut holds that a live round has the bytes that it had before there were
// modes, and that the others have their keys behind those.
func TestModesAreLeftOut(t *testing.T) {
	live := sampleDecision()
	shadow := live
	shadow.Mode, shadow.Would = Shadow, []float64{0.5, 0.25, 0.25}
	a, b := AppendDecision(nil, &live), AppendDecision(nil, &shadow)
	// The head of a map of 15 keys is one byte, of 17 three.
	if got, want := hex.EncodeToString(b[:3]), "de0011"; got != want {
		t.Errorf("head %s, want %s", got, want)
	}
	tail := "a46d6f6465" + "a6736861646f77" + "a5776f756c64" + "93" + "cb3fe0000000000000" + "cb3fd0000000000000" +
		"cb3fd0000000000000"
	if got, want := hex.EncodeToString(b[3:]), hex.EncodeToString(a[1:])+tail; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	var back Decision
	if err := ParseDecision(&back, b); err != nil || !same(back, shadow) {
		t.Errorf("%+v %v", back, err)
	}
	if err := ParseDecision(&back, a); err != nil || back.Mode != Live || len(back.Would) != 0 {
		t.Errorf("a live one after it: %+v %v", back, err)
	}
	for _, json := range []bool{true, false} {
		reply := string(AppendDecisionReply(nil, &shadow, "", false))
		if json {
			reply = string(AppendDecisionJSON(nil, &shadow, "", false))
		}
		if !strings.Contains(reply, "shadow") || strings.Contains(reply, "would") {
			t.Errorf("reply %q", reply)
		}
	}
}

func TestModeIsChecked(t *testing.T) {
	for _, c := range []struct {
		field string
		mode  Mode
		would []float64
	}{
		{"mode", 5, nil}, {"would", Live, []float64{0.5, 0.25, 0.25}}, {"would", Paused, []float64{0.5, 0.25, 0.25}},
		{"would", Shadow, []float64{1}}, {"would", Shadow, []float64{0.5, 0.5, 0.5}},
		{"would", Shadow, []float64{0.1, 0.2, 0.7}}, {"would", Shadow, []float64{2, -1, 0}},
	} {
		d, f := sampleDecision(), sampleFeedback()
		d.Mode, d.Would, f.Mode, f.Would = c.mode, c.would, c.mode, c.would
		for _, err := range []error{d.Validate(), f.Validate()} {
			if e := (*Error)(nil); !errors.As(err, &e) || e.Field != c.field {
				t.Errorf("%v %v: %v", c.mode, c.would, err)
			}
		}
	}
	b := AppendDecision(nil, &Decision{Actions: []string{"a"}, Propensities: []float64{1}, Mode: Paused})
	bad := strings.Replace(string(b), "paused", "peused", 1)
	var d Decision
	if err := ParseDecision(&d, []byte(bad)); !errors.Is(err, errModeName) {
		t.Error(err)
	}
}

func TestBaselineIsChecked(t *testing.T) {
	for text, want := range map[string]error{
		`"a"`: nil, `{"a":1}`: nil, `{"a":0.5,"b":0.5}`: nil, `{"a":0.3333333,"b":0.6666666}`: nil, `null`: nil,
		`{"a":0.999999}`: nil, `{"a":0.9999989}`: errSharesSum, `{"a":1,"b":0.000001}`: nil,
		`{"a":1,"b":0.0000011}`: errSharesSum,
		`["a","b"]`:             nil, `[]`: nil,
		`{"a":0.5}`: errSharesSum, `{"a":1,"b":1}`: errSharesSum, `{"a":-1,"b":2}`: errProbability,
		`{"a":0.5,"a":0.5}`: errDuplicate,
		`""`:                errEmpty, `7`: errBaseline, `{"a":"b"}`: errWantNum, `[7]`: errWantText,
		`{"a":null}`: errWantNum,
	} {
		var c Context
		err := ParseContext(&c, []byte(`{"baseline":`+text+`}`))
		if err == nil {
			err = c.Validate()
		}
		if !errors.Is(err, want) || err == nil != (want == nil) {
			t.Errorf("%s: %v, want %v", text, err, want)
		}
	}
}
