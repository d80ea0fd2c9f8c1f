package verify

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"hindsight/internal/join"
	"hindsight/internal/join/testkit"
	"hindsight/internal/latelosses"
	"hindsight/internal/loop"
	"hindsight/internal/testkit/daily"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

var joinSeed = flag.Int64("join.seed", -1, "play this seed only")

func joinWorlds() int {
	if os.Getenv("HINDSIGHT_LONG") != "" {
		return 6000
	}
	return 20
}

// replayLog replays what a log holds of a world.
func replayLog(t testing.TB, w *testkit.World, log stream.Log) *verification {
	t.Helper()
	v, err := tryReplay(w, log)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func tryReplay(w *testkit.World, log stream.Log) (*verification, error) {
	if w.Kind == "skew" || w.Kind == "back" {
		return replaySkewed(w, log, 300)
	}
	return replaySkewed(w, log, 0)
}

func replaySkewed(w *testkit.World, log stream.Log, skew time.Duration) (*verification, error) {
	ctx := context.Background()
	v := &verification{Config: Config{Log: log}, partitions: w.Partitions,
		late: latelosses.Outcomes{}, found: map[site]Difference{}}
	v.models = newModelReader(v)
	v.topics = join.Topics{Decisions: "d", Outcomes: "o", Feedback: "f", Rejects: "r"}
	f, err := v.openFates(ctx)
	if err == nil {
		err = v.readRejects(ctx)
	}
	f.history.Epochs, f.rules = rulesOf{w}, w.Rules
	f.log = v.handOn(&decisionCheck{v: v, feedback: &logCursor{}}, f.feedback)
	f.legal.skew = int64(skew)
	if err == nil {
		err = f.run(ctx)
	}
	f.close()
	v.settle()
	return v, err
}

// playAll plays worlds of a kind and replays their logs.
func playAll(t *testing.T, kind string, loses bool) {
	total := map[string]int64{}
	for seed := range uint64(joinWorlds()) {
		if *joinSeed >= 0 && seed != uint64(*joinSeed) || *joinSeed < 0 && !daily.Turn(t, int(seed), 4) {
			continue
		}
		w := testkit.New(t, seed, kind)
		w.Loses = loses
		w.Run(150)
		v := replayLog(t, w, w.Log)
		r := v.report
		if r.Differences > 0 {
			t.Fatalf("seed %d: %+v", seed, *r.First)
		}
		if !loses && r.ExitCode() != Identical || r.Feedback.Checked == 0 {
			t.Fatalf("seed %d: exit code %d: %+v", seed, r.ExitCode(), r)
		}
		for _, row := range r.rows() {
			total[row.name] += row.Checked
			total["too old "+row.name] += row.TooOld
		}
		total["restarts"] += int64(w.Restarts)
		complete(t, w, seed)
	}
	t.Log(total)
}

// complete checks that every decision has one feedback.
func complete(t *testing.T, w *testkit.World, seed uint64) {
	t.Helper()
	rounds := map[string]int{}
	var f codec.Feedback
	for _, r := range w.Read("f", 0) {
		if r.Type == "" && codec.ParseFeedback(&f, r.Value) == nil {
			rounds[fmt.Sprint(f.Partition, "/", f.Round)]++
		}
	}
	for round, n := range rounds {
		if n != 1 {
			t.Fatalf("seed %d: round %s has %d feedbacks", seed, round, n)
		}
	}
	for p := range w.Partitions {
		var e loop.DecisionEvent
		for _, r := range w.Read("d", p) {
			if e.Parse(r.Type, r.Value) == nil && e.GapTo == 0 && e.D.N > 0 && w.Rules(1).Window.Nanos > 0 &&
				rounds[fmt.Sprint(p, "/", e.D.N)] != 1 {
				t.Fatalf("seed %d: round %d/%d has no feedback", seed, p, e.D.N)
			}
		}
	}
}

// TestJoinWorlds plays worlds in which joiners are killed and replaced at any point. What lies in the
// logs must follow from the cuts, all cuts must be legal, and every decision has one feedback.
func TestJoinWorlds(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector has nothing to find in one goroutine")
	}
	for _, kind := range []string{"plain", "coarse", "skew", "back"} {
		t.Run(kind, func(t *testing.T) { playAll(t, kind, false) })
	}
}

// TestJoinLosses plays worlds in which logs lose their tails, too.
func TestJoinLosses(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector has nothing to find in one goroutine")
	}
	playAll(t, "plain", true)
}

// BenchmarkReplay reports rounds replayed a second.
func BenchmarkReplay(b *testing.B) {
	const rounds = 100_000
	w := testkit.Long(b, rounds)
	for b.Loop() {
		v := replayLog(b, w, w.Log)
		if r := v.report; r.ExitCode() != Identical || r.Feedback.Checked != rounds {
			b.Fatalf("%+v", r)
		}
	}
	b.ReportMetric(rounds*float64(b.N)/b.Elapsed().Seconds(), "rounds/s")
}

// TestReplayParts replays logs that end at any time, as those of a system that runs, and logs that have
// lost all that is older than some time. Neither is a difference, and of the latter something is too old.
func TestReplayParts(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine: nothing for the race detector")
	}
	total := Tally{}
	for seed := range uint64(joinWorlds() / 5) {
		w := testkit.New(t, 500+seed, "plain")
		w.Run(60)
		made := madeOf(w)
		feedback := made.all["f/0"]
		for k := range 8 {
			at := feedback[len(feedback)*(k+1)/9].Time
			r := replayLog(t, w, made.keep(func(r *stream.Record) bool { return r.Time <= at })).report
			if r.ExitCode() != Identical {
				t.Fatalf("seed %d, up to %d: %+v", seed, at, *r.First)
			}
			r = replayLog(t, w, made.keep(func(r *stream.Record) bool { return r.Time > at })).report
			if r.Differences > 0 {
				t.Fatalf("seed %d, from %d on: %+v", seed, at, *r.First)
			}
			if r.ExitCode() != TooOld && r.Feedback.Records > r.Feedback.Checked {
				t.Fatalf("seed %d, from %d on: exit code %d", seed, at, r.ExitCode())
			}
			total.Records, total.Checked = total.Records+r.Feedback.Records, total.Checked+r.Feedback.Checked
		}
	}
	if t.Logf("%+v", total); total.Checked == 0 { // ids are remembered for long
		t.Error("no log that has lost its beginning is replayed")
	}
}
