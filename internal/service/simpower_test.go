package service

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// power is what a simulation knows of its power failures.
type power struct {
	at     int64           // log time of the last one
	floors []floor         // of rounds that surviving logs told of
	gone   []stream.Record // rejects that were lost
}

type floor struct {
	partition int
	n, at     int64
}

// TestPowerLoss runs the loop over logs that lose their tails, each its own part: the
// processes come up by themselves, nothing waits for ever, and what is gone is written
// down.
func TestPowerLoss(t *testing.T) {
	if *simSeed >= 0 {
		runPower(t, *simSeed, planted{})
		return
	}
	const groups = 4
	n := max(300, simSeeds(t)/2)
	var mu sync.Mutex
	total := map[string]int{}
	t.Run("seeds", func(t *testing.T) {
		for g := range groups {
			t.Run(fmt.Sprint("group", g), func(t *testing.T) {
				t.Parallel()
				for seed := g; seed < n && !t.Failed(); seed += groups {
					s := runPower(t, int64(seed), planted{})
					mu.Lock()
					for k, v := range s.counted {
						total[k] += v
					}
					mu.Unlock()
				}
			})
		}
	})
	for _, k := range slices.Sorted(maps.Keys(total)) {
		t.Logf("%9d %s", total[k], k)
	}
	for _, k := range []string{"power losses", "gaps of rounds", "contexts announced lost", "outcomes announced lost", "feedback announced lost",
		"learned less again", "void snapshots", "decisions recomputed", "decisions of lost feedback", "rounds decided again", "lost rejects"} {
		if total[k] < n/100 {
			t.Errorf("%q happened %d times in %d runs", k, total[k], n)
		}
	}
}

func runPower(t *testing.T, seed int64, plant planted) *sim {
	s := newSim(t, seed, plant)
	s.power = &power{}
	s.o.backwards, s.o.guesses = false, false
	s.run()
	s.verifyPower()
	if len(s.broken) > 0 && plant == (planted{}) {
		t.Errorf("seed %d breaks a promise; run it again with\n\tgo test ./internal/service -run 'TestPowerLoss$' -v -sim.seed=%d\n%s",
			seed, seed, strings.Join(s.broken, "\n"))
	}
	return s
}

// lose kills everybody and takes the tails of the logs.
func (s *sim) lose() {
	s.counted["power losses"]++
	s.trace("POWER LOSS")
	for _, o := range s.owners() {
		o.process().kill()
	}
	served := s.outcomes != nil
	if served {
		s.outcomes.p.kill()
	}
	clear(s.deciders)
	s.joiner, s.zombies, s.outcomes, s.strays, s.later = nil, nil, nil, nil, nil
	for p := range s.o.partitions {
		s.loseTail(s.topics.Contexts, p)
		s.loseTail(s.topics.Decisions, p)
		s.loseTail(s.topics.Outcomes, p)
	}
	s.loseTail(s.topics.Feedback, 0)
	s.loseTail(s.topics.Snapshots, 0)
	s.loseTail(s.topics.Rejects, 0)
	s.power.at = s.now
	s.noteFloors()
	s.users.lost()
	if served {
		s.openOutcomes()
	}
}

func (s *sim) loseTail(topic string, p int) {
	var recs []stream.Record
	s.log.Edit(topic, p, func(r []stream.Record) []stream.Record { recs = r; return r })
	k := 0
	if s.rng.IntN(3) > 0 {
		k = s.rng.IntN(min(len(recs), 25) + 1)
	}
	if k == 0 {
		return
	}
	gone := recs[len(recs)-k:]
	if topic == s.topics.Rejects {
		s.power.gone = append(s.power.gone, gone...)
		s.counted["lost rejects"] += k
	}
	s.trace("%s[%d] loses %d records, from %d on", topic, p, k, gone[0].Offset)
	s.log.DropTail(topic, p, gone[0].Offset)
}

// noteFloors notes which rounds the logs still tell of, and forgets the learners that
// knew lost feedback.
func (s *sim) noteFloors() {
	floors := make([]int64, s.o.partitions)
	see := func(p int, n int64) { floors[p] = max(floors[p], n) }
	for p := range floors {
		s.records(s.topics.Decisions, p, func(r *stream.Record) {
			var d codec.Decision
			if r.Type == "" && codec.ParseDecision(&d, r.Value) == nil {
				see(p, d.N)
			}
			if m, err := codec.ParseDecisionMark(r.Value); r.Type == codec.TypeMark && err == nil {
				see(p, m.GapTo)
			}
		})
	}
	var last, epoch int64
	s.records(s.topics.Feedback, 0, func(r *stream.Record) {
		var f codec.Feedback
		if r.Type == "" && codec.ParseFeedback(&f, r.Value) == nil {
			see(f.Partition, f.Round)
			last = f.N
		}
		if e, err := codec.ParseEpoch(r.Value); r.Type == codec.TypeEpoch && err == nil {
			epoch = e.Epoch
		}
	})
	readSnapshots(s.ctx, s.log, s.topics, func(x *stored, _ error) error {
		for p, n := range x.state.rounds {
			see(p, n)
		}
		return nil
	})
	for p, n := range floors {
		s.power.floors = append(s.power.floors, floor{p, n, s.now})
	}
	maps.DeleteFunc(s.states, func(key int64, _ string) bool { return key>>8 > last || key&255 > epoch })
}

// lost makes the users go on after a power failure: what they were told is theirs to
// keep, but nobody else's promise.
func (u *users) lost() {
	s := u.s
	for p := range u.readers {
		if _, end, _ := s.log.Bounds(s.ctx, s.topics.Decisions, p); u.readers[p].Position() > end {
			u.readers[p], _ = s.log.Read(s.ctx, s.topics.Decisions, p, end)
		}
	}
	u.stored = nil
	for _, q := range u.asked {
		q.replies = nil
	}
}
