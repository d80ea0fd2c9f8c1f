package replay

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hindsight/internal/delay"
	"hindsight/internal/logs"
	"hindsight/internal/loop"
	"hindsight/internal/model"
	"hindsight/internal/modelfile"
	"hindsight/internal/scan"
	"hindsight/internal/service"
	"hindsight/internal/topics"
	"hindsight/internal/verify"
	"hindsight/internal/world"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/mem"
)

func flights(t testing.TB) string {
	t.Helper()
	const path = "../../../shared/data/nycflights_delay/flights_log.csv"
	if _, err := os.Stat(path); err != nil {
		t.Skipf("the log of flights is not beside the project: %v", err)
	}
	return path
}

func flightsMapping() logs.Mapping {
	return logs.Mapping{Time: "decision_ts", OutcomeTime: "outcome_ts", Action: "carrier", Reward: "on_time",
		ID: "event_id", Features: []string{"origin", "dest", "distance", "month", "dow", "sched_hour"}}
}

// trialOf returns a trial of a learner with the windows and delays given.
func trialOf(t testing.TB, env *Rounds, learner, window, spec string) *Trial {
	t.Helper()
	l, err := model.ParseLearner(learner)
	if err != nil {
		t.Fatal(err)
	}
	w, err := model.ParseWindow(window)
	if err != nil {
		t.Fatal(err)
	}
	d, err := delay.Parse(spec, env.DelayOptions(1))
	if err != nil {
		t.Fatal(err)
	}
	m, files := ModelFor(env, "replay", l, w)
	return &Trial{Rounds: env, Delays: d, Model: m, Files: files, Label: learner, Seed: 1}
}

