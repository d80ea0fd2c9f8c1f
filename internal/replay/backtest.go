package replay

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strconv"
	"unsafe"

	"hindsight/internal/loop"
	"hindsight/pkg/codec"
)

// Rounds are the contexts of an environment as bytes, with the ids under which
// they are injected: "r1", "r2", …. They are shared by the runs over one row order.
type Rounds struct {
	Env  Environment
	data []byte
	ends []int
}

// EncodeRounds encodes all contexts of an environment. The actions are left out: the
// model lists them.
func EncodeRounds(env Environment) *Rounds {
	r := &Rounds{Env: env, ends: make([]int, 0, env.Len())}
	var c codec.Context
	for t := range env.Len() {
		env.Context(&c, t)
		c.ID, c.Actions = RoundID(t), nil
		r.data = codec.AppendContext(r.data, &c)
		r.ends = append(r.ends, len(r.data))
	}
	return r
}

// RoundID is the id of round t = 0, 1, 2, ….
func RoundID(t int) string { return "r" + strconv.Itoa(t+1) }

// Context returns the bytes of the context of round t.
func (r *Rounds) Context(t int) []byte {
	if t == 0 {
		return r.data[:r.ends[0]]
	}
	return r.data[r.ends[t-1]:r.ends[t]]
}

// Len returns the number of rounds.
func (r *Rounds) Len() int { return len(r.ends) }

// Schedule says in which order outcomes come back: At(t) are the rounds whose
// outcome comes right after decision t, and Rest those that come after the last
// decision, in order.
type Schedule struct {
	head, next []int32 // linked lists by the decision after which an outcome comes; -1 ends
	Rest       []int32
	late       []bool  // per round: its outcome is one of Rest
	Raw        []int64 // per round: later decisions made before its outcome; -1: it never comes
}

// NewSchedule lays out the delays of n rounds.
func NewSchedule(d Delays, n int) *Schedule {
	s := &Schedule{head: make([]int32, n), next: make([]int32, n), late: make([]bool, n), Raw: make([]int64, n)}
	for t := range s.head {
		s.head[t] = -1
	}
	type late struct {
		due int64
		t   int32
	}
	var rest []late
	for t := n - 1; t >= 0; t-- { // so that lists run in the order of rounds
		delay := d.Delay(t)
		s.next[t] = -1
		switch {
		case delay == Never:
			s.Raw[t] = Never
		case int64(t)+delay >= int64(n):
			s.Raw[t], s.late[t] = int64(n-1-t), true
			rest = append(rest, late{int64(t) + delay, int32(t)})
		default:
			due := t + int(delay)
			s.Raw[t] = delay
			s.next[t], s.head[due] = s.head[due], int32(t)
		}
	}
	slices.SortFunc(rest, func(a, b late) int { return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.t, b.t)) })
	for _, r := range rest {
		s.Rest = append(s.Rest, r.t)
	}
	return s
}

// delay returns the delay of round t; of one that comes after the last decision, at
// least as many decisions as were left.
func (s *Schedule) delay(t int) int64 {
	if s.late[t] {
		return int64(len(s.Raw))
	}
	return s.Raw[t]
}

// Trace is what a run leaves behind.
type Trace struct {
	Rounds  int
	Actions []int32 // played, per round
	Raw     []int64 // delays as arrived, per round; -1: never
	Through []int64 // LearnedThrough, per round
	Loss    float64 // Σ realised losses of the actions played
	Regret  float64 // Σ p·f⋆ − min f⋆; NaN where the truth is unknown
	Fates   Fates
}

// Backtest drives the heart over the rounds: decide, give the outcomes that are due,
// release, learn. It is the code that runs live, without logs between. progress is
// called now and then with the number of rounds done; it may be nil.
func Backtest(ctx context.Context, ep loop.Epoch, name string, seed []byte, rounds *Rounds, s *Schedule, progress func(done int)) (*Trace, error) {
	b := newBacktest(ep, name, seed, rounds, s)
	for t := range rounds.Len() {
		if t&1023 == 0 {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if progress != nil {
				progress(t)
			}
		}
		if err := b.round(t); err != nil {
			return nil, err
		}
	}
	if err := b.finish(); err != nil {
		return nil, err
	}
	return &b.trace, nil
}

