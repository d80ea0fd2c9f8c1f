package explain

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"hindsight/internal/join"
	"hindsight/internal/loop"
	"hindsight/internal/model"
	"hindsight/internal/modelfile"
	"hindsight/internal/service"
	"hindsight/internal/topics"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/mem"
)

const planted = "planted-feature"

var update = flag.Bool("update", false, "write the golden file")

// clock is a log time that moves on by a second an append.
func clock() func() int64 {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).UnixNano()
	var mu sync.Mutex
	return func() int64 {
		mu.Lock()
		defer mu.Unlock()
		now += int64(time.Second)
		return now
	}
}

// world is a system on a log in memory, stepped by hand.
type world struct {
	t   *testing.T
	log *mem.Log
	d   *service.Decider
	j   *service.Joiner
	c   Config
	top join.Topics
}

func newWorld(t *testing.T, yaml string, snapshotEvery int64) *world {
	t.Helper()
	m, err := model.Parse("model", []byte("name: m\nversion: 1\n"+yaml))
	if err != nil {
		t.Fatal(err)
	}
	source, err := modelfile.Source(m, nil)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, log: mem.New(mem.Options{Clock: clock()}), top: join.TopicsOf("m")}
	w.must(topics.Create(t.Context(), w.log, "m", 1, topics.Retention{}))
	quiet := slog.New(slog.DiscardHandler)
	w.j, err = service.OpenJoiner(t.Context(), service.SystemConfig{Log: w.log, Source: source, Build: model.Epoch,
		Seed: []byte("seed"), Partitions: 1, MaxPending: 5000, Dedup: 1000, MarkEvery: 20, Logger: quiet})
	w.must(err)
	w.d, err = service.OpenDecider(t.Context(), service.SystemConfig{Log: w.log, Name: "m", Build: model.Epoch,
		Seed: []byte("seed"), Partitions: 1, Dedup: 1000, MaxInFlight: 1000, SnapshotEvery: snapshotEvery,
		Logger: quiet})
	w.must(err)
	t.Cleanup(func() { w.d.Close(); w.j.Close() })
	w.c = Config{Log: w.log, Name: "m", Seed: []byte("seed"), Build: model.Epoch}
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) put(topic, format string, args ...any) {
	w.t.Helper()
	out, err := w.log.Writer(w.t.Context(), topic, 0, nil)
	w.must(err)
	_, err = out.Append(w.t.Context(), &stream.Record{Value: fmt.Appendf(nil, format, args...)})
	w.must(err)
}

func (w *world) settle() {
	w.t.Helper()
	ctx := w.t.Context()
	for busy := true; busy; {
		a, err := w.d.StepFeedback(ctx, 0)
		w.must(err)
		b, err := w.d.StepContexts(ctx, 10)
		w.must(err)
		c, err := w.j.Step(ctx)
		w.must(err)
		w.must(w.d.WriteSnapshots(ctx))
		busy = a || b || c
	}
}

func (w *world) round(id string) *Explanation {
	w.t.Helper()
	e, err := Round(w.t.Context(), w.c, id)
	w.must(err)
	return e
}

// play plays rounds of two actions, of which b is the better one.
func (w *world) play(from, to int) {
	w.t.Helper()
	var d codec.Decision
	for i := from; i < to; i++ {
		id := fmt.Sprintf("r%d", i)
		w.put(w.top.Contexts, `{"id":%q,"features":{"x":%d,%q:1},"actions":["a","b"]}`, id, i%3, planted)
		w.settle()
		w.must(stream.Scan(w.t.Context(), w.log, w.top.Decisions, 0, stream.Earliest, math.MaxInt64,
			func(r *stream.Record) error {
				if string(r.Key) == id {
					return codec.ParseDecision(&d, bytes.Clone(r.Value))
				}
				return nil
			}))
		w.put(w.top.Outcomes, `{"id":%q,"loss":%d}`, id, 1-d.Action)
		w.settle()
	}
}

