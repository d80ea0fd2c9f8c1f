package verify

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// TestVerifyOld holds that of decisions whose learner's state is gone the law, the draw from
// it and all that the rules of their model say are checked, and counted.
func TestVerifyOld(t *testing.T) {
	w, _ := cutWorld(t)
	r := w.verify()
	if o := r.Old; r.ExitCode() != TooOld || o.Drawn == 0 || o.Drawn != r.Decisions.TooOld || o.Ruled == 0 ||
		o.Ruled >= o.Drawn {
		t.Fatalf("%+v\n%s", o, r.text())
	}
	if want := fmt.Sprintf("of %d decisions too old to be recomputed", r.Old.Drawn); !strings.Contains(r.text(), want) {
		t.Error(r.text())
	}
	for _, ruled := range []bool{false, true} {
		dec, offset := w.oldDecision(ruled)
		for _, c := range []struct {
			field  string
			change func(d *codec.Decision)
			ruled  bool // it shows only by the rules
		}{
			{"action", func(d *codec.Decision) {
				d.Action = slices.IndexFunc(d.Propensities,
					func(p float64) bool { return p > 0 && p != d.Propensities[d.Action] })
			}, false},
			{"propensities", func(d *codec.Decision) { d.Propensities[d.Action] -= 0x1p-20 }, false},
			{"propensities." + dec.Actions[0], func(d *codec.Decision) {
				d.Propensities[0], d.Propensities[1], d.Propensities[2] = -d.Propensities[0], 1, d.Propensities[0]
			}, false},
			{"context", func(d *codec.Decision) { d.Context = append(slices.Clone(d.Context), ' ') }, false},
			{"propensities", func(d *codec.Decision) { d.Actions[(d.Action+1)%3] = "z" }, true},
		} {
			if c.ruled && !ruled {
				continue
			}
			d := dec
			d.Actions, d.Propensities = slices.Clone(dec.Actions), slices.Clone(dec.Propensities)
			c.change(&d)
			restore := w.edit(w.ts.Decisions, 0, offset, func(r *stream.Record) {
				r.Value = codec.AppendDecision(nil, &d)
			})
			if f := w.verify().First; f == nil || f.Topic != w.ts.Decisions || f.Offset != offset ||
				f.Field != c.field {
				t.Errorf("rules known %v, %s changed: the first difference is %+v", ruled, c.field, f)
			}
			restore()
		}
	}
}

// oldDecision returns the first decision of partition 0 with three actions of different
// probabilities, and its offset; with ruled of the last epoch before recomputing begins,
// else of one whose model is gone.
func (w *world) oldDecision(ruled bool) (found codec.Decision, offset int64) {
	var f codec.Feedback
	first, last := int64(0), int64(0) // epochs: of the first feedback, whose rules a snapshot has; and the feedback's N
	for _, r := range w.records(w.ts.Feedback, 0) {
		if r.Type == "" && codec.ParseFeedback(&f, r.Value) == nil {
			first, last = f.Epoch, f.N
			break
		}
	}
	for _, r := range w.records(w.ts.Decisions, 0) {
		var d codec.Decision
		if r.Type != "" || codec.ParseDecision(&d, r.Value) != nil || d.LearnedThrough >= last-3 ||
			(d.Epoch >= first) != ruled {
			continue
		}
		p := d.Propensities
		if len(p) == 3 && p[0] > 0 && p[0] != p[1] && p[1] != p[2] && p[0] != p[2] {
			return d, r.Offset
		}
	}
	w.Fatalf("no such decision, ruled %v", ruled)
	return found, offset
}

// TestVerifyQuietPartition: where the feedback that is kept begins with an epoch, a snapshot alone tells
// the last round of a partition that had no feedback since; all else in it is compared.
func TestVerifyQuietPartition(t *testing.T) {
	w := newWorld(t, 2, 7)
	w.useModel(warmBase + "version: 1\n")
	w.rounds(60)
	w.idle()
	w.useModel(warmBase + "version: 2\nactions: [a, b]\n") // a fresh learner
	for i := range 60 {
		_, err := w.in[0].Append(w.ctx, &stream.Record{
			Value: fmt.Appendf(nil, `{"id":"quiet%d","features":{"x":%d},"actions":["a","b"]}`, i, i%5)})
		w.no(err)
		w.pump()
		w.answer()
	}
	w.pump()
	for _, r := range w.records(w.ts.Feedback, 0) {
		if r.Type == codec.TypeEpoch {
			w.no(w.log.Truncate(w.ts.Feedback, 0, r.Offset)) // the last is kept
		}
	}
	if r := w.verify(); r.ExitCode() != TooOld || r.Snapshots.Checked == 0 {
		t.Errorf("%+v\n%s", r.First, r.text())
	}
}

// TestVerifyFirstKept: a reject of the first record that is kept can be compared with it, those of the last that are
// gone cannot, and are counted.
func TestVerifyFirstKept(t *testing.T) {
	w := liveWorld(t, 1, 5, 20)
	const dropped = 5
	contexts := w.records(w.ts.Contexts, 0)
	w.drop(w.ts.Contexts, 0, dropped)
	was, rejects := w.verify().Rejects, w.records(w.ts.Rejects, 0)
	for i, field := range map[int]string{dropped - 2: "", dropped: "offset"} {
		for k, r := range contexts[i : i+2] {
			w.insert(w.ts.Rejects, 0, rejects[k].Time, stream.Record{Value: codec.AppendReject(nil, &codec.Reject{
				Topic: "contexts", Offset: r.Offset, Time: r.Time + 1, Reason: codec.ReasonMalformed})})
		}
		report := w.verify()
		if d := report.First; (d != nil) != (field != "") || d != nil && (d.Topic != w.ts.Rejects ||
			d.Field != field) || d == nil && report.Rejects.TooOld != was.TooOld+2 {
			t.Errorf("%d: %+v\n%s", i, d, report.text())
		}
		w.no(w.log.Edit(w.ts.Rejects, 0, func([]stream.Record) []stream.Record { return slices.Clone(rejects) }))
	}
}