type backtest struct {
	rounds  *Rounds
	s       *Schedule
	replica *loop.Replica
	decider *loop.Decider
	joiner  *loop.Joiner
	trace   Trace

	dec       codec.Decision
	buf, id   []byte
	outcomes  int64 // given
	feedbacks []codec.Feedback
	rejects   []codec.Reject
	truth     []float64
	known     bool
}

func newBacktest(ep loop.Epoch, name string, seed []byte, rounds *Rounds, s *Schedule) *backtest {
	n := rounds.Len()
	b := &backtest{rounds: rounds, s: s, replica: loop.NewReplica(), truth: make([]float64, len(rounds.Env.Actions()))}
	b.replica.Begin(ep)
	b.decider = loop.NewDecider(b.replica, seed, name, 0, 1)
	b.joiner = loop.NewJoiner(loop.JoinerOptions{Partitions: 1, MaxPending: n + 1, Dedup: n + 1},
		func(int64) *loop.Rules { return ep.Rules })
	b.trace = Trace{Rounds: n, Actions: make([]int32, 0, n), Raw: s.Raw, Through: make([]int64, 0, n)}
	return b
}

// Log time in a backtest counts half rounds: decision t is at 2t, the outcomes that
// come after it at 2t+1.
func (b *backtest) round(t int) error {
	res := b.decider.Decide(&b.dec, b.rounds.Context(t), "", loop.Source{Offset: int64(t), Through: int64(t + 1)})
	if res.Verdict != loop.Decided {
		return res.Err
	}
	b.score(t)
	b.buf = codec.AppendDecision(b.buf[:0], &b.dec)
	if err := b.joiner.AddDecision(loop.Place{Offset: int64(t)}, int64(2*t), b.buf); err != nil {
		return err
	}
	for r := b.s.head[t]; r >= 0; r = b.s.next[r] {
		b.outcome(int(r), int64(2*t+1))
	}
	return b.learn()
}

func (b *backtest) score(t int) {
	a := b.dec.Action
	b.trace.Actions = append(b.trace.Actions, int32(a))
	b.trace.Through = append(b.trace.Through, b.dec.LearnedThrough)
	b.trace.Loss += b.rounds.Env.Loss(t, a)
	if b.known = b.rounds.Env.Truth(b.truth, t); b.known {
		b.trace.Regret += Regret(b.dec.Propensities, b.truth)
	}
}

func (b *backtest) outcome(t int, logTime int64) {
	b.id = strconv.AppendInt(append(b.id[:0], 'r'), int64(t+1), 10)
	o := codec.Outcome{ID: unsafe.String(&b.id[0], len(b.id)), Kind: codec.Loss, Value: b.rounds.Env.Loss(t, int(b.trace.Actions[t]))}
	b.buf = codec.AppendOutcome(b.buf[:0], &o)
	b.joiner.AddOutcome(loop.Place{Offset: b.outcomes}, logTime, b.buf, "")
	b.outcomes++
}

func (b *backtest) learn() error {
	b.feedbacks = b.joiner.AppendReady(b.feedbacks[:0])
	for i := range b.feedbacks {
		f := &b.feedbacks[i]
		b.trace.Fates.AddFate(f.Fate)
		if err := b.replica.Learn(f); err != nil {
			return err
		}
	}
	b.rejects = b.joiner.AppendRejects(b.rejects[:0])
	for i := range b.rejects {
		b.trace.Fates.AddReject(b.rejects[i].Reason)
	}
	return nil
}

func (b *backtest) finish() error {
	for _, t := range b.s.Rest {
		b.outcome(int(t), int64(2*b.rounds.Len()))
	}
	b.joiner.Orphans(math.MaxUint64)
	b.joiner.Advance(loop.End)
	if !b.known {
		b.trace.Regret = math.NaN()
	}
	return b.learn()
}
