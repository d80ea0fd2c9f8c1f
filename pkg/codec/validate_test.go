package codec

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"unsafe"
)

func checkError(t *testing.T, err error, field string, want error) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Field != field || !errors.Is(err, want) {
		t.Errorf("got %v; want %s: %v", err, field, want)
	}
}

func TestValidateContext(t *testing.T) {
	long := strings.Repeat("x", MaxIDBytes+1)
	for _, c := range []struct {
		field  string
		err    error
		change func(c *Context)
	}{
		{"id", errLong, func(c *Context) { c.ID = long }},
		{"id", errUTF8, func(c *Context) { c.ID = "a\xff" }},
		{"id", errControl, func(c *Context) { c.ID = "a\x00" }},
		{"id", errControl, func(c *Context) { c.ID = "a\u0085" }},
		{"features", errBoth, func(c *Context) { c.Vector = []float64{1} }},
		{"features[1]", errNotFinite, func(c *Context) { c.Features, c.Vector = nil, []float64{1, math.NaN()} }},
		{"features.hour", errNotFinite, func(c *Context) { c.Features[0].Value = math.Inf(-1) }},
		{"features.hour", errDuplicate, func(c *Context) { c.Features[3].Name = "hour" }},
		{`features.""`, errEmpty, func(c *Context) { c.Features[0].Name = "" }},
		{`features."ho ur\n"`, errControl, func(c *Context) { c.Features[0].Name = "ho ur\n" }},
		{`features."` + long[:64] + `"…`, errLong, func(c *Context) { c.Features[0].Name = long }},
		{"features.hour", errKind, func(c *Context) { c.Features[0].Kind = 9 }},
		{"features.vip", errBool, func(c *Context) { c.Features[3].Value = 0.5 }},
		{"features.country", errUTF8, func(c *Context) { c.Features[2].Text = "\xc3" }},
		{"features.country", errLong, func(c *Context) { c.Features[2].Text = strings.Repeat("x", MaxTextBytes+1) }},
		{"features.hour", errVector, func(c *Context) { c.Features[0] = VectorOf("hour", []float64{1}) }},
		{"actions[1].features.cost", errVector, func(c *Context) { c.Actions[1].Features[0] = VectorOf("cost", nil) }},
		{"features", errManyFeatures, func(c *Context) { c.Features, c.Vector = nil, make([]float64, MaxFeatures+1) }},
		{"actions", errNoActions, func(c *Context) { c.Actions = []Action{} }},
		{"assigned.action", errEmpty, func(c *Context) { c.Assigned = Assigned{Law: []Share{{"a", 1}}} }},
		{"actions", errManyActions, func(c *Context) { c.Actions = make([]Action, MaxActions+1) }},
		{"actions[1].name", errEmpty, func(c *Context) { c.Actions[1].Name = "" }},
		{"actions[1].name", errDuplicate, func(c *Context) { c.Actions[1].Name = "a" }},
		{"actions[1].features.cost", errNotFinite, func(c *Context) { c.Actions[1].Features[0].Value = math.NaN() }},
		{"actions[1].features.new", errDuplicate, func(c *Context) {
			c.Actions[1].Features[0].Name = "new"
		}},
		{"actions[2].features", errManyFeatures, func(c *Context) {
			c.Actions[2].Features = make([]Feature, MaxFeatures)
		}},
	} {
		x := sampleContext()
		if err := x.Validate(); err != nil {
			t.Fatal(err)
		}
		c.change(&x)
		checkError(t, x.Validate(), c.field, c.err)
	}
}

func TestValidateOutcome(t *testing.T) {
	for _, c := range []struct {
		field  string
		err    error
		change func(o *Outcome)
	}{
		{"id", errEmpty, func(o *Outcome) { o.ID = "" }},
		{"kind", errKind, func(o *Outcome) { o.Kind = 0 }},
		{"kind", errKind, func(o *Outcome) { o.Kind = Named + 1 }},
		{"loss", errNotFinite, func(o *Outcome) { o.Value = math.NaN() }},
		{"reward", errNotFinite, func(o *Outcome) { o.Kind, o.Value = Reward, math.Inf(1) }},
		{"withdrawn", errValueless, func(o *Outcome) { o.Kind = Withdrawn }},
		{"action", errControl, func(o *Outcome) { o.Action = "\t" }},
		{"outcome_id", errLong, func(o *Outcome) { o.OutcomeID = strings.Repeat("é", MaxIDBytes/2+1) }},
	} {
		x := sampleOutcome()
		if err := x.Validate(); err != nil {
			t.Fatal(err)
		}
		c.change(&x)
		checkError(t, x.Validate(), c.field, c.err)
	}
}

