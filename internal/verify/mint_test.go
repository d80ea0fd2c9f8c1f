package verify

import (
	"fmt"
	"strings"
	"testing"

	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/learner"
	"hindsight/pkg/stream"
)

// TestVerifyMinted verifies a log in which ids that are minted were used ahead, so that
// contexts without one got the next: identical; but not where a context has the next id
// and the first was free.
func TestVerifyMinted(t *testing.T) {
	w := newWorld(t, 1, 9)
	w.use(4)
	const body = `"features":{"x":1},"actions":["a","b","c"]}`
	put := func(data string) {
		_, err := w.in[0].Append(w.ctx, &stream.Record{Value: []byte(data)})
		w.no(err)
	}
	for i := range 30 {
		_, end, err := w.log.Bounds(w.ctx, w.ts.Contexts, 0)
		w.no(err)
		switch i % 3 {
		case 0:
			put(fmt.Sprintf(`{"id":"0-%d",%s`, end+8, body)) // of the next but one
		case 1:
			w.request(fmt.Appendf(nil, `{"id":"r-0-%d",%s`, i*2+6, body))
		}
		put(`{` + body)
		w.pump()
		w.request([]byte(`{` + body))
		w.answer()
		if i%10 == 9 {
			w.openDecider(0)
		}
	}
	w.pump()
	if r := w.verify(); r.ExitCode() != Identical {
		t.Fatal(r.text())
	}
	again := map[bool]int{} // minted anew: by topic, by request
	var plain *stream.Record
	var d codec.Decision
	for _, r := range w.records(w.ts.Decisions, 0) {
		if r.Type != "" || codec.ParseDecision(&d, r.Value) != nil {
			continue
		}
		if strings.Count(strings.TrimPrefix(d.ID, "r-"), "-") == 2 {
			again[d.Source >= 0]++
		} else if d.ID == fmt.Sprintf("0-%d", d.Source) && !strings.Contains(string(d.Context), `"id"`) {
			plain = &r
		}
	}
	if again[true] < 5 || again[false] < 2 || plain == nil {
		t.Fatalf("%d contexts and %d requests had their ids minted anew", again[true], again[false])
	}
	w.no(codec.ParseDecision(&d, plain.Value))
	d.ID = string(loop.AppendMinted(nil, worldSeed(), worldName, 0, d.N, d.Source, 1))
	d.Action = learner.Draw(d.Propensities, learner.Uniform(worldSeed(), worldName, 0, d.N, d.ID))
	w.edit(w.ts.Decisions, 0, plain.Offset, func(r *stream.Record) {
		r.Key, r.Value = []byte(d.ID), codec.AppendDecision(nil, &d)
	})
	if f := w.verify().First; f == nil || f.Topic != w.ts.Decisions || f.Offset != plain.Offset || f.Field != "id" {
		t.Errorf("an id that was minted anew without need: the first difference is %+v", f)
	}
}
