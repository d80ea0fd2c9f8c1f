package envelope

import (
	"fmt"
	"testing"
	"time"

	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// TestHeaders: a record says what it is and when it was, by the time that it tells, or by the clock. What it says
// already stays, however a client wrote it. No record costs an allocation.
func TestHeaders(t *testing.T) {
	at := time.Date(2026, 11, 23, 10, 30, 0, 123456789, time.UTC)
	d := codec.Decision{ID: "a", Actions: []string{"x"}, Propensities: []float64{1}}
	asked := codec.AppendDecision(nil, &d)
	d.Time = at.UnixNano()
	decision := codec.AppendDecision(nil, &d)
	const told = "{hindsight-time 2026-11-23T10:30:00.123456789Z}]"
	const event = `{"specversion":"1.0","id":"1","data":{"id":"a","reward":1}}`
	for _, c := range []struct {
		topic string
		r     stream.Record
		want  string // without the time of the clock
	}{
		{"m.decisions", stream.Record{Value: decision}, "[{content-type application/msgpack} " + told},
		{"m.decisions", stream.Record{Value: codec.AppendJSON(nil, "", decision)},
			"[{content-type application/json} " + told},
		{"m.decisions", stream.Record{Value: asked}, "[{content-type application/msgpack} {hindsight-time }]"},
		{"m.decisions", stream.Record{Value: decision, Headers: []stream.Header{{Key: EventTime, Value: "x"}}},
			"[{content-type application/msgpack}]"},
		{"m.outcomes", stream.Record{Value: []byte(`{"id":"a","reward":1,"time":7}`)},
			"[{content-type application/json} {hindsight-time }]"},
		{"m.outcomes", stream.Record{Value: []byte(event)},
			"[{content-type application/cloudevents+json} {hindsight-time }]"},
		{"m.outcomes", stream.Record{Value: []byte(event), Headers: []stream.Header{{Key: "Content-Type", Value: "x"}}},
			"[{hindsight-time }]"},
		{"m.decisions", stream.Record{Type: stream.TypeOpen}, "[]"},
	} {
		h := NewHeaders(c.topic)
		began, got := time.Now(), h.Of(&c.r)
		if n := len(got) - 1; n >= 0 && got[n].Key == EventTime {
			if told, err := time.Parse(time.RFC3339Nano, got[n].Value); err != nil {
				t.Error(err)
			} else if !told.Before(began) && !told.After(time.Now()) {
				got[n].Value = ""
			}
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("%s %q: %v, want %v", c.topic, c.r.Value, got, c.want)
		}
		if n := testing.AllocsPerRun(100, func() { h.Of(&c.r) }); n > 0 {
			t.Errorf("%s %q: %v allocations", c.topic, c.r.Value, n)
		}
	}
}
