package verify

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"hindsight/internal/join/testkit"
	"hindsight/internal/loop"
	"hindsight/pkg/codec"
)

const uncutWorlds = "../testkit/landed/testdata/uncut"

// eachUncut calls f for each recorded world of a joiner that logged no cuts: it stopped, or crashed. With those
// called upgraded a build had gone on whose mark of era 1 stands where that joiner had stopped.
func eachUncut(t *testing.T, f func(t *testing.T, path string)) {
	paths, err := filepath.Glob(filepath.Join(uncutWorlds, "*.json.gz"))
	if err != nil || len(paths) != 31 {
		t.Fatalf("recorded worlds %v: %v", paths, err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) { f(t, path) })
	}
}

// TestUncutStopped holds that behind a joiner that logged no cuts and stopped, rounds that wait have of
// their outcomes what they had. Of several partitions a restart knows the order of log time only, and where
// a clock went back it tells log time anew.
func TestUncutStopped(t *testing.T) {
	rest := 0
	eachUncut(t, func(t *testing.T, path string) {
		w := testkit.Load(t, path, 0)
		heart := w.Open().Heart()
		defer w.Core.Close()
		if len(w.Rest) == 0 || w.Kind == "back" {
			return // it crashed, or a clock went back
		}
		before := heart.LastN()
		w.Settle()
		if err := heart.Take(&codec.Cut{Cut: heart.LastCut() + 1, Time: loop.End}, nil); err != nil {
			t.Fatal(err)
		}
		var ready loop.Ready
		heart.Ready(&ready)
		want, got := make([]string, w.Partitions), make([]string, w.Partitions)
		for _, raw := range w.Rest {
			var f codec.Feedback
			if err := codec.ParseFeedback(&f, raw); err != nil {
				t.Fatal(err)
			}
			want[f.Partition] += unnumbered(f)
		}
		for _, r := range w.Read("f", 0) {
			var f codec.Feedback
			if r.Type == "" && codec.ParseFeedback(&f, r.Value) == nil && f.N > before {
				got[f.Partition] += unnumbered(f)
			}
		}
		for _, f := range ready.Feedback {
			got[f.Partition] += unnumbered(f)
		}
		if rest += len(w.Rest); !slices.Equal(want, got) {
			t.Fatalf("what waits has\n%s, and had\n%s", got, want)
		}
	})
	if rest < 50 {
		t.Errorf("only %d rounds wait", rest)
	}
}

func unnumbered(f codec.Feedback) string {
	f.N = 0
	return fmt.Sprintf("%+v\n", f)
}

// TestUncut plays on where a joiner that logged no cuts stopped, or crashed. What the joiners behind it
// write follows from their cuts, and every decision has one feedback.
func TestUncut(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector has nothing to find in one goroutine")
	}
	eachUncut(t, func(t *testing.T, path string) {
		for seed := range uint64(max(1, joinWorlds()/20)) {
			w := testkit.Load(t, path, seed)
			w.Run(60)
			r := replayLog(t, w, w.Log).report
			if r.First != nil || r.Feedback.Records > 0 && r.Feedback.Checked == 0 || r.Marks.TooOld == 0 {
				t.Fatalf("seed %d: %+v, first %+v", seed, r, r.First)
			}
			complete(t, w, seed)
			counted := map[loop.Place]bool{}
			for _, r := range w.Read("f", 0) {
				m, err := codec.ParseFeedbackMark(r.Value)
				if r.Type == codec.TypeMark && err == nil && m.Era > 0 && m.Eras[len(m.Eras)-1].Era != m.Era {
					t.Fatalf("seed %d: a mark of era %d knows of %+v", seed, m.Era, m.Eras)
				}
				var f codec.Feedback
				if r.Type == "" && codec.ParseFeedback(&f, r.Value) == nil && f.OutcomeOffset >= 0 {
					counted[loop.Place{Partition: f.OutcomePartition, Offset: f.OutcomeOffset}] = true
				}
			}
			for _, r := range w.Read("r", 0) {
				if x, err := codec.ParseReject(r.Value); err == nil && x.Topic == "outcomes" &&
					counted[loop.Place{Partition: x.Partition, Offset: x.Offset}] {
					t.Fatalf("seed %d: an outcome that counts is rejected: %+v", seed, x)
				}
			}
		}
	})
}

// TestUncutLosses plays such worlds in which logs lose their tails as well.
func TestUncutLosses(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector has nothing to find in one goroutine")
	}
	eachUncut(t, func(t *testing.T, path string) {
		for seed := range uint64(max(1, joinWorlds()/20)) {
			w := testkit.Load(t, path, seed)
			if w.Loses = true; seed%3 == 0 {
				w.Lose()
			}
			w.Run(60)
			v := replayLog(t, w, w.Log)
			for at := range v.found {
				if !w.LostFeedback || at.topic != "r" && at.field != "rejects" {
					t.Fatalf("seed %d: %+v, first %+v", seed, at, *v.report.First)
				}
			}
			complete(t, w, seed)
		}
	})
}