func play(t testing.TB, env *Rounds, learner, window, spec string) *Result {
	t.Helper()
	r, err := trialOf(t, env, learner, window, spec).Run(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestFlights holds the log of flights to the check values of the open data. There a
// round's own decision counts, here it does not: what a run measures as arrived, in
// which every round has its outcome, is one less a round.
func TestFlights(t *testing.T) {
	path := flights(t)
	log, err := openLog(path, logs.Options{Mapping: flightsMapping()})
	if err != nil {
		t.Fatal(err)
	}
	d := delay.Describe(log.table.Decided, log.table.Came, func(int) {})
	want := delay.Recorded{Stats: delay.Stats{D: 543_827, DMax: 143, SigmaMax: 39, Mean: 543_827.0 / 32_735, P50: 15,
		P90: 30, P99: 44}, Overtaken: 23_702}
	if *d != want || log.Len() != 32_735 || len(log.Actions) != 16 {
		t.Errorf("%d rounds, %d actions, %+v, want %+v", log.Len(), len(log.Actions), *d, want)
	}
	if low := slices.Min(recordedOf(log)); low != 0 { // never 0 where the own decision counts
		t.Errorf("the smallest delay is %d", low)
	}
	lent := play(t, environment(t, "needle:0.4,0.2,0.6", 1, log.Len()), "uniform", "200", "recorded:"+path)
	raw := delay.Stats{D: want.D - int64(log.Len()), DMax: want.DMax - 1, SigmaMax: want.SigmaMax - 1,
		Mean: float64(want.D)/float64(log.Len()) - 1, P50: want.P50 - 1, P90: want.P90 - 1, P99: want.P99 - 1}
	if got := lent.Delays.Raw; math.Abs(got.Mean-raw.Mean) > 1e-9 || got.D != raw.D || got.DMax != raw.DMax ||
		got.SigmaMax != raw.SigmaMax || got.P50 != raw.P50 || got.P90 != raw.P90 || got.P99 != raw.P99 {
		t.Errorf("lent delays as arrived %+v, want %+v", got, raw)
	}
	if lent.Fates.Observed != int64(log.Len()) || lent.Delays.FIFOTax <= 0 {
		t.Errorf("lent: fates %+v, FIFO tax %d", lent.Fates, lent.Delays.FIFOTax)
	}
	own := play(t, log, "fixed:UA", "200", "recorded")
	if own.Fates.Observed != 5770 || own.Fates.Withdrawn != 32_735-5770 || *own.Matched != 5770 || own.Regret != nil ||
		own.UniformLoss != nil {
		t.Errorf("fixed:UA: fates %+v, matched %d", own.Fates, *own.Matched)
	}
	if *own.Delays.Recorded != want || own.Delays.FIFOTax <= 0 {
		t.Errorf("fixed:UA: delays %+v", own.Delays)
	}
	if _, err := openLog(path,
		logs.Options{Mapping: logs.Mapping{Action: "carrier", Reward: "arr_delay_min"}}); err == nil ||
		!strings.Contains(err.Error(), "flights_log.csv:2: column arr_delay_min: -8 is not in [0, 1]") {
		t.Errorf("a reward out of range: %v", err)
	}
}

// TestAdversariesSeeTheDecision holds that the delays of a run are those of its own
// actions, losses and truth.
func TestAdversariesSeeTheDecision(t *testing.T) {
	const n = 400
	env := environment(t, "close:1", 3, n)
	for spec, want := range map[string]func(loss float64, best bool) int64{
		"starve-best:9": func(_ float64, best bool) int64 {
			if best {
				return 9
			}
			return 0
		},
		"loss:4,1": func(loss float64, _ bool) int64 { return 4 - 3*int64(loss) },
		"never-bad:1": func(loss float64, _ bool) int64 {
			if loss == 1 {
				return delay.Never
			}
			return 0
		},
	} {
		tr := trialOf(t, env, "uniform", "200", spec)
		l, err := tr.Model.Build(tr.Files)
		if err != nil {
			t.Fatal(err)
		}
		trace, err := traced(t.Context(), loop.Epoch{Number: 1, Rules: tr.Model.Rules(), Learner: l}, "replay",
			SecretSeed(1), tr.Rounds, tr.Delays)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[int64]int{}
		truth := make([]float64, 5)
		for i, a := range trace.Actions {
			env.Truth(truth, i)
			d := want(env.Loss(i, int(a)), truth[a] == slices.Min(truth))
			seen[d]++
			if trace.Raw[i] != min(d, int64(n-1-i)) {
				t.Fatalf("%s: the delay of round %d is %d, want %d", spec, i, trace.Raw[i], d)
			}
		}
		if len(seen) != 2 {
			t.Errorf("%s: delays %v", spec, seen)
		}
	}
}

// TestMeanLossOfMatched is worked by hand: fixed:b draws the recorded action in rounds
// 0 and 2, of which 2 has no outcome.
func TestMeanLossOfMatched(t *testing.T) {
	for _, c := range []struct {
		learner, window string
		fates           Fates
		mean            float64
	}{
		{"fixed:b", "200", Fates{Observed: 1, Skipped: 1, Withdrawn: 2}, 0},
		{"fixed:a", "200", Fates{Observed: 2, Withdrawn: 2}, 0.875},
		{"fixed:b", "25s", Fates{Observed: 1, Skipped: 1, Withdrawn: 2}, 0}, // its outcome comes after 25 s
		{"fixed:b", "24.9s", Fates{Skipped: 2, Withdrawn: 2, Late: 1}, 0},
		{"fixed:a", "1s", Fates{Observed: 2, Withdrawn: 2}, 0.875},
		{"fixed:a", "0.5s", Fates{Observed: 1, Skipped: 1, Withdrawn: 2, Late: 1}, 0.875},
	} {
		r := play(t, timedLog(t), c.learner, c.window, "recorded")
		if r.Fates != c.fates || *r.Matched != 2 || r.MeanLoss == nil || *r.MeanLoss != c.mean {
			t.Errorf("%s, window %s: %+v, mean loss %v, want %+v, %v", c.learner, c.window, r.Fates, r.MeanLoss,
				c.fates, c.mean)
		}
	}
	if r := play(t, Head(timedLog(t), 1), "fixed:a", "200", "recorded"); r.MeanLoss != nil || *r.Matched != 0 {
		t.Errorf("no round matched, and the mean loss is %v", *r.MeanLoss)
	}
}

// randomLog draws a log with ties of times, outcomes at and before decisions, and
// outcomes that are missing.
func randomLog(t *rapid.T, missing bool) *Rounds {
	var text strings.Builder
	text.WriteString("at,back,who,loss\n")
	at := int64(1000)
	for range rapid.IntRange(1, 25).Draw(t, "rounds") {
		at += rapid.Int64Range(0, 3).Draw(t, "step")
		who := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "who")
		if missing && rapid.IntRange(0, 4).Draw(t, "missing") == 0 {
			fmt.Fprintf(&text, "%d,,%s,\n", at, who)
			continue
		}
		fmt.Fprintf(&text, "%d,%d,%s,1\n", at, at+rapid.Int64Range(-2, 12).Draw(t, "wait"), who)
	}
	b, err := readLog("t.csv", strings.NewReader(text.String()),
		logOptions{Options: logs.Options{Actions: []string{"a", "b"},
			Mapping: logs.Mapping{Time: "at", OutcomeTime: "back", Action: "who", Loss: "loss"}}})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestFatesOfALog recomputes every fate from the definition: an outcome is in time if
// it is at most the window after its decision, or at most the decision that ends it.
func TestFatesOfALog(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b := randomLog(rt, true)
		window := rapid.SampledFrom([]string{"1", "3", "1s", "4s", "6s"}).Draw(rt, "window")
		tr := trialOf(t, b, "uniform", window, "recorded")
		tr.Seed = rapid.Uint64Range(1, 50).Draw(rt, "seed")
		l, err := tr.Model.Build(nil)
		if err != nil {
			rt.Fatal(err)
		}
		rules := tr.Model.Rules()
		trace, err := traced(t.Context(), loop.Epoch{Number: 1, Rules: rules, Learner: l}, "replay",
			SecretSeed(tr.Seed), tr.Rounds, tr.Delays)
		if err != nil {
			rt.Fatal(err)
		}
		var want Fates
		for i, a := range trace.Actions {
			deadline := int64(math.MaxInt64)
			if w := rules.Window; w.Nanos > 0 {
				deadline = b.table.Decided[i] + w.Nanos
			} else if i+int(w.Rounds) < b.Len() {
				deadline = b.table.Decided[i+int(w.Rounds)]
			}
			came := b.table.Came[i]
			if came != scan.NoTime {
				came = max(came, b.table.Decided[i])
			}
			switch {
			case a != b.table.Action[i]:
				want.Withdrawn++
			case came == scan.NoTime:
				want.Skipped++
			case came > deadline:
				want.Skipped++
				want.Late++
			default:
				want.Observed++
			}
		}
		if trace.Fates != want {
			rt.Fatalf("window %s: %+v, want %+v\ndecided %v\ncame %v\nplayed %v of %v", window, trace.Fates, want,
				b.table.Decided, b.table.Came, trace.Actions, b.table.Action)
		}
	})
}

