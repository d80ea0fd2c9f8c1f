package verify

import (
	"fmt"
	"testing"
	"time"

	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// BenchmarkVerify reports decisions verified a second, and how much longer that
// takes than reading and parsing the same decisions and feedback once.
func BenchmarkVerify(b *testing.B) {
	const rounds = 20_000
	for _, of := range []struct {
		oracle string
		parts  int
	}{{"auto", 1}, {"auto", 2}, {"linear", 1}, {"linear", 2}} {
		parts := of.parts
		b.Run(fmt.Sprintf("oracle=%s/partitions=%d", of.oracle, parts), func(b *testing.B) {
			w := newWorld(b, parts, 1)
			w.useModel(`{name: m, version: 5, window: 150ns, order: early, oracle: ` + of.oracle + `}`)
			for i := range rounds {
				p := i % parts
				_, err := w.in[p].Append(w.ctx, &stream.Record{Value: fmt.Appendf(nil,
					`{"id":"c%d","features":{"x":%d,"y":%d,"z":"t%d"},"actions":["a","b","c"]}`, i, i%7, i%11, i%3)})
				w.no(err)
				if i%8 == 7 {
					w.pump()
				}
				_, err = w.out[p].Append(w.ctx, &stream.Record{Value: fmt.Appendf(nil, `{"id":"c%d","loss":0.%d}`,
					i-10, i%10)})
				w.no(err)
			}
			w.pump()
			b.ReportAllocs()
			var spent time.Duration
			n := 0
			for b.Loop() {
				start := time.Now()
				if r := w.verify(); r.ExitCode() != Identical || r.Decisions.Checked != rounds {
					b.Fatal(r.text())
				}
				spent += time.Since(start)
				n++
			}
			start := time.Now()
			w.readAll()
			floor := time.Since(start)
			b.ReportMetric(rounds*float64(n)/spent.Seconds(), "decisions/s")
			b.ReportMetric(spent.Seconds()/float64(n)/floor.Seconds(), "x-read+parse")
		})
	}
}

// readAll reads and parses all decisions and feedback.
func (w *world) readAll() {
	var d codec.Decision
	var f codec.Feedback
	for p := range w.parts {
		w.scanAll(w.ts.Decisions, p, func(v []byte) error { return codec.ParseDecision(&d, v) })
	}
	w.scanAll(w.ts.Feedback, 0, func(v []byte) error { return codec.ParseFeedback(&f, v) })
}

func (w *world) scanAll(topic string, p int, parse func([]byte) error) {
	_, end, err := w.log.Bounds(w.ctx, topic, p)
	w.no(err)
	w.no(stream.Scan(w.ctx, w.log, topic, p, 0, end, func(r *stream.Record) error {
		if r.Type != "" {
			return nil
		}
		return parse(r.Value)
	}))
}
