package door

import (
	"slices"
	"testing"

	"hindsight/pkg/stream"
)

// TestTraceparent holds that the valid traceparent of a request, or of a record of contexts, is a header of the record
// of its decision, without any collector, and that other requests leave none.
func TestTraceparent(t *testing.T) {
	w := open(t, setting{})
	const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	w.decide(`{"id":"a","actions":["x","y"]}`, "Traceparent: "+parent)
	w.decide(`{"id":"b","actions":["x","y"]}`, "Traceparent: 00-x", "Tracestate: a=b")
	w.decide(`{"id":"c","actions":["x","y"]}`)
	contexts, err := w.log.Writer(t.Context(), "shop.contexts", 0, func(uint64, int64, error) {})
	if err != nil {
		t.Fatal(err)
	}
	defer contexts.Close()
	if _, err := contexts.Append(t.Context(), &stream.Record{Value: []byte(`{"id":"d","actions":["x","y"]}`),
		Headers: []stream.Header{{Key: "traceparent", Value: parent}, {Key: "other", Value: "x"}}}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the context of the topic is decided", func() bool { return len(w.records("shop.decisions")) == 4 })
	_, end, err := w.log.Bounds(t.Context(), "shop.decisions", 0)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	err = stream.Scan(t.Context(), w.log, "shop.decisions", 0, stream.Earliest, end, func(r *stream.Record) error {
		if r.Type != "" {
			return nil
		}
		said := string(r.Key)
		for _, h := range r.Headers {
			said += " " + h.Key + "=" + h.Value
		}
		got = append(got, said)
		return nil
	})
	if want := []string{"a traceparent=" + parent, "b", "c", "d traceparent=" + parent}; err != nil ||
		!slices.Equal(got, want) {
		t.Errorf("%v: %q", err, got)
	}
}
