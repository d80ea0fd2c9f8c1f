package replay

import (
	"context"
	"math"
	"slices"
	"strconv"
	"strings"

	"hindsight/internal/certify"
	"hindsight/internal/loop"
	"hindsight/internal/model"
	"hindsight/pkg/codec"
)

// Rounds are the contexts of an environment as bytes, with the ids under which
// they are injected: those of a log, else "r1", "r2", …. They are shared by the runs
// over one row order. Those of a labelled CSV are made when they are asked for, from the
// numbers that are kept anyhow: memory that is touched once costs more than that.
type Rounds struct {
	Env  Environment
	view *logView    // a log that holds its contexts as bytes
	csv  *Multiclass // else a labelled CSV, of which round t is row rows[t]
	rows []int32     // nil: row t
	data []byte      // else all of them
	ends []int
	ids  string // all, one behind the other: an outcome's id is not made anew
	idAt []int  // where each begins, and the end

	minted bool // the ids are RoundID's: none is there twice
}

// EncodeRounds encodes all contexts of an environment. Where every round has the same
// actions they are left out, and the model lists them; else, as in logs of events, each
// context brings its own, with their features.
func EncodeRounds(env Environment) *Rounds { return encodeRounds(env, false) }

// EncodeRoundsFor does the same for a model: one whose oracle looks at features of
// actions gets them in each context.
func EncodeRoundsFor(env Environment, m *model.Model) *Rounds {
	return encodeRounds(env, LooksAtActions(m))
}

// LooksAtActions reports whether the oracle of a model may look at features of actions:
// models that agree in it share [Rounds].
func LooksAtActions(m *model.Model) bool {
	return slices.Contains([]string{model.Shared, model.Hybrid, model.Hedge}, m.Oracle.Kind)
}

func encodeRounds(env Environment, featured bool) *Rounds {
	v := logOf(env)
	if v != nil && v.log.rows != nil {
		return &Rounds{Env: env, view: v}
	}
	featured = featured && v != nil && v.log.items != nil
	r := &Rounds{Env: env}
	r.name()
	if r.csv, r.rows = multiclassOf(env); r.csv != nil {
		return r
	}
	r.ends = make([]int, 0, env.Len())
	var c codec.Context
	for t := range env.Len() {
		env.Context(&c, t)
		c.ID = r.ID(t)
		if !featured {
			c.Actions = nil
		}
		r.data = codec.AppendContext(r.data, &c)
		r.ends = append(r.ends, len(r.data))
	}
	return r
}

// RoundID is the id of round t = 0, 1, 2, … where the data has none.
func RoundID(t int) string { return "r" + strconv.Itoa(t+1) }

// name sets the ids.
func (r *Rounds) name() {
	n := r.Env.Len()
	r.idAt = make([]int, 1, n+1)
	log := logOf(r.Env)
	if log == nil || log.log.ids == nil {
		all := make([]byte, 0, n*len(RoundID(n)))
		for t := range n {
			all = strconv.AppendInt(append(all, 'r'), int64(t+1), 10) // RoundID
			r.idAt = append(r.idAt, len(all))
		}
		r.ids, r.minted = string(all), true
		return
	}
	var all strings.Builder
	for t := range n {
		all.WriteString(log.id(t))
		r.idAt = append(r.idAt, all.Len())
	}
	r.ids = all.String()
}

// ID returns the id of round t.
func (r *Rounds) ID(t int) string {
	if r.view != nil {
		return r.view.id(t)
	}
	return r.ids[r.idAt[t]:r.idAt[t+1]]
}

// Context returns the bytes of the context of round t, which the caller may keep.
func (r *Rounds) Context(t int) []byte {
	var buf contextBuffer
	return buf.context(r, t)
}

// contextBuffer is where a run has contexts made.
type contextBuffer struct {
	raw []byte
	ctx codec.Context
}

// context returns the bytes of the context of round t, until the next call.
func (b *contextBuffer) context(r *Rounds, t int) []byte {
	if r.csv == nil {
		return r.stored(t)
	}
	b.raw = codec.AppendContext(b.raw[:0], b.given(r, t))
	return b.raw
}

// given returns the context of round t of a labelled CSV itself, until the next call.
func (b *contextBuffer) given(r *Rounds, t int) *codec.Context {
	row := t
	if r.rows != nil {
		row = int(r.rows[t])
	}
	b.ctx.ID, b.ctx.Features = r.ID(t), r.csv.features(b.ctx.Features[:0], row)
	return &b.ctx
}

// stored returns the bytes of the context of round t where they are kept.
func (r *Rounds) stored(t int) []byte {
	if r.view != nil {
		return r.view.log.rows.context(r.view.row(t))
	}
	if t == 0 {
		return r.data[:r.ends[0]]
	}
	return r.data[r.ends[t-1]:r.ends[t]]
}

// Len returns the number of rounds.
func (r *Rounds) Len() int { return r.Env.Len() }

// Trace is what a run leaves behind.
type Trace struct {
	Rounds  int
	Actions []int32 // played, per round
	Raw     []int64 // delays as arrived, per round; -1: never
	Through []int64 // LearnedThrough, per round
	Fates   Fates

	LateLosses LateLosses
	match      *match
}