// TestTimesOfALog recomputes what each decision knew: an outcome at its very time is
// before it, and rounds are released in order.
func TestTimesOfALog(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b := randomLog(rt, false)
		env := b
		if rapid.Bool().Draw(rt, "shuffled") {
			env = Order(b, 1, 7)
		}
		tr := trialOf(t, env, "uniform", "1000h", "recorded")
		tr.Seed = rapid.Uint64Range(1, 50).Draw(rt, "seed")
		l, err := tr.Model.Build(nil)
		if err != nil {
			rt.Fatal(err)
		}
		trace, err := traced(t.Context(), loop.Epoch{Number: 1, Rules: tr.Model.Rules(), Learner: l}, "replay",
			SecretSeed(tr.Seed), tr.Rounds, tr.Delays)
		if err != nil {
			rt.Fatal(err)
		}
		v := env
		for j, through := range trace.Through {
			known := int64(0)
			for i := range j {
				if int(trace.Actions[i]) == int(v.table.Action[v.Row(i)]) && b.table.Came[i] > b.table.Decided[j] {
					break
				}
				known++
			}
			if through != known {
				rt.Fatalf("decision %d knew %d rounds, want %d\ndecided %v\ncame %v", j, through, known,
					b.table.Decided, b.table.Came)
			}
		}
	})
}