// A round's life, from a snapshot and from the start of the log: the same.
func TestRound(t *testing.T) {
	for _, every := range []int64{0, 10} {
		w := newWorld(t, "window: 20 rounds\noracle: {kind: linear}\n", every)
		w.play(0, 40)
		w.put(w.top.Outcomes, `{"id":"r30","loss":0}`)
		w.put(w.top.Outcomes, `{"id":"r30","loss":1,"action":"other"}`)
		w.settle()
		e := w.round("r30")
		d := &e.Decision
		if e.Check != "identical" || d.N != 31 || e.Had.LearnedThrough != 30 || e.Had.Learned != 30 ||
			*e.Had.OwnThrough != 30 || *e.Had.Outstanding != 0 {
			t.Fatalf("snapshots each %d: %+v", every, e)
		}
		if e.Context.Source != "topic" || !e.Context.Kept || e.Context.Offset != 30+1 && e.Context.Offset != 30 {
			t.Errorf("context %+v", e.Context)
		}
		if d.Mu == nil || d.Draw == nil || d.Gamma <= 0 || len(d.Actions) != 2 || d.Actions[0].Predicted == nil {
			t.Fatalf("decision %+v", d)
		}
		low := min(*d.Actions[0].Predicted, *d.Actions[1].Predicted)
		for _, a := range d.Actions { // the formula that is told gives the law that was logged
			if p := 1 / (*d.Mu + d.Gamma*(*a.Predicted-low)); math.Abs(p-*a.Propensity) > 1e-9 {
				t.Errorf("%s: %v by the formula, %v logged", a.Action, p, *a.Propensity)
			}
		}
		if first := *d.Draw < *d.Actions[0].Propensity; first != d.Actions[0].Drawn {
			t.Errorf("the draw %v does not choose %s of %+v", *d.Draw, d.Action, d.Actions)
		}
		if f := e.Feedback; f == nil || f.N != 31 || f.Fate != "observed" || f.Overtaken != 0 {
			t.Errorf("feedback %+v", f)
		}
		if len(e.Outcomes) != 3 || e.Outcomes[0].Became != "counted" || e.Outcomes[1].Became != codec.ReasonDuplicate ||
			e.Outcomes[2].Became != codec.ReasonDuplicate {
			t.Errorf("outcomes %+v", e.Outcomes)
		}
		if e.Taught == nil || !e.Taught.Learned {
			t.Fatalf("taught %+v", e.Taught)
		}
		for i, c := range e.Taught.Actions {
			moved := *c.PredictedAfter - *c.PredictedBefore // predictions end at 0 and 1
			if d.Actions[i].Drawn && (e.Feedback.Loss == 0 && moved > 0 || e.Feedback.Loss == 1 && moved < 0) {
				t.Errorf("a loss of %v moved the expected loss from %v to %v", e.Feedback.Loss, *c.PredictedBefore,
					*c.PredictedAfter)
			}
			if math.Abs(*c.PredictedBefore-*d.Actions[i].Predicted) > 1e-12 { // its own feedback came next
				t.Errorf("before its feedback %v, at the decision %v", *c.PredictedBefore, *d.Actions[i].Predicted)
			}
		}
	}
}

// A snapshot is enough where the feedback before it is gone. Of several that had learned as much the last counts: here
// the position of the one before is wrong.
func TestRoundFromSnapshotAlone(t *testing.T) {
	w := newWorld(t, "window: 20 rounds\noracle: {kind: linear}\n", 10)
	w.play(0, 25)
	var last codec.Snapshot
	w.must(w.log.Edit(w.top.Snapshots, 0, func(all []stream.Record) []stream.Record {
		var err error
		last, err = codec.ParseSnapshot(bytes.Clone(all[len(all)-1].Value))
		w.must(err)
		before := last
		before.FeedbackFrom += 1000
		before.Nonce += "x"
		all[len(all)-1].Value = codec.AppendSnapshot(nil, &before)
		return all
	}))
	w.put(w.top.Snapshots, "%s", codec.AppendSnapshot(nil, &last))
	w.must(w.log.Truncate(w.top.Feedback, 0, last.FeedbackFrom))
	if e := w.round("r24"); last.Parts != 1 || e.Check != "identical" || e.Taught == nil || !e.Taught.Learned {
		t.Errorf("%+v", e)
	}
	if e := w.round("r0"); e.Check != "not recomputed: "+errTooOld.Error() || e.Taught != nil {
		t.Errorf("%+v", e)
	}
}

