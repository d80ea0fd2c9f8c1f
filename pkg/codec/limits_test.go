package codec

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestLimits holds each limit on what comes in just under, at and over it, in JSON and in
// MessagePack, from the bytes on.
func TestLimits(t *testing.T) {
	x := func(n int) string { return strings.Repeat("x", n) }
	context := func(change func(n int, c *Context)) func(n int, json bool) error {
		return func(n int, json bool) error {
			c := Context{ID: "a", Actions: []Action{{Name: "a"}, {Name: "b"}}}
			change(n, &c)
			return parsedContext(encodeContext(&c, json))
		}
	}
	outcome := func(change func(n int, o *Outcome)) func(n int, json bool) error {
		return func(n int, json bool) error {
			o := Outcome{ID: "a", Kind: Loss, Value: 1}
			change(n, &o)
			b := AppendOutcome(nil, &o)
			if json {
				b = AppendOutcomeJSON(nil, &o)
			}
			return parsedOutcome(b)
		}
	}
	decision := func(change func(n int, d *Decision)) func(n int, json bool) error {
		return func(n int, json bool) error {
			d := sampleDecision()
			change(n, &d)
			b := AppendDecision(nil, &d)
			if json {
				b = AppendJSON(nil, "", b)
			}
			if err := ParseDecision(&d, b); err != nil {
				return err
			}
			return d.Validate()
		}
	}
	for _, c := range []struct {
		name  string
		limit int
		err   error
		try   func(n int, json bool) error
	}{
		{"id", MaxIDBytes, errLong, context(func(n int, c *Context) { c.ID = x(n) })},
		{"name of a feature", MaxNameBytes, errLong, context(func(n int, c *Context) {
			c.Features = []Feature{{Name: x(n), Kind: Number}}
		})},
		{"name of an action", MaxNameBytes, errLong, context(func(n int, c *Context) { c.Actions[1].Name = x(n) })},
		{"text", MaxTextBytes, errLong, context(func(n int, c *Context) {
			c.Features = []Feature{{Name: "f", Kind: Text, Text: x(n)}}
		})},
		{"actions", MaxActions, errManyActions, context(func(n int, c *Context) { c.Actions = manyActions(n) })},
		{"numbers", MaxFeatures, errManyFeatures, context(func(n int, c *Context) { c.Vector = make([]float64, n) })},
		{"features", MaxFeatures, errManyFeatures, context(func(n int, c *Context) { c.Features = bareFeatures(n) })},
		{"numbers of a feature", MaxFeatures, errManyFeatures, func(n int, json bool) error { // it counts, too
			c := Context{Features: []Feature{VectorOf("f", make([]float64, n-1))}}
			b := AppendContext(nil, &c)
			if json {
				b = AppendContextJSON(nil, &c)
			}
			return ParseContext(&c, b)
		}},
		// together with the context's
		{"features of actions", MaxFeatures, errManyFeatures, context(func(n int, c *Context) {
			c.Features, c.Actions[0].Features, c.Actions[1].Features = bareFeatures(100), bareFeatures(n-300),
				bareFeatures(200)
		})},
		{"slots", MaxSlots, errManySlots, context(func(n int, c *Context) {
			c.Slots = nil
			for i := range n {
				c.Slots = append(c.Slots, Slot{Name: fmt.Sprint("s", i)})
			}
		})},
		{"name of a slot", MaxNameBytes, errLong, context(func(n int, c *Context) { c.Slots = []Slot{{Name: x(n)}} })},
		{"actions of a slot", MaxActions, errManyActions, context(func(n int, c *Context) {
			c.Slots = []Slot{{Name: "s", Actions: make([]string, n)}}
		})},
		{"baseline", MaxActions, errManyActions, context(func(n int, c *Context) { c.Baseline = manyShares(n) })},
		{"name of a baseline", MaxNameBytes, errLong, context(func(n int, c *Context) {
			c.Baseline = []Share{{x(n), 1}}
		})},
		{"law of another system", MaxActions, errManyActions, context(func(n int, c *Context) {
			c.Assigned = Assigned{Action: "0", Law: manyShares(n)}
		})},
		{"action of another system", MaxNameBytes, errLong, context(func(n int, c *Context) {
			c.Assigned = Assigned{Action: x(n)}
		})},
		{"another system", MaxNameBytes, errLong, context(func(n int, c *Context) {
			c.Assigned = Assigned{Action: "a", By: x(n)}
		})},
		{"outcomes", MaxOutcomes, errManyOutcomes, outcome(func(n int, o *Outcome) {
			o.Kind, o.Value = Named, 0
			for i := range n {
				o.Values = append(o.Values, Value{Name: fmt.Sprint(i), X: 1})
			}
		})},
		{"name of an outcome", MaxNameBytes, errLong, outcome(func(n int, o *Outcome) {
			o.Kind, o.Value, o.Values = Named, 0, []Value{{Name: x(n)}}
		})},
		{"unit of an outcome", MaxIDBytes, errLong, outcome(func(n int, o *Outcome) { o.ID, o.Unit = "", x(n) })},
		{"actions of a decision", MaxActions, errManyActions, decision(func(n int, d *Decision) {
			d.Actions, d.Propensities, d.Action = nil, make([]float64, n), 0
			for i := range n {
				d.Actions = append(d.Actions, fmt.Sprint(i))
			}
			d.Propensities[0] = 1
		})},
		{"name of an action of a decision", MaxNameBytes, errLong, decision(func(n int, d *Decision) {
			d.Actions[0] = x(n)
		})},
		{"id of a decision", MaxIDBytes, errLong, decision(func(n int, d *Decision) { d.ID = x(n) })},
		{"prices", MaxOutcomes, errManyOutcomes, decision(func(n int, d *Decision) {
			for i := range n {
				d.Prices = append(d.Prices, Price{Name: fmt.Sprintf("%02d", i)})
			}
		})},
		{"name of a price", MaxNameBytes, errLong,
			decision(func(n int, d *Decision) { d.Prices = []Price{{Name: x(n)}} })},
		{"outcomes of a feedback", MaxOutcomes, errManyOutcomes, func(n int, json bool) error {
			f := sampleLastStage()
			f.Outcomes = nil
			for i := range n {
				f.Outcomes = append(f.Outcomes, Closed{Name: fmt.Sprintf("%02d", i), Fate: Skipped, Partition: -1,
					Offset: -1})
			}
			b := AppendFeedback(nil, &f)
			if json {
				b = AppendJSON(nil, "", b)
			}
			if err := ParseFeedback(&f, b); err != nil {
				return err
			}
			return f.Validate()
		}},
		{"id of the round", MaxIDBytes, errLong, outcome(func(n int, o *Outcome) { o.ID = x(n) })},
		{"id of an outcome", MaxIDBytes, errLong, outcome(func(n int, o *Outcome) { o.OutcomeID = x(n) })},
		{"action of an outcome", MaxNameBytes, errLong, outcome(func(n int, o *Outcome) { o.Action = x(n) })},
		{"depth of a context", maxDepth, errDepth, func(n int, json bool) error {
			return parsedContext(nested(n, json))
		}},
		{"depth of an outcome", maxDepth, errDepth, func(n int, json bool) error {
			return parsedOutcome(nested(n, json))
		}},
		{"bytes of a context", MaxRecordBytes, ErrTooLarge, func(n int, json bool) error {
			return parsedContext(sized(n, json))
		}},
		{"bytes of an outcome", MaxOutcomeBytes, ErrTooLarge, func(n int, json bool) error {
			return parsedOutcome(sized(n, json))
		}},
	} {
		for _, json := range []bool{true, false} {
			for _, n := range []int{c.limit - 1, c.limit} {
				if err := c.try(n, json); err != nil {
					t.Errorf("%s, JSON %v: %d of %d: %v", c.name, json, n, c.limit, err)
				}
			}
			if err := c.try(c.limit+1, json); !errors.Is(err, c.err) {
				t.Errorf("%s, JSON %v: %d of %d: %v, want %v", c.name, json, c.limit+1, c.limit, err, c.err)
			}
		}
	}
}

