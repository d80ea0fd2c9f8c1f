package service

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"hindsight/internal/check"
	"hindsight/internal/follow"
	"hindsight/internal/front"
	"hindsight/internal/join"
	"hindsight/internal/loop"
	_ "hindsight/internal/testkit/roomy"
	"hindsight/internal/watch"
	"hindsight/pkg/codec"
	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/mem"
)

var simSeed = flag.Int64("sim.seed", -1, "run one simulation, with a trace of events under -v")

// simOptions say what a simulation is like; they follow from its seed.
type simOptions struct {
	partitions int
	steps      int
	rules      check.Rules
	markEvery  int
	snapshots  int64
	pending    int
	delay      int     // decisions until an outcome, about
	faults     float64 // share of appends that fail
	crashes    float64 // share of the moments for a crash at which there is one
	backwards  bool    // the log's clock goes back now and then
	guesses    bool    // users write outcomes before the decisions
	coarse     bool    // log times are whole milliseconds, as Kafka's are: many are equal
	modes      bool    // operators switch them
	skew       int64   // by which the clocks of partitions differ at most, ns
	encoding   codec.Encoding
}

const millisecond = int64(time.Millisecond)

func optionsOf(rng *rand.Rand) simOptions {
	o := simOptions{partitions: 1, steps: 150 + rng.IntN(150), markEvery: 1 + rng.IntN(12),
		snapshots: int64(rng.IntN(12)), pending: 1 << 20,
		delay: 1 + rng.IntN(12), rules: check.Rules{MaxActions: 8, Max: 1, Impute: rng.IntN(2) == 0,
			DefaultLoss: .75}}
	if k := rng.IntN(5); k == 0 {
		o.partitions = 2 + rng.IntN(2)
	}
	if rng.IntN(2) == 0 {
		o.rules.WindowRounds = 1 + rng.Int64N(20)
	} else {
		o.rules.WindowNanos = 1 + rng.Int64N(2000)*millisecond
	}
	if rng.IntN(6) == 0 {
		o.pending = 1 + rng.IntN(10)
	}
	if rng.IntN(4) > 0 {
		o.faults = rng.Float64() * .06
	}
	if rng.IntN(6) > 0 {
		o.crashes = rng.Float64()
	}
	switch rng.IntN(10) {
	case 0:
		o.backwards = true
	case 1:
		o.guesses = true
	}
	o.rules.Early = o.markEvery%2 == 0
	return o
}

// sim is one simulation: everything happens in one goroutine, in an order that
// follows from the seed.
type sim struct {
	*wire
	t      testing.TB
	ctx    context.Context
	seed   int64
	o      simOptions
	topics join.Topics
	now    int64 // the log's clock, ns
	ahead  int64 // by how much that of the partition is ahead which is written to
	heal   bool
	users  *users

	deciders []*simDecider // the last owner of each partition, nil if it is down
	joiner   *simJoiner
	zombies  []zombie
	outcomes *simOutcomes
	services []*front.Outcomes
	version  int64
	number   int            // of processes
	metrics  *watch.Metrics // of all of them: to make them takes longer than to open a process
	whim     *rand.Rand     // of the operators
	later    []func()

	power   *power           // nil: it never fails
	states  map[int64]string // learner after feedback N → SHA-256
	broken  []string
	counted map[string]int
}

// zombie is an owner that another one has replaced and that does not know it.
type zombie interface {
	step()
	alive() bool
	process() *process
	shut()
}

