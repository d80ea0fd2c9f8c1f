package verify

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"hindsight/internal/follow"
	"hindsight/internal/join/testkit"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// madeLog is a log that holds what it is told to hold.
type madeLog struct {
	stream.Log
	all map[string][]stream.Record // by topic and partition
}

func partitionOf(topic string, partition int) string { return fmt.Sprint(topic, "/", partition) }

// madeOf copies the logs of a world.
func madeOf(w *testkit.World) *madeLog {
	l := &madeLog{all: map[string][]stream.Record{}}
	for p := range w.Partitions {
		l.all[partitionOf("d", p)], l.all[partitionOf("o", p)] = w.Read("d", p), w.Read("o", p)
	}
	l.all["f/0"], l.all["r/0"] = w.Read("f", 0), w.Read("r", 0)
	return l
}

// with returns a copy with other records in one place.
func (l *madeLog) with(at string, records []stream.Record) *madeLog {
	c := &madeLog{all: map[string][]stream.Record{}}
	for k, v := range l.all {
		c.all[k] = v
	}
	c.all[at] = records
	return c
}

// keep returns a copy with some of its records.
func (l *madeLog) keep(ok func(r *stream.Record) bool) *madeLog {
	c := &madeLog{all: map[string][]stream.Record{}}
	for k, v := range l.all {
		c.all[k] = slices.DeleteFunc(slices.Clone(v), func(r stream.Record) bool { return !ok(&r) })
	}
	return c
}

func (l *madeLog) Bounds(_ context.Context, topic string, partition int) (first, next int64, err error) {
	r := l.all[partitionOf(topic, partition)]
	if len(r) == 0 {
		return 0, 0, nil
	}
	return r[0].Offset, r[len(r)-1].Offset + 1, nil
}

func (l *madeLog) Read(_ context.Context, topic string, partition int, from int64) (stream.Reader, error) {
	r := l.all[partitionOf(topic, partition)]
	i, _ := slices.BinarySearchFunc(r, from, func(r stream.Record, from int64) int { return int(r.Offset - from) })
	return &madeReader{r[i:], from}, nil
}

type madeReader struct {
	rest []stream.Record
	at   int64
}

func (r *madeReader) Next(ctx context.Context, dst []stream.Record) ([]stream.Record, error) {
	n := min(len(r.rest), 50)
	if n == 0 {
		<-ctx.Done()
		return dst, ctx.Err()
	}
	dst = append(dst, r.rest[:n]...)
	r.rest, r.at = r.rest[n:], r.rest[n-1].Offset+1
	return dst, nil
}

func (r *madeReader) Position() int64 { return r.at }
func (r *madeReader) Close() error    { return nil }

// TestReplayFlips flips a byte of a record. It must be found, at or before the first mark behind it.
func TestReplayFlips(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine: nothing for the race detector")
	}
	rng := rand.New(rand.NewPCG(3, 3))
	flips := 0
	for seed := range uint64(joinWorlds() / 10) {
		w := testkit.New(t, seed, "plain")
		w.Run(60)
		made := madeOf(w)
		if v := replayLog(t, w, made); v.report.ExitCode() != Identical {
			t.Fatalf("seed %d: %+v", seed, v.report.First)
		}
		for at, records := range made.all {
			for range min(6, len(records)) {
				i := rng.IntN(len(records))
				if records[i].Type == stream.TypeOpen || len(records[i].Value) == 0 {
					continue
				}
				changed := slices.Clone(records)
				b := bytes.Clone(changed[i].Value)
				b[rng.IntN(len(b))] ^= 1 << rng.IntN(8)
				changed[i].Value = b
				v, err := tryReplay(w, made.with(at, changed))
				flips++
				if follow.Newer(err) && at[0] != 'd' && at[0] != 'o' {
					continue // it says so
				} else if err != nil {
					t.Fatal(err)
				}
				r := v.report
				if r.First == nil {
					t.Fatalf("seed %d: a flip in %s@%d is not found", seed, at, records[i].Offset)
				}
				if end := markBehind(made, at, records[i].Offset); r.First.Time > end {
					t.Fatalf("seed %d: a flip in %s@%d is found at %+v, behind the mark at %d", seed, at,
						records[i].Offset, *r.First, end)
				}
			}
		}
	}
	t.Log(flips, "flips")
}

// markBehind returns the log time of the first mark that stands behind a record.
func markBehind(l *madeLog, at string, offset int64) int64 {
	topic, p := at[0], int(at[2]-'0')
	for _, r := range l.all["f/0"] {
		m, err := codec.ParseFeedbackMark(r.Value)
		if r.Type != codec.TypeMark || err != nil {
			continue
		}
		if topic == 'f' && r.Offset >= offset || topic == 'r' && m.Rejects > offset ||
			topic == 'd' && m.Positions[p].Decisions > offset || topic == 'o' && m.Positions[p].Outcomes > offset {
			return r.Time
		}
	}
	return 1 << 62
}

