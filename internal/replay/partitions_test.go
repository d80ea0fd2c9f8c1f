package replay

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"hindsight/internal/delay"
	"hindsight/internal/latelosses"
	"hindsight/internal/loop"
	"hindsight/internal/model"
	"hindsight/internal/testkit/daily"
	"hindsight/pkg/codec"
)

// parted is one joiner and as many deciders as partitions, each with a copy of the one
// learner that follows the feedback log on its own, a few records behind the others:
// the heart as the shells drive it, one event after the other.
type parted struct {
	match    *Match
	ep       func() loop.Epoch
	rng      *rand.Rand
	joiner   *loop.Joiner
	copies   []*loop.Replica
	deciders []*loop.Decider
	read     []int    // feedbacks that each has learned
	feedback [][]byte // the log
	apart    bool     // planted: each learns from its own partition only
	offset   []int64
	outcomes []int64
	last     []int64 // round of the last feedback, by partition

	dec   codec.Decision
	out   codec.Outcome
	fb    codec.Feedback
	ready loop.Ready
}

// newParted is a system of so many partitions that plays an environment of a seed, with
// a window of so many rounds of all partitions together.
func newParted(t testing.TB, partitions int, seed uint64, rounds, window int, spec string) *parted {
	env := environment(t, "sigmoid", seed, rounds)
	m, files := ModelFor(env, "replay", model.Learner{Kind: model.DAFA},
		loop.Window{Rounds: int64(window / partitions)})
	p := &parted{rng: rand.New(rand.NewPCG(seed, uint64(partitions))), offset: make([]int64, partitions),
		outcomes: make([]int64, partitions), last: make([]int64, partitions), read: make([]int, partitions)}
	p.ep = func() loop.Epoch {
		l, err := m.Build(files)
		if err != nil {
			t.Fatal(err)
		}
		return loop.Epoch{Number: 1, Rules: m.Rules(), Learner: l}
	}
	rules := m.Rules()
	p.match = NewMatch(env, delays(t, spec, seed), rules.Range)
	p.joiner = loop.NewJoiner(partitions, Boundless(rounds), 1, func(int64) *loop.Rules { return rules })
	for i := range partitions {
		p.copies = append(p.copies, loop.NewReplica())
		p.copies[i].Begin(p.ep())
		p.deciders = append(p.deciders, loop.NewDecider(p.copies[i], SecretSeed(seed), "replay", i, rounds+1))
	}
	return p
}

// lane returns the partition of a round.
func (p *parted) lane(t int) int {
	return loop.PartitionOf([]byte(p.match.rounds.ID(t)), len(p.deciders))
}

// learn lets a decider follow the log to before an index.
func (p *parted) learn(t testing.TB, i, end int) {
	for ; p.read[i] < end; p.read[i]++ {
		if err := codec.ParseFeedback(&p.fb, p.feedback[p.read[i]]); err != nil {
			t.Fatal(err)
		}
		if p.apart && p.fb.Partition != i {
			p.fb.Fate, p.fb.Loss = codec.WithdrawnRound, 0
		}
		if err := p.copies[i].Learn(&p.fb, nil); err != nil {
			t.Fatal(err)
		}
	}
}

func (p *parted) round(t testing.TB, n int) {
	i := p.lane(n)
	p.learn(t, i, len(p.feedback)-p.rng.IntN(4))
	through := loop.Source{Offset: p.offset[i], Through: p.offset[i] + 1}
	if r := p.deciders[i].Decide(&p.dec, p.match.rounds.Bytes(n), "", through); r.Verdict != loop.Decided {
		t.Fatal(r.Verdict, r.Err)
	}
	p.match.Decided(&p.dec)
	e := loop.DecisionEvent{Offset: p.offset[i], Time: int64(2 * n), D: p.dec}
	p.offset[i]++
	p.take(t, codec.Cut{Time: e.Time, Decisions: []codec.Range{{Partition: i, Next: p.offset[i]}}},
		loop.Batch{Decisions: []loop.DecisionEvent{e}})
	for _, r := range p.match.Schedule.After(n) {
		p.outcome(t, r, int64(2*n+1))
	}
}

// take gives the joiner a cut, and appends what is released to the log: first come, first learned, in
// each partition.
func (p *parted) take(t testing.TB, c codec.Cut, b ...loop.Batch) {
	c.Cut = p.joiner.LastCut() + 1
	if err := p.joiner.Take(&c, b); err != nil {
		t.Fatal(err)
	}
	p.joiner.Ready(&p.ready)
	for k := range p.ready.Feedback {
		f := &p.ready.Feedback[k]
		if f.Round != p.last[f.Partition]+1 {
			t.Fatalf("partition %d: round %d after %d", f.Partition, f.Round, p.last[f.Partition])
		}
		p.last[f.Partition] = f.Round
		p.feedback = append(p.feedback, codec.AppendFeedback(nil, f))
	}
}