func encodeContext(c *Context, json bool) []byte {
	if json {
		return AppendContextJSON(nil, c)
	}
	return AppendContext(nil, c)
}

func parsedContext(b []byte) error {
	var c Context
	if err := ParseContext(&c, b); err != nil {
		return err
	}
	return c.Validate()
}

func parsedOutcome(b []byte) error {
	var o Outcome
	if err := ParseOutcome(&o, b); err != nil {
		return err
	}
	return o.Validate()
}

func manyActions(n int) (actions []Action) {
	for i := range n {
		actions = append(actions, Action{Name: fmt.Sprint(i)})
	}
	return actions
}

func manyShares(n int) (shares []Share) {
	for i := range n {
		shares = append(shares, Share{fmt.Sprint(i), 1 / float64(n)})
	}
	return shares
}

func bareFeatures(n int) (features []Feature) {
	for i := range n {
		features = append(features, Feature{Name: fmt.Sprint("f", i), Kind: Bool, Value: 1})
	}
	return features
}

// nested is a context, and an outcome, with an unknown key whose value is lists in lists.
func nested(n int, json bool) []byte {
	if json {
		return []byte(`{"id":"a","loss":1,"y":` + strings.Repeat("[", n) + strings.Repeat("]", n) + "}")
	}
	return []byte("\x83\xa2id\xa1a\xa4loss\x01\xa1y" + strings.Repeat("\x91", n) + "\xc0")
}

