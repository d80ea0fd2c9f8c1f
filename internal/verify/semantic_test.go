package verify

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"

	"hindsight/internal/join/testkit"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// planted is one rule that a decider, or a writer beside it, breaks, with valid bytes.
type planted struct {
	name   string
	fields string                                // the first difference is in one of them
	change func(w *world, r *stream.Record) bool // of partition 0 of the topic; false: the record has no place for it
	topic  string                                // "": decisions
}

// decided changes a decision behind the first 20. want accepts those that have a place for it.
func decided(want func(d *codec.Decision) bool, change func(d *codec.Decision)) func(*world, *stream.Record) bool {
	return func(w *world, r *stream.Record) bool {
		var d codec.Decision
		if r.Type != "" || codec.ParseDecision(&d, r.Value) != nil || d.N < 20 || want != nil && !want(&d) {
			return false
		}
		change(&d)
		r.Value = codec.AppendDecision(nil, &d)
		return true
	}
}

// named gives a decision another id, and its key.
func named(id string) func(*world, *stream.Record) bool {
	return func(w *world, r *stream.Record) bool {
		r.Key = []byte(id)
		return decided(nil, func(d *codec.Decision) { d.ID = id })(w, r)
	}
}

// marked changes a decider's mark behind the first decisions.
func marked(change func(m *codec.DecisionMark)) func(*world, *stream.Record) bool {
	return func(w *world, r *stream.Record) bool {
		m, err := codec.ParseDecisionMark(r.Value)
		if r.Type != codec.TypeMark || err != nil || m.N < 10 || m.LearnedThrough < 10 {
			return false
		}
		change(&m)
		r.Value = codec.AppendDecisionMark(nil, &m)
		return true
	}
}

func announced(change func(e *codec.Epoch)) func(*world, *stream.Record) bool {
	return func(w *world, r *stream.Record) bool {
		e, err := codec.ParseEpoch(r.Value)
		if r.Type != codec.TypeEpoch || err != nil || e.Epoch < 3 {
			return false
		}
		change(&e)
		r.Value = codec.AppendEpoch(nil, &e)
		return true
	}
}

// refusedContext changes a reject of a context that was stored once.
func refusedContext(reason string, change func(x *codec.Reject)) func(*world, *stream.Record) bool {
	return func(w *world, r *stream.Record) bool {
		x, err := codec.ParseReject(r.Value)
		if r.Type != "" || err != nil || x.Topic != contextsTopic || x.Partition != 0 || reason != "" &&
			x.Reason != reason || w.repeatedRejects()[r.Offset] {
			return false
		}
		change(&x)
		r.Value = codec.AppendReject(nil, &x)
		return true
	}
}

func snapshotted(change func(s *codec.Snapshot)) func(*world, *stream.Record) bool {
	return func(w *world, r *stream.Record) bool {
		s, err := codec.ParseSnapshot(r.Value)
		if r.Type != "" || err != nil || s.LearnedThrough < 20 {
			return false
		}
		change(&s)
		r.Value = codec.AppendSnapshot(nil, &s)
		return true
	}
}

func byRequest(d *codec.Decision) bool { return d.Source < 0 }
func byTopic(d *codec.Decision) bool   { return d.Source >= 0 }

const (
	ofFeedback  = "feedback"
	ofRejects   = "rejects"
	ofSnapshots = "snapshots"
)