func newSim(t testing.TB, seed int64, plant planted) *sim {
	rng := rand.New(rand.NewPCG(uint64(seed), 0x9e3779b97f4a7c15))
	s := &sim{t: t, ctx: context.Background(), seed: seed, o: optionsOf(rng), topics: join.TopicsOf("m"),
		now: 1e15, version: 1, states: map[int64]string{}, counted: map[string]int{}, metrics: watch.NewMetrics(nil,
			nil)}
	s.o.coarsen(seed)
	s.o.skews(seed)
	s.o.names(seed)
	s.o.hurries(seed)
	s.o.sticks(seed)
	if seed%4 == 2 {
		s.o.encoding = codec.JSON
	}
	// not of rng: other seeds stay what they were
	s.o.modes, s.whim = seed%3 == 1, rand.New(rand.NewPCG(uint64(seed), 3))
	s.wire = &wire{rng: rng, late: rng.Float64() * .5, prompt: rng.Float64() * .5, fatal: s.fatal, plant: plant,
		reached: [2]map[int]int64{{}, {}}}
	s.deciders = make([]*simDecider, s.o.partitions)
	s.log = mem.New(mem.Options{Clock: s.clock, FirstOffset: rng.Int64N(3), Step: 1 + rng.Int64N(3),
		MaxBatch: 1 + rng.IntN(40), StrictBytes: rng.IntN(2) == 0, OnAppend: s.fault})
	for _, topic := range []string{s.topics.Contexts, s.topics.Decisions, s.topics.Outcomes} {
		s.log.Create(s.ctx, topic, s.o.partitions, stream.TopicOptions{})
	}
	for _, topic := range []string{s.topics.Feedback, s.topics.Snapshots, s.topics.Rejects} {
		s.log.Create(s.ctx, topic, 1, stream.TopicOptions{Trimmable: topic == s.topics.Snapshots})
	}
	s.users = newUsers(s)
	return s
}

func (s *sim) fatal(format string, args ...any) {
	if len(s.broken) < 20 {
		s.broken = append(s.broken, fmt.Sprintf(format, args...))
	}
	s.trace("BROKEN: "+format, args...)
}

// trace tells what happens, when one seed is run under -v.
func (s *sim) trace(format string, args ...any) {
	if *simSeed >= 0 && testing.Verbose() {
		s.t.Logf("%8.3f ms  %s", float64(s.now-1e15)/1e6, fmt.Sprintf(format, args...))
	}
}

func (s *sim) fault(topic string, partition int, r *stream.Record) mem.Fault {
	s.ahead = s.aheadOf(topic, partition)
	if s.heal || s.rng.Float64() >= s.o.faults {
		return mem.None
	}
	f := mem.Fault(1 + s.rng.IntN(3))
	s.trace("append to %s[%d]: fault %d", topic, partition, f)
	s.counted["faults"]++
	return f
}

var simKey = []byte("secret")

// simModel is the model file of the simulation: rules as JSON.
func simModel(r check.Rules, version int64) []byte {
	b, _ := json.Marshal(struct {
		check.Rules
		Version int64
	}{r, version})
	return append(b, '\n')
}

func simRules(e *codec.Epoch) (r check.Rules, err error) {
	return r, json.Unmarshal(e.Model, &r)
}

// build makes the model of an epoch, with the planted faults.
func (s *sim) build(rec *codec.Epoch, _ map[string][]byte) (loop.Epoch, error) {
	r, err := simRules(rec)
	if err != nil {
		return loop.Epoch{}, err
	}
	reg, err := oracle.NewLinear(oracle.LinearOptions{Beta: .5, Lambda: 1, MaxFeatures: 8})
	if err != nil {
		return loop.Epoch{}, err
	}
	schedule, err := learner.NewSchedule("balanced", reg)
	if err != nil {
		return loop.Epoch{}, err
	}
	rules := &loop.Rules{MaxActions: r.MaxActions, Range: loop.Range{Min: r.Min, Max: r.Max, Clip: r.Clip},
		Window: loop.Window{Rounds: r.WindowRounds, Nanos: r.WindowNanos}, Impute: r.Impute, DefaultLoss: r.DefaultLoss,
		Arrival: r.Arrival || s.plant.arrival, Early: r.Early, Mode: rec.Mode, Sticky: r.Sticky,
		Candidates: []loop.Candidate{{Kind: loop.BaselineCandidate}, {Kind: loop.LearnerCandidate}}, HoldOut: .2}
	if s.plant.window && r.WindowRounds > 0 {
		rules.Window.Rounds++
	} else if s.plant.window {
		rules.Window.Nanos++
	}
	if s.plant.sticky {
		rules.Sticky *= 3
	}
	if s.plant.silence {
		rules.DefaultLoss = .5
	}
	if r.Named != nil {
		l, err := s.nameOutcomes(&r, rules)
		return loop.Epoch{Number: rec.Epoch, Rules: rules, Learner: l}, err
	}
	l := learner.NewDAFA(reg, schedule)
	if s.seed%11 == 5 && !rules.Arrival && !rules.Early && r.Soon == nil && r.Sticky == 0 {
		l, err = heldBack(rules)
	}
	if r.Soon != nil {
		fast, err := oracle.NewLinear(oracle.LinearOptions{Beta: .5, Lambda: 1, MaxFeatures: 8})
		if err != nil {
			return loop.Epoch{}, err
		}
		rules.Provisional = s.soonRules(&r)
		l.Early(fast)
	}
	return loop.Epoch{Number: rec.Epoch, Rules: rules, Learner: l}, err
}