// TestOrdersOfALog holds that a shuffled log has the rows of the log and the times of
// the file.
func TestOrdersOfALog(t *testing.T) {
	b := timedLog(t)
	o := Order(Head(b, 4), 1, 3)
	v, rows, ids := o, o.rows, o.Reader()
	if slices.IsSorted(rows) {
		t.Fatal("not shuffled")
	}
	for i, row := range rows {
		if v.table.Action[v.Row(i)] != b.table.Action[row] || v.Time(i) != b.table.Decided[i] ||
			ids.ID(i) != b.table.ID(int(row)) || v.table.Observed(v.Row(i)) != (row != 2) {
			t.Errorf("round %d is not row %d at the time of row %d", i, row, i)
		}
		if value := v.table.Value[v.Row(i)]; value != b.table.Value[row] && row != 2 {
			t.Errorf("round %d reports %v, want %v of row %d", i, value, b.table.Value[row], row)
		}
	}
	if OfWorld(world.NewSigmoid(1, 1, world.SigmoidOptions{})).Log != nil || !Head(b, 2).Timed() ||
		!o.RecordsDelays() || Head(b, 2).Len() != 2 {
		t.Error("what shows a log and what does not")
	}
}

// live plays a trial to a live system in memory.
func live(t *testing.T, tr *Trial) (*Result, *verify.Report) {
	t.Helper()
	return liveLog(t, tr, func(stream.Log) {})
}

// liveLog is live that shows the logs to look in the end.
func liveLog(t *testing.T, tr *Trial, look func(log stream.Log)) (*Result, *verify.Report) {
	t.Helper()
	log := mem.New(mem.Options{Clock: func() int64 { return time.Now().UnixNano() }})
	defer log.Close()
	return liveOn(t, log, tr, "", look)
}

// Injection is what [NewInjection] makes of a trial, at a speed.
type Injection interface {
	Note(partition int, through int64) // what the system has learned
	Run(ctx context.Context, progress func(done int)) error
	Score(r *Result)
}

// NewInjection is set by the tests outside this package, which the injection imports.
var NewInjection func(log stream.Log, name string, tr *Trial, speed string) (Injection, error)

