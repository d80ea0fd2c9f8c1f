package verify

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"hindsight/internal/follow"
	"hindsight/internal/model"
	"hindsight/internal/testkit/daily"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// damage changes the records of a partition from index i on.
type damage struct {
	name   string
	change func(recs []stream.Record, i int) []stream.Record
}

// damages lose, double and swap whole records. Offsets have room between them.
func damages() []damage {
	return []damage{
		{"dropped", func(recs []stream.Record, i int) []stream.Record { return slices.Delete(recs, i, i+1) }},
		{"doubled", func(recs []stream.Record, i int) []stream.Record {
			again := recs[i]
			again.Offset++
			return slices.Insert(recs, i+1, again)
		}},
		{"swapped", func(recs []stream.Record, i int) []stream.Record {
			a, b := recs[i], recs[i+1]
			recs[i], recs[i+1] = b, a
			recs[i].Offset, recs[i].Time, recs[i+1].Offset, recs[i+1].Time = a.Offset, a.Time, b.Offset, b.Time
			return recs
		}},
	}
}

// harmless says why a record that was lost, doubled or swapped with the next
// changes nothing that anyone could see, "" if it must show.
func harmless(how, kind, next string) string {
	is := func(part string) bool { return strings.Contains(kind, part) }
	control := func(k string) bool {
		return strings.HasSuffix(k, " mark") || strings.HasSuffix(k, " open") || strings.HasSuffix(k, "noise")
	}
	switch {
	case control(kind) && (how != "swapped" || control(next)):
		return "marks and openings tell where to go on; without one a restart reads further back"
	case how == "swapped" && (strings.HasSuffix(next, " open") || strings.HasSuffix(kind, " open")):
		return "an opening may lie anywhere"
	case is(".feedback class") && how == "doubled":
		return "a sequence of class records that begins again is taken from there"
	case is(".snapshots"):
		return "a snapshot more or less, or one that is not complete, harms nobody"
	case is(".rejects") && how == "swapped":
		return "a reject says itself of which record it is"
	case is(".rejects") && (how == "doubled" || how == "dropped" && is("repeated")):
		return "rejects are written at least once"
	case is(".outcomes") && is("counted") && (is("withdrawn") || is("inactive")):
		return "what an outcome said of a round that was withdrawn after all is not kept"
	case is(".outcomes") && is("epoch 2: observed") && how != "dropped":
		return "the mean of equal outcomes is the same, and so it is in another order"
	case is(".outcomes") && how == "swapped" && (control(next) || strings.Contains(next, "counted")) &&
		(control(kind) || is("counted")):
		return "the order of outcomes that count alike, or do not count, is no matter"
	}
	return ""
}