// plant changes the logs of a world in one place, with valid bytes. It reports false if there is no
// such place.
type plant struct {
	name   string
	fields []string // one of them names it, in the first difference
	change func(l *madeLog) bool
}

// edit parses the records of a type from the k-th quarter of a log on, has the first changed that edit
// accepts, and writes it back.
func edit(l *madeLog, at, kind string, change func(r *stream.Record) bool) bool {
	return editFrom(l, at, kind, len(l.all[at])/4, change)
}

func editFrom(l *madeLog, at, kind string, from int, change func(r *stream.Record) bool) bool {
	records := slices.Clone(l.all[at])
	for i := from; i < len(records); i++ {
		if records[i].Type == kind && change(&records[i]) {
			l.all[at] = records
			return true
		}
	}
	return false
}

func editCut(change func(c *codec.Cut) bool) func(l *madeLog) bool {
	return func(l *madeLog) bool {
		return edit(l, "f/0", codec.TypeCut, func(r *stream.Record) bool {
			var c codec.Cut
			if codec.ParseCut(&c, r.Value) != nil || !change(&c) {
				return false
			}
			r.Value = codec.AppendCut(nil, &c)
			return true
		})
	}
}

func editMark(change func(m *codec.FeedbackMark) bool) func(l *madeLog) bool {
	return func(l *madeLog) bool { return editMarkFrom(l, len(l.all["f/0"])/4, change) }
}

func editMarkFrom(l *madeLog, from int, change func(m *codec.FeedbackMark) bool) bool {
	return editFrom(l, "f/0", codec.TypeMark, from, func(r *stream.Record) bool {
		m, err := codec.ParseFeedbackMark(r.Value)
		if err != nil || !change(&m) {
			return false
		}
		r.Value = codec.AppendFeedbackMark(nil, &m)
		return true
	})
}

func editFeedback(change func(f *codec.Feedback) bool) func(l *madeLog) bool {
	return func(l *madeLog) bool {
		return edit(l, "f/0", "", func(r *stream.Record) bool {
			var f codec.Feedback
			if codec.ParseFeedback(&f, r.Value) != nil || !change(&f) {
				return false
			}
			r.Value = codec.AppendFeedback(nil, &f)
			return true
		})
	}
}

// editReject changes a reject that was stored once: of two copies the one that was not changed tells.
func editReject(change func(x *codec.Reject) bool) func(l *madeLog) bool {
	return func(l *madeLog) bool {
		copies := map[string]int{}
		for i := range l.all["r/0"] {
			copies[string(l.all["r/0"][i].Value)]++
		}
		return edit(l, "r/0", "", func(r *stream.Record) bool {
			x, err := codec.ParseReject(r.Value)
			if err != nil || copies[string(r.Value)] > 1 || !change(&x) {
				return false
			}
			r.Value = codec.AppendReject(nil, &x)
			return true
		})
	}
}

// swap exchanges what two neighbours say, where ok accepts them.
func swap(at string, ok func(a, b *stream.Record) bool) func(l *madeLog) bool {
	return func(l *madeLog) bool {
		records := slices.Clone(l.all[at])
		for i := len(records) / 4; i+1 < len(records); i++ {
			if a, b := &records[i], &records[i+1]; ok(a, b) {
				a.Type, b.Type, a.Key, b.Key, a.Value, b.Value = b.Type, a.Type, b.Key, a.Key, b.Value, a.Value
				l.all[at] = records
				return true
			}
		}
		return false
	}
}

// names reports whether the first difference is named by its field. Of one log time that of a reject
// comes behind that of the mark which asks for it.
func (p *plant) names(v *verification) bool {
	for at := range v.found {
		if at.topic == "r" && slices.Contains(p.fields, at.field) {
			return true
		}
	}
	return slices.Contains(p.fields, v.report.First.Field)
}

func always[T any](change func(*T)) func(*T) bool {
	return func(x *T) bool { change(x); return true }
}

