package replay

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"hindsight/internal/certify"
	"hindsight/internal/latelosses"
	"hindsight/internal/loop"
	"hindsight/internal/model"
	"hindsight/pkg/codec"
)

// Rounds are the contexts of an environment as bytes, with the ids under which they are
// injected: those of a log, else "r1", "r2", …. They are made as they are asked for. Runs
// over one row order share them.
type Rounds struct {
	Env      Environment
	log      *BanditLog // nil: something else
	view     *logView   // a log that holds its contexts as bytes; nil: they are encoded
	named    *logView   // a log that has ids; nil: by number
	featured bool       // contexts bring their actions, with their features

	taught *logView // of a [Lesson]; nil: something else
	listed []string // the actions of its model

	csv  *BanditLog // a labelled CSV, of which round t is row rows[t]: an Environment's way is longer
	rows []int32    // nil: row t
}

// EncodeRounds returns all contexts of an environment. Where every round has the same
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
	r := &Rounds{Env: env}
	v := logOf(env)
	if v != nil {
		r.log = v.log
	}
	switch {
	case v == nil:
		r.csv, r.rows = labelledOf(env)
	case v.log.rows != nil:
		r.view = v
	default:
		r.featured = featured && v.log.items != nil
		if v.log.ids != nil {
			r.named = v
		}
	}
	return r
}

// RoundID is the id of round t = 0, 1, 2, … where the data has none.
func RoundID(t int) string { return "r" + strconv.Itoa(t+1) }

// ID returns the id of round t.
func (r *Rounds) ID(t int) string { return strings.Clone(r.reader().id(t)) }

// Context returns the bytes of the context of round t, which are the caller's where they
// are not the log's own.
func (r *Rounds) Context(t int) []byte { return r.reader().context(t) }

// Len returns the number of rounds.
func (r *Rounds) Len() int { return r.Env.Len() }

// reader returns what makes contexts for one run, in memory that it uses again.
func (r *Rounds) reader() *roundReader { return &roundReader{Rounds: r} }

// roundReader makes contexts and ids. It is not safe for concurrent use.
type roundReader struct {
	*Rounds
	name []byte
	of   int // the round whose id name is, from 1
	raw  []byte
	ctx  codec.Context
	at   int // the round of a labelled CSV whose features ctx has, from 1

	actions []codec.Action // room for those of ctx
}

// id is [Rounds.ID], valid until the next call of id or context.
func (r *roundReader) id(t int) string {
	switch {
	case r.view != nil:
		return r.view.id(t)
	case r.named != nil:
		return r.named.id(t)
	}
	if r.of != t+1 {
		r.of = t + 1
		r.name = strconv.AppendInt(append(r.name[:0], 'r'), int64(r.of), 10)
	}
	return unsafe.String(unsafe.SliceData(r.name), len(r.name))
}

// context is [Rounds.Context], valid until the next call of context.
func (r *roundReader) context(t int) []byte {
	if r.taught != nil {
		r.raw = codec.AppendContext(r.raw[:0], r.lesson(t))
		return r.raw
	}
	if r.view != nil {
		return r.view.log.rows.context(r.view.row(t))
	}
	r.raw = codec.AppendContext(r.raw[:0], r.given(t))
	return r.raw
}

// given returns the context of round t itself, valid until the next call of given or
// context, where it is not a log's that holds them as bytes.
func (r *roundReader) given(t int) *codec.Context {
	if r.csv != nil {
		r.ctx.ID = r.id(t)
		if r.at != t+1 {
			r.at = t + 1
			r.ctx.Features = r.csv.again(r.ctx.Features, r.row(t))
		}
		return &r.ctx
	}
	r.ctx.Actions = r.actions[:0]
	r.Env.Context(&r.ctx, t)
	r.actions = r.ctx.Actions
	r.ctx.ID = r.id(t)
	if !r.featured {
		r.ctx.Actions = nil
	}
	return &r.ctx
}

// drop lets the system take the memory of rounds that were read.
func (r *Rounds) drop() {
	if r.csv != nil && r.rows == nil {
		r.csv.files.drop()
	} else if r.csv != nil {
		r.csv.files.dropBeyond(labelledBytes)
	}
	if r.log != nil {
		r.log.files.drop()
	}
}