// sized is a context, and an outcome, of n bytes, most of which are an unknown key's.
func sized(n int, json bool) []byte {
	if json {
		head, tail := `{"id":"a","loss":1,"y":"`, `"}`
		return []byte(head + strings.Repeat("x", n-len(head)-len(tail)) + tail)
	}
	head := "\x83\xa2id\xa1a\xa4loss\x01\xa1y\xdb"
	rest := n - len(head) - 4
	b := binary.BigEndian.AppendUint32([]byte(head), uint32(rest))
	return append(b, strings.Repeat("x", rest)...)
}

// TestParsedLimits holds the limits that hold before a record is validated, and what a round may carry.
func TestParsedLimits(t *testing.T) {
	for n, want := range map[int]error{MaxOutcomes: nil, MaxOutcomes + 1: errManyOutcomes} {
		f, o := sampleLastStage(), Outcome{ID: "a", Kind: Named}
		f.Outcomes = nil
		for i := range n {
			f.Outcomes = append(f.Outcomes,
				Closed{Name: fmt.Sprintf("%02d", i), Fate: Skipped, Partition: -1, Offset: -1})
			o.Values = append(o.Values, Value{Name: fmt.Sprint(i), X: 1})
		}
		if err := ParseOutcome(new(Outcome), AppendOutcome(nil, &o)); !errors.Is(err, want) {
			t.Errorf("an outcome of %d names: %v", n, err)
		}
		if err := ParseFeedback(new(Feedback), AppendFeedback(nil, &f)); !errors.Is(err, want) {
			t.Errorf("%d outcomes: %v", n, err)
		}
	}
	for n, field := range map[int]string{MaxRecordBytes: "", MaxRecordBytes + 1: "context"} {
		if got, err := checkRound("i", 0, make([]byte, n)); (err == nil) != (field == "") || err != nil &&
			got != field {
			t.Errorf("a context of %d bytes: %q, %v", n, got, err)
		}
	}
	if f := Fate(200); f.name() != Fate(0).name() || f.String() != "fate(200)" {
		t.Errorf("a fate that there is not is %s, and written %s", f, f.name())
	}
}

// TestRepeated holds which of some names occurred before, for as many as are searched in each way, and that up to
// half of the table on the stack are searched without memory. Of many, some have what a slot keeps of the hash alike.
func TestRepeated(t *testing.T) {
	for _, n := range []int{0, 1, 2, 9, fewNames - 1, fewNames, fewNames + 1, stackSlots/2 - 1, stackSlots / 2,
		stackSlots/2 + 1, 3000, 200_000} {
		names := make([]string, n)
		for i := range names {
			names[i] = strings.Repeat("x", i%12) + fmt.Sprint(i)
		}
		at := func(i int) string { return names[i] }
		if got := Repeated(n, at); got != -1 {
			t.Errorf("of %d different names the %dth occurred before", n, got)
		}
		if allocs := testing.AllocsPerRun(3, func() { Repeated(n, at) }); allocs > 0 && n <= stackSlots/2 {
			t.Errorf("%d names: %v allocations", n, allocs)
		}
		for _, pair := range [][2]int{{0, 1}, {0, n - 1}, {n / 2, n - 1}, {n - 2, n - 1}} {
			if i, j := pair[0], pair[1]; i >= 0 && i < j && j < n {
				was := names[j]
				names[j] = names[i]
				if got := Repeated(n, at); got != j {
					t.Errorf("of %d names the %dth is the %dth again: %d", n, j, i, got)
				}
				names[j] = was
			}
		}
	}
}

// TestFitLimits holds what is kept of a reject at and over its limits.
func TestFitLimits(t *testing.T) {
	for _, c := range []struct{ bytes, detail, size, keeps, details int }{
		{MaxRejectBytes, maxDetail, 0, MaxRejectBytes, maxDetail},
		{MaxRejectBytes - 1, maxDetail + 1, 0, MaxRejectBytes - 1, 0},
		{MaxRejectBytes + 1, 0, MaxRejectBytes + 1, MaxRejectBytes, -1},
	} {
		r := Reject{Size: 9, Bytes: make([]byte, c.bytes), Detail: strings.Repeat("\xff", c.detail)}
		if r.Fit(); r.Size != c.size || len(r.Bytes) != c.keeps || c.details >= 0 && len(r.Detail) != c.details {
			t.Errorf("%+v: size %d, %d bytes, detail of %d", c, r.Size, len(r.Bytes), len(r.Detail))
		}
	}
}