var semantic = []planted{
	{"a number left out", "n", decided(nil, func(d *codec.Decision) { d.N++ }), ""},
	{"a number twice", "n", decided(nil, func(d *codec.Decision) { d.N-- }), ""},
	{"an id twice", "id", named("c1"), ""},
	{"an id that is not the context's", "id", named("another"), ""},
	{"another key", "key", func(_ *world, r *stream.Record) bool {
		r.Key = []byte("another")
		return r.Type == ""
	}, ""},
	{"an earlier era", "era", decided(nil, func(d *codec.Decision) { d.Era = -1 }), ""},
	{"an era that never began", "learned_through era", decided(nil, func(d *codec.Decision) { d.Era = 7 }), ""},
	{"learned_through goes back", "learned_through",
		decided(func(d *codec.Decision) bool { return d.LearnedThrough > 9 },
			func(d *codec.Decision) { d.LearnedThrough = 1 }), ""},
	{"learned one feedback less", "learned_through gamma learned propensities", decided(
		func(d *codec.Decision) bool { return d.LearnedThrough > 9 }, func(d *codec.Decision) { d.LearnedThrough-- }),
		""},
	{"learned what comes later", "learned_through",
		decided(nil, func(d *codec.Decision) { d.LearnedThrough += 1000 }), ""},
	{"learned rounds", "learned", decided(nil, func(d *codec.Decision) { d.Learned++ }), ""},
	{"gamma", "gamma", decided(nil, func(d *codec.Decision) { d.Gamma += .5 }), ""},
	{"an epoch that is over", "epoch", decided(func(d *codec.Decision) bool { return d.Epoch > 1 },
		func(d *codec.Decision) { d.Epoch-- }), ""},
	{"an epoch that never began", "epoch", decided(nil, func(d *codec.Decision) { d.Epoch = 99 }), ""},
	{"another action", "action",
		decided(nil, func(d *codec.Decision) { d.Action = (d.Action + 1) % len(d.Actions) }), ""},
	{"another law", "propensities",
		decided(func(d *codec.Decision) bool { return d.Propensities[0] != d.Propensities[1] },
			func(d *codec.Decision) {
				p := d.Propensities
				p[0], p[1] = p[1], p[0]
			}), ""},
	{"another mode", "mode", decided(nil, func(d *codec.Decision) { d.Mode = codec.Paused }), ""},
	{"another context", "context", decided(byTopic, func(d *codec.Decision) {
		d.Context = []byte(strings.Replace(string(d.Context), `"t`, `"s`, 1))
	}), ""},
	{"another log time", "time", decided(byTopic, func(d *codec.Decision) { d.Time++ }), ""},
	{"the source is no context", "decision", decided(byTopic, func(d *codec.Decision) {
		d.Source++
		d.ContextsThrough++
	}), ""},
	{"the source goes back", "source", decided(byTopic, func(d *codec.Decision) { d.Source = 4 }), ""},
	{"contexts passed go back", "contexts_through",
		decided(byRequest, func(d *codec.Decision) { d.ContextsThrough = 5 }), ""},
	{"contexts passed end between two", "contexts_through", decided(byRequest,
		func(d *codec.Decision) { d.ContextsThrough++ }), ""},
	{"more contexts passed", "contexts_through", decided(byTopic, func(d *codec.Decision) { d.ContextsThrough++ }), ""},

	{"mark: n", "n", marked(func(m *codec.DecisionMark) { m.N++ }), ""},
	{"mark: contexts_through goes back", "contexts_through",
		marked(func(m *codec.DecisionMark) { m.ContextsThrough = 5 }),
		""},
	{"mark: learned_through goes back", "learned_through",
		marked(func(m *codec.DecisionMark) { m.LearnedThrough = 1 }), ""},
	{"mark: learned_through beyond the log", "learned_through",
		marked(func(m *codec.DecisionMark) { m.LearnedThrough = 1 << 40 }), ""},
	{"mark: an era that never began", "learned_through era", marked(func(m *codec.DecisionMark) { m.Era = 7 }), ""},
	{"mark: a gap that ends before it begins", "gap_from", marked(func(m *codec.DecisionMark) {
		m.GapFrom, m.GapTo = m.N+1, m.N-1
	}), ""},
	{"mark: a gap over what was decided", "gap_from",
		marked(func(m *codec.DecisionMark) { m.GapFrom, m.GapTo = 5, 6 }), ""},
	{"mark: a key", "key", func(_ *world, r *stream.Record) bool {
		r.Key = []byte("key")
		return r.Type == codec.TypeMark
	}, ""},

	{"epoch: name", "name", announced(func(e *codec.Epoch) { e.Name = "another" }), ofFeedback},
	{"epoch: number left out", "epoch", announced(func(e *codec.Epoch) { e.Epoch++ }), ofFeedback},
	{"epoch: partitions", "partitions", announced(func(e *codec.Epoch) { e.Partitions++ }), ofFeedback},
	{"epoch: through", "through", announced(func(e *codec.Epoch) { e.Through++ }), ofFeedback},
	{"epoch: by a guard that did not alarm", "cause", announced(func(e *codec.Epoch) {
		e.Cause = codec.AlarmCause(1)
		e.SHA256 = fmt.Sprintf("%x", sha256.Sum256(e.LoggedModel()))
	}), ofFeedback},
	{"epoch: by a guard, of no alarm", "cause", announced(func(e *codec.Epoch) {
		e.Cause = "guard: for no reason"
		e.SHA256 = fmt.Sprintf("%x", sha256.Sum256(e.LoggedModel()))
	}), ofFeedback},
	{"epoch: another model", "files", announced(func(e *codec.Epoch) { e.Model[len(e.Model)-2] ^= 1 }), ofFeedback},

	{"context refused: for no reason", "reason",
		refusedContext("", func(x *codec.Reject) { x.Reason = "mood" }), ofRejects},
	{"context refused: another reason", "reason", refusedContext(codec.ReasonMalformed,
		func(x *codec.Reject) { x.Reason = codec.ReasonDuplicateID }), ofRejects},
	{"context refused: a reason of outcomes", "reason", refusedContext("",
		func(x *codec.Reject) { x.Reason = codec.ReasonLate }), ofRejects},
	{"context refused: malformed though it is not", "reason", refusedContext(codec.ReasonDuplicateID,
		func(x *codec.Reject) { x.Reason = codec.ReasonMalformed }), ofRejects},
	{"context refused: bytes", "bytes", refusedContext("", func(x *codec.Reject) { x.Bytes = []byte("{}") }),
		ofRejects},
	{"context refused: bytes, and no such reason", "bytes", refusedContext("", func(x *codec.Reject) {
		x.Bytes, x.Reason = []byte("{}"), codec.ReasonLate
	}), ofRejects},
	{"context refused: id", "id", refusedContext("", func(x *codec.Reject) { x.ID = "another" }), ofRejects},
	{"context refused: of no topic", "topic",
		refusedContext("", func(x *codec.Reject) { x.Topic = "decisions" }), ofRejects},
	{"context refused: of no record", "offset decision",
		refusedContext("", func(x *codec.Reject) { x.Offset++ }), ofRejects},
	{"context refused: one that was decided", "source", func(w *world, r *stream.Record) bool {
		x, err := codec.ParseReject(r.Value)
		if r.Type != "" || err != nil || !w.repeatedRejects()[r.Offset] { // the other copy stays
			return false
		}
		for _, d := range w.records(w.ts.Decisions, 0) {
			var got codec.Decision
			if d.Type == "" && codec.ParseDecision(&got, d.Value) == nil && got.Source > 0 {
				x.Offset = got.Source
			}
		}
		for _, c := range w.records(w.ts.Contexts, 0) {
			if c.Offset == x.Offset {
				x.Topic, x.Partition, x.Time, x.Bytes, x.ID = contextsTopic, 0, c.Time, c.Value, ""
				x.Reason, r.Key = codec.ReasonMalformed, nil
			}
		}
		r.Value = codec.AppendReject(nil, &x)
		return true
	}, ofRejects},
	{"outcome refused again, with other bytes", "bytes", func(w *world, r *stream.Record) bool {
		x, err := codec.ParseReject(r.Value)
		if r.Type != "" || err != nil || x.Topic != outcomesTopic || !slices.ContainsFunc(w.records(w.ts.Rejects, 0),
			func(o stream.Record) bool { return o.Offset < r.Offset && bytes.Equal(o.Value, r.Value) }) {
			return false
		}
		x.Bytes = nil
		r.Value = codec.AppendReject(nil, &x)
		return true
	}, ofRejects},
	{"refused: a key", "key", func(w *world, r *stream.Record) bool {
		r.Key = []byte("key")
		return refusedContext("", func(*codec.Reject) {})(w, r)
	}, ofRejects},
	{"refused: a partition below 0", "partition", func(w *world, r *stream.Record) bool {
		x, err := codec.ParseReject(r.Value)
		x.Partition = -1
		r.Value = codec.AppendReject(nil, &x)
		return r.Type == "" && err == nil && w.repeatedRejects()[r.Offset] // the other copy stays
	}, ofRejects},
	{"refused: a mark", "type", func(_ *world, r *stream.Record) bool {
		r.Type = codec.TypeMark
		return true
	}, ofRejects},

	{"snapshot: epoch", "learned_through bytes", snapshotted(func(s *codec.Snapshot) { s.Epoch++ }), ofSnapshots},
	{"snapshot: learned_through", "learned_through bytes", snapshotted(func(s *codec.Snapshot) { s.LearnedThrough++ }),
		ofSnapshots},
	{"snapshot: bytes", "bytes", snapshotted(func(s *codec.Snapshot) { s.Bytes[len(s.Bytes)-1] ^= 1 }), ofSnapshots},
	{"snapshot: another state", "bytes", snapshotted(func(s *codec.Snapshot) {
		s.Bytes[len(s.Bytes)-3] ^= 1
		s.SHA256 = fmt.Sprintf("%x", sha256.Sum256(s.Bytes))
	}), ofSnapshots},
	{"snapshot: a mark", "type", func(_ *world, r *stream.Record) bool {
		r.Type = codec.TypeMark
		return true
	}, ofSnapshots},
	{"snapshot: a key", "key", func(_ *world, r *stream.Record) bool {
		r.Key = []byte("key")
		return r.Type == ""
	}, ofSnapshots},
}