// row returns the row of a labelled CSV that round t is.
func (r *roundReader) row(t int) int {
	if r.rows == nil {
		return t
	}
	return int(r.rows[t])
}

// Trace is what a run leaves behind.
type Trace struct {
	Rounds     int
	Fates      Fates
	LateLosses latelosses.Comparison

	match  *match
	delays *delayMeter
}

// run drives the heart over the rounds: decide, give the outcomes that are due, release,
// learn. It is the code that runs live, without logs between. progress is called now and
// then with the number of rounds done; it may be nil. Memory does not grow with the rounds,
// but with those from the first one on that waits for its outcome.
func (b *backtest) run(ctx context.Context, progress func(done int)) (*Trace, error) {
	for t := range b.trace.Rounds {
		if t&15 == 0 && ctx.Err() != nil { // a round may take a millisecond
			return nil, ctx.Err()
		}
		if t&1023 == 0 {
			if progress != nil {
				progress(t)
			}
			b.match.rounds.drop()
		}
		if err := b.round(t); err != nil {
			return nil, err
		}
	}
	if err := b.finish(); err != nil {
		return nil, err
	}
	b.trace.LateLosses = latelosses.Compare(&b.losses)
	return &b.trace, nil
}

type backtest struct {
	match   *match
	replica *loop.Replica
	decider *loop.Decider
	joiner  *loop.CutJoiner
	trace   Trace
	forgets bool        // the joiner forgets rounds that are over, which changes no result
	each    func(t int) // called after each decision; nil: not

	parsed   bool  // contexts need no bytes
	outcomes int64 // that came
	losses   latelosses.Losses

	dec   *codec.Decision // that of decision
	cut   codec.Cut       // the last one
	moved [1]codec.Range  // what it takes
	batch [1]loop.Batch
	ready loop.Ready

	decision [1]loop.DecisionEvent
	outcome  [1]loop.OutcomeEvent
}

// newBacktest returns a run over the rounds that has not begun.
func newBacktest(ep loop.Epoch, name string, seed []byte, rounds *Rounds, d Delays) *backtest {
	n := rounds.Len()
	b := &backtest{match: newMatch(rounds, d, ep.Rules.Range), replica: loop.NewReplica(), forgets: true}
	b.replica.Begin(ep)
	b.dec = &b.decision[0].D
	b.parsed = rounds.csv != nil && rounds.csv.fits()
	b.decider = loop.NewDecider(b.replica, seed, name, 0, 1)
	b.joiner = loop.NewCutJoiner(1, boundless(n), 0, func(int64) *loop.Rules { return ep.Rules })
	b.trace = Trace{Rounds: n, match: b.match, delays: newDelayMeter(n)}
	b.match.course.bounds = func() map[string]float64 {
		f, _ := certify.Measure(ep.Learner, int64(b.match.n)-b.trace.Fates.Rounds())
		return f.Bounds
	}
	return b
}

// boundless are limits that a run over so many rounds does not reach.
func boundless(rounds int) codec.Limits {
	return codec.Limits{Heart: loop.Heart, Pending: int64(rounds) + 1, Dedup: int64(rounds) + 1}
}

// round plays round t. Its decision is a cut, and so is each outcome that comes after it: then rounds
// are released as if each record were read at its time.
func (b *backtest) round(t int) error {
	res := b.decide(t, loop.Source{Offset: int64(t), Through: int64(t + 1)})
	if res.Verdict != loop.Decided {
		return res.Err
	}
	b.match.decided(b.dec)
	held, _ := b.joiner.Held()
	b.match.course.decided(int64(t)-b.outcomes, int64(t)-b.dec.LearnedThrough, int64(held))
	b.trace.delays.decided(int64(t), b.match.s.cut, b.outcomes, b.dec.LearnedThrough)
	if b.each != nil {
		b.each(t)
	}
	if err := b.join(t); err != nil {
		return err
	}
	if err := b.learn(); err != nil {
		return err
	}
	b.match.course.end(b.decidedAt(t))
	return nil
}

// decide decides round t: from the context itself where that needs no bytes.
func (b *backtest) decide(t int, src loop.Source) loop.Result {
	if b.parsed {
		src.Parsed = b.match.rounds.given(t)
		return b.decider.Decide(b.dec, nil, "", src)
	}
	return b.decider.Decide(b.dec, b.match.rounds.context(t), "", src)
}

