package logs

import (
	"slices"
	"strings"
	"testing"

	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/mem"
)

func writeTo(t *testing.T, l stream.Log, topic string, p int, typ string, value []byte) {
	t.Helper()
	w, err := l.Writer(t.Context(), topic, p, nil)
	if err == nil {
		_, err = w.Append(t.Context(), &stream.Record{Type: typ, Value: value})
	}
	if err == nil {
		err = w.Flush(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	w.Close()
}

// TestTopicsOfUnits: a draw of a unit is one event, with all outcomes that name it, its unit or a repeat.
func TestTopicsOfUnits(t *testing.T) {
	now := int64(0)
	l := mem.New(mem.Options{Clock: func() int64 { now++; return now }})
	defer l.Close()
	for _, topic := range []string{"m.decisions", "m.outcomes", "m.rejects"} {
		if err := l.Create(t.Context(), topic, 1, stream.TopicOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	decide := func(n int64, id, unit string, first int64) {
		c := codec.Context{ID: id, Unit: unit}
		d := codec.Decision{N: n, ID: id, Epoch: 1, Actions: []string{"a", "b"}, Propensities: []float64{.25, .75},
			Context: codec.AppendContext(nil, &c), Unit: unit, First: codec.RoundRef{N: first}}
		writeTo(t, l, "m.decisions", 0, "", codec.AppendDecision(nil, &d))
	}
	report := func(id, unit string) {
		o := codec.Outcome{ID: id, Unit: unit, Kind: codec.Reward, Value: 1}
		writeTo(t, l, "m.outcomes", 0, "", codec.AppendOutcome(nil, &o))
	}
	decide(1, "draw", "u", 0)
	decide(2, "again", "u", 1)
	decide(3, "other", "", 0)
	report("", "u")
	report("again", "")
	report("draw", "")
	decide(4, "anew", "u", 0)
	report("", "u")
	report("again", "")
	report("other", "")
	report("", "nobody")
	r, err := OpenTopics(t.Context(), l, "m.decisions", "m.outcomes", "m.rejects", Options{})
	if err != nil {
		t.Fatal(err)
	}
	all, err := readAll(t, r)
	var got []string
	for i := range all {
		got = append(got, all[i].ID)
		if r := &all[i]; r.Kind == Event && (r.Unit == "u") != (r.ID != "other") {
			t.Errorf("%s is of unit %q", r.ID, r.Unit)
		}
	}
	if want := "draw other draw draw draw anew anew draw other"; err != nil || strings.Join(got, " ") != want {
		t.Errorf("%v: %q, want %q", err, got, want)
	}
	if a := r.Account(); a.Events != 3 || a.Dangling != 6 || a.Malformed != 1 || a.Reasons["repeat of a "+
		"unit's draw"] != 1 {
		t.Errorf("%+v %q", a, a.Errors())
	}
}

// What a live system decided and was told is one log in the order of log time.
func TestTopics(t *testing.T) {
	now := int64(0)
	l := mem.New(mem.Options{Clock: func() int64 { now++; return now }})
	defer l.Close()
	for _, topic := range []string{"m.decisions", "m.outcomes", "m.rejects"} {
		if err := l.Create(t.Context(), topic, 2, stream.TopicOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	write := func(topic string, p int, typ string, value []byte) { writeTo(t, l, topic, p, typ, value) }
	decided := func(p int, id string, mode codec.Mode, unknown codec.Unknown) {
		c := codec.Context{ID: id, Features: []codec.Feature{{Name: "x", Kind: codec.Number, Value: 7}},
			Actions: []codec.Action{{Name: "masked"}, {Name: "a"},
				{Name: "b", Features: []codec.Feature{{Name: "f", Kind: codec.Bool, Value: 1}}}},
			Baseline: []codec.Share{{Name: "b", P: 1}}}
		d := codec.Decision{Partition: p, N: 1, ID: id, Epoch: 1, Actions: []string{"a", "b"},
			Propensities: []float64{.25, .75}, Action: 1, Context: codec.AppendContext(nil, &c), Mode: mode,
			LearnedThrough: 3}
		if unknown > 0 {
			d.Unknown = unknown.Fill(d.Propensities, d.Action, .75)
		}
		write("m.decisions", p, "", codec.AppendDecision(nil, &d))
	}
	decide := func(p int, id string) { decided(p, id, codec.Live, 0) }
	report := func(p int, o codec.Outcome) { write("m.outcomes", p, "", codec.AppendOutcome(nil, &o)) }
	write("m.decisions", 0, "open", []byte("x"))
	decide(1, "first")
	report(0, codec.Outcome{ID: "first", Kind: codec.Reward, Value: 1, Action: "b"})
	decide(0, "second")
	write("m.outcomes", 1, "", []byte("nonsense"))
	report(1, codec.Outcome{ID: "second", Kind: codec.Activated})
	report(1, codec.Outcome{ID: "second", Kind: codec.Reward, Value: 7})
	write("m.rejects", 0, "", codec.AppendReject(nil, &codec.Reject{V: codec.Version, Topic: "outcomes", Partition: 1,
		Offset: 2, Reason: codec.ReasonMalformed, Detail: "reward 7 is not in [0, 1]"}))
	write("m.rejects", 0, "", codec.AppendReject(nil, &codec.Reject{V: codec.Version, Topic: "outcomes", Partition: 0,
		Offset: 0, Reason: codec.ReasonLate}))
	write("m.rejects", 0, "", codec.AppendReject(nil, &codec.Reject{V: codec.Version, Topic: "contexts", Partition: 0,
		Offset: 0, Reason: codec.ReasonMalformed}))
	decided(0, "assigned", codec.External, 0)
	decided(0, "rest", codec.External, codec.UnknownRest)
	decided(0, "bare", codec.External, codec.UnknownLaw)

	var rejects strings.Builder
	r, err := OpenTopics(t.Context(), l, "m.decisions", "m.outcomes", "m.rejects", Options{Rejects: &rejects})
	if err != nil {
		t.Fatal(err)
	}
	decide(0, "behind")
	all, err := readAll(t, r)
	if err != nil || len(all) != 6 {
		t.Fatalf("%v: %+v", err, all)
	}
	first, told, second, shown := all[0], all[1], all[2], all[3]
	if first.ID != "first" || first.Time != 2 || first.Chosen != 1 || first.Propensity != .75 ||
		first.Propensities[0] != .25 || first.Features[0].Value != 7 || first.Actions[1].Features[0].Name != "f" ||
		!slices.Equal(first.Baseline, []int{1}) || !first.Learned {
		t.Errorf("%+v", first)
	}
	if told.Kind != Outcome || told.ID != "first" || told.Action != "b" || told.Value != 1 || told.OutcomeTime != 3 ||
		second.ID != "second" || shown.Flags != Activation {
		t.Errorf("%+v\n%+v\n%+v", told, second, shown)
	}
	// What another system decided is in estimates if its propensity is known.
	whole, rest := all[4], all[5]
	if whole.ID != "assigned" || len(whole.Propensities) != 2 || whole.Learned || rest.ID != "rest" ||
		rest.Propensity != .75 || len(rest.Propensities) > 0 {
		t.Errorf("%+v\n%+v", whole, rest)
	}
	if a := r.Account(); a.Read != 10 || a.Events != 4 || a.Dangling != 2 || a.Skipped != 2 || a.Malformed != 2 ||
		a.Reasons["assigned without a propensity"] != 1 ||
		!strings.HasPrefix(a.Errors()[0], "m.outcomes[1]:") ||
		!strings.Contains(a.Errors()[1], "m.outcomes[1]:2: the joiner rejected it: reward 7 is not in [0, 1]") {
		t.Errorf("%+v %q", a, a.Errors())
	}
	if !strings.Contains(rejects.String(), "nonsense") {
		t.Errorf("%s", rejects.String())
	}
	at := second.Time
	for _, c := range []struct{ from, to, events int64 }{{2, at, 1}, {3, at, 0}, {2, at + 1, 2}} {
		o := Options{From: c.from, To: c.to}
		r, err := OpenTopics(t.Context(), l, "m.decisions", "m.outcomes", "m.rejects", o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := readAll(t, r); err != nil || r.Account().Events != c.events {
			t.Errorf("from %d to %d: %+v, %v", c.from, c.to, r.Account(), err)
		}
	}
}

// TestTopicsMalformed: decisions that contradict themselves are malformed, named outcomes are read, and a topic that is
// not there is named.
func TestTopicsMalformed(t *testing.T) {
	l := mem.New(mem.Options{})
	defer l.Close()
	topics := []string{"m.decisions", "m.outcomes", "m.rejects"}
	for _, topic := range topics {
		_, err := OpenTopics(t.Context(), l, topics[0], topics[1], topics[2], Options{})
		if err == nil || !strings.HasPrefix(err.Error(), "topic "+topic+": ") {
			t.Errorf("without %s: %v", topic, err)
		}
		if err := l.Create(t.Context(), topic, 1, stream.TopicOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	writeTo(t, l, topics[0], 0, "", []byte("nonsense"))
	for _, change := range []func(d *codec.Decision){
		func(d *codec.Decision) { d.Context = []byte("nonsense") },
		func(d *codec.Decision) { d.Propensities = []float64{1, 0} },
		func(d *codec.Decision) {},
	} {
		c := codec.Context{ID: "a", Vector: []float64{7}, Actions: []codec.Action{{Name: "a"}, {Name: "b"}},
			Baseline: []codec.Share{{Name: "a", P: .5}, {Name: "b", P: .5}}}
		d := codec.Decision{N: 1, ID: "a", Epoch: 1, Actions: []string{"a", "b"}, Propensities: []float64{.25, .75},
			Action: 1, Context: codec.AppendContext(nil, &c)}
		change(&d)
		writeTo(t, l, topics[0], 0, "", codec.AppendDecision(nil, &d))
	}
	o := codec.Outcome{ID: "a", Kind: codec.Named, Values: []codec.Value{{Name: "cost", X: 3}}}
	writeTo(t, l, topics[1], 0, "", codec.AppendOutcome(nil, &o))
	writeTo(t, l, topics[2], 0, "mark", []byte("no reject"))
	r, err := OpenTopics(t.Context(), l, topics[0], topics[1], topics[2], Options{})
	if err != nil {
		t.Fatal(err)
	}
	all, err := readAll(t, r)
	if err != nil || len(all) != 2 || all[0].Features[0] != (codec.Feature{Name: "0", Kind: codec.Number, Value: 7}) ||
		all[0].Baseline != nil || all[0].Learned || len(all[1].Values) != 1 || all[1].Values[0].X != 3 {
		t.Errorf("%v: %+v", err, all)
	}
	if got := r.Account().Errors(); len(got) != 3 {
		t.Errorf("%q", got)
	}
	writeTo(t, l, topics[2], 0, "", []byte("no reject"))
	if _, err := OpenTopics(t.Context(), l, topics[0], topics[1], topics[2], Options{}); err == nil ||
		!strings.HasPrefix(err.Error(), "topic m.rejects: ") {
		t.Errorf("a reject that cannot be read: %v", err)
	}
}
