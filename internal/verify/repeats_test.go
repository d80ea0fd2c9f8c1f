package verify

import (
	"slices"
	"testing"

	"hindsight/internal/join/testkit"
	"hindsight/internal/testkit/daily"
	"hindsight/pkg/codec"
	"hindsight/pkg/learner"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/mem"
)

// TestVerifyLongGap holds that it makes no difference how many rounds a decider announces as lost.
func TestVerifyLongGap(t *testing.T) {
	s := newShop(t, mem.New(mem.Options{Step: 2}), shopModel("linear", 1, "actions: [a, b, c]"))
	s.rounds(15)
	s.shut()
	last := s.decisions(stream.Earliest)[14]
	const gap = 1<<20 + 7
	w, err := s.log.Writer(s.ctx, s.ts.Decisions, 0, nil)
	s.no(err)
	_, err = w.Append(s.ctx,
		&stream.Record{Type: codec.TypeMark, Value: codec.AppendDecisionMark(nil, &codec.DecisionMark{N: last.N + gap,
			ContextsThrough: last.ContextsThrough, LearnedThrough: last.LearnedThrough, GapFrom: last.N + 1,
			GapTo: last.N + gap})})
	s.no(err)
	s.no(w.Flush(s.ctx))
	s.j = nil
	s.open()
	defer s.shut()
	s.rounds(20)
	s.end()
	if all := s.decisions(stream.Earliest); all[15].N != last.N+gap+1 {
		t.Fatalf("decision %d behind the gap", all[15].N)
	}
	if r := s.verify(); r.ExitCode() != Identical || r.Feedback.Checked < 20 {
		t.Error(r.text())
	}
	s.withoutCuts()
	if r := s.verify(); r.ExitCode() != TooOld || r.Differences > 0 {
		t.Error(r.text())
	}
}

// TestVerifyRepeats holds that an id which a decider must remember is audited as far back as it does.
func TestVerifyRepeats(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector sees all that it runs in other tests")
	}
	w := liveWorld(t, 1, 3, 30)
	tried := 0
	var all []codec.Decision
	for _, r := range w.records(w.ts.Decisions, 0) {
		var d codec.Decision
		if r.Type != "" || codec.ParseDecision(&d, r.Value) != nil {
			continue
		}
		d.ID, d.Propensities = string([]byte(d.ID)), slices.Clone(d.Propensities)
		all = append(all, d)
		for _, back := range []int{worldDedup/2 + 2, worldDedup, worldDedup + 1} {
			if k := len(all) - 1 - back; k < 0 || d.Source >= 0 || tried > 20 {
				continue
			}
			tried++
			d := d
			d.ID = all[len(all)-1-back].ID
			d.Action = learner.Draw(d.Propensities, learner.Uniform(worldSeed(), worldName, 0, d.N, d.ID))
			value := codec.AppendDecision(nil, &d)
			restore := w.edit(w.ts.Decisions, 0, r.Offset,
				func(r *stream.Record) { r.Key, r.Value = []byte(d.ID), value })
			f := w.verify().First
			if named := f != nil && f.Offset == r.Offset && f.Topic == w.ts.Decisions &&
				f.Want == "a new id"; named != (back <= worldDedup) {
				t.Errorf("an id of %d rounds before: the first difference is %+v", back, f)
			}
			restore()
		}
	}
	if tried < 10 {
		t.Errorf("%d requests", tried)
	}
}

// TestReplayRepeats holds that what the joiner says of an id that was used before is audited as far back
// as it remembers, and no further.
func TestReplayRepeats(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine: nothing for the race detector")
	}
	near, far := 0, 0
	for seed := range daily.Seeds(t, 25, 5) {
		w := testkit.New(t, 900+seed, "plain")
		w.Run(150)
		made := madeOf(w)
		ids, dedup := map[string]int64{}, int64(0)
		for _, r := range made.all["f/0"] {
			var f codec.Feedback
			if m, err := codec.ParseFeedbackMark(r.Value); r.Type == codec.TypeMark && err == nil {
				dedup = m.Limits.Dedup
			}
			if r.Type != "" || codec.ParseFeedback(&f, r.Value) != nil {
				continue
			}
			n, used := ids[f.ID]
			switch back := f.N - n; {
			case f.Reason != codec.ReasonDuplicateID:
				if ids[string([]byte(f.ID))] = f.N; used && back > dedup {
					far++
				}
				continue
			case !used || back <= dedup/2 || back > dedup || near > 40:
				continue
			}
			near++
			f.Reason = ""
			value := codec.AppendFeedback(nil, &f)
			records := slices.Clone(made.all["f/0"])
			i := slices.IndexFunc(records, func(x stream.Record) bool { return x.Offset == r.Offset })
			records[i].Value = value
			if d := replayLog(t, w, made.with("f/0", records)).report.First; d == nil || d.Offset != r.Offset ||
				d.Field != "reason" {
				t.Errorf("seed %d: a repeat that is told as none: %+v", seed, d)
			}
		}
	}
	t.Logf("%d repeats of ids more than half as far back as is remembered, %d of forgotten ones", near, far)
	if near == 0 || far == 0 {
		t.Error("no world has a place for it")
	}
}

// TestVerifyRefusedAnew: a decider that was killed before its log told of a reject looks at the context anew, and may
// refuse it for another reason: each must hold.
func TestVerifyRefusedAnew(t *testing.T) {
	const linear = "oracle: linear\n"
	w := newWorld(t, 1, 1)
	w.useModel(warmBase + linear + "version: 1\n")
	w.rounds(20)
	for range 2 {
		_, err := w.in[0].Append(w.ctx, &stream.Record{Value: []byte(`{"id":"twice","actions":["a","b","c"]}`)})
		w.no(err)
	}
	w.pump()
	w.name(warmBase + linear + "version: 2\nwarm: keep\nactions: [a, c]\n")
	w.openJoiner()
	w.openDecider(0)
	w.pump()
	all := w.records(w.ts.Rejects, 0)
	r := all[len(all)-1]
	rej, err := codec.ParseReject(r.Value)
	w.no(err)
	if rej.Reason != codec.ReasonMalformed {
		t.Fatalf("refused anew as %+v", rej)
	}
	if r := w.verify(); r.ExitCode() != Identical {
		t.Errorf("%+v", r.First)
	}
	for _, change := range []func(){func() { rej.Reason = codec.ReasonLate },
		func() { rej.Reason, rej.ID = codec.ReasonMalformed, "other" }} {
		change()
		restore := w.edit(w.ts.Rejects, 0, r.Offset, func(r *stream.Record) { r.Value = codec.AppendReject(nil, &rej) })
		if r := w.verify(); r.Differences != 1 {
			t.Errorf("%+v: %+v", rej, r.First)
		}
		restore()
	}
}
