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