// lawCases break the law of a decision or a feedback.
var lawCases = []struct {
	field  string
	err    error
	change func(actions *[]string, law *[]float64, drawn *int)
}{
	{"propensities", errNoLaw, func(a *[]string, _ *[]float64, _ *int) { *a = nil }},
	{"propensities", errLengths, func(_ *[]string, p *[]float64, _ *int) { *p = (*p)[:2] }},
	{"propensities", errManyActions, func(a *[]string, _ *[]float64, _ *int) { *a = make([]string, MaxActions+1) }},
	{"action", errIndex, func(_ *[]string, _ *[]float64, i *int) { *i = 3 }},
	{"action", errIndex, func(_ *[]string, _ *[]float64, i *int) { *i = -1 }},
	{"propensities.b", errProbability, func(_ *[]string, p *[]float64, _ *int) { *p = []float64{1, -0.5, 0.5} }},
	{"propensities.c", errProbability, func(_ *[]string, p *[]float64, _ *int) { *p = []float64{0, 1, math.NaN()} }},
	{"propensities.c", errProbability, func(_ *[]string, p *[]float64, _ *int) { *p = []float64{0, 0, 1.5} }},
	{"propensities.a", errGrid, func(_ *[]string, p *[]float64, _ *int) { *p = []float64{0x1p-54, 1, 0} }},
	{"propensities", errSum, func(_ *[]string, p *[]float64, _ *int) { *p = []float64{0.5, 0.25, 0.125} }},
	// As floats, 1 + 2^-53 is 1.
	{"propensities", errSum, func(_ *[]string, p *[]float64, _ *int) { *p = []float64{0, 1, 0x1p-53} }},
	{"propensities", errSum, func(_ *[]string, p *[]float64, _ *int) { *p = []float64{1, 1, 1} }},
	// In units of 2^-53, 2049 ones are 1 again behind 64 bits.
	{"propensities", errSum, func(a *[]string, p *[]float64, _ *int) {
		*a, *p = nil, nil
		for i := range 2049 {
			*a, *p = append(*a, strconv.Itoa(i)), append(*p, 1)
		}
	}},
	{"propensity", errNeverDrawn, func(_ *[]string, p *[]float64, _ *int) { *p = []float64{0.5, 0, 0.5} }},
	{"propensities.a", errDuplicate, func(a *[]string, _ *[]float64, _ *int) { *a = []string{"a", "b", "a"} }},
	{"propensities[2].name", errEmpty, func(a *[]string, _ *[]float64, _ *int) { *a = []string{"a", "b", ""} }},
}

func TestValidateDecision(t *testing.T) {
	for _, c := range lawCases {
		x := sampleDecision()
		c.change(&x.Actions, &x.Propensities, &x.Action)
		checkError(t, x.Validate(), c.field, c.err)
	}
	for _, c := range []struct {
		field  string
		err    error
		change func(d *Decision)
	}{
		{"n", errPositive, func(d *Decision) { d.N = 0 }},
		{"partition", errNegative, func(d *Decision) { d.Partition = -1 }},
		{"id", errEmpty, func(d *Decision) { d.ID = "" }},
		{"epoch", errPositive, func(d *Decision) { d.Epoch = 0 }},
		{"learned_through", errNegative, func(d *Decision) { d.LearnedThrough = -1 }},
		{"learned", errNegative, func(d *Decision) { d.Learned = -1 }},
		{"gamma", errNotFinite, func(d *Decision) { d.Gamma = math.Inf(1) }},
		{"gamma", errNegative, func(d *Decision) { d.Gamma = -1 }},
		{"contexts_through", errNegative, func(d *Decision) { d.ContextsThrough = -1 }},
		{"source", errSource, func(d *Decision) { d.Source = -2 }},
		{"time", errNegative, func(d *Decision) { d.Time = -1 }},
		{"context", ErrTooLarge, func(d *Decision) { d.Context = make([]byte, MaxRecordBytes+1) }},
	} {
		x := sampleDecision()
		if err := x.Validate(); err != nil {
			t.Fatal(err)
		}
		c.change(&x)
		checkError(t, x.Validate(), c.field, c.err)
	}
}