var plants = []plant{
	{"cut number twice", []string{"cut"}, editCut(always(func(c *codec.Cut) { c.Cut-- }))},
	{"cut left out", []string{"cut"}, editCut(always(func(c *codec.Cut) { c.Cut++ }))},
	{"position goes back", []string{"decisions[0].next"}, editCut(func(c *codec.Cut) bool {
		if len(c.Decisions) == 0 {
			return false
		}
		c.Decisions[0].Next = 1
		return true
	})},
	{"partition that is none", []string{"outcomes[0].partition"}, editCut(func(c *codec.Cut) bool {
		if len(c.Outcomes) == 0 {
			return false
		}
		c.Outcomes = []codec.Range{{Partition: 99, Next: 1 << 40}}
		return true
	})},
	{"time from the process's clock", []string{"time"}, editCut(always(func(c *codec.Cut) { c.Time += 1e6 }))},
	{"time goes back", []string{"time"}, editCut(always(func(c *codec.Cut) { c.Time = 1 }))},
	{"sum over other records", []string{"decisions[0].sum", "decisions[1].sum", "decisions[2].sum"},
		editCut(func(c *codec.Cut) bool {
			if len(c.Decisions) == 0 {
				return false
			}
			c.Decisions[0].Sum++
			return true
		})},
	{"feedback before its cut", []string{"round"}, swap("f/0",
		func(a, b *stream.Record) bool { return a.Type == codec.TypeCut && b.Type == "" })},
	{"the last feedback of a cut is none", []string{"feedback"}, func(l *madeLog) bool {
		records := l.all["f/0"]
		return editFrom(l, "f/0", "", len(records)/4, func(r *stream.Record) bool {
			i := slices.IndexFunc(records, func(x stream.Record) bool { return x.Offset == r.Offset })
			if i+1 == len(records) || records[i+1].Type != codec.TypeCut {
				return false
			}
			r.Type, r.Key, r.Value = codec.TypeOpen, nil, nil
			return true
		})
	}},
	{"second feedback of a round", []string{"n", "round"}, func(l *madeLog) bool {
		records := slices.Clone(l.all["f/0"])
		for i := len(records) / 4; i+1 < len(records); i++ {
			if a, b := &records[i], &records[i+1]; a.Type == "" && b.Type == "" {
				b.Value, b.Key = a.Value, a.Key
				l.all["f/0"] = records
				return true
			}
		}
		return false
	}},
	{"closed_at one tick early", []string{"closed_at"}, editFeedback(always(func(f *codec.Feedback) { f.ClosedAt-- }))},
	{"fate", []string{"fate"}, editFeedback(func(f *codec.Feedback) bool {
		f.Fate = codec.Imputed
		return f.Reason == "" && f.OutcomeOffset >= 0
	})},
	{"loss", []string{"loss"}, editFeedback(always(func(f *codec.Feedback) { f.Loss = .125 }))},
	{"outcome of another offset", []string{"outcome_offset"},
		editFeedback(always(func(f *codec.Feedback) { f.OutcomeOffset++ }))},
	{"learned_through", []string{"learned_through"},
		editFeedback(always(func(f *codec.Feedback) { f.LearnedThrough++ }))},
	{"log time of the decision", []string{"time"}, editFeedback(always(func(f *codec.Feedback) { f.Time++ }))},
	{"key of a feedback", []string{"key"}, func(l *madeLog) bool {
		return edit(l, "f/0", "", func(r *stream.Record) bool { r.Key = []byte("other"); return true })
	}},
	{"mark: n", []string{"n"}, editMark(always(func(m *codec.FeedbackMark) { m.N++ }))},
	{"mark: cut", []string{"cut"}, editMark(always(func(m *codec.FeedbackMark) { m.Cut++ }))},
	{"mark: time", []string{"time"}, editMark(always(func(m *codec.FeedbackMark) { m.Time++ }))},
	{"mark: remembers", []string{"remembers"}, editMark(func(m *codec.FeedbackMark) bool {
		m.Remembers--
		return m.Remembers > 0
	})},
	{"mark: decisions", []string{"positions[0].decisions"},
		editMark(always(func(m *codec.FeedbackMark) { m.Positions[0].Decisions++ }))},
	{"mark: outcomes goes back", []string{"positions[0].outcomes"},
		editMark(always(func(m *codec.FeedbackMark) { m.Positions[0].Outcomes = m.Positions[0].OutcomesSince }))},
	{"mark: sum", []string{"positions[0].outcomes_sum"},
		editMark(always(func(m *codec.FeedbackMark) { m.Positions[0].OutcomesSum++ }))},
	{"mark: round", []string{"positions[0].round"},
		editMark(always(func(m *codec.FeedbackMark) { m.Positions[0].Round++ }))},
	{"mark: done", []string{"positions[0].done"}, editMark(always(func(m *codec.FeedbackMark) {
		m.Positions[0].Done = []codec.Run{{From: 1 << 20, To: 1 << 20}}
	}))},
	{"mark: from", []string{"from"}, editMark(func(m *codec.FeedbackMark) bool { m.From++; return m.From > 0 })},
	{"mark: from_cut", []string{"from_cut"}, editMark(always(func(m *codec.FeedbackMark) { m.FromCut++ }))},
	{"mark: memory", []string{"memory"}, editMark(always(func(m *codec.FeedbackMark) { m.Memory = 1 << 40 }))},
	{"mark: rejects", []string{"rejects"}, editMark(always(func(m *codec.FeedbackMark) { m.Rejects = 1 << 40 }))},
	{"mark: rejects, one less", []string{"rejects"},
		editMark(func(m *codec.FeedbackMark) bool { m.Rejects--; return m.Rejects > 3 })},
	{"mark before its rejects", []string{"rejects"},
		editMark(func(m *codec.FeedbackMark) bool { m.Rejects /= 2; return m.Rejects > 0 })},
	{"mark: eras", []string{"eras"}, editMark(always(func(m *codec.FeedbackMark) {
		m.Eras = []codec.EraStart{{Era: 1,
			N: m.N}}
	}))},
	{"mark: no epochs", []string{"epochs"}, editMark(always(func(m *codec.FeedbackMark) { m.Epochs = nil }))},
	{"from one mark too new", []string{"from"}, tooNew},
	{"limits changed without a mark", []string{"n", "round", "fate", "reason", "feedback", "closed_at",
		"outcome_offset", "loss", "outcome_partition"}, editMark(func(m *codec.FeedbackMark) bool {
		m.Limits.Pending = 1
		return true
	})},
	{"reject before its cut", []string{"cut"}, func(l *madeLog) bool {
		records := slices.Clone(l.all["r/0"])
		for i := len(records) - 1; i > 0; i-- {
			if x, err := codec.ParseReject(records[i].Value); records[i].Type == "" && err == nil {
				x.Cut += 1 << 20
				r := records[len(records)-1]
				r.Offset, r.Key, r.Value = r.Offset+1, []byte(x.ID), codec.AppendReject(nil, &x)
				l.all["r/0"] = append(records, r)
				return true
			}
		}
		return false
	}},
	{"reject: cut", []string{"cut", "offset"}, editReject(always(func(x *codec.Reject) { x.Cut-- }))},
	{"reject: reason", []string{"reason"}, editReject(func(x *codec.Reject) bool {
		x.Reason = codec.ReasonMismatch
		return true
	})},
	{"reject: time", []string{"time"}, editReject(always(func(x *codec.Reject) { x.Time++ }))},
	{"reject: offset", []string{"offset"}, editReject(always(func(x *codec.Reject) { x.Offset += 1 << 30 }))},
	{"reject: era", []string{"era"}, editReject(always(func(x *codec.Reject) { x.Era++ }))},
	{"reject: bytes", []string{"bytes"}, editReject(always(func(x *codec.Reject) {
		x.Bytes = append(bytes.Clone(x.Bytes), 0)
	}))},
	{"reject: key", []string{"key"}, func(l *madeLog) bool {
		return edit(l, "r/0", "", func(r *stream.Record) bool { r.Key = []byte("other"); return true })
	}},
}

