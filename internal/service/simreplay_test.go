package service_test

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"hindsight/internal/service"
	"hindsight/internal/testkit/daily"
	"hindsight/internal/verify"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/mem"
)

// TestSimulationVerifies has the replayer recompute what simulations left: logs with
// crashes, takeovers, early outcomes and equal log times are identical to what follows
// from them.
func TestSimulationVerifies(t *testing.T) {
	const groups = 4
	n := 120
	if seeds, err := strconv.Atoi(os.Getenv("HINDSIGHT_SEEDS")); err == nil {
		n = seeds
	} else if testing.Short() {
		n = 8
	}
	for g := range groups {
		t.Run(fmt.Sprint("group", g), func(t *testing.T) {
			t.Parallel()
			played, equal, identical := 0, 0, 0
			for seed := g; seed < n && !t.Failed(); seed += groups {
				if !testing.Short() && !daily.Turn(t, seed/groups, 2) {
					continue
				}
				played++
				s := service.Simulate(t, int64(seed))
				if s.Equal {
					equal++
				}
				r, err := verified(t, s)
				if err != nil || r.Differences > 0 {
					t.Errorf("seed %d: %v, %+v", seed, err, r)
				} else if r.ExitCode() == verify.Identical {
					identical++ // the others begin at offset 2, as after retention
				}
			}
			if !t.Failed() && (equal < played/8 || identical < played/3) {
				t.Errorf("of %d logs only %d had equal log times, only %d were checked from their beginning", played,
					equal, identical)
			}
		})
	}
}

func verified(t *testing.T, s *service.Simulated) (*verify.Report, error) {
	skew := 10 * time.Second
	if s.Clock {
		skew = 0
	}
	return verify.Run(t.Context(), verify.Config{Log: s.Log, Name: s.Name, Seed: s.Seed, Build: s.Build, Dedup: s.Dedup,
		Skew: skew})
}

// powerTopics are those that lose their tails: those of HINDSIGHT_POWER, else all.
func powerTopics() []string {
	if only := os.Getenv("HINDSIGHT_POWER"); only != "" {
		return strings.Split(only, ",")
	}
	return nil
}

// TestPowerLossVerifies has the replayer recompute what power losses left: what is gone is too old, and the
// rest is identical.
func TestPowerLossVerifies(t *testing.T) {
	n := 60
	if seeds, err := strconv.Atoi(os.Getenv("HINDSIGHT_SEEDS")); err == nil {
		n = seeds
	} else if testing.Short() {
		n = 3
	}
	codes := map[int]int{}
	seeds := []int64{194, 512, 839, 942, 1151, 1733} // rejects of which only marks tell
	for seed := range daily.Seeds(t, n, 2) {
		seeds = append(seeds, int64(seed))
	}
	for _, seed := range seeds {
		r, err := verified(t, service.SimulatePower(t, seed, powerTopics()))
		if err != nil || r.Differences > 0 {
			t.Errorf("seed %d: %v, %+v", seed, err, r.First)
		}
		codes[r.ExitCode()]++
	}
	t.Log("exit codes", codes)
}

// TestPowerLossMissesReject drops the reject of a context from a log that power losses have cut: that is a
// difference unless a mark says that it is lost.
func TestPowerLossMissesReject(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector has nothing to find in one goroutine")
	}
	n := 60
	if seeds, err := strconv.Atoi(os.Getenv("HINDSIGHT_SEEDS")); err == nil {
		n = seeds
	}
	played, dropped, announced := 0, 0, 0
	for seed := range daily.Seeds(t, n, 2) {
		played++
		s := service.SimulatePower(t, int64(seed), nil)
		log := s.Log.(*mem.Log)
		ranges, decided, told := lostRejects(t, s)
		announced += told
		for _, x := range uniqueRejects(t, s) {
			if decided[[2]int64{int64(x.Partition), x.Offset}] || slices.ContainsFunc(ranges[x.Partition],
				func(r [2]int64) bool { return r[0] <= x.Offset && x.Offset < r[1] }) {
				continue
			}
			var all []stream.Record
			edit(t, log, func(recs []stream.Record) []stream.Record {
				all = recs
				return slices.DeleteFunc(slices.Clone(recs), func(r stream.Record) bool {
					y, err := codec.ParseReject(r.Value)
					return err == nil && y.Topic == x.Topic && y.Partition == x.Partition && y.Offset == x.Offset
				})
			})
			r, err := verified(t, s)
			if err != nil || r.Differences == 0 || r.First.Topic != "m.contexts" || r.First.Offset != x.Offset {
				t.Errorf("seed %d: the reject of contexts[%d]@%d is missing: %v, %+v", seed, x.Partition, x.Offset,
					err, r.First)
			}
			edit(t, log, func([]stream.Record) []stream.Record { return all })
			dropped++
			break
		}
	}
	t.Logf("%d rejects were dropped, %d marks tell of lost ones", dropped, announced)
	if dropped < played/4 || announced < played/40 {
		t.Errorf("of %d runs %d rejects were dropped, %d marks tell of lost ones", played, dropped, announced)
	}
}