func TestValidateFeedback(t *testing.T) {
	for _, c := range lawCases {
		x := sampleFeedback()
		c.change(&x.Actions, &x.Propensities, &x.Action)
		checkError(t, x.Validate(), c.field, c.err)
	}
	for _, c := range []struct {
		field  string
		err    error
		change func(f *Feedback)
	}{
		{"n", errPositive, func(f *Feedback) { f.N = 0 }},
		{"partition", errNegative, func(f *Feedback) { f.Partition = -1 }},
		{"round", errPositive, func(f *Feedback) { f.Round = 0 }},
		{"id", errLong, func(f *Feedback) { f.ID = strings.Repeat("x", MaxIDBytes+1) }},
		{"epoch", errPositive, func(f *Feedback) { f.Epoch = 0 }},
		{"learned_through", errNegative, func(f *Feedback) { f.LearnedThrough = -1 }},
		{"gamma", errNotFinite, func(f *Feedback) { f.Gamma = math.NaN() }},
		{"gamma", errNegative, func(f *Feedback) { f.Gamma = -1 }},
		{"time", errNegative, func(f *Feedback) { f.Time = -1 }},
		{"closed_at", errNegative, func(f *Feedback) { f.ClosedAt = -1 }},
		{"context", ErrTooLarge, func(f *Feedback) { f.Context = make([]byte, MaxRecordBytes+1) }},
		{"fate", errUnknown, func(f *Feedback) { f.Fate = 5 }},
		{"fate", errUnknown, func(f *Feedback) { f.Fate = 0 }},
		{"reason", errUnknown, func(f *Feedback) { f.Reason = ReasonLate }},
		{"loss", errProbability, func(f *Feedback) { f.Loss = math.NaN() }},
		{"loss", errProbability, func(f *Feedback) { f.Loss = 1.0000001 }},
		{"loss", errNoLoss, func(f *Feedback) { f.Fate = Skipped }},
		{"outcome_partition", errSource, func(f *Feedback) { f.OutcomePartition = -2 }},
		{"outcome_offset", errSource, func(f *Feedback) { f.OutcomeOffset = -2 }},
		{"outcome_offset", errHalfOutcome, func(f *Feedback) { f.OutcomeOffset = -1 }},
		{"outcome_offset", errNoOutcome, func(f *Feedback) { f.OutcomePartition, f.OutcomeOffset = -1, -1 }},
	} {
		x := sampleFeedback()
		if err := x.Validate(); err != nil {
			t.Fatal(err)
		}
		c.change(&x)
		checkError(t, x.Validate(), c.field, c.err)
	}
}

// Repeats are found in every size of list, at every place, and nowhere else.
func TestDuplicate(t *testing.T) {
	for _, n := range []int{0, 1, 2, fewNames, fewNames + 1, 100, stackSlots / 2, stackSlots/2 + 1, 3000} {
		names := make([]string, n)
		for i := range names {
			names[i] = "name-" + strconv.Itoa(i)
		}
		if i := Repeated(len(names), func(i int) string { return names[i] }); i >= 0 {
			t.Errorf("%d names: %d is no repeat", n, i)
		}
		for _, at := range []int{1, n / 2, n - 1} {
			if at < 1 || at >= n {
				continue
			}
			was := names[at]
			names[at] = names[at/2]
			if i := Repeated(len(names), func(i int) string { return names[i] }); i != at {
				t.Errorf("%d names: the repeat at %d was found at %d", n, at, i)
			}
			names[at] = was
		}
	}
}

// Every name is looked at about twice, however many there are.
func TestDuplicateIsNotQuadratic(t *testing.T) {
	for _, n := range []int{50, 600, MaxFeatures} {
		calls := 0
		Repeated(n, func(i int) string {
			calls++
			return strconv.Itoa(i)
		})
		if calls > 8*n {
			t.Errorf("%d names were looked at %d times", n, calls)
		}
	}
}

