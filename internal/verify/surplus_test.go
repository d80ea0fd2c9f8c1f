package verify

import (
	"strings"
	"testing"

	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/mem"
)

// TestVerifySurplus: what is in partitions that somebody added must have been refused, each record
// with its own bytes, up to the last one that was.
func TestVerifySurplus(t *testing.T) {
	for name, c := range map[string]struct {
		refused []string // "": that record was not
		want    string   // the field that differs; "": none does
		dropped int64    // records that the log has dropped since
	}{
		"all are refused":       {[]string{"x", "y"}, "", 0},
		"one has been dropped":  {[]string{"x", "y"}, "", 1},
		"the last is to come":   {[]string{"x"}, "", 0},
		"none is yet":           {nil, "", 0},
		"one was passed over":   {[]string{"", "y"}, "reject", 0},
		"one has other bytes":   {[]string{"x", "z"}, "bytes", 0},
		"one for no reason":     {[]string{"x", "late y"}, "reason", 0},
		"one anew, no reason":   {[]string{"x", "y", "late anew y"}, "reason", 0},
		"one that is not there": {[]string{"x", "y", "z"}, "offset", 0},
	} {
		t.Run(name, func(t *testing.T) {
			log := mem.New(mem.Options{})
			for topic, n := range map[string]int{"m.contexts": 2, "m.outcomes": 3, "m.decisions": 1, "m.feedback": 1} {
				// as if added since
				if err := log.Create(t.Context(), topic, n, stream.TopicOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			s := newShop(t, log, shopModel("linear", 1, "actions: [a, b, c]"))
			s.rounds(5)
			put := func(topic string, partition int, r stream.Record) {
				w, err := log.Writer(s.ctx, topic, partition, nil)
				s.no(err)
				_, err = w.Append(s.ctx, &r)
				s.no(err)
			}
			put(s.ts.Contexts, 1, stream.Record{Value: []byte("not yet refused")})
			put(s.ts.Outcomes, 2, stream.Record{Value: []byte("nor this")})
			put(s.ts.Outcomes, 1, stream.Record{Value: []byte("x")})
			put(s.ts.Outcomes, 1, stream.Record{Value: []byte("y")})
			var times []int64
			var offsets []int64
			s.no(stream.Scan(s.ctx, log, s.ts.Outcomes, 1, stream.Earliest, 100, func(r *stream.Record) error {
				times, offsets = append(times, r.Time), append(offsets, r.Offset)
				return nil
			}))
			for i, text := range c.refused {
				if text == "" {
					continue
				}
				k, reason := min(i, 1), codec.ReasonMalformed
				if other, late := strings.CutPrefix(text, "late "); late {
					text, reason = other, codec.ReasonLate
				}
				at := offsets[k] + int64(i-k)
				if other, anew := strings.CutPrefix(text, "anew "); anew {
					text, at = other, offsets[k]
				}
				put(s.ts.Rejects, 0,
					stream.Record{Value: codec.AppendReject(nil, &codec.Reject{V: codec.Version, Topic: "outcomes",
						Partition: 1,
						Offset:    at, Time: times[k], Reason: reason,
						Bytes: []byte(text)})})
			}
			s.no(log.Truncate(s.ts.Outcomes, 1, offsets[0]+c.dropped))
			s.end()
			r := s.verify()
			got := ""
			if r.First != nil {
				got = r.First.Field
			}
			if got != c.want || c.want == "" && r.Rejects.Checked+r.Rejects.TooOld != r.Rejects.Records {
				t.Errorf("differs in %q, want %q: %+v", got, c.want, r.First)
			}
			s.shut()
		})
	}
}