// Records lost, doubled or swapped are found.
func TestVerifyDamage(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector has nothing to find in one goroutine")
	}
	w := liveWorld(t, 2, 2, 30)
	if r := w.verify(); r.ExitCode() != Identical {
		t.Fatal(r.text())
	}
	fates, rounds := w.fatesOf()
	seen, tried, found, excused := map[string]int{}, 0, 0, map[string]int{}
	repeats := w.repeatedRejects()
	for _, topic := range []string{w.ts.Contexts, w.ts.Decisions, w.ts.Outcomes, w.ts.Feedback, w.ts.Snapshots,
		w.ts.Rejects} {
		n, err := w.log.Partitions(w.ctx, topic)
		w.no(err)
		for p := range n {
			recs := w.records(topic, p)
			kinds := make([]string, len(recs))
			for i := range recs {
				kinds[i] = w.kindOf(topic, p, &recs[i], fates, rounds)
				if topic == w.ts.Rejects && repeats[recs[i].Offset] {
					kinds[i] += " repeated"
				}
			}
			for i := 0; i+1 < len(recs); i++ {
				if i == 0 && (topic == w.ts.Contexts || topic == w.ts.Outcomes || topic == w.ts.Rejects) {
					continue // retention takes the first records
				}
				for _, d := range damages() {
					if d.name == "swapped" && bytes.Equal(recs[i].Value, recs[i+1].Value) {
						continue
					}
					key := d.name + " " + kinds[i]
					if seen[key]++; seen[key] > 12/every(12) {
						continue
					}
					if tried++; !daily.Turn(t, tried, 2) {
						continue
					}
					w.no(w.log.Edit(topic, p, func([]stream.Record) []stream.Record { return d.change(slices.Clone(recs), i) }))
					r, err := Run(w.ctx, Config{Log: w.log, Name: worldName, Seed: worldSeed(), Build: model.Epoch,
						Dedup: worldDedup})
					w.no(w.log.Edit(topic, p, func([]stream.Record) []stream.Record { return recs }))
					switch why := harmless(d.name, kinds[i], kinds[i+1]); {
					case err != nil:
						t.Errorf("%s[%d]@%d %s: %s: %v", topic, p, recs[i].Offset, kinds[i], d.name, err)
					case r.Differences > 0:
						found++
					case why != "":
						excused[why]++
					default:
						t.Errorf("%s[%d]@%d %s before %s: %s unnoticed", topic, p, recs[i].Offset, kinds[i], kinds[i+1],
							d.name)
					}
				}
			}
		}
	}
	t.Logf("%d found, excused: %v", found, excused)
}

// repeatedRejects returns the offsets of rejects that are there more than once.
func (w *world) repeatedRejects() map[int64]bool {
	first, out := map[recordKey]int64{}, map[int64]bool{}
	for _, r := range w.records(w.ts.Rejects, 0) {
		rej, err := codec.ParseReject(r.Value)
		w.no(err)
		key := recordKey{rej.Topic == outcomesTopic, rej.Partition, rej.Offset}
		if o, ok := first[key]; ok {
			out[o], out[r.Offset] = true, true
		} else {
			first[key] = r.Offset
		}
	}
	return out
}

// After retention has cut the logs, what is left is identical, and what is too old
// to check is counted.
func TestVerifyRetention(t *testing.T) {
	for seed := range seeds(8) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			w := encodedWorld(t, codec.Encoding(seed%2), 2, seed, 40)
			whole := w.verify()
			var cut int64
			for _, r := range w.records(w.ts.Snapshots, 0) {
				s, err := codec.ParseSnapshot(r.Value)
				w.no(err)
				if s.LearnedThrough > 60 {
					cut = w.fedBack(s.LearnedThrough - 3)
					break
				}
			}
			before := func(topic string, p int, time int64) {
				for _, r := range w.records(topic, p) {
					if r.Time >= time {
						w.no(w.log.Truncate(topic, p, r.Offset))
						return
					}
				}
			}
			before(w.ts.Feedback, 0, cut)
			check := func(what string) *Report {
				r := w.verify()
				if r.Differences != 0 || r.Decisions.TooOld == 0 || r.ExitCode() != TooOld {
					t.Fatalf("%s: %s", what, r.text())
				}
				if r.Decisions.TooOld+r.Decisions.Checked != r.Decisions.Records {
					t.Fatalf("%s: decisions are missing: %s", what, r.text())
				}
				return r
			}
			r := check("feedback cut")
			if !strings.Contains(r.Start, "snapshot") {
				t.Fatal(r.Start)
			}
			for p := range w.parts {
				before(w.ts.Decisions, p, cut-200)
			}
			check("decisions cut")
			for p := range w.parts {
				before(w.ts.Contexts, p, cut-100)
				before(w.ts.Outcomes, p, cut-50)
			}
			if r = check("contexts and outcomes cut"); r.Feedback.TooOld == 0 || r.Decisions.Checked == 0 {
				t.Fatal(r.text())
			}
			before(w.ts.Rejects, 0, cut)
			if r.Decisions.Records >= whole.Decisions.Records {
				t.Fatal("nothing was cut")
			}
			// What is left is still watched over.
			var off int64
			for _, r := range w.records(w.ts.Decisions, 1) {
				if r.Type == "" {
					off = r.Offset
				}
			}
			restore := w.edit(w.ts.Decisions, 1, off, func(r *stream.Record) { r.Value[len(r.Value)/2] ^= 1 })
			if w.verify().Differences == 0 {
				t.Fatal("a flipped bit went unnoticed")
			}
			restore()
			// Without the snapshots only a later epoch can begin.
			w.no(w.log.Truncate(w.ts.Snapshots, 0, 1<<40))
			if r = check("no snapshots"); !strings.Contains(r.Start, "epoch") {
				t.Fatal(r.text())
			}
			for topic, parts := range map[string]int{w.ts.Feedback: 1, w.ts.Rejects: 1, w.ts.Decisions: w.parts,
				w.ts.Contexts: w.parts, w.ts.Outcomes: w.parts} {
				for p := range parts {
					w.no(w.log.Truncate(topic, p, 1<<40))
				}
			}
			if r = w.verify(); r.ExitCode() != TooOld || !strings.Contains(r.text(),
				"from nowhere: all feedback is older than what the log keeps;") {
				t.Fatalf("nothing is kept: %s", r.text())
			}
		})
	}
}

