package verify

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"hindsight/internal/model"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/mem"
)

var update = flag.Bool("update", false, "write testdata/reports.golden anew")

// TestReports holds all that is said of logs of many kinds, to the last count: whole ones, ones without their
// beginning, their end or a record, after power failures, and with several partitions. What retention has dropped, of
// all topics or of one alone, is no difference.
func TestReports(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine: nothing for the race detector")
	}
	t.Parallel()
	const file = "testdata/reports.golden"
	var out strings.Builder
	var whole map[string]string // what was said of the world as it was, and is not said again
	say := func(w *world, what string, kept bool) {
		dedup := worldDedup
		if w.j == nil { // of a shop
			dedup = 1000
		}
		var read, all int64
		r, err := Run(w.ctx, Config{Log: w.log, Name: worldName, Seed: worldSeed(), Build: model.Epoch,
			Dedup: dedup, Progress: func(done, total int64) { read, all = done, total }})
		if kept && (err != nil || r.Differences > 0) {
			t.Errorf("%s: %v, %+v", what, err, r)
		}
		if fmt.Fprint(&out, what); err != nil {
			fmt.Fprintf(&out, ": %v\n", err)
			return
		}
		said := map[string]string{}
		told := func(name string, x any) {
			text, err := json.Marshal(x)
			w.no(err)
			if said[name] = string(text); whole[name] != said[name] {
				fmt.Fprintf(&out, ", %s %s", name, text)
			}
		}
		told("exit", r.ExitCode())
		told("from", r.Start)
		for _, x := range r.rows() {
			told(x.name, []int64{x.Records, x.Checked, x.Tally.TooOld})
		}
		told("old", []int64{r.Old.Drawn, r.Old.Ruled})
		told("read", []int64{read, all})
		told("pending", r.Pending)
		told("late", []any{r.LateLosses, r.LateOutcomes})
		told("differences", []int64{r.Differences, r.Foreign})
		if d := r.First; d != nil {
			told("first", fmt.Sprintf("%s[%d]@%d %d %d %s %s: want %s, got %s", d.Topic, d.Partition, d.Offset, d.Time,
				d.Round, d.ID, d.Field, d.Want, d.Got))
		}
		if r.Beside != r.First {
			told("beside", r.Beside)
		}
		if fmt.Fprintln(&out); whole == nil {
			whole = said
		}
	}
	worlds := []*world{liveWorld(t, 1, 3, 25), encodedWorld(t, codec.JSON, 2, 5, 15), failedWorld(t, 2, 3),
		warmWorld(t), shopWorld(stickyOn(t, stepped(), "linear")), shopWorld(namedShop(t))}
	for i, w := range worlds {
		whole = nil
		say(w, fmt.Sprint("world ", i), true)
		w.eachChange(i, func(what string, kept bool) { say(w, fmt.Sprintf("world %d, %s", i, what), kept) })
	}
	if *update {
		if err := os.WriteFile(file, []byte(out.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(want), "\n")
	for i, got := range strings.Split(out.String(), "\n") {
		if i >= len(lines) || got != lines[i] {
			t.Errorf("%s\nwant\n%s", got, lines[min(i, len(lines)-1)])
		}
	}
}

// failedWorld is one after two power failures.
func failedWorld(t *testing.T, parts int, seed uint64) *world {
	w := newWorld(t, parts, seed)
	w.use(int(seed) % len(worldModels))
	for range 2 {
		w.rounds(30)
		w.powerLoss()
	}
	w.rounds(30)
	return w
}

// warmWorld is one of models that go on from what was learned, or from nothing.
func warmWorld(t *testing.T) *world {
	w := newWorld(t, 1, 3)
	const linear = "oracle: linear\n"
	w.useModel(warmBase + linear + "version: 1\n")
	w.rounds(30)
	for i, more := range []string{linear + "warm: refit\nactions: [a, c]", linear + "warm: keep\nactions: [a, c]",
		linear + "actions: [a, b]", "warm: refit\noracle: {kind: linear, lambda: 2}"} {
		w.announced(fmt.Sprintf("%sversion: %d\n%s\n", warmBase, i+2, more), 20)
	}
	return w
}

// stepped is a log whose time goes on by a step with each record.
func stepped() stream.Log { return mem.New(mem.Options{Step: 2}) }

// namedShop is one with named outcomes of several windows, a guard, candidates, and what another system decided.
func namedShop(t *testing.T) *shopRig {
	s := newShop(t, stepped(), `{name: m, version: 1, actions: [a, b, c], baseline: {fixed: b}, hold_out: 0.2, `+
		`guard: {worse_by: 0.9, alpha: 0.1}, candidates: [baseline, uniform], reward: quality - 0.2*cost, `+
		`outcomes: {cost: {max: 2, window: 4 rounds}, quality: {window: 9 rounds}}}`)
	t.Cleanup(s.shut)
	s.named, s.others = true, true
	s.rounds(25)
	s.switchTo(codec.Shadow)
	s.rounds(25)
	s.open()
	s.rounds(25)
	return s
}

// shopWorld is the log of a shop.
func shopWorld(s *shopRig) *world {
	return &world{TB: s.TB, ctx: s.ctx, log: s.log.(*mem.Log), ts: s.ts, parts: 1}
}

// eachChange takes something from a partition of each topic, and from all what is older than a log time, one after the
// other; what and where goes with offset, so that several worlds have it all. kept says that retention could have.
func (w *world) eachChange(offset int, f func(what string, kept bool)) {
	topics := map[string]int{w.ts.Contexts: w.parts, w.ts.Decisions: w.parts, w.ts.Outcomes: w.parts, w.ts.Feedback: 1,
		w.ts.Rejects: 1, w.ts.Snapshots: 1}
	put := func(topic string, p int, recs []stream.Record) {
		w.no(w.log.Edit(topic, p, func([]stream.Record) []stream.Record { return recs }))
	}
	for i, topic := range slices.Sorted(maps.Keys(topics)) {
		p := (i + offset) % topics[topic]
		recs := w.records(topic, p)
		change := func(at int, name string, kept bool, recs []stream.Record) {
			put(topic, p, recs)
			f(fmt.Sprintf("%s[%d] %s %d", topic, p, name, at), kept)
		}
		for k := 0; k < 4 && len(recs) > 0; k++ {
			at := min(max((len(recs)*k+offset)/4, 1), len(recs)-1)
			if (k+offset)%2 == 0 {
				change(at, "without", false, slices.Delete(slices.Clone(recs), at, at+1))
			} else {
				damaged := slices.Clone(recs)
				damaged[at].Value = recs[at].Value[:len(recs[at].Value)/2]
				change(at, "damaged at", false, damaged)
			}
			if k%2 == 1 {
				change(at, "from", true, recs[at:])
			} else if k > 0 {
				change(at, "up to", false, recs[:at])
			}
		}
		for i := range recs {
			if i > 0 && recs[i].Type == codec.TypeEpoch {
				change(i, "from", true, recs[i:])
				change(i-1, "without", false, slices.Delete(slices.Clone(recs), i-1, i))
			}
		}
		put(topic, p, recs)
	}
	feedback := w.records(w.ts.Feedback, 0)
	for k := 1; k < 6; k++ {
		since := feedback[len(feedback)*k/6+offset].Time
		for topic, parts := range topics {
			for p := range parts {
				put(topic, p, slices.DeleteFunc(w.records(topic, p),
					func(r stream.Record) bool { return r.Time < since }))
			}
		}
		f(fmt.Sprintf("all from %d on", since), true)
	}
}