// decidedAt returns the log time of decision t: that of the file, or without one half
// rounds: decision t is at 2t, the outcomes that come after it at 2t+1.
func (b *backtest) decidedAt(t int) int64 {
	if log := b.match.log; log != nil && log.timed() {
		return log.time(t)
	}
	return int64(2 * t)
}

// cameAt returns the log time of an outcome that comes right after decision t: the
// file's if that says it, or that of the decision.
func (b *backtest) cameAt(o awaited, t int) int64 {
	log := b.match.log
	switch {
	case log == nil || !log.timed():
		return int64(2*t + 1)
	case b.match.s.times != nil:
		return max(o.time, log.time(t))
	}
	return log.time(t)
}

// join gives the joiner decision t and the outcomes that come right after it.
func (b *backtest) join(t int) error {
	e := &b.decision[0]
	e.Offset, e.Time = int64(t), b.decidedAt(t)
	b.moved[0].Next, b.batch[0] = e.Offset+1, loop.Batch{Decisions: b.decision[:]}
	if err := b.take(e.Time, b.moved[:], nil); err != nil {
		return err
	}
	if b.match.s.cut == Never {
		b.over(b.dec.ID)
	}
	return b.joinOutcomes(b.match.s.after(t), t)
}

// joinOutcomes gives the joiner outcomes, which come right after decision t. Each is a cut of its
// own, since its id is valid until the next one is made.
func (b *backtest) joinOutcomes(due []awaited, t int) error {
	for _, o := range due {
		e := &b.outcome[0]
		e.Offset, e.Time, e.Last = b.outcomes, b.cameAt(o, t), b.forgets
		b.match.outcome(&e.O, o)
		b.outcomes++
		b.trace.delays.came(int64(o.round), int64(t))
		b.moved[0].Next, b.batch[0] = b.outcomes, loop.Batch{Outcomes: b.outcome[:]}
		if err := b.take(0, nil, b.moved[:]); err != nil {
			return err
		}
	}
	return nil
}

// take gives the joiner the next cut, which takes the batch unless it moves time alone.
func (b *backtest) take(time int64, decisions, outcomes []codec.Range) error {
	b.cut.Cut++
	b.cut.Time, b.cut.Decisions, b.cut.Outcomes = time, decisions, outcomes
	return b.joiner.Take(&b.cut, b.batch[:len(decisions)+len(outcomes)])
}

// over lets the joiner forget a round of which no outcome is to come. An id that is there
// again later, which the reader of a log has forgotten, is a round of its own.
func (b *backtest) over(id string) {
	if b.forgets {
		b.joiner.Over(id)
	}
}

// learn takes what was released and rejected.
func (b *backtest) learn() error {
	b.joiner.Ready(&b.ready)
	for i := range b.ready.Feedback {
		f := &b.ready.Feedback[i]
		b.trace.Fates.AddFate(f.Fate)
		if f.Fate == codec.Observed {
			b.losses.AddObserved(f.Epoch, f.Loss)
		}
		var c *codec.Context
		if b.parsed {
			c = b.match.rounds.given(int(f.Round - 1))
		}
		if err := b.replica.Learn(f, c); err != nil {
			return err
		}
	}
	for i := range b.ready.Rejects {
		b.trace.Fates.AddReject(b.ready.Rejects[i].Reason)
		b.late(&b.ready.Rejects[i])
	}
	return nil
}

// late notes the loss of an outcome that came after its window. It is the only outcome of its round,
// which has no loss in time therefore: unless it needs an activation, which does not come, it is
// skipped or imputed.
func (b *backtest) late(r *codec.Reject) {
	rules := b.replica.Epoch().Rules
	var o codec.Outcome
	if r.Reason == codec.ReasonLate && !rules.Activation && codec.ParseOutcome(&o, r.Bytes) == nil {
		b.losses.AddLate(b.replica.Epoch().Number, rules, o.Kind, o.Value)
	}
}

func (b *backtest) finish() error {
	if err := b.joinOutcomes(b.match.s.rest(), b.match.rounds.Len()-1); err != nil {
		return err
	}
	if err := b.take(loop.End, nil, nil); err != nil {
		return err
	}
	return b.learn()
}
