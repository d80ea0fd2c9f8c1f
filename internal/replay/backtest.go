package replay

import (
	"context"

	"hindsight/internal/certify"
	"hindsight/internal/delay"
	"hindsight/internal/latelosses"
	"hindsight/internal/loop"
	"hindsight/pkg/codec"
)

// Trace is what a run leaves behind.
type trace struct {
	Rounds     int
	Fates      Fates
	LateLosses latelosses.Comparison
	Outcomes   outcomeCounts // that the model names
	late       latelosses.ByOutcome

	match  *Match
	delays *delay.Meter
}

// run drives the heart over the rounds: decide, give the outcomes that are due, release, learn. It is the code that
// runs live, without logs between. progress is called now and then with the number of rounds done; it may be nil.
// Memory does not grow with the rounds, but with those from the first one on that waits for its outcome.
func (b *backtest) run(ctx context.Context, progress func(done int)) (*trace, error) {
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
	b.trace.LateLosses, b.trace.late = latelosses.Compare(b.losses.Of("")), b.losses
	return &b.trace, nil
}

type backtest struct {
	match   *Match
	replica *loop.Replica
	decider *loop.Decider
	joiner  *loop.Joiner
	trace   trace
	forgets bool        // the joiner forgets rounds that are over, which changes no result
	each    func(t int) // called after each decision; nil: not

	parsed   bool  // contexts need no bytes
	outcomes int64 // records of outcomes that came
	arrived  int64 // rounds of which all outcomes came that do
	losses   latelosses.ByOutcome

	dec   *codec.Decision // that of decision
	cut   codec.Cut       // the last one
	moved [1]codec.Range  // what it takes
	batch [1]loop.Batch
	ready loop.Ready

	decision [1]loop.DecisionEvent
	outcome  [1]loop.OutcomeEvent
}

// newBacktest returns a run over the rounds that has not begun.
func newBacktest(ep loop.Epoch, name string, seed []byte, rounds *Rounds, d *delay.Delays) *backtest {
	n := rounds.Len()
	b := &backtest{match: NewMatch(rounds, d, ep.Rules.Range), replica: loop.NewReplica(), forgets: true,
		losses: latelosses.ByOutcome{}}
	b.replica.Begin(ep)
	b.dec = &b.decision[0].D
	b.parsed = rounds.table != nil && rounds.table.Labelled && rounds.table.Fits() &&
		len(ep.Rules.Policies) == 0 // which the judge gives the context of a feedback
	b.decider = loop.NewDecider(b.replica, seed, name, 0, 1)
	b.joiner = loop.NewJoiner(1, Boundless(n), 0, func(int64) *loop.Rules { return ep.Rules })
	b.trace = trace{Rounds: n, Outcomes: outcomeCounts{}, match: b.match, delays: delay.NewMeter(n)}
	b.match.course.bounds = func() map[string]float64 {
		late := latelosses.Compare(b.losses.Of(""))
		f, _ := certify.Measure(ep.Learner, &certify.Options{Outstanding: int64(b.match.n) - b.trace.Fates.rounds(),
			Arrival: ep.Rules.Arrival, Late: &late})
		return f.Bounds
	}
	return b
}

// Boundless are limits that a run over so many rounds does not reach.
func Boundless(rounds int) codec.Limits {
	return codec.Limits{Heart: loop.Heart, Pending: int64(rounds) + 1, Dedup: int64(rounds) + 1}
}

// round plays round t. Its decision is a cut, and so is each outcome that comes after it: then rounds
// are released as if each record were read at its time.
func (b *backtest) round(t int) error {
	res := b.decide(t, loop.Source{Offset: int64(t), Through: int64(t + 1)})
	if res.Verdict != loop.Decided {
		return res.Err
	}
	b.match.Decided(b.dec)
	held, _ := b.joiner.Held()
	released := b.trace.Fates.rounds()
	b.match.course.decided(int64(t)-b.arrived, int64(t)-released, int64(held))
	b.trace.delays.Decided(int64(t), b.match.Schedule.Cut, b.arrived, released)
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
	return b.decider.Decide(b.dec, b.match.rounds.Bytes(t), "", src)
}

// decidedAt returns the log time of decision t: that of the file, or without one half
// rounds: decision t is at 2t, the outcomes that come after it at 2t+1.
func (b *backtest) decidedAt(t int) int64 {
	if b.match.rounds.Timed() {
		return b.match.rounds.Time(t)
	}
	return int64(2 * t)
}

// cameAt returns the log time of an outcome that comes right after decision t: the
// file's if that says it, or that of the decision.
func (b *backtest) cameAt(o delay.Awaited, t int) int64 {
	switch r := b.match.rounds; {
	case !r.Timed():
		return int64(2*t + 1)
	case b.match.Schedule.Timed:
		return max(o.Time, r.Time(t))
	default:
		return r.Time(t)
	}
}

// join gives the joiner decision t and the outcomes that come right after it.
func (b *backtest) join(t int) error {
	e := &b.decision[0]
	e.Offset, e.Time = int64(t), b.decidedAt(t)
	b.moved[0].Next, b.batch[0] = e.Offset+1, loop.Batch{Decisions: b.decision[:]}
	if err := b.take(e.Time, b.moved[:], nil); err != nil {
		return err
	}
	if b.match.Schedule.Silent && b.forgets { // an id that is there again later is a round of its own
		b.joiner.Over(b.dec.ID)
	}
	return b.joinOutcomes(b.match.Schedule.After(t), t)
}

// joinOutcomes gives the joiner outcomes, which come right after decision t. Each is a cut of its
// own, since its id is valid until the next one is made.
func (b *backtest) joinOutcomes(due []delay.Awaited, t int) error {
	for _, o := range due {
		e := &b.outcome[0]
		e.Offset, e.Time, e.Last = b.outcomes, b.cameAt(o, t), b.forgets && o.Last
		b.match.Outcome(&e.O, o)
		b.outcomes++
		if o.Last {
			b.arrived++
			b.trace.delays.Came(int64(o.Round), int64(t))
		}
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

// learn takes what was released and rejected.
func (b *backtest) learn() error {
	b.joiner.Ready(&b.ready)
	for i := range b.ready.Feedback {
		f := &b.ready.Feedback[i]
		if f.Stage == 0 {
			b.trace.Fates.addFate(f.Fate)
			b.trace.Outcomes.add(f)
			b.losses.AddInTime(f, b.replica.Epoch().Rules)
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
		b.trace.Fates.addReject(b.ready.Rejects[i].Reason)
		b.late(&b.ready.Rejects[i])
	}
	return nil
}

// late notes the loss of an outcome that came after its window. It is the only outcome of its round, which has no loss
// in time therefore: unless it needs an activation, which does not come, it is skipped or imputed.
func (b *backtest) late(r *codec.Reject) {
	rules := b.replica.Epoch().Rules
	var o codec.Outcome
	if r.Reason == codec.ReasonLate && !rules.Activation && codec.ParseOutcome(&o, r.Bytes) == nil {
		b.trace.Outcomes.late(&o)
		b.losses.AddLate(b.replica.Epoch().Number, rules, &o)
	}
}

func (b *backtest) finish() error {
	if err := b.joinOutcomes(b.match.Schedule.Rest(), b.match.rounds.Len()-1); err != nil {
		return err
	}
	if err := b.take(loop.End, nil, nil); err != nil {
		return err
	}
	return b.learn()
}