// A round that had learned all that the log holds is recomputed, too.
func TestRoundAtTheEnd(t *testing.T) {
	w := newWorld(t, "window: 20 rounds\n", 0)
	w.play(0, 3)
	w.put(w.top.Contexts, `{"id":"last","actions":["a","b"]}`)
	_, err := w.d.StepFeedback(t.Context(), 0)
	w.must(err)
	_, err = w.d.StepContexts(t.Context(), 10)
	w.must(err)
	if e := w.round("last"); e.Check != "identical" || e.Had.LearnedThrough != 3 || e.Feedback != nil {
		t.Errorf("%+v", e)
	}
}

// Why an outcome was rejected is told.
func TestRoundRejects(t *testing.T) {
	w := newWorld(t, "window: 20 rounds\n", 0)
	w.put(w.top.Contexts, `{"id":"r","actions":["a","b"]}`)
	w.settle()
	w.put(w.top.Outcomes, `{"id":"r","loss":1.5}`)
	w.put(w.top.Outcomes, `{"id":"r","loss":1,"action":"other"}`)
	w.put(w.top.Outcomes, `{"id":"r","loss":1}`)
	w.put(w.top.Outcomes, `{"id":"r","loss":1,"x":"%5000d"}`, 0)
	w.settle()
	e := w.round("r")
	b, err := json.Marshal(e.Outcomes)
	w.must(err)
	var text bytes.Buffer
	w.must(e.Write(&text))
	for _, want := range []string{"malformed (out of the model's range: 1.5 is not in [0, 1])\n",
		`mismatch (the outcome is for action "other", the decision was "` + e.Decision.Action + "\")\n", ": counted\n",
		"outcome      unreadable, outcomes[0]@3, at ", "duplicate (only the first 4096 of 5026 bytes are kept)\n"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is not in\n%s", want, &text)
		}
	}
	if n := strings.Count(string(b), `"detail"`); n != 3 || e.Outcomes[0].Detail != "out of the model's range: 1.5 is "+
		"not in [0, 1]" {
		t.Errorf("%d details: %s", n, b)
	}
}

// Features are told where they may be, and nowhere else.
func TestRoundWithoutFeatures(t *testing.T) {
	w := newWorld(t, "window: 20 rounds\n", 0)
	w.play(0, 3)
	for _, show := range []bool{false, true} {
		w.c.Features = show
		e := w.round("r1")
		b, err := json.Marshal(e)
		w.must(err)
		var text bytes.Buffer
		w.must(e.Write(&text))
		for _, s := range []string{string(b), text.String()} {
			if strings.Contains(s, planted) != show {
				t.Errorf("features may be shown: %v; %s", show, s)
			}
		}
	}
}

// A round that waits has no fate; of what is not there there is nothing to tell.
func TestRoundThatWaits(t *testing.T) {
	w := newWorld(t, "window: 20 rounds\noutcomes: mean\n", 0)
	w.put(w.top.Contexts, `{"id":"w","actions":["a"]}`)
	w.settle()
	w.put(w.top.Outcomes, `{"id":"w","reward":0.5,"outcome_id":"1"}`)
	w.put(w.top.Outcomes, `{"id":"wx","reward":0.5}`)
	w.settle()
	e := w.round("w")
	if e.Feedback != nil || e.Taught != nil || e.Check != "identical" || len(e.Outcomes) != 1 ||
		e.Outcomes[0].Kind != "reward" || e.Outcomes[0].Became != "waits with its round" {
		t.Errorf("%+v", e)
	}
	var text bytes.Buffer
	if w.must(e.Write(&text)); !strings.Contains(text.String(), "feedback of this partition: no round "+
		"known, 0 outstanding") {
		t.Errorf("%s", &text)
	}
	if _, err := Round(t.Context(), w.c, "nobody"); !errors.Is(err, ErrNotFound) {
		t.Errorf("%v", err)
	}
}