func edit(t *testing.T, log *mem.Log, f func([]stream.Record) []stream.Record) {
	t.Helper()
	if err := log.Edit("m.rejects", 0, f); err != nil {
		t.Fatal(err)
	}
}

// lostRejects returns the contexts that marks say are lost, or their rejects, or that may wait since no decision or
// mark has passed them, by partition, and how many marks tell of rejects; and the contexts that were decided.
func lostRejects(t *testing.T, s *service.Simulated) (ranges map[int][][2]int64, decided map[[2]int64]bool, told int) {
	ranges, decided = map[int][][2]int64{}, map[[2]int64]bool{}
	parts, err := s.Log.Partitions(t.Context(), "m.decisions")
	if err != nil {
		t.Fatal(err)
	}
	for p := range parts {
		passed := int64(0)
		err := stream.Scan(t.Context(), s.Log, "m.decisions", p, stream.Earliest, math.MaxInt64,
			func(r *stream.Record) error {
				var d codec.Decision
				if r.Type == "" && codec.ParseDecision(&d, r.Value) == nil {
					decided[[2]int64{int64(p), d.Source}] = true
					passed = max(passed, d.ContextsThrough)
				}
				m, err := codec.ParseDecisionMark(r.Value)
				if r.Type == codec.TypeMark && err == nil {
					ranges[p] = append(ranges[p], [2]int64{m.RejectsFrom, m.RejectsTo}, [2]int64{m.ContextsThrough,
						m.ContextsLost})
					told += min(1, int(m.RejectsTo))
					passed = max(passed, m.ContextsThrough)
				}
				return nil
			})
		ranges[p] = append(ranges[p], [2]int64{passed, math.MaxInt64})
		if err != nil {
			t.Fatal(err)
		}
	}
	return ranges, decided, told
}

// uniqueRejects returns the rejects of contexts that are stored once, of records that the log still holds. It
// returns none of logs that begin as if retention had dropped records, or would without it.
func uniqueRejects(t *testing.T, s *service.Simulated) (unique []codec.Reject) {
	var all []codec.Reject
	n := map[string]int{}
	if first, _, err := s.Log.Bounds(t.Context(), "m.rejects", 0); err != nil || first > 1 {
		return nil
	}
	key := func(x *codec.Reject) string { return fmt.Sprint(x.Topic, x.Partition, x.Offset) }
	err := stream.Scan(t.Context(), s.Log, "m.rejects", 0, stream.Earliest, math.MaxInt64,
		func(r *stream.Record) error {
			x, err := codec.ParseReject(r.Value)
			if err == nil && r.Type == "" {
				all = append(all, x)
				n[key(&x)]++
			}
			return nil
		})
	if err != nil || len(all) == 0 {
		return nil
	}
	for _, x := range all[1:] {
		if x.Topic != "contexts" || n[key(&x)] > 1 || key(&x) == key(&all[0]) {
			continue
		}
		err := stream.Scan(t.Context(), s.Log, "m.contexts", x.Partition, x.Offset, x.Offset+1,
			func(r *stream.Record) error {
				if r.Time == x.Time {
					unique = append(unique, x)
				}
				return nil
			})
		if err != nil {
			t.Fatal(err)
		}
	}
	return unique
}
