package codec

import (
	"runtime"
	"strconv"
	"testing"
)

// largeContext has K actions with d features each, and d of its own.
func largeContext(actions, features int) Context {
	c := Context{ID: "0193b0f4-5d1c-7a30-8f3a-2f9d1c6b7e55", Features: manyFeatures(features)}
	for i := range actions {
		c.Actions = append(c.Actions, Action{Name: "action-" + strconv.Itoa(i), Features: manyFeatures(features)})
	}
	return c
}

func manyFeatures(n int) []Feature {
	var out []Feature
	for i := range n {
		f := Feature{Name: "f" + strconv.Itoa(i), Kind: Number, Value: 0.37 * float64(i)}
		switch i % 5 {
		case 3:
			f = Feature{Name: f.Name, Kind: Text, Text: "DE"}
		case 4:
			f = Feature{Name: f.Name, Kind: Bool, Value: 1}
		}
		out = append(out, f)
	}
	return out
}

// noAllocs holds append, parse and Validate of one event to zero allocations once
// their memory has grown.
func noAllocs[T any](t *testing.T, name string, x T, appendTo func([]byte, *T) []byte,
	parse func(*T, []byte) error, validate func(*T) error,
) {
	t.Helper()
	b := appendTo(nil, &x)
	var back T
	if err := parse(&back, b); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 0, len(b))
	if n := testing.AllocsPerRun(100, func() { buf = appendTo(buf[:0], &x) }); n != 0 {
		t.Errorf("%s: append allocates %v times", name, n)
	}
	if n := testing.AllocsPerRun(100, func() { _ = parse(&back, b) }); n != 0 {
		t.Errorf("%s: parse allocates %v times", name, n)
	}
	if n := testing.AllocsPerRun(100, func() { _ = validate(&back) }); n != 0 {
		t.Errorf("%s: Validate allocates %v times", name, n)
	}
	if err := validate(&back); err != nil {
		t.Errorf("%s: %v", name, err)
	}
}

func TestNoAllocs(t *testing.T) {
	c, v := largeContext(40, 20), sampleVector()
	valid := func(c *Context) error { return c.ValidateFor(anything) }
	noAllocs(t, "context", c, AppendContext, ParseContext, valid)
	noAllocs(t, "context json", c, AppendContextJSON, ParseContext, valid)
	named := c
	named.Features = append(manyFeatures(5), VectorOf("embedding", []float64{1, 2, 3}))
	noAllocs(t, "named vector", named, AppendContext, ParseContext, valid)
	noAllocs(t, "named vector json", named, AppendContextJSON, ParseContext, valid)
	noAllocs(t, "vector", v, AppendContext, ParseContext, valid)
	noAllocs(t, "vector json", v, AppendContextJSON, ParseContext, valid)
	noAllocs(t, "cloud event", c, func(dst []byte, c *Context) []byte {
		dst = append(dst, `{"id":"e","specversion":"1.0","data":`...)
		return append(AppendContextJSON(dst, c), '}')
	}, ParseContext, valid)
	o := sampleOutcome()
	noAllocs(t, "outcome", o, AppendOutcome, ParseOutcome, (*Outcome).Validate)
	noAllocs(t, "outcome json", o, AppendOutcomeJSON, ParseOutcome, (*Outcome).Validate)
	o = sampleNamed()
	noAllocs(t, "named outcome", o, AppendOutcome, ParseOutcome, (*Outcome).Validate)
	noAllocs(t, "named outcome json", o, AppendOutcomeJSON, ParseOutcome, (*Outcome).Validate)
	d, f := samplePrices(), sampleStage()
	noAllocs(t, "decision with prices", d, AppendDecision, ParseDecision, (*Decision).Validate)
	noAllocs(t, "stage", f, AppendFeedback, ParseFeedback, (*Feedback).Validate)
	f = sampleLastStage()
	noAllocs(t, "last stage", f, AppendFeedback, ParseFeedback, (*Feedback).Validate)
	d, f = sampleDecision(), sampleFeedback()
	noAllocs(t, "decision", d, AppendDecision, ParseDecision, (*Decision).Validate)
	noAllocs(t, "feedback", f, AppendFeedback, ParseFeedback, (*Feedback).Validate)
	buf := make([]byte, 0, 1000)
	if n := testing.AllocsPerRun(100, func() {
		buf = AppendDecisionJSON(buf[:0], &d, "", true)
		buf = AppendDecisionReply(buf[:0], &d, "", false)
		buf = ErrorReply(buf[:0], 409, "the id was used before", "x", true)
		buf = ErrorReply(buf[:0], 409, "the id was used before", "x", false)
	}); n != 0 {
		t.Errorf("replies allocate %v times", n)
	}
}

// A declared length costs nothing before its bytes are there.
func TestHugeLengths(t *testing.T) {
	var c Context
	var d Decision
	for _, b := range [][]byte{
		[]byte("\x81\xa7actions\xdd\xff\xff\xff\xff"),
		[]byte("\x81\xa8features\xdd\x7f\xff\xff\xff"),
		[]byte("\x81\xa8features\xdf\x7f\xff\xff\xff"),
		[]byte("\x81\xacpropensities\xdf\x7f\xff\xff\xff"),
		[]byte("\x81\xa7context\xc6\x7f\xff\xff\xff"),
		[]byte("\x81\xa5files\xdd\x7f\xff\xff\xff"),
		[]byte("\x81\xa5model\xc6\x7f\xff\xff\xff"),
	} {
		parse := func() {
			if ParseContext(&c, b) == nil || ParseDecision(&d, b) == nil {
				t.Error("accepted")
			}
			if _, err := ParseEpoch(b); err == nil {
				t.Error("accepted")
			}
		}
		parse() // once, for what the library keeps
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		parse()
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 20_000 {
			t.Errorf("%q: %d bytes allocated", b, n)
		}
	}
}