// TestRoundOfUnit lists the outcomes that count for a draw, whether they name its unit, the round or a repeat.
func TestRoundOfUnit(t *testing.T) {
	w := newWorld(t, "actions: [a, b]\nwindow: 20 rounds\norder: fifo\nreward: {min: 0, max: 1}\nunit: {sticky: 1h}\n",
		0)
	for i, outcome := range []string{`{"unit":"u0","reward":1}`, `{"id":"again1","reward":1}`,
		`{"id":"draw2","reward":1}`} {
		w.put(w.top.Contexts, `{"id":"draw%d","unit":"u%d"}`, i, i)
		w.put(w.top.Contexts, `{"id":"again%d","unit":"u%d"}`, i, i)
		w.settle()
		w.put(w.top.Outcomes, "%s", outcome)
		w.settle()
		e := w.round(fmt.Sprint("draw", i))
		if len(e.Outcomes) != 1 || e.Outcomes[0].Became != "counted" || e.Feedback == nil ||
			e.Feedback.Fate != "observed" {
			t.Errorf("%s: %+v %+v", outcome, e.Outcomes, e.Feedback)
		}
	}
	for _, unit := range []string{"nobody", "u0"} { // the one draws nothing, the other is told
		w.put(w.top.Outcomes, `{"unit":%q,"reward":1}`, unit)
	}
	w.settle()
	if e := w.round("draw0"); len(e.Outcomes) != 2 || e.Outcomes[0].Became == e.Outcomes[1].Became {
		t.Errorf("%+v", e.Outcomes)
	}
}

// What was learned of a round before its feedback is told behind it, too, however long ago that was.
func TestRoundEarly(t *testing.T) {
	w := newWorld(t, "window: 5000 rounds\nmissing: impute\noracle: {kind: linear}\nearly: {after: 2 rounds}\n", 0)
	for i := range firstBlock + 10 {
		w.put(w.top.Contexts, `{"id":"r%d","actions":["a"]}`, i)
		if i%1000 == 4 {
			w.settle()
		}
	}
	w.settle()
	w.put(w.top.Outcomes, `{"id":"r1","loss":0.25}`)
	w.settle()
	w.put(w.top.Outcomes, `{"id":"r0","loss":0}`)
	w.settle()
	e := w.round("r1")
	if e.Check != "identical" || e.Feedback == nil || e.Feedback.Fate != "observed" || len(e.Named) != 2 {
		t.Fatalf("%+v", e)
	}
	var text bytes.Buffer
	w.must(e.Write(&text))
	for i, want := range []string{"loss imputed, 1; learned in stage 1, before the round had its fate",
		"loss observed, 0.25, by outcomes[0]@0; learned in stage 2, before the round had its fate"} {
		if e.Named[i].Stage != i+1 || !strings.Contains(text.String(), want) {
			t.Errorf("%+v\n%s", e.Named[i], &text)
		}
	}
}

// A round that was skipped taught nothing, and its late outcome is told.
func TestRoundSkipped(t *testing.T) {
	w := newWorld(t, "window: 2 rounds\n", 0)
	for _, id := range []string{"s", "t", "u", "v"} {
		w.put(w.top.Contexts, `{"id":%q,"actions":["a","b"]}`, id)
		w.settle()
	}
	w.put(w.top.Outcomes, `{"id":"s","loss":1}`)
	w.settle()
	e := w.round("s")
	if e.Feedback == nil || e.Feedback.Fate != "skipped" || e.Taught == nil || e.Taught.Learned ||
		len(e.Outcomes) != 1 || e.Outcomes[0].Became != codec.ReasonLate {
		t.Errorf("%+v", e)
	}
	if got := w.round("t"); *got.Had.Outstanding != 1 || got.Feedback.Overtaken != 1 {
		t.Errorf("%+v %+v", got.Had, got.Feedback)
	}
}

// Another seed, and another learner than decided, is seen.
func TestRoundDifferent(t *testing.T) {
	w := newWorld(t, "window: 20 rounds\n", 0)
	w.play(0, 12)
	w.c.Seed = []byte("another")
	different := 0
	for i := range 12 {
		if strings.HasPrefix(w.round(fmt.Sprintf("r%d", i)).Check, "different") {
			different++
		}
	}
	if different == 0 {
		t.Error("the draws of another seed are identical")
	}
	w.c.Seed = []byte("seed")
	w.c.Build = func(rec *codec.Epoch, files map[string][]byte) (loop.Epoch, error) {
		ep, err := model.Epoch(rec, files)
		if err == nil {
			m, perr := model.Parse("other", []byte("name: m\nlearner: uniform\nwindow: 20 rounds\n"))
			w.must(perr)
			ep.Learner, err = m.Build(nil)
		}
		return ep, err
	}
	if e := w.round("r11"); !strings.HasPrefix(e.Check, "different") || e.Decision.Mu != nil {
		t.Errorf("%s", e.Check)
	}
	w.c.Build = func(rec *codec.Epoch, files map[string][]byte) (loop.Epoch, error) {
		ep, err := model.Epoch(rec, files)
		rules := *ep.Rules
		rules.Actions = []string{"c"}
		ep.Rules = &rules
		return ep, err
	}
	if e := w.round("r11"); !strings.HasPrefix(e.Check, "different: this context would not be decided (") {
		t.Errorf("%s", e.Check)
	}
}