// fedBack returns the log time of a feedback.
func (w *world) fedBack(n int64) int64 {
	var f codec.Feedback
	for _, r := range w.records(w.ts.Feedback, 0) {
		if r.Type == "" && codec.ParseFeedback(&f, r.Value) == nil && f.N == n {
			return r.Time
		}
	}
	w.Fatal("no such feedback")
	return 0
}

// Decisions lost with the log's tail leave a gap that is announced, and nothing
// else.
func TestVerifyGap(t *testing.T) {
	tried := 0
	for seed := range uint64(8) {
		w := newWorld(t, 1, seed)
		w.use(3)
		w.rounds(40)
		if !w.loseTail() {
			continue
		}
		tried++
		w.openDecider(0)
		w.openJoiner()
		w.rounds(40)
		if r := w.verify(); r.Differences > 0 || r.Decisions.TooOld > 0 {
			t.Fatalf("seed %d: %s", seed, r.text())
		}
	}
	if tried == 0 {
		t.Fatal("no tail was lost")
	}
}

// loseTail loses the last decisions of partition 0, some of which have their feedback.
func (w *world) loseTail() bool {
	released := int64(0)
	for _, r := range w.records(w.ts.Feedback, 0) {
		var f codec.Feedback
		if r.Type == "" && codec.ParseFeedback(&f, r.Value) == nil && f.Partition == 0 {
			released = max(released, f.Round)
		}
	}
	for _, r := range w.records(w.ts.Decisions, 0) {
		var d codec.Decision
		if r.Type == "" && codec.ParseDecision(&d, r.Value) == nil && d.N > released-3 && d.N <= released {
			w.no(w.log.DropTail(w.ts.Decisions, 0, r.Offset))
			_, end, err := w.log.Bounds(w.ctx, w.ts.Decisions, 0)
			w.no(err)
			w.read[0] = end
			return true
		}
	}
	return false
}

// What cannot run says so.
func TestVerifyCannotRun(t *testing.T) {
	w := newWorld(t, 1, 1)
	c := Config{Log: w.log, Name: worldName, Seed: worldSeed(), Build: model.Epoch}
	if _, err := Run(w.ctx, c); !errors.Is(err, follow.ErrNoModel) {
		t.Fatal(err)
	}
	w.use(0)
	w.rounds(5)
	c.Seed = []byte("another")
	if _, err := Run(w.ctx, c); !errors.Is(err, errSeed) {
		t.Fatal(err)
	}
	c.Name = "nobody"
	if _, err := Run(w.ctx, c); !errors.Is(err, stream.ErrNotFound) {
		t.Fatal(err)
	}
}
