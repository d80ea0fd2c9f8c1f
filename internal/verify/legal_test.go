package verify

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"hindsight/internal/join"
	"hindsight/internal/join/testkit"
	"hindsight/internal/loop"
	"hindsight/internal/testkit/daily"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// rejoin returns the logs of a joiner that cut its inputs as it is told. All that it writes follows
// from its cuts.
func rejoin(t *testing.T, w *testkit.World, made *madeLog, cuts []stream.Record, parsed []codec.Cut) *madeLog {
	t.Helper()
	h := join.History{Log: made, Topics: testkit.Topics, Partitions: w.Partitions, Epochs: rulesOf{w}}
	limits := codec.Limits{Heart: loop.Heart, Pending: 1000, Dedup: 1000}
	heart := h.Heart(limits)
	spans := h.Spans(t.Context(), func(int) int64 { return 0 })
	defer spans.Close()
	feedback, rejects := []stream.Record{}, []stream.Record{{Offset: 0, Type: stream.TypeOpen}}
	add := func(to *[]stream.Record, at *stream.Record, kind, key string, value []byte) {
		*to = append(*to, stream.Record{Offset: int64(len(*to)), Time: at.Time, Type: kind, Key: []byte(key),
			Value: value})
	}
	mark := func(at *stream.Record) {
		var m codec.FeedbackMark
		heart.Mark(&m)
		m.Limits, m.From, m.FromCut, m.Memory, m.Rejects, m.Epochs = limits, -1, m.Cut, -1, int64(len(rejects)),
			[]codec.EpochRef{{Epoch: 1}}
		add(&feedback, at, codec.TypeMark, "", codec.AppendFeedbackMark(nil, &m))
	}
	mark(&cuts[0])
	var ready loop.Ready
	at := map[string]int64{}
	for i := range parsed {
		c := &parsed[i]
		c.Cut = int64(i + 1)
		fill(made, at, c)
		batches, err := spans.Take(c, nil)
		if err == nil {
			err = heart.Take(c, batches)
		}
		if err != nil {
			t.Fatal(err)
		}
		add(&feedback, &cuts[i], codec.TypeCut, "", codec.AppendCut(nil, c))
		heart.Ready(&ready)
		for k := range ready.Feedback {
			add(&feedback, &cuts[i], "", ready.Feedback[k].ID, codec.AppendFeedback(nil, &ready.Feedback[k]))
		}
		for k := range ready.Rejects {
			r := &ready.Rejects[k]
			r.Fit()
			add(&rejects, &cuts[i], "", r.ID, codec.AppendReject(nil, r))
		}
	}
	if heart.Pending() == 0 {
		mark(&cuts[len(cuts)-1])
	}
	return made.with("f/0", feedback).with("r/0", rejects)
}

// fill fills in the sums of a cut. at is where the cuts before it have come to.
func fill(made *madeLog, at map[string]int64, c *codec.Cut) {
	for topic, ranges := range map[string][]codec.Range{"d": c.Decisions, "o": c.Outcomes} {
		for i := range ranges {
			x := &ranges[i]
			in := partitionOf(topic, x.Partition)
			x.Sum = 0
			for _, r := range made.all[in] {
				if at[in] <= r.Offset && r.Offset < x.Next {
					x.Sum = codec.Sum(x.Sum, r.Offset, r.Time, r.Type, r.Value)
				}
			}
			at[in] = x.Next
		}
	}
}

// rulesOf are the epochs of a world.
type rulesOf struct{ w *testkit.World }

func (r rulesOf) Rules(epoch int64) *loop.Rules { return r.w.Rules(epoch) }
func (rulesOf) Read(*stream.Record) error       { return nil }
func (rulesOf) Refs() []codec.EpochRef          { return nil }

func (rulesOf) Find(context.Context, []codec.EpochRef) error { return nil }

