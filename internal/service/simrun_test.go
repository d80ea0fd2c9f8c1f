package service

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"hindsight/pkg/codec"
)

// TestSimulation runs the whole loop over a log that fails, with crashes, by seed.
func TestSimulation(t *testing.T) {
	if *simSeed >= 0 {
		runSeed(t, *simSeed)
		return
	}
	const groups = 8
	n := simSeeds(t)
	var mu sync.Mutex
	total := map[string]int{}
	// A joiner that was paused rejected what its successor had counted.
	for _, seed := range []int64{2004, 5906, 6309, 7560} {
		runSeed(t, seed)
	}
	t.Run("seeds", func(t *testing.T) {
		for g := range groups {
			t.Run(fmt.Sprint("group", g), func(t *testing.T) {
				t.Parallel()
				for seed := g; seed < n && !t.Failed(); seed += groups {
					counted := runSeed(t, int64(seed))
					mu.Lock()
					for k, v := range counted {
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
	// What never happened was not tested.
	for _, k := range []string{"fate observed", "fate imputed", "fate skipped", "fate withdrawn", "reject late",
		"reject duplicate",
		"reject orphan", "reject mismatch", "reject malformed", "reject contexts/malformed",
		"reject contexts/duplicate-id",
		"overflows",
		"repeats in another partition", "crashes", "replaced", "faults", "epochs", "replies", "duplicate replies",
		"snapshots", "cut snapshots",
		"minted anew", "states compared", "cuts", "skewed cuts", "switches", "shadow", "apprentice", "paused",
		"stages", "held back", "assigned", "assigned without the rest", "assigned without a propensity",
		"slots", "repeats"} {
		if total[k] < n/100 {
			t.Errorf("%q happened %d times in %d runs", k, total[k], n)
		}
	}
}

func runSeed(t *testing.T, seed int64) map[string]int {
	s := newSim(t, seed, planted{})
	s.run()
	s.verify()
	if len(s.broken) > 0 {
		t.Errorf("seed %d breaks a promise; run it again with\n\tgo test ./internal/service -run 'TestSimulation$' -v "+
			"-sim.seed=%d\n%s", seed, seed, strings.Join(s.broken, "\n"))
	}
	if *simSeed >= 0 {
		t.Logf("%+v", s.o)
		for _, k := range slices.Sorted(maps.Keys(s.counted)) {
			t.Log(k, s.counted[k])
		}
	}
	return s.counted
}

// run plays by a clock that stands still while the simulation works, so that no deadline of
// the services passes because the machine is slow.
func (s *sim) run() {
	s.untimed(s.play)
}

// untimed calls f where time goes on only when everything waits, which a simulation never does.
func (s *sim) untimed(f func()) {
	synctest.Test(s.t.(*testing.T), func(*testing.T) {
		began := time.Now()
		f()
		if took := time.Since(began); took != 0 {
			s.fatal("%v passed by the clock that deadlines go by", took)
		}
		for _, o := range s.services {
			o.Close()
		}
	})
}

// play does what the seed says, then heals everything and lets it come to an end.
func (s *sim) play() {
	if s.rng.IntN(3) == 0 {
		s.openOutcomes()
	}
	for range s.o.steps {
		if s.power != nil && s.rng.IntN(60) == 0 {
			s.lose()
		}
		s.event()
		s.answer()
		s.operate()
		if len(s.broken) > 0 {
			return
		}
	}
	s.trace("everything heals")
	s.heal = true
	s.finish()
}

// operate has an operator switch the mode now and then, and another look at it.
func (s *sim) operate() {
	if !s.o.modes || s.whim.IntN(25) > 0 || s.joiner == nil || !s.joiner.alive() || s.joiner.j.epochs.Last == nil {
		return
	}
	mode, j := codec.Mode(s.whim.IntN(int(codec.Paused)+1)), s.joiner
	epoch, err := j.j.Switch(s.ctx, mode, "whim")
	s.trace("%s is told to be %s: epoch %d, %v", j.p.name, mode, epoch, err)
	if !s.check(j.p.name, "switches", err) {
		j.shut()
		return
	}
	s.counted["switches"]++
	s.counted[mode.String()]++
}

// answer does what the deciders do in goroutines of their own.
func (s *sim) answer() {
	for len(s.later) > 0 {
		f := s.later[0]
		s.later = s.later[1:]
		f()
	}
}

// event does one thing.
func (s *sim) event() {
	switch k := s.rng.IntN(100); {
	case k < 14:
		for range 1 + s.rng.IntN(4) {
			s.users.writeContext()
		}
	case k < 20:
		s.users.ask()
	case k < 38:
		for range 1 + s.rng.IntN(3) {
			s.users.writeOutcome()
		}
	case k < 60:
		s.stepDecider(s.rng.IntN(s.o.partitions))
	case k < 76:
		s.stepJoiner()
	case k < 84:
		s.deliver()
	case k < 88 && len(s.zombies) > 0:
		s.zombies[s.rng.IntN(len(s.zombies))].step()
	case k < 90:
		s.stray(false)
	case k < 92:
		s.now += s.rng.Int64N(1500 * millisecond)
	case k < 93:
		s.replace()
	default:
		if s.rng.Float64() < s.o.crashes {
			s.crash()
		}
	}
	s.zombies = slices.DeleteFunc(s.zombies, func(z zombie) bool { return !z.alive() })
}

func (s *sim) stepDecider(p int) {
	if s.deciderOf(p) == nil {
		s.deciders[p] = s.openDecider(p)
		return
	}
	s.deciders[p].step()
}

func (s *sim) stepJoiner() {
	if s.joiner == nil || !s.joiner.alive() {
		s.joiner = s.openJoiner()
		return
	}
	s.joiner.step()
}

// owners returns all processes that live, those that were replaced too.
func (s *sim) owners() (out []zombie) {
	for _, d := range s.deciders {
		if d != nil && d.alive() {
			out = append(out, d)
		}
	}
	if s.joiner != nil && s.joiner.alive() {
		out = append(out, s.joiner)
	}
	return append(out, s.zombies...)
}

// deliver lets some acknowledgements arrive.
func (s *sim) deliver() {
	for _, o := range s.owners() {
		if s.rng.IntN(2) == 0 {
			o.process().deliver(1 + s.rng.IntN(10))
		}
	}
	if s.outcomes != nil {
		s.outcomes.p.deliver(1 + s.rng.IntN(5))
	}
}

// crash kills a process now, or at one of its next operations on the log.
func (s *sim) crash() {
	owners := s.owners()
	if len(owners) == 0 {
		return
	}
	p := owners[s.rng.IntN(len(owners))].process()
	s.counted["crashes"]++
	if s.rng.IntN(3) > 0 {
		p.fuse = 1 + s.rng.IntN(15)
		s.trace("%s will die at operation %d", p.name, p.fuse)
		return
	}
	s.trace("%s is killed", p.name)
	p.kill()
}

// replace opens a second owner while the first goes on.
func (s *sim) replace() {
	s.counted["replaced"]++
	if s.rng.IntN(2) == 0 {
		if s.joiner != nil && s.joiner.alive() {
			s.trace("%s is replaced", s.joiner.p.name)
			s.zombies = append(s.zombies, s.joiner)
		}
		s.joiner = s.openJoiner()
		return
	}
	p := s.rng.IntN(s.o.partitions)
	if d := s.deciders[p]; d != nil && d.alive() {
		s.trace("%s is replaced", d.p.name)
		s.zombies = append(s.zombies, d)
	}
	s.deciders[p] = s.openDecider(p)
}

// finish ends the life of those that were replaced, lets the others do all that is
// to do, and then again after every window has passed.
func (s *sim) finish() {
	for _, z := range s.zombies {
		z.step() // it finds out, or is stopped
		z.shut()
	}
	for _, o := range s.owners() {
		o.process().fuse = 0
	}
	s.zombies = nil
	s.stray(true)
	s.users.quiet = true
	for range 3 {
		if s.drain(); len(s.broken) > 0 {
			return
		}
		s.now += s.o.rules.WindowNanos + s.o.skew + 2*int64(time.Second)
		for p := range s.o.partitions {
			for range min(s.o.rules.WindowRounds, 25) + 1 {
				s.users.serial++
				id := fmt.Sprintf("end%d", s.users.serial)
				s.users.append(s.topics.Contexts, p, contextRecord(id, s.users.context(id)))
			}
		}
	}
	s.drain()
	s.now += s.o.rules.WindowNanos + s.o.skew + 2*int64(time.Second)
	s.users.settle()
	s.drain()
}

// drain steps everybody until nothing is left to do.
func (s *sim) drain() {
	for quiet, n := 0, 0; quiet < 3; n++ {
		if n > 5000 {
			s.fatal("it does not come to rest")
			return
		}
		busy := false
		for p := range s.o.partitions {
			if s.deciderOf(p) == nil {
				s.deciders[p] = s.openDecider(p)
				busy = true
				continue
			}
			d := s.deciders[p]
			d.p.deliver(1 << 20)
			b1, err1 := d.d.StepFeedback(s.ctx, 0)
			b2, err2 := d.d.StepContexts(s.ctx, 100)
			if !s.check(d.p.name, "drains", err1) || !s.check(d.p.name, "drains", err2) {
				d.shut()
				busy = true
				continue
			}
			d.remember()
			s.check(d.p.name, "snapshot", d.d.WriteSnapshots(s.ctx))
			busy = busy || b1 || b2
		}
		busy = s.drainJoiner() || busy
		if s.outcomes != nil {
			s.outcomes.p.deliver(1 << 20)
		}
		s.answer()
		if quiet++; busy {
			quiet = 0
		}
		if len(s.broken) > 0 {
			return
		}
	}
}

func (s *sim) drainJoiner() (busy bool) {
	if s.joiner == nil || !s.joiner.alive() {
		s.joiner = s.openJoiner()
		return true
	}
	j := s.joiner
	j.p.deliver(1 << 20)
	n := j.j.Heart().LastN()
	if !s.check(j.p.name, "ticks", j.j.Tick(s.ctx, time.Unix(0, s.now))) {
		j.shut()
		return true
	}
	busy, err := j.j.Step(s.ctx)
	j.p.deliver(1 << 20)
	if !s.check(j.p.name, "drains", err) {
		j.shut()
		return true
	}
	return busy || j.j.Heart().LastN() > n
}