// liveOn does so on a log, at a speed.
func liveOn(t *testing.T, log stream.Log, tr *Trial, speed string, look func(log stream.Log)) (*Result,
	*verify.Report) {
	t.Helper()
	const name = "replay"
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := topics.Create(ctx, log, name, 1, topics.Retention{}); err != nil {
		t.Fatal(err)
	}
	source, err := modelfile.Source(tr.Model, tr.Files)
	if err != nil {
		t.Fatal(err)
	}
	in, err := NewInjection(log, name, tr, speed)
	if err != nil {
		t.Fatal(err)
	}
	stop, err := service.Start(ctx, service.SystemConfig{Log: log, Name: name, Source: source, Build: model.Epoch,
		Seed: SecretSeed(tr.Seed), MarkEvery: 20, Partitions: 1, Owned: []int{0}, Owner: "test",
		Logger: slog.New(slog.DiscardHandler), Learned: in.Note})
	if err != nil {
		t.Fatal(err)
	}
	if err := in.Run(ctx, func(int) {}); err != nil {
		t.Fatal(err)
	}
	// What Run waits for is there before anything stops.
	before, err := Summarize(ctx, log, name, "", model.Epoch)
	if err != nil {
		t.Fatal(err)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	s, err := Summarize(ctx, log, name, tr.Delays.Spec, model.Epoch)
	if err != nil {
		t.Fatal(err)
	}
	v, err := verify.Run(ctx, verify.Config{Log: log, Name: name, Seed: SecretSeed(tr.Seed), Build: model.Epoch})
	if err != nil {
		t.Fatal(err)
	}
	look(log)
	r := &Result{Rounds: s.Rounds, Pending: s.Pending, Fates: s.Fates, LateLosses: s.LateLosses, Delays: s.Delays}
	in.Score(r)
	r.NamedFates(s)
	if before.Rounds != s.Rounds {
		t.Errorf("Run waited for %d of %d rounds", before.Rounds, s.Rounds)
	}
	if got, want := v.LateLosses.Line(nil), s.LateLosses.Line(nil); got != want {
		t.Errorf("late losses as verify has them: %s\nas the summary has them: %s", got, want)
	}
	return r, v
}

// said is a report of verify for people.
func said(r *verify.Report) string {
	var b strings.Builder
	if err := r.Write(&b); err != nil {
		return err.Error()
	}
	return b.String()
}

// TestInjectAdversaries holds that outcomes come back live as they do in a backtest,
// for delays that are known only when the decision is, and that rounds which nothing
// can end any more are left waiting.
func TestInjectAdversaries(t *testing.T) {
	for _, c := range []struct {
		env, spec string
		window    string
	}{
		{"sigmoid", "burst:7", "20"},
		{"sigmoid", "head:50,30", "20"},
		{"sigmoid", "starve-best:10", "20"},
		{"sigmoid", "loss:1,15+never:0.5", "20"},
		{"sigmoid", "never-bad:0.3+reorder:5", "20"},
		{"close:0.3", "never:1", "30"},
		{"needle:0.4,0.2,0.6", "constant:500", "30"},
		{"log", "recorded", "200"},
	} {
		t.Run(c.env+" "+c.spec, func(t *testing.T) {
			t.Parallel()
			var env *Rounds
			if c.env == "log" {
				log, err := openLog(flights(t), logs.Options{Mapping: flightsMapping()})
				if err != nil {
					t.Fatal(err)
				}
				env = Head(log, 400)
			} else {
				env = environment(t, c.env, 1, 300)
			}
			// Uniform: its draws depend on ids alone, not on what it learned when.
			tr := trialOf(t, env, "uniform", c.window, c.spec)
			want, err := tr.Run(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			got, v := live(t, tr)
			if v.ExitCode() != 0 {
				t.Fatalf("the logs do not verify: exit code %d", v.ExitCode())
			}
			if got.Delays.Raw != want.Delays.Raw || *got.MeanLoss != *want.MeanLoss {
				t.Errorf("live %+v, mean loss %v\nback %+v, mean loss %v", got.Delays.Raw, *got.MeanLoss,
					want.Delays.Raw, *want.MeanLoss)
			}
			if got.Rounds+got.Pending != want.Rounds || got.Fates.rounds() != got.Rounds {
				t.Errorf("%d rounds and %d that wait, %+v", got.Rounds, got.Pending, got.Fates)
			}
			loses := strings.Contains(c.spec, "never")
			if loses != (got.Pending > 0) {
				t.Errorf("%d rounds wait", got.Pending)
			}
			if got, want := got.LateLosses.Line(nil), want.LateLosses.Line(nil); !loses && got != want {
				t.Errorf("late losses live %s\nback %s", got, want)
			}
			if !loses && got.Fates != want.Fates {
				t.Errorf("fates live %+v\nback %+v", got.Fates, want.Fates)
			}
		})
	}
}