// alone are those of which nothing follows: they are one difference.
var alone = []string{"closed_at one tick early", "log time of the decision", "key of a feedback", "mark: time"}

// tooNew has a mark refer to the mark before it, though rounds wait that are older.
func tooNew(l *madeLog) bool {
	before := placed{-1, 0}
	records := slices.Clone(l.all["f/0"])
	for i := range records {
		r := &records[i]
		if r.Type != codec.TypeMark {
			continue
		}
		m, err := codec.ParseFeedbackMark(r.Value)
		if err != nil {
			continue
		}
		if i > len(records)/4 && m.From >= 0 && before.at > m.From && before.cut > m.FromCut {
			m.From, m.FromCut = before.at, before.cut
			r.Value = codec.AppendFeedbackMark(nil, &m)
			l.all["f/0"] = records
			return true
		}
		before = placed{r.Offset, m.Cut}
	}
	return false
}

type placed struct{ at, cut int64 }

// TestReplayPlants changes one thing at a time, as a joiner that breaks one rule would, with bytes that
// are valid. What is found first is named by its field.
func TestReplayPlants(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine: nothing for the race detector")
	}
	var worlds []*testkit.World
	for seed := range uint64(6) {
		w := testkit.New(t, 40+seed, "plain")
		w.Run(100)
		worlds = append(worlds, w)
	}
	for _, p := range plants {
		t.Run(strings.ReplaceAll(p.name, " ", "_"), func(t *testing.T) {
			planted := 0
			for i, w := range worlds {
				made := madeOf(w)
				if !p.change(made) {
					continue
				}
				planted++
				v := replayLog(t, w, made)
				if f := v.report.Feedback; f.Records != f.Checked+f.TooOld {
					t.Errorf("world %d: of the feedback not each is checked or too old: %+v", i, f)
				}
				if v.report.First == nil {
					t.Errorf("world %d: not found", i)
				} else if !p.names(v) {
					t.Errorf("world %d: found as %+v", i, *v.report.First)
				} else if slices.Contains(alone, p.name) && v.report.Differences > 1 {
					t.Errorf("world %d: %d differences", i, v.report.Differences)
				}
			}
			if planted == 0 {
				t.Error("no world has a place for it")
			}
		})
	}
}