// Backtest drives the heart over the rounds: decide, give the outcomes that are due,
// release, learn. It is the code that runs live, without logs between. progress is
// called now and then with the number of rounds done; it may be nil.
func Backtest(ctx context.Context, ep loop.Epoch, name string, seed []byte, rounds *Rounds, d Delays, progress func(done int)) (*Trace, error) {
	b := newBacktest(ep, name, seed, rounds, d)
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
	b.trace.Actions, b.trace.Raw = b.match.actions, b.match.s.raw
	losses := b.joiner.LateLosses()
	b.trace.LateLosses = newLateLosses(&losses)
	return &b.trace, nil
}

type backtest struct {
	match   *match
	replica *loop.Replica
	decider *loop.Decider
	joiner  *loop.Joiner
	trace   Trace

	dec       codec.Decision
	out       codec.Outcome
	context   contextBuffer
	learned   contextBuffer
	given     bool  // contexts are at hand
	outcomes  int64 // given
	forgets   bool  // rounds whose outcome was given are forgotten
	feedbacks []codec.Feedback
	rejects   []codec.Reject
}

func newBacktest(ep loop.Epoch, name string, seed []byte, rounds *Rounds, d Delays) *backtest {
	n := rounds.Len()
	b := &backtest{match: newMatch(rounds, d, ep.Rules.Range), replica: loop.NewReplica()}
	b.replica.Begin(ep)
	b.given = rounds.csv != nil && rounds.minted && rounds.csv.fits()
	b.forgets = rounds.minted && !ep.Rules.Arrival // of which order the rounds are released in is known
	b.decider = loop.NewDecider(b.replica, seed, name, 0, 1)
	b.joiner = loop.NewJoiner(loop.JoinerOptions{Partitions: 1, MaxPending: n + 1, Dedup: n + 1},
		func(int64) *loop.Rules { return ep.Rules })
	b.trace = Trace{Rounds: n, Through: make([]int64, 0, n), match: b.match}
	b.match.course.bounds = func() map[string]float64 {
		f, _ := certify.Measure(ep.Learner, int64(len(b.match.actions))-b.trace.Fates.Rounds())
		return f.Bounds
	}
	return b
}

func (b *backtest) round(t int) error {
	res := b.decide(t, loop.Source{Offset: int64(t), Through: int64(t + 1)})
	if res.Verdict != loop.Decided {
		return res.Err
	}
	b.match.decided(&b.dec)
	held, _ := b.joiner.Held()
	b.match.course.decided(int64(t)-b.outcomes, int64(t)-b.dec.LearnedThrough, int64(held))
	b.trace.Through = append(b.trace.Through, b.dec.LearnedThrough)
	if b.forgets {
		b.joiner.Remember(t + 1 - b.match.s.open(t))
	}
	if err := b.joiner.AddDecided(loop.Place{Offset: int64(t)}, b.decidedAt(t), &b.dec); err != nil {
		return err
	}
	for _, r := range b.match.s.after(t) {
		b.outcome(int(r), t)
	}
	if err := b.learn(); err != nil {
		return err
	}
	b.match.course.end(b.decidedAt(t))
	return nil
}

// decide decides round t: from the context itself where that is at hand.
func (b *backtest) decide(t int, src loop.Source) loop.Result {
	if b.given {
		return b.decider.DecideContext(&b.dec, b.context.given(b.match.rounds, t), src)
	}
	return b.decider.Decide(&b.dec, b.context.context(b.match.rounds, t), "", src)
}

// decidedAt returns the log time of decision t: that of the file, or without one half
// rounds: decision t is at 2t, the outcomes that come after it at 2t+1.
func (b *backtest) decidedAt(t int) int64 {
	if log := b.match.log; log != nil && log.timed() {
		return log.time(t)
	}
	return int64(2 * t)
}

// cameAt returns the log time of the outcome of a round that comes right after
// decision t: the file's if that says it, or that of the decision.
func (b *backtest) cameAt(round, t int) int64 {
	log := b.match.log
	switch {
	case log == nil || !log.timed():
		return int64(2*t + 1)
	case b.match.s.times != nil:
		return max(b.match.s.times[round], log.time(t))
	}
	return log.time(t)
}

// outcome gives the outcome of a round, which comes right after decision t.
func (b *backtest) outcome(round, t int) {
	b.match.outcome(&b.out, round)
	b.joiner.AddGiven(loop.Place{Offset: b.outcomes}, b.cameAt(round, t), &b.out)
	b.outcomes++
}

func (b *backtest) learn() error {
	b.feedbacks = b.joiner.AppendReady(b.feedbacks[:0])
	for i := range b.feedbacks {
		f := &b.feedbacks[i]
		b.trace.Fates.AddFate(f.Fate)
		var err error
		if b.given {
			err = b.replica.LearnContext(f, b.learned.given(b.match.rounds, int(f.Round-1)))
		} else {
			err = b.replica.Learn(f)
		}
		if err != nil {
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
	last := b.match.rounds.Len() - 1
	for _, t := range b.match.s.rest() {
		b.outcome(int(t), last)
	}
	b.joiner.Orphans(math.MaxUint64)
	b.joiner.Advance(loop.End)
	return b.learn()
}