// A round between two snapshots, or at the first, is recomputed where the feedback before them is gone; a damaged one
// is passed over.
func TestRoundBetweenSnapshots(t *testing.T) {
	w := newWorld(t, "window: 20 rounds\noracle: {kind: linear}\n", 10)
	w.play(0, 25)
	var first codec.Snapshot
	w.must(stream.Scan(t.Context(), w.log, w.top.Snapshots, 0, stream.Earliest, math.MaxInt64,
		func(r *stream.Record) (err error) {
			if first.Parts == 0 {
				first, err = codec.ParseSnapshot(bytes.Clone(r.Value))
			}
			return err
		}))
	w.must(w.log.Truncate(w.top.Feedback, 0, first.FeedbackFrom))
	damaged := first
	damaged.Nonce, damaged.Bytes = "x", append(bytes.Clone(first.Bytes), 0)
	w.put(w.top.Snapshots, "%s", codec.AppendSnapshot(nil, &damaged))
	for _, n := range []int64{first.LearnedThrough, first.LearnedThrough + 3} {
		if e := w.round(fmt.Sprint("r", n)); e.Had.LearnedThrough != n || e.Check != "identical" || e.Taught == nil {
			t.Errorf("%d: %+v", n, e)
		}
	}
}

// Text is shown as it came if it is JSON, and as JSON if it is not; of what cannot be read there is none.
func TestContextText(t *testing.T) {
	c := codec.Context{ID: "r", Actions: []codec.Action{{Name: "a"}}}
	for raw, want := range map[string]string{
		"  {\"id\": \"r\", \"acions\": []}\n": `{"id": "r", "acions": []}`,
		string(codec.AppendContext(nil, &c)):  string(codec.AppendContextJSON(nil, &c)),
		"\x81\xa2id":                          "",
	} {
		if got := contextText([]byte(raw)); got != want {
			t.Errorf("%q: %q, want %q", raw, got, want)
		}
	}
	at := logTime(1)
	if err := json.Unmarshal([]byte("null"), &at); err != nil || at != 0 {
		t.Errorf("null is the log time %d, %v", at, err)
	}
	if err := json.Unmarshal([]byte(`"yesterday"`), &at); err == nil {
		t.Errorf("yesterday is the log time %s", at)
	}
}