// The look at eight bytes agrees with that at each, at every place of every byte.
func TestIsPlain(t *testing.T) {
	for at := range 8 {
		for c := range 256 {
			b := []byte("  ~~a  ~")
			b[at] = byte(c)
			for _, low := range []byte{' ', 0x1f, 0x7f, 0x80, 0xff} {
				if b[0] = low; at == 0 {
					b[0] = byte(c)
				}
				want := true
				for _, x := range b {
					want = want && x >= ' ' && x < 0x7f
				}
				if got := isPlain(word(string(b), 0)); got != want {
					t.Fatalf("%q: %v", b, got)
				}
			}
		}
	}
}

// Control characters end at 0x1f, are 0x7f, and go from 0x80 to 0x9f, alone and behind text of
// any length.
func TestControlBoundaries(t *testing.T) {
	for _, u := range []rune{0, 0x1f, ' ', '~', 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xff, 0x2028} {
		want := u < ' ' || u >= 0x7f && u < 0xa0
		for before := range 18 {
			s := strings.Repeat("x", before) + string(u)
			if err := CheckText(s, MaxIDBytes); errors.Is(err, errControl) != want || !want && err != nil {
				t.Errorf("%q: %v", s, err)
			}
		}
	}
}

// TestIntegerBoundaries: 2^63 is no integer of 64 bits, in whatever form.
func TestIntegerBoundaries(t *testing.T) {
	wide := func(head byte, bits uint64) string { return string(binary.BigEndian.AppendUint64([]byte{head}, bits)) }
	for _, c := range []struct {
		in   string
		want int64
		ok   bool
	}{
		{wide(mpUint64, 1<<63-1), math.MaxInt64, true},
		{wide(mpUint64, 1<<63), 0, false},
		{wide(mpInt64, 1<<63), math.MinInt64, true},
		{wide(mpFloat64, math.Float64bits(1<<63)), 0, false},
		{wide(mpFloat64, math.Float64bits(1<<63-1024)), 1<<63 - 1024, true},
		{wide(mpFloat64, math.Float64bits(-1<<63)), math.MinInt64, true},
		{wide(mpFloat64, math.Float64bits(-1<<63-2048)), 0, false},
		{"9223372036854775808", 0, false},
		{"9223372036854774784", 1<<63 - 1024, true},
		{"-9223372036854775808", math.MinInt64, true},
	} {
		r := reader{b: []byte(c.in), json: c.in[0] == '-' || c.in[0] == '9'}
		if got := r.int(); got != c.want || (r.err == nil) != c.ok {
			t.Errorf("%q: %d, %v", c.in, got, r.err)
		}
	}
}

// TestLongTexts: the text of a feature may be long where the model says so, and nowhere else.
func TestLongTexts(t *testing.T) {
	text := strings.Repeat("x", MaxTextBytes+1)
	c := Context{Features: []Feature{{Name: "prompt", Kind: Text, Text: text}},
		Actions: []Action{{Name: "a", Features: []Feature{{Name: "prompt", Kind: Text, Text: text}}}}}
	if err := c.ValidateFor(func(name string) bool { return name == "prompt" }); err != nil {
		t.Error(err)
	}
	checkError(t, c.ValidateFor(func(name string) bool { return name == "title" }), "features.prompt", errLong)
	c.Features = nil
	checkError(t, c.Validate(), "actions[0].features.prompt", errLong)
	c.Features = []Feature{VectorOf("e", []float64{1, math.Inf(1), 2})}
	checkError(t, c.ValidateFor(anything), "features.e[1]", errNotFinite)
}

// TestNamesOfActions: what the features of the action before are called, and what was checked before, hides no fault.
func TestNamesOfActions(t *testing.T) {
	with := func(names ...string) (a Action) {
		for _, name := range names {
			a.Features = append(a.Features, Feature{Name: name, Kind: Number})
		}
		return a
	}
	var c Context
	for i := range MaxActions / 2 {
		c.Actions = append(c.Actions, with("p", "q"))
		c.Actions[i].Name = strconv.Itoa(i)
	}
	for range 2 {
		if err := c.Validate(); err != nil {
			t.Fatal(err)
		}
	}
	last := &c.Actions[len(c.Actions)-1]
	for _, bad := range [][]string{{"p", "p"}, {"q", "q"}, {"p", "q", "p"}, {"p", "\x01"}, {""}} {
		if last.Features = with(bad...).Features; c.Validate() == nil {
			t.Errorf("features %q after p and q are accepted", bad)
		}
	}
	if last.Features, last.Name = nil, "0"; c.Validate() == nil {
		t.Error("a repeated name is accepted")
	}
}

