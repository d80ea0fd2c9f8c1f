package codec

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/vmihailenco/msgpack/v5"
)

// ratio reports how many times as long as the benchmark the floor takes, measured
// here and now.
func ratio(b *testing.B, name string, floor func()) {
	mine := float64(b.Elapsed()) / float64(b.N)
	b.StopTimer()
	floor()
	start := time.Now()
	rounds := b.N/16 + 1
	for range rounds {
		floor()
	}
	b.ReportMetric(float64(time.Since(start))/float64(rounds)/mine, name)
}

// must stops a benchmark that measures a failure.
func must(b *testing.B, err error) {
	if err != nil {
		b.Fatal(err)
	}
}

// encoder encodes with the reference into memory that it reuses.
func encoder(b *testing.B, x any) func() {
	var buf bytes.Buffer
	e := msgpack.NewEncoder(&buf)
	e.UseCompactInts(true)
	return func() {
		buf.Reset()
		must(b, e.Encode(x))
	}
}

func BenchmarkAppend(b *testing.B) {
	c, d, f, o := largeContext(10, 16), sampleDecision(), sampleFeedback(), sampleOutcome()
	bench := func(name string, appendTo func(dst []byte) []byte, ref any) {
		b.Run("event="+name, func(b *testing.B) {
			b.ReportAllocs()
			var buf []byte
			for b.Loop() {
				buf = appendTo(buf[:0])
			}
			b.SetBytes(int64(len(buf)))
			ratio(b, "x-msgpack", encoder(b, ref))
		})
	}
	bench("context", func(dst []byte) []byte { return AppendContext(dst, &c) }, newRefContext(&c))
	bench("decision", func(dst []byte) []byte { return AppendDecision(dst, &d) }, newRefDecision(&d))
	bench("feedback", func(dst []byte) []byte { return AppendFeedback(dst, &f) }, newRefFeedback(&f))
	bench("outcome", func(dst []byte) []byte { return AppendOutcome(dst, &o) }, newRefOutcome(&o))
}

// refContext is a context that the reference can read and write with types.
type refContext struct {
	ID       string         `msgpack:"id" json:"id"`
	Features map[string]any `msgpack:"features" json:"features"`
	Actions  []refAction    `msgpack:"actions" json:"actions"`
}

type refAction struct {
	Name     string         `msgpack:"name" json:"name"`
	Features map[string]any `msgpack:"features" json:"features"`
}

func newRefContext(c *Context) refContext {
	ref := refContext{ID: c.ID, Features: tree(&Context{Features: c.Features})["features"].(map[string]any)}
	for _, a := range c.Actions {
		ref.Actions = append(ref.Actions, refAction{
			Name: a.Name, Features: tree(&Context{Features: a.Features})["features"].(map[string]any),
		})
	}
	return ref
}

func BenchmarkParse(b *testing.B) {
	c, d, f, o := largeContext(10, 16), sampleDecision(), sampleFeedback(), sampleOutcome()
	packed, text := AppendContext(nil, &c), AppendContextJSON(nil, &c)
	decision, feedback := AppendDecision(nil, &d), AppendFeedback(nil, &f)
	outcome, outcomeText := AppendOutcome(nil, &o), AppendOutcomeJSON(nil, &o)
	bench := func(name string, in []byte, parse func() error, floorName string, floor func() error) {
		b.Run("event="+name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(in)))
			for b.Loop() {
				must(b, parse())
			}
			ratio(b, floorName, func() { must(b, floor()) })
		})
	}
	bench("context", packed, func() error { return ParseContext(&c, packed) }, "x-msgpack", func() error {
		var x refContext
		return msgpack.Unmarshal(packed, &x)
	})
	bench("context-json", text, func() error { return ParseContext(&c, text) }, "x-json", func() error {
		var x refContext
		return json.Unmarshal(text, &x)
	})
	bench("decision", decision, func() error { return ParseDecision(&d, decision) }, "x-msgpack", func() error {
		var x refDecision
		return msgpack.Unmarshal(decision, &x)
	})
	bench("feedback", feedback, func() error { return ParseFeedback(&f, feedback) }, "x-msgpack", func() error {
		var x refFeedback
		return msgpack.Unmarshal(feedback, &x)
	})
	bench("outcome", outcome, func() error { return ParseOutcome(&o, outcome) }, "x-msgpack", func() error {
		var x refOutcome
		return msgpack.Unmarshal(outcome, &x)
	})
	bench("outcome-json", outcomeText, func() error { return ParseOutcome(&o, outcomeText) }, "x-json", func() error {
		var x refOutcome
		return json.Unmarshal(outcomeText, &x)
	})
}

// BenchmarkStored tells what a model in JSON costs beyond one in MessagePack: a decision with 10 actions
// of 16 features.
func BenchmarkStored(b *testing.B) {
	c := largeContext(10, 16)
	for name, context := range map[string][]byte{"json": AppendContextJSON(nil, &c), "msgpack": AppendContext(nil,
		&c)} {
		d := sampleDecision()
		d.Context = context
		packed := AppendDecision(nil, &d)
		text := AppendJSON(nil, "", packed)
		bench := func(what string, in []byte, f, floor func()) {
			b.Run(what+"/context="+name, func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(len(in)))
				for b.Loop() {
					f()
				}
				ratio(b, "x-msgpack", floor)
			})
		}
		var dst, stored []byte
		append := func() { dst = AppendDecision(dst[:0], &d) }
		bench("append", text, func() { append(); stored = AppendJSON(stored[:0], "", dst) }, append)
		bench("parse", text, func() { must(b, ParseDecision(&d, text)) }, func() { must(b, ParseDecision(&d, packed)) })
	}
}

func BenchmarkValidate(b *testing.B) {
	c, d := largeContext(10, 16), sampleDecision()
	many := largeContext(1000, 0)
	packed := AppendContext(nil, &c)
	var back Context
	parse := func() { must(b, ParseContext(&back, packed)) }
	bench := func(name string, validate func() error) {
		b.Run("event="+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				must(b, validate())
			}
			ratio(b, "x-parse-context", parse)
		})
	}
	bench("context", c.Validate)
	bench("context-1000-actions", many.Validate)
	bench("decision", d.Validate)
}
