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
	"hindsight/internal/testkit/daily"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// power is what a simulation does about power failures.
type power struct {
	back    bool            // the clock is behind after each
	only    []string        // topics that lose their tails; nil: all
	rejects []stream.Record // that were lost
	plant   planted
}

// TestPowerLoss runs the loop over logs that lose their tails, each its own part: the
// processes come up by themselves, nothing waits for ever, and what is gone is written
// down.
func TestPowerLoss(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector has nothing to find in one goroutine")
	}
	if *simSeed >= 0 {
		runPower(t, *simSeed)
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
					if !daily.Turn(t, seed/groups, 2) {
						continue
					}
					s := runPower(t, int64(seed))
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
	for _, k := range []string{"power losses", "gaps of rounds", "contexts announced lost", "eras",
		"lost tails of decisions",
		"lost tails of outcomes", "lost tails of rejects", "rounds without decisions", "void rejects", "lost rejects"} {
		if total[k] < n/100 {
			t.Errorf("%q happened %d times in %d runs", k, total[k], n)
		}
	}
}

// With a clock that is behind after a power failure nothing waits for ever either.
func TestPowerLossAndClock(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector has nothing to find in one goroutine")
	}
	seeds := []int64{55, 5928} // draws of lost epochs; a round that was told a stage, and then repeats an id
	for seed := range daily.Seeds(t, max(40, simSeeds(t)/5), 2) {
		seeds = append(seeds, int64(seed))
	}
	for _, seed := range seeds {
		if s := playPower(t, seed, power{back: true}); len(s.broken) > 0 {
			t.Fatalf("seed %d: %s", seed, strings.Join(s.broken, "\n"))
		}
	}
}