// tells are rounds whose explanations are golden. A step is a context, an outcome, or a request for a decision; after
// it all is read, but after a context that begins with a space nothing is.
var tells = []struct {
	what, yaml, round string
	steps             []string
	after             func(w *world)
}{
	{"another system gave the law", "outcomes: mean\nreward: {min: 0, max: 2}\nwindow: 2 rounds\n", "r", []string{
		`{"id":"r","actions":["a","b"],"assigned":{"action":"b","propensities":{"a":0.25,"b":0.75},"by":"router 2"}}`,
		`o {"id":"r","reward":1.5}`, `o {"id":"r","withdrawn":true}`, `o {"id":"r","reward":3,"action":"b"}`, `c`, `c`,
		`c`, `o {"id":"r","reward":1}`}, nil},
	{"another system gave a propensity", "", "r",
		[]string{`{"id":"r","actions":["a","b"],"assigned":{"action":"b","propensity":0.75}}`}, nil},
	{"another system gave none", "", "r",
		[]string{`{"id":"r","actions":["a","b"],"assigned":{"action":"b","by":"router"}}`,
			`o {"id":"r","loss":1}`}, nil},
	{"shadow", "mode: shadow\noracle: {kind: linear}\n", "r", []string{`c`, `o {"id":"r0","loss":0.5}`,
		`{"id":"r","actions":["a","b"]}`, `o {"id":"r","loss":0.25}`}, nil},
	{"held back", "guard: {lose_at_most: 0.02}\noracle: {kind: ridge, certified: true}\nactions: [a, b]\n" +
		"features: {x: {number: [0, 1]}}\n", "r", []string{`{"id":"r","features":{"x":0.5}}`}, nil},
	{"paused before its outcome", "", "r", []string{`{"id":"r","actions":["a","b"]}`, `paused`, `o {"id":"r","loss":1}`,
		`c`}, nil},
	{"paused", "", "r", []string{`paused`, `{"id":"r","actions":["a","b"]}`, `o {"id":"r","loss":1}`}, nil},
	{"outcomes that are none", "", "r", []string{`{"id":"r","actions":["a","b"]}`, `o {"id":"r","loss":7}`,
		`o {"id":"r"}`, `o {"id":"r0"}`, `o {"id":"r","loss":"7"}`, `o {"id":"r","action":"c","loss":1}`}, nil},
	{"uniform, by request", "learner: uniform\nmissing: impute\nwindow: 2 rounds\n", "r",
		[]string{`q {"id":"r","actions":["a","b"]}`, `c`, `c`, `c`}, nil},
	{"one action", "", "r", []string{`{"id":"r","actions":["a"]}`, `o {"id":"r","reward":-0.5}`}, nil},
	{"drawn from alike", "learner: egreedy:1\n", "r", []string{`{"id":"r","actions":["a","b"]}`}, nil},
	{"all lose", "oracle: {kind: linear}\n", "r", []string{`c`, `o {"id":"r0","loss":1}`, `c`, `o {"id":"r1","loss":1}`,
		`c`, `o {"id":"r2","loss":1}`, `{"id":"r","actions":["a","b"]}`}, nil},
	{"activated", "activation: required\n", "r", []string{`{"id":"r","actions":["a","b"]}`,
		`o {"id":"r","activated":true}`, `o {"id":"r","loss":1}`}, nil},
	{"read with its outcome", "", "r", []string{` {"id":"r","actions":["a","b"]}`, `o {"id":"r","loss":1}`}, nil},
	{"epsilon", "learner: egreedy:0.1\n", "r", []string{`{"id":"r","actions":["a","b","c"]}`}, nil},
	{"a budget of named outcomes", "actions: [a, b]\noutcomes: {q: {window: 2 rounds, missing: skip}, " +
		"n: {window: 2 rounds, missing: {impute: 600}, max: 1e5, take: sum}}\nconstants: {usd: {a: 1e-7, b: 1e-5}}\n" +
		"reward: q\nbudget: {c: {of: usd*n, mean_at_most: 0.0005, about: {a: 3e-5, b: 0.015}}}\n", "r",
		[]string{`{"id":"r"}`, `o {"id":"r","outcomes":{"q":0.5}}`, `o {"id":"r","outcomes":{"n":null}}`,
			`o {"id":"r","outcomes":{"n":7}}`, `c`, `c`,
			`c`}, nil},
	{"a repeat of a unit's draw", "actions: [a, b]\norder: fifo\nunit: {sticky: 1h}\n", "r",
		[]string{`{"id":"r0","unit":"u"}`, `{"id":"r","unit":"u"}`, `o {"id":"r0","loss":1}`}, nil},
	{"of a unit, behind one that waits", "actions: [a, b]\norder: fifo\nunit: {sticky: 1h}\n", "r",
		[]string{`{"id":"r0","unit":"v"}`, `{"id":"r","unit":"u"}`, `o {"unit":"u","loss":1}`}, nil},
	{"two waited, and the log ended", "", "r", []string{` {"id":"r0","actions":["a","b"]}`,
		`{"id":"r","actions":["a","b"]}`, `o {"id":"r0","loss":1}`, `o {"id":"r","loss":0}`}, func(w *world) {
		w.edit(w.top.Feedback, "r", func(r *stream.Record) {
			var f codec.Feedback
			w.must(codec.ParseFeedback(&f, bytes.Clone(r.Value)))
			f.ClosedAt = loop.End
			r.Value = codec.AppendFeedback(nil, &f)
		})
		w.must(w.log.Edit(w.top.Feedback, 0, func(all []stream.Record) []stream.Record { // as of a joiner of files
			return slices.DeleteFunc(all, func(r stream.Record) bool {
				return r.Type == codec.TypeCut || r.Type == codec.TypeMark
			})
		}))
	}},
	{"feedback before it is lost", "learner: uniform\n", "r", []string{`c`, `o {"id":"r0","loss":1}`,
		`{"id":"r","actions":["a","b"]}`, `o {"id":"r","loss":1}`}, func(w *world) {
		w.must(w.log.Edit(w.top.Feedback, 0, func(all []stream.Record) []stream.Record {
			return slices.DeleteFunc(all, func(r stream.Record) bool { return string(r.Key) == "r0" })
		}))
	}},
	{"its context was replaced", "", "r", []string{`{"id":"r","actions":["a","b"]}`}, func(w *world) {
		w.edit(w.top.Contexts, "", func(r *stream.Record) { r.Value = []byte(`{"id":"r","actions":["b","a"]}`) })
	}},
}