// TestVerifyPlants has the logs break one rule at a time, with valid bytes: the first difference is named by
// its field.
func TestVerifyPlants(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine: nothing for the race detector")
	}
	w := liveWorld(t, 1, 3, 40)
	if r := w.verify(); r.ExitCode() != Identical {
		t.Fatal(r.text())
	}
	topics := map[string]string{"": w.ts.Decisions, ofFeedback: w.ts.Feedback, ofRejects: w.ts.Rejects,
		ofSnapshots: w.ts.Snapshots}
	for _, p := range semantic {
		t.Run(strings.ReplaceAll(p.name, " ", "_"), func(t *testing.T) {
			topic := topics[p.topic]
			records := w.records(topic, 0)
			for i := len(records) / 4; i < len(records); i++ {
				r := records[i]
				if r.Value = append([]byte(nil), r.Value...); !p.change(w, &r) {
					continue
				}
				restore := w.edit(topic, 0, r.Offset, func(x *stream.Record) { *x = r })
				defer restore()
				found, first := w.verify(), false
				if d := found.First; d != nil {
					name, _, _ := strings.Cut(d.Field, ".")
					first = strings.Contains(" "+p.fields+" ", " "+name+" ")
				}
				if !first {
					t.Errorf("at %s@%d: %s", topic, r.Offset, found.text())
				}
				return
			}
			t.Error("no record has a place for it")
		})
	}
}