// The checker accepts rounds whose decisions are gone if a mark says so, and that only
// then.
func TestCheckerAndGaps(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector has nothing to find in one goroutine")
	}
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
		o := check.Options{Seed: simKey, Rules: simRules, Unfinished: true, OneClock: true, Skew: s.o.skew,
			LostTails: true, Order: writtenAs}
		r, err := check.Run(s.ctx, s.log, "m", s.o.partitions, o)
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
		again, err := check.Run(s.ctx, s.log, "m", s.o.partitions, o)
		if err == nil && again.Broken == 0 && r.Lost > 0 {
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

func runPower(t *testing.T, seed int64) *sim {
	s := playPower(t, seed, power{})
	if len(s.broken) > 0 {
		t.Errorf("seed %d breaks a promise; run it again with\n\tgo test ./internal/service -run 'TestPowerLoss$' -v "+
			"-sim.seed=%d\n%s", seed, seed, strings.Join(s.broken, "\n"))
	}
	return s
}

func playPower(t testing.TB, seed int64, p power) *sim {
	s := newSim(t, seed, p.plant)
	s.power = &p
	s.o.backwards, s.o.guesses, s.o.coarse, s.o.skew = p.back, false, false, 0
	s.run()
	s.traceFeedback()
	s.verifyPower()
	return s
}

// verifyPower checks the one promise that holds whatever was lost: each decision has one feedback, which
// follows from cuts, and nothing that users were told since is contradicted.
func (s *sim) verifyPower() {
	if len(s.broken) > 0 {
		return
	}
	o := s.checkOptions()
	o.LostTails, o.LostRejects, o.OneClock = true, s.power.rejects, !s.power.back
	r, err := check.Run(s.ctx, s.log, "m", s.o.partitions, o)
	if err != nil {
		s.fatal("%v", err)
		return
	}
	for _, v := range r.Violations {
		s.fatal("%s", v)
	}
	s.counted["gaps of rounds"] += r.Gaps
	s.counted["rounds without decisions"] += r.Lost
	s.counted["eras"] += r.Eras
	s.counted["void rejects"] += r.Void
	s.countLosses()
	s.verifyOutcomes()
	s.verifyOwners()
	s.verifyStored()
	s.verifyReplicas()
}

// verifyOutcomes checks that each outcome in the log has been counted or rejected. Where the last of several counts,
// those before it are named by nothing.
func (s *sim) verifyOutcomes() {
	if slices.ContainsFunc(s.o.rules.Named, func(o check.Named) bool { return o.Last }) {
		return
	}
	type place struct {
		partition int
		offset    int64
	}
	seen := map[place]bool{}
	s.records(s.topics.Feedback, 0, func(r *stream.Record) {
		var f codec.Feedback
		if r.Type == "" && codec.ParseFeedback(&f, append([]byte(nil), r.Value...)) == nil {
			seen[place{f.OutcomePartition, f.OutcomeOffset}] = true
			for _, c := range f.Outcomes {
				seen[place{c.Partition, c.Offset}] = true
			}
		}
	})
	reject := func(r *stream.Record) {
		if x, err := codec.ParseReject(r.Value); err == nil && x.Topic == "outcomes" {
			seen[place{x.Partition, x.Offset}] = true
		}
	}
	s.records(s.topics.Rejects, 0, reject)
	for i := range s.power.rejects {
		reject(&s.power.rejects[i])
	}
	for p := range s.o.partitions {
		s.records(s.topics.Outcomes, p, func(r *stream.Record) {
			if r.Type == "" && !seen[place{p, r.Offset}] {
				s.fatal("outcomes[%d]@%d has neither a fate nor a reject: %q", p, r.Offset, r.Value)
			}
		})
	}
}

// countLosses counts what marks say is lost.
func (s *sim) countLosses() {
	s.records(s.topics.Feedback, 0, func(r *stream.Record) {
		if m, err := codec.ParseFeedbackMark(r.Value); r.Type == codec.TypeMark && err == nil {
			for _, x := range m.LostTails {
				s.counted["lost tails of "+x.Topic]++
			}
		}
	})
	for p := range s.o.partitions {
		s.records(s.topics.Decisions, p, func(r *stream.Record) {
			if m, err := codec.ParseDecisionMark(r.Value); r.Type == codec.TypeMark && err == nil &&
				m.ContextsLost > 0 {
				s.counted["contexts announced lost"]++
			}
		})
	}
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
	s.forgetStates()
	s.users.lost()
	if served {
		s.openOutcomes()
	}
}

func (s *sim) loseTail(topic string, p int) {
	var recs []stream.Record
	s.log.Edit(topic, p, func(r []stream.Record) []stream.Record { recs = r; return r })
	k := 0
	if only := s.power.only; len(only) > 0 && !slices.Contains(only, topic) {
		return
	}
	if s.rng.IntN(3) > 0 {
		k = s.rng.IntN(min(len(recs), 25) + 1)
	}
	if k == 0 {
		return
	}
	gone := recs[len(recs)-k:]
	if topic == s.topics.Rejects {
		s.power.rejects = append(s.power.rejects, gone...)
		s.counted["lost rejects"] += k
	}
	s.trace("%s[%d] loses %d records, from %d on", topic, p, k, gone[0].Offset)
	s.log.DropTail(topic, p, gone[0].Offset)
}

// forgetStates forgets the learners that knew lost feedback.
func (s *sim) forgetStates() {
	var last, epoch int64
	s.records(s.topics.Feedback, 0, func(r *stream.Record) {
		var f codec.Feedback
		if r.Type == "" && codec.ParseFeedback(&f, r.Value) == nil {
			last = f.N
		}
		if e, err := codec.ParseEpoch(r.Value); r.Type == codec.TypeEpoch && err == nil {
			epoch = e.Epoch
		}
	})
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
	u.stored, u.filled = nil, nil
	for _, q := range u.asked {
		q.replies = nil
	}
}

// traceFeedback traces the feedback log, rejects and decisions.
func (s *sim) traceFeedback() {
	if *simSeed < 0 {
		return
	}
	s.records(s.topics.Feedback, 0, func(r *stream.Record) {
		switch r.Type {
		case codec.TypeMark:
			m, _ := codec.ParseFeedbackMark(r.Value)
			s.trace("@%d mark: n %d, cut %d, era %d %v, from %d, rejects %d, epochs %v, lost %v", r.Offset, m.N,
				m.Cut, m.Era, m.Eras, m.From, m.Rejects, m.Epochs, m.LostTails)
		case codec.TypeCut:
			var c codec.Cut
			codec.ParseCut(&c, r.Value)
			s.trace("@%d cut %d at %d: decisions %v, outcomes %v", r.Offset, c.Cut, c.Time, c.Decisions, c.Outcomes)
		case "":
			var f codec.Feedback
			codec.ParseFeedback(&f, r.Value)
			s.trace("@%d feedback %d of round %d/%d: %s %s", r.Offset, f.N, f.Partition, f.Round, f.Fate, f.Reason)
		default:
			s.trace("@%d %s", r.Offset, r.Type)
		}
	})
	s.records(s.topics.Rejects, 0, func(r *stream.Record) {
		x, _ := codec.ParseReject(r.Value)
		s.trace("rejects@%d: %s[%d]@%d of time %d is %s, by cut %d of era %d", r.Offset, x.Topic, x.Partition, x.Offset,
			x.Time, x.Reason, x.Cut, x.Era)
	})
	for p := range s.o.partitions {
		s.records(s.topics.Decisions, p, func(r *stream.Record) {
			if m, err := codec.ParseDecisionMark(r.Value); r.Type == codec.TypeMark && err == nil {
				s.trace("decisions[%d]@%d mark: %+v", p, r.Offset, m)
			}
			var d codec.Decision
			if r.Type == "" && codec.ParseDecision(&d, r.Value) == nil {
				s.trace("decisions[%d]@%d round %d of context %d, through %d", p, r.Offset, d.N, d.Source,
					d.ContextsThrough)
			}
		})
	}
}