// edit changes the records of a topic that have a key.
func (w *world) edit(topic, key string, f func(r *stream.Record)) {
	w.t.Helper()
	w.must(w.log.Edit(topic, 0, func(all []stream.Record) []stream.Record {
		for i := range all {
			if r := &all[i]; r.Type == "" && string(r.Key) == key {
				f(r)
			}
		}
		return all
	}))
}

// step takes a step of [tells].
func (w *world) step(step string) {
	w.t.Helper()
	kind, rest, _ := strings.Cut(step, " ")
	switch kind {
	case "":
		w.put(w.top.Contexts, "%s", rest)
		return
	case "c":
		_, end, err := w.log.Bounds(w.t.Context(), w.top.Contexts, 0)
		w.must(err)
		w.put(w.top.Contexts, `{"id":"r%d","actions":["a","b"]}`, end)
	case "o":
		w.put(w.top.Outcomes, "%s", rest)
	case "paused":
		_, err := w.j.Switch(w.t.Context(), codec.Paused, "admin: night")
		w.must(err)
	case "q":
		answer := make(chan string, 1)
		w.d.Request(stream.Message{Data: []byte(rest), Respond: func(b []byte, _ ...stream.Header) error {
			answer <- string(b)
			return nil
		}})
		if got := <-answer; !strings.Contains(got, `"action"`) {
			w.t.Fatal(got)
		}
	default:
		w.put(w.top.Contexts, "%s", step)
	}
	w.settle()
}

// long are numbers of which the golden file has six digits: the last bit of μ is not promised.
var long = regexp.MustCompile(`\d+\.\d{7,}`)

// What is told, to people and in JSON, is as it was looked at.
func TestTold(t *testing.T) {
	var b bytes.Buffer
	tell := func(what string, w *world, id string) {
		e := w.round(id)
		fmt.Fprintf(&b, "%s:\n\n", what)
		w.must(e.Write(&b))
		page, err := json.Marshal(e)
		w.must(err)
		var back Explanation // as a program reads it
		w.must(json.Unmarshal(page, &back))
		if again, err := json.Marshal(&back); err != nil || !bytes.Equal(again, page) {
			t.Errorf("%s: read back it is %s, was %s, %v", what, again, page, err)
		}
		fmt.Fprintf(&b, "\n%s\n\n", long.ReplaceAllStringFunc(string(page), func(s string) string {
			x, err := strconv.ParseFloat(s, 64)
			w.must(err)
			return short(x)
		}))
	}
	w := newWorld(t, "window: 20 rounds\noracle: {kind: linear}\n", 0)
	w.c.Features = true
	w.play(0, 8)
	tell("learned", w, "r7")
	for _, c := range tells {
		if !strings.Contains(c.yaml, "window: ") {
			c.yaml += "window: 20 rounds\n"
		}
		w := newWorld(t, c.yaml, 0)
		for _, step := range c.steps {
			w.step(step)
		}
		if c.after != nil {
			c.after(w)
		}
		tell(c.what, w, c.round)
	}
	const path = "testdata/told.txt"
	if *update {
		w.must(os.WriteFile(path, b.Bytes(), 0o644))
	}
	want, err := os.ReadFile(path)
	w.must(err)
	if !bytes.Equal(want, b.Bytes()) {
		got, wants := strings.Split(b.String(), "\n"), strings.Split(string(want), "\n")
		for i := range min(len(got), len(wants)) {
			if got[i] != wants[i] {
				t.Fatalf("%s:%d: got\n%s\nwant\n%s", path, i+1, got[i], wants[i])
			}
		}
		t.Errorf("%s: %d lines, want %d", path, len(got), len(wants))
	}
}