// heldBack makes a learner that a guard holds back now and then.
func heldBack(rules *loop.Rules) (*learner.DAFA, error) {
	rules.Guard = loop.GuardRules{Alpha: .5, LoseAtMost: .5}
	reg, err := oracle.NewFrozen(oracle.FrozenOptions{Actions: actionNames,
		Features: []oracle.FeatureSpec{{Name: "x", Lo: 0, Hi: 1}, {Name: "y", Lo: 0, Hi: 1}}})
	return learner.NewDAFA(reg, learner.Anytime{C: learner.Balanced}), err
}

// check records what a step returned, and reports whether its owner lives on.
func (s *sim) check(who, what string, err error) bool {
	if err == nil {
		return true
	}
	s.trace("%s: %s: %v", who, what, err)
	for _, ok := range []error{errKilled, stream.ErrUnknown, stream.ErrFull, stream.ErrFenced, stream.ErrClosed} {
		if errors.Is(err, ok) {
			return false
		}
	}
	if s.power == nil || !errors.Is(err, stream.ErrUnavailable) && !errors.Is(err, follow.ErrVoid) {
		s.fatal("%s: %s: %v", who, what, err)
	}
	return false
}

func (s *sim) newProcess(role string) *process {
	s.number++
	p := &process{w: s.wire, name: fmt.Sprintf("%s-%d", role, s.number)}
	if !s.heal && s.rng.Float64() < .3*s.o.crashes {
		p.fuse = 1 + s.rng.IntN(25) // it dies while it recovers, or soon after
	}
	return p
}

// simDecider is a decider's process.
type simDecider struct {
	s *sim
	p *process
	d *Decider
}

func (s *sim) openDecider(partition int) *simDecider {
	w := &simDecider{s: s, p: s.newProcess(fmt.Sprintf("decider%d", partition))}
	cfg := SystemConfig{Log: simLog{w.p}, Name: "m", Build: s.build, Seed: simKey, Partition: partition,
		Partitions: s.o.partitions, Encoding: s.o.encoding,
		Dedup: 1000, MaxInFlight: 1 + s.rng.IntN(20), Owner: w.p.name, Logger: slog.New(slog.DiscardHandler),
		Metrics: s.metrics}
	if partition == 0 {
		cfg.SnapshotEvery = s.o.snapshots
	}
	if s.plant.forget {
		cfg.Dedup = 1
	}
	if s.plant.seed {
		cfg.Seed = []byte("other")
	}
	var err error
	w.d, err = OpenDecider(s.ctx, cfg)
	if !s.check(w.p.name, "open", err) {
		w.p.kill()
		return nil
	}
	w.d.spawn = func(f func()) { s.later = append(s.later, f) }
	if partition%2 == 0 { // of the others repeats are answered from memory
		w.d.recent.forget()
	}
	w.d.follower.ChunkBytes = 200
	s.trace("%s opens decisions[%d]: round %d is next, learned through %d", w.p.name, partition, w.d.heart.Next(),
		w.d.follower.Replica().LearnedThrough())
	w.remember()
	return w
}

// remember notes the learner after the feedback that it learned.
func (w *simDecider) remember() {
	r := w.d.follower.Replica()
	if r.Epoch() == nil {
		return
	}
	b, err := r.Epoch().Learner.AppendBinary(nil)
	if err != nil {
		w.s.fatal("%v", err)
	}
	sum := fmt.Sprintf("%d/%x", r.Epoch().Number, sha256.Sum256(b))
	// An epoch begins between two feedbacks: both states are right there.
	key := r.LearnedThrough()<<8 | r.Epoch().Number
	if was, ok := w.s.states[key]; ok && was != sum {
		w.s.fatal("%s: two replicas differ after feedback %d", w.p.name, r.LearnedThrough())
	}
	w.s.states[key] = sum
}