func (p *parted) outcome(t testing.TB, o delay.Awaited, logTime int64) {
	i := p.lane(int(o.Round))
	p.match.Outcome(&p.out, o)
	e := loop.OutcomeEvent{Offset: p.outcomes[i], Time: logTime, O: p.out}
	p.outcomes[i]++
	p.take(t, codec.Cut{Time: logTime, Outcomes: []codec.Range{{Partition: i, Next: p.outcomes[i]}}},
		loop.Batch{Outcomes: []loop.OutcomeEvent{e}})
}

// play plays all rounds and returns the regret. In the end every copy of the learner has
// the same bytes, those of one process that is fed the log.
func (p *parted) play(t testing.TB) float64 {
	n := p.match.rounds.Len()
	for k := range n {
		p.round(t, k)
	}
	for _, r := range p.match.Schedule.Rest() {
		p.outcome(t, r, int64(2*n))
	}
	p.take(t, codec.Cut{Time: loop.End})
	if len(p.feedback) != n {
		t.Fatalf("%d feedbacks of %d rounds", len(p.feedback), n)
	}
	if err := p.alike(t); (err != nil) != (p.apart && len(p.deciders) > 1) {
		t.Errorf("learners apart are %v: %v", p.apart, err)
	}
	return p.match.regret
}

// alike compares the learners with one that is fed the log.
func (p *parted) alike(t testing.TB) error {
	one := loop.NewReplica()
	one.Begin(p.ep())
	for _, b := range p.feedback {
		if err := codec.ParseFeedback(&p.fb, b); err != nil {
			return err
		}
		if err := one.Learn(&p.fb, nil); err != nil {
			return err
		}
	}
	want, err := one.Epoch().Learner.AppendBinary(nil)
	for i := range p.copies {
		p.learn(t, i, len(p.feedback))
		got, err2 := p.copies[i].Epoch().Learner.AppendBinary(nil)
		if err = errors.Join(err, err2); err == nil && !bytes.Equal(got, want) {
			err = fmt.Errorf("the learner of decider %d is not that of one process", i)
		}
	}
	return err
}

// series are the regrets of many seeds.
type series struct {
	latelosses.Moments
	all []float64
}

func (s *series) String() string {
	return fmt.Sprintf("%.1f ± %.1f (%.1f %%)", s.Mean(), s.SE(), 100*s.SE()/s.Mean())
}

// regrets plays so many seeds.
func regrets(t *testing.T, partitions, seeds, rounds int, apart bool) *series {
	s := new(series)
	for seed := range uint64(seeds) {
		p := newParted(t, partitions, seed+1, rounds, 200, "exp:40")
		p.apart = apart
		s.all = append(s.all, p.play(t))
		s.Add(s.all[seed])
	}
	return s
}

// TestRegretOfPartitions: more partitions with a decider each cost no regret, since all
// follow one feedback log. Windows are equal in log time. Four learners, each of its own
// partition, do cost regret, and that shows.
func TestRegretOfPartitions(t *testing.T) {
	if testing.Short() {
		t.Skip("pure and long: the race detector has nothing to find here")
	}
	seeds, rounds := 12, 1000
	if os.Getenv("HINDSIGHT_LONG") != "" {
		seeds, rounds = 20, 20_000
	}
	one := regrets(t, 1, seeds, rounds, false)
	t.Logf("%d rounds, P = 1: regret %v", rounds, one)
	if !(one.SE() <= 0.05*one.Mean()) {
		t.Errorf("the standard error is above 5 %% of the mean: %v", one)
	}
	for i, c := range []struct {
		partitions int
		apart      bool
	}{{2, false}, {4, false}, {4, true}} {
		if !c.apart && !daily.Turn(t, i, 2) {
			continue
		}
		s := regrets(t, c.partitions, seeds, rounds, c.apart)
		var paired latelosses.Moments // of the same contexts, losses and delays
		for i, x := range s.all {
			paired.Add(x - one.all[i])
		}
		se := math.Sqrt(s.SE()*s.SE() + one.SE()*one.SE())
		t.Logf("%d rounds, P = %d, learners apart %v: regret %v; difference %.1f, 2 se of it %.1f; seed by seed ± %.1f",
			rounds, c.partitions, c.apart, s, s.Mean()-one.Mean(), 2*se, paired.SE())
		if alike := math.Abs(s.Mean()-one.Mean()) <= 2*se; alike == c.apart {
			t.Errorf("P = %d, learners apart %v: regret %v, for P = 1 %v", c.partitions, c.apart, s, one)
		}
	}
}