// TestReplayLearnsLater has a decision say that it learned feedback which its own cut, or a later one, gave. All
// else follows from that.
func TestReplayLearnsLater(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine: nothing for the race detector")
	}
	w := testkit.New(t, 200, "plain")
	w.Run(100)
	made := madeOf(w)
	var cuts []stream.Record
	var parsed []codec.Cut
	for _, r := range made.all["f/0"] {
		var c codec.Cut
		if r.Type == codec.TypeCut && codec.ParseCut(&c, r.Value) == nil {
			c.Decisions, c.Outcomes = slices.Clone(c.Decisions), slices.Clone(c.Outcomes)
			cuts, parsed = append(cuts, r), append(parsed, c)
		}
	}
	if !edit(made, "d/0", "", func(r *stream.Record) bool {
		var d codec.Decision
		if codec.ParseDecision(&d, r.Value) != nil {
			return false
		}
		d.LearnedThrough = 1 << 20
		r.Value = codec.AppendDecision(nil, &d)
		return true
	}) {
		t.Fatal("no decision")
	}
	v := replayLog(t, w, rejoin(t, w, made, cuts, parsed))
	if first := v.report.First; first == nil || first.Field != "decisions.learned_through" ||
		v.report.Differences != 1 {
		t.Errorf("%d differences, the first %+v", v.report.Differences, first)
	}
}