func (w *simDecider) alive() bool       { return !w.p.dead && !w.d.closed && w.d.out != nil }
func (w *simDecider) process() *process { return w.p }

// step does one thing that a decider does.
func (w *simDecider) step() {
	var err error
	what := ""
	switch w.s.rng.IntN(8) {
	case 0, 1, 2:
		what = "learns"
		_, err = w.d.StepFeedback(w.s.ctx, 0)
		if err == nil {
			w.remember()
		}
	case 3:
		what = "writes snapshots"
		// Like Run it goes on without the snapshot.
		if e := w.d.WriteSnapshots(w.s.ctx); e != nil && !w.p.dead {
			w.s.check(w.p.name, what, e)
		}
	default:
		what = "decides"
		_, err = w.d.StepContexts(w.s.ctx, 1+w.s.rng.IntN(6))
	}
	if !w.s.check(w.p.name, what, err) {
		w.shut()
	}
}

// shut closes a decider that failed, as its supervisor does.
func (w *simDecider) shut() {
	if !w.p.dead {
		w.d.Close()
	}
	w.p.kill()
}

func (s *sim) deciderOf(partition int) *simDecider {
	if w := s.deciders[partition]; w != nil && !w.p.dead {
		return w
	}
	return nil
}

// simJoiner is a joiner's process.
type simJoiner struct {
	s *sim
	p *process
	j *Joiner
}

func (s *sim) openJoiner() *simJoiner {
	w := &simJoiner{s: s, p: s.newProcess("joiner")}
	if !s.heal && s.rng.IntN(25) == 0 {
		s.version++
	}
	var err error
	w.j, err = OpenJoiner(s.ctx, SystemConfig{Log: simLog{w.p}, Source: &follow.Source{Name: "m", Version: s.version,
		Model: simModel(ofVersion(s.o.rules, s.version), s.version)},
		Build: s.build, Seed: simKey, Partitions: s.o.partitions, Encoding: s.o.encoding, MaxPending: s.o.pending,
		Dedup:     1000,
		MarkEvery: s.o.markEvery, Owner: w.p.name, Logger: slog.New(slog.DiscardHandler), Metrics: s.metrics})
	if !s.check(w.p.name, "open", err) {
		w.p.kill()
		return nil
	}
	s.trace("%s opens feedback: the last is %d", w.p.name, w.j.Heart().LastN())
	w.p.cuts = true
	return w
}

func (w *simJoiner) alive() bool       { return !w.p.dead }
func (w *simJoiner) process() *process { return w.p }

func (w *simJoiner) step() {
	var err error
	what := "steps"
	if w.s.rng.IntN(8) == 0 {
		what = "ticks"
		err = w.j.Tick(w.s.ctx, time.Unix(0, w.s.now))
	} else {
		w.limit()
		_, err = w.j.Step(w.s.ctx)
	}
	if !w.s.check(w.p.name, what, err) {
		w.shut()
	}
}

func (w *simJoiner) shut() {
	if !w.p.dead {
		w.j.Close()
	}
	w.p.kill()
}

// simOutcomes is the process of an outcome service.
type simOutcomes struct {
	p *process
	s *front.Outcomes
}

func (s *sim) openOutcomes() {
	p := &process{w: s.wire, name: "outcomes"}
	svc, err := front.NewServer(front.Config{Bus: s.log, Name: "m", Partitions: s.o.partitions}).ServeOutcomes(
		s.ctx, simLog{p})
	if err != nil {
		s.fatal("%v", err)
		return
	}
	s.outcomes, s.services = &simOutcomes{p, svc}, append(s.services, svc)
}

func simSeeds(t *testing.T) int {
	if n, err := strconv.Atoi(os.Getenv("HINDSIGHT_SEEDS")); err == nil {
		return n
	}
	if os.Getenv("HINDSIGHT_LONG") != "" {
		return 20_000
	}
	if testing.Short() {
		return 24
	}
	return 500
}
