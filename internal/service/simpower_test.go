package service

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"hindsight/internal/check"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// power is what a simulation knows of its power failures.
type power struct {
	at     int64           // log time of the last one
	floors []floor         // of rounds that surviving logs told of
	gone   []stream.Record // rejects that were lost
	back   bool            // the clock is behind after each
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
	n := max(100, simSeeds(t)*3/10)
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

// With a clock that is behind after a power failure what was lost cannot always be
// told from log times. Nothing waits for ever even so, no number is used twice, and
// every decision has its feedback.
func TestPowerLossAndClock(t *testing.T) {
	for seed := range int64(max(40, simSeeds(t)/5)) {
		s := newSim(t, seed, planted{})
		s.power = &power{back: true}
		s.o.backwards, s.o.guesses, s.o.coarse = false, false, false
		s.run()
		s.power.floors = nil // they go by log time
		if v := newPowerCheck(s); len(s.broken) == 0 {
			for p := range s.o.partitions {
				v.decisions(p)
			}
			v.feedback()
		}
		if len(s.broken) > 0 {
			t.Fatalf("seed %d: %s", seed, strings.Join(s.broken, "\n"))
		}
	}
}

// The checker accepts rounds whose decisions are gone if a mark says so, and that only
// then.
func TestCheckerAndGaps(t *testing.T) {
	lost := 0
	for seed := range int64(60) {
		s := newSim(t, seed, planted{})
		if s.o.backwards || s.o.guesses {
			continue
		}
		cut := false
		if s.untimed(func() { s.play(); cut = s.cutDecisions() }); !cut {
			continue
		}
		r, err := check.Run(s.ctx, s.log, "m", s.o.partitions, check.Options{Seed: simKey, Rules: simRules, Unfinished: true})
		if err != nil || r.Broken > 0 {
			t.Fatalf("seed %d: %v %+v", seed, err, r)
		}
		lost += r.Lost
		s.log.Edit(s.topics.Decisions, 0, func(recs []stream.Record) []stream.Record {
			return slices.DeleteFunc(recs, func(r stream.Record) bool {
				m, err := codec.ParseDecisionMark(r.Value)
				return r.Type == codec.TypeMark && err == nil && m.GapFrom > 0
			})
		})
		if again, err := check.Run(s.ctx, s.log, "m", s.o.partitions, check.Options{Seed: simKey, Rules: simRules, Unfinished: true}); err == nil && again.Broken == 0 && r.Lost > 0 {
			t.Errorf("seed %d: a gap was accepted that nobody announced", seed)
		}
	}
	if lost < 20 {
		t.Errorf("only %d rounds were lost", lost)
	}
}

// cutDecisions takes the last decisions from the log, some of them, and lets others go on; it
// reports whether there were so many.
func (s *sim) cutDecisions() bool {
	k := int64(1 + s.rng.IntN(12))
	var offsets []int64
	s.records(s.topics.Decisions, 0, func(r *stream.Record) { offsets = append(offsets, r.Offset) })
	if len(s.broken) > 0 || int64(len(offsets)) <= k {
		return false
	}
	for _, o := range s.owners() {
		o.shut()
	}
	s.deciders, s.joiner, s.strays = make([]*simDecider, s.o.partitions), nil, nil
	s.log.DropTail(s.topics.Decisions, 0, offsets[int64(len(offsets))-k])
	s.drain()
	s.now += s.o.rules.WindowNanos + 2*int64(time.Second)
	s.users.settle()
	s.drain()
	return true
}

func runPower(t *testing.T, seed int64, plant planted) *sim {
	s := newSim(t, seed, plant)
	s.power = &power{}
	s.o.backwards, s.o.guesses, s.o.coarse = false, false, false
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
	if s.power.back {
		s.now -= s.rng.Int64N(3000 * millisecond)
	}
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
	m, err := lastMark(s.ctx, s.log, s.topics.Feedback)
	if err != nil {
		s.fatal("%v", err)
	}
	for i := range m.Positions {
		for _, n := range append(m.Positions[i].Ahead, m.Positions[i].Released) {
			see(i, n)
		}
	}
	readSnapshots(s.ctx, s.log, s.topics.Snapshots, new(codec.FeedbackMark), func(x *stored, _ error) error {
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
