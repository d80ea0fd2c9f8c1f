package verify

import (
	"bytes"
	"fmt"
	"testing"

	"hindsight/internal/testkit/daily"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

func (r *Report) text() string {
	var b bytes.Buffer
	if err := r.Write(&b); err != nil {
		return err.Error()
	}
	return b.String()
}

// seeds returns n, or few under the race detector, which sees the same goroutines with each.
func seeds(n uint64) uint64 {
	if testing.Short() {
		return 2
	}
	return n
}

// What the real shells wrote is what Run recomputes, whatever happened on the
// way.
func TestVerifyIdentical(t *testing.T) {
	for parts := 1; parts <= 3; parts++ {
		for seed := range seeds(6) {
			if !testing.Short() && !daily.Turn(t, int(seed/2), 3) { // of both encodings
				continue
			}
			t.Run(fmt.Sprint(parts, " partitions, seed ", seed), func(t *testing.T) {
				w := encodedWorld(t, codec.Encoding(seed%2), parts, seed, 60)
				r := w.verify()
				t.Log(r.text())
				if r.ExitCode() != Identical {
					t.Fatal("not identical")
				}
			})
		}
	}
}

// The first difference is the damaged record and its field, not what follows from
// it.
func TestVerifyFirst(t *testing.T) {
	w := liveWorld(t, 2, 3, 30)
	for _, c := range []struct {
		topic string
		field string
		value string // of the key in the record
	}{
		{w.ts.Decisions, "gamma", "\xa5gamma\xcb"}, {w.ts.Decisions, "propensities.a", "\xa1a\xcb"},
		{w.ts.Feedback, "gamma", "\xa5gamma\xcb"}, {w.ts.Feedback, "loss", "\xa4loss\xcb"},
	} {
		for _, r := range w.records(c.topic, 0)[20:] {
			i := bytes.Index(r.Value, []byte(c.value))
			if r.Type != "" || i < 0 || c.field == "propensities.a" && bytes.Contains(r.Value, []byte("\xa6action\xa1a")) {
				continue
			}
			restore := w.edit(c.topic, 0, r.Offset, func(r *stream.Record) { r.Value[i+len(c.value)+3] ^= 1 })
			f := w.verify().First
			restore()
			if f == nil || f.Topic != c.topic || f.Offset != r.Offset || f.Field != c.field || f.Round == 0 || f.ID == "" ||
				f.Want == f.Got {
				t.Errorf("%s at offset %d: %s: the first difference is %+v", c.topic, r.Offset, c.field, f)
			}
			break
		}
	}
}