// TestShortAction: an action that is read at once is read as one that is read key by key, whatever its bytes are.
func TestShortAction(t *testing.T) {
	one := func(name string, features ...Feature) []byte {
		return appendActions(nil, []Action{{name, features}})[1:]
	}
	p, q := Feature{Name: "p", Kind: Number, Value: 1.5}, Feature{Name: "q", Kind: Number, Value: 2.5}
	read, known := 0, []Feature{p, p} // those of the action before
	check := func(b []byte) {
		var got, want Action
		fast, slow := reader{b: b}, reader{b: b}
		if !fast.shortAction(&got, known) {
			if fast.i != 0 || fast.features != 0 || fast.err != nil {
				t.Fatalf("%q: it read something: %d bytes, %d features, %v", b, fast.i, fast.features, fast.err)
			}
			return
		}
		read++
		slow.action(&want)
		if slow.err != nil || fast.i != slow.i || fast.features != slow.features ||
			fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("%q: %v at byte %d, want %v at byte %d, %v", b, got, fast.i, want, slow.i, slow.err)
		}
		if f := got.Features; len(f) > 0 && f[0].Name == "p" &&
			unsafe.StringData(f[0].Name) != unsafe.StringData(p.Name) {
			t.Fatalf("%q: a name of the action before is kept twice", b)
		}
	}
	for _, b := range [][]byte{one("a", p, q), one("action", p), one("a", p, Feature{Name: "t", Kind: Text, Text: "x"}),
		one("", q), one(strings.Repeat("a", 31), p, q), one(strings.Repeat("a", 32), p, q)} {
		for n := range b {
			check(b[:n])
			for bit := range 8 {
				b[n] ^= 1 << bit
				check(b)
				b[n] ^= 1 << bit
			}
		}
		check(b)
	}
	if read < 100 {
		t.Errorf("%d actions are read at once", read)
	}
}

// TestReadValid: what is checked while it is read is refused as what is checked afterwards, whatever its bytes are.
func TestReadValid(t *testing.T) {
	number := func(name string, v float64) Feature { return Feature{Name: name, Kind: Number, Value: v} }
	action := func(name string, features ...Feature) Action { return Action{name, features} }
	p, q := number("p", 1.5), number("q", 2.5)
	first := action("a", p, q)
	sound := 0
	for _, rest := range [][]Action{{action("b", p, q), action("c", p, q)}, {action("b", p), action("c", p, q)},
		{action("b", q, p), action("c", q, p)}, {action("b"), action("c")}, {action("b", p, q, number("r", 0))},
		{action("b", p, number("q", math.NaN())), action("c", p, q)},
		{action("b", p, q), action("c", number("p", math.Inf(1)), q)}, {action("b", p), action("c", p, p)},
		{action("b", p, Feature{Name: "q", Kind: Text, Text: "x"}), action("c", p, number("q", math.Inf(-1)))},
		{action("b", p, p), action("c", p, p)}, {action("b", p, q), action("b", p, q)}} {
		b := AppendContext(nil, &Context{Actions: append([]Action{first}, rest...)})
		check := func() {
			var c, d Context
			n, err := ReadContext(&c, b, nil)
			if err == nil {
				err = c.Validate()
			}
			m, got := ReadValid(&d, b, nil, nil)
			if n != m || fmt.Sprint(got) != fmt.Sprint(err) {
				t.Fatalf("%q: %d, %v, want %d, %v", b, m, got, n, err)
			}
			if err == nil {
				sound++
			}
		}
		check()
		for i := range b {
			for bit := range 8 {
				b[i] ^= 1 << bit
				check()
				b[i] ^= 1 << bit
			}
		}
	}
	if sound < 1000 {
		t.Errorf("%d contexts are valid", sound)
	}
}