// TestReplayLegal has a joiner break the rules by which it chooses cuts. All that it writes follows from
// its cuts, and the cuts are found.
func TestReplayLegal(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine: nothing for the race detector")
	}
	// leave has one cut leave out what it took of an input, though its log time is behind that.
	leave := func(topic string, ranges func(c *codec.Cut) *[]codec.Range) func(made *madeLog, cuts []codec.Cut) bool {
		return func(made *madeLog, cuts []codec.Cut) bool {
			at := map[int]int64{}
			for i := range cuts {
				c := &cuts[i]
				for k, x := range *ranges(c) {
					in := made.all[partitionOf(topic, x.Partition)]
					first := in[slices.IndexFunc(in, func(r stream.Record) bool { return r.Offset >= at[x.Partition] })]
					if i > 10 && first.Time < c.Time && slices.ContainsFunc(cuts[i+1:], func(c codec.Cut) bool {
						return slices.ContainsFunc(*ranges(&c),
							func(y codec.Range) bool { return y.Partition == x.Partition })
					}) {
						*ranges(c) = slices.Delete(*ranges(c), k, k+1)
						return true
					}
					at[x.Partition] = x.Next
				}
			}
			return false
		}
	}
	tests := []struct {
		name, field string
		skew        bool // clocks that differ excuse it
		change      func(made *madeLog, cuts []codec.Cut) bool
	}{
		{"as it was", "", true, func(*madeLog, []codec.Cut) bool { return true }},
		{"outcomes are left out for one cut", "outcomes[", true,
			leave("o", func(c *codec.Cut) *[]codec.Range { return &c.Outcomes })},
		{"decisions are read to ends that are older than the outcomes", "decisions[", true,
			leave("d", func(c *codec.Cut) *[]codec.Range { return &c.Decisions })},
		{"time from the process's clock", "time", false, func(_ *madeLog, cuts []codec.Cut) bool {
			cuts[len(cuts)-1].Time += 1e9
			return true
		}},
		{"the last outcomes are not taken", "cut", true, func(_ *madeLog, cuts []codec.Cut) bool {
			for i := len(cuts) - 1; i > 0; i-- {
				if c := &cuts[i]; len(c.Outcomes) > 0 {
					c.Outcomes = nil
					return i < len(cuts)-1 && cuts[len(cuts)-1].Time > c.Time
				}
			}
			return false
		}},
	}
	var worlds []*testkit.World
	for seed := range uint64(20) {
		if seed != 10 && !daily.Turn(t, int(seed), 4) { // the last outcomes of 10 can be left out
			continue
		}
		w := testkit.New(t, 200+seed, "plain")
		w.Run(100)
		worlds = append(worlds, w)
	}
	for _, test := range tests {
		t.Run(strings.ReplaceAll(test.name, " ", "_"), func(t *testing.T) {
			found, changed := 0, 0
			for seed, w := range worlds {
				made := madeOf(w)
				var cuts []stream.Record
				var parsed []codec.Cut
				for _, r := range made.all["f/0"] {
					if r.Type == codec.TypeCut {
						var c codec.Cut
						if err := codec.ParseCut(&c, r.Value); err != nil {
							t.Fatal(err)
						}
						c.Decisions, c.Outcomes = slices.Clone(c.Decisions), slices.Clone(c.Outcomes)
						cuts, parsed = append(cuts, r), append(parsed, c)
					}
				}
				if !test.change(made, parsed) {
					continue
				}
				changed++
				log := rejoin(t, w, made, cuts, parsed)
				v := replayLog(t, w, log)
				named := false
				for at := range v.found {
					named = named || test.field != "" && strings.HasPrefix(at.field, test.field)
				}
				if named {
					found++
					v, err := replaySkewed(w, log, 10*time.Second)
					d := v.report.First // what was left out told of a time, too
					if err != nil || test.skew != (d == nil || test.field != "time" && d.Field == "time") {
						t.Errorf("seed %d: with clocks that may differ: %+v, %v", seed, d, err)
					}
				} else if test.field != "" || v.report.First != nil {
					t.Errorf("seed %d: found as %+v", seed, v.report.First)
				} else if editMark(func(m *codec.FeedbackMark) bool { m.FromCut++; return m.From < 0 })(log) {
					if d := replayLog(t, w, log).report.First; d == nil || d.Field != "from_cut" {
						t.Errorf("seed %d: a mark that refers to none: %+v", seed, d)
					}
					found++
				}
			}
			t.Log(found, "of", changed)
			if changed == 0 {
				t.Error("no world has a place for it")
			}
		})
	}
}

// TestReplayEras changes the mark of an era. What it says must follow from the records that are left.
func TestReplayEras(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine: nothing for the race detector")
	}
	tests := []struct {
		field  string
		change func(m *codec.FeedbackMark) bool
	}{
		{"done", func(m *codec.FeedbackMark) bool {
			for i := range m.Positions {
				if p := &m.Positions[i]; len(p.Done) > 0 {
					p.Done = nil
					return true
				}
			}
			return false
		}},
		{"positions[0].round", func(m *codec.FeedbackMark) bool { m.Positions[0].Round++; return true }},
		{"n", func(m *codec.FeedbackMark) bool { m.N++; return true }},
		{"cut", func(m *codec.FeedbackMark) bool { m.Cut++; return true }},
		{"eras", func(m *codec.FeedbackMark) bool { m.Eras = nil; return true }},
		{"eras", func(m *codec.FeedbackMark) bool { m.Era++; return true }},
		{"lost", func(m *codec.FeedbackMark) bool { m.LostTails[0].Was = m.LostTails[0].Offset; return true }},
		{"lost", func(m *codec.FeedbackMark) bool { m.LostTails[0].Offset++; return true }},
	}
	planted := map[string]int{}
	for seed := range uint64(25) {
		if seed != 10 && !daily.Turn(t, int(seed), 5) { // 10 has rounds that are done
			continue
		}
		w := testkit.New(t, 60+seed, "plain")
		w.Loses = true
		w.Run(150)
		for _, test := range tests {
			made := madeOf(w)
			if !editMarkFrom(made, 0, func(m *codec.FeedbackMark) bool {
				return len(m.LostTails) > 0 && test.change(m)
			}) {
				continue
			}
			v, err := tryReplay(w, made)
			if err != nil {
				t.Fatal(err)
			}
			planted[test.field]++
			named := false
			for at := range v.found {
				named = named || at.field == test.field || strings.HasSuffix(at.field, "."+test.field) ||
					// what is not said to be lost must be there
					test.field == "lost" && strings.HasSuffix(at.field, ".sum")
			}
			if !named {
				t.Errorf("seed %d, %s: found as %+v", seed, test.field, v.report.First)
			}
		}
	}
	t.Log(planted)
	for _, test := range tests {
		if planted[test.field] == 0 {
			t.Errorf("no world has a place for %s", test.field)
		}
	}
}
