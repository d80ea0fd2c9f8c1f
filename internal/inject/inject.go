// Package inject plays rounds to a live system: it appends contexts and outcomes to its log, at the pace of the data,
// and teaches it what another system decided.
package inject

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"hindsight/internal/delay"
	"hindsight/internal/join"
	"hindsight/internal/loop"
	"hindsight/internal/replay"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// Injection plays an environment to a live system: it appends contexts, reads the decisions, and appends each outcome
// after as many later decisions as its delay says.
type Injection struct {
	Log    stream.Log
	Topics join.Topics
	Rounds *replay.Rounds
	Delays *delay.Delays
	Lead   int // contexts that may be ahead of the decisions read; at least 1
	// Rules of the model and what its deciders have learned: before a context is sent, what is released after the
	// decision Lead rounds before must have been learned, so that the loop's own latency adds no more than Lead-1 to
	// the delays. With a Lead of 1 each decision is that of the backtest.
	Rules   *loop.Rules
	Learned *Learned
	// Partitions of contexts, decisions and outcomes; 0 means 1. A round goes where its id belongs.
	Partitions int
	// Pace is that of the contexts; outcomes keep to decisions.
	Pace Pace
	// Taught says that the rounds are those of a [Lesson]: a run goes on where an earlier one
	// stopped, and comes to the same decisions and feedback.
	Taught bool

	Match *replay.Match // what was played, set by Run; bounds and what was held back only the live system knows

	rounds             *replay.Reader
	due                *releases
	contexts, outcomes []stream.Appender // by partition
	reported           int64
	early              map[int]stream.Record // decisions that came before those of earlier rounds
	// rounds by id, of several partitions whose decisions are read again; else nil
	rows   map[string]int
	sent   int
	time   int64     // log time of the last decision read
	read   time.Time // when that was, by our clock
	failed atomic.Pointer[error]
	buf    []byte
	dec    codec.Decision
	out    codec.Outcome
}

// injectStall is how long an injection waits for the next decision or feedback before it gives up.
const injectStall = 30 * time.Second

var errInjectStalled = errors.New("no progress for " + injectStall.String())

// Run plays all rounds and waits until their feedback is in the log, but not for rounds
// whose outcome never comes and whose window only later decisions would end.
func (in *Injection) Run(ctx context.Context, progress func(done int)) error {
	in.Partitions = max(in.Partitions, 1)
	in.early, in.rounds = map[int]stream.Record{}, in.Rounds.Reader()
	decisions, err := in.openDecisions(ctx)
	if err != nil {
		return err
	}
	defer decisions.close()
	defer in.closeWriters()
	if err := in.openWriters(ctx); err != nil {
		return err
	}
	in.Match = replay.NewMatch(in.Rounds, in.Delays, in.Rules.Range)
	if !in.Taught {
		in.Match.LookAtContexts()
	}
	in.due = newReleases(in.Rules, in.Partitions, in.Lead, in.Rounds.Len())
	if in.Taught {
		if err := in.sendAgain(ctx); err != nil {
			return err
		}
	}
	if err := in.play(ctx, decisions, progress); err != nil {
		return err
	}
	if err := in.reportAll(ctx, in.Match.Schedule.Rest()); err != nil {
		return err
	}
	if err := in.closeDue(ctx); err != nil {
		return err
	}
	if err := in.flushOutcomes(ctx); err != nil {
		return err
	}
	n, err := in.due.atEnd()
	if err != nil {
		return err
	}
	return in.Learned.wait(ctx, n)
}

// partition returns where a round is decided.
func (in *Injection) partition(t int) int {
	if in.Partitions == 1 {
		return 0
	}
	return loop.PartitionOf([]byte(in.rounds.ID(t)), in.Partitions)
}

func (in *Injection) openWriters(ctx context.Context) error {
	ack := func(_ uint64, _ int64, err error) {
		if err != nil {
			in.failed.CompareAndSwap(nil, &err)
		}
	}
	for p := range in.Partitions {
		for _, w := range []struct {
			topic string
			to    *[]stream.Appender
		}{{in.Topics.Contexts, &in.contexts}, {in.Topics.Outcomes, &in.outcomes}} {
			a, err := in.Log.Writer(ctx, w.topic, p, ack)
			if err == nil && in.Taught {
				a, err = openAgain(ctx, in.Log, w.topic, p, a)
			}
			if err != nil {
				return err
			}
			*w.to = append(*w.to, a)
		}
	}
	return nil
}

func (in *Injection) closeWriters() {
	for _, w := range slices.Concat(in.contexts, in.outcomes) {
		w.Close()
	}
}

func (in *Injection) flushOutcomes(ctx context.Context) error {
	for _, w := range in.outcomes {
		if err := w.Flush(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (in *Injection) play(ctx context.Context, decisions *decisionFeed, progress func(done int)) error {
	n := in.Rounds.Len()
	var batch []stream.Record
	for in.Match.Played() < n {
		for ; in.sent < n && in.sent < in.Match.Played()+in.Lead; in.sent++ {
			if err := in.await(ctx); err != nil {
				return err
			}
			if err := in.send(ctx); err != nil {
				return err
			}
		}
		var err error
		if batch, err = decisions.next(ctx, batch[:0]); err != nil {
			return fmt.Errorf("wait for decision %d of %d: %w", in.Match.Played()+1, n, err)
		}
		for i := range batch {
			if batch[i].Type != "" {
				continue
			}
			in.time, in.read = batch[i].Time, time.Now()
			if err := in.decision(ctx, &batch[i]); err != nil {
				return err
			}
		}
		progress(in.Match.Played())
		if e := in.failed.Load(); e != nil {
			return *e
		}
	}
	return nil
}

// await waits until the next context may be sent.
func (in *Injection) await(ctx context.Context) error {
	// What was reported is stored before anything later is asked.
	if err := in.flushOutcomes(ctx); err != nil {
		return err
	}
	if err := in.Learned.wait(ctx, in.due.by(in.sent-in.Lead)); err != nil {
		return err
	}
	if in.Partitions > 1 && in.Lead == 1 { // of equal times the joiner would take that of the lower partition first
		if err := in.apart(ctx); err != nil {
			return err
		}
	}
	return in.Pace.wait(ctx, in.sent)
}

// send sends the next context.
func (in *Injection) send(ctx context.Context) error {
	r := stream.Record{Key: []byte(in.rounds.ID(in.sent)), Value: in.rounds.Bytes(in.sent)}
	_, err := in.contexts[in.partition(in.sent)].Append(ctx, &r)
	return err
}

// logTick is the step of the clock of logs that count milliseconds.
const logTick = time.Millisecond

// apart waits, on a log whose clock counts milliseconds, until whatever is written next
// will have a later log time than the last decision.
func (in *Injection) apart(ctx context.Context) error {
	if in.time%int64(logTick) != 0 || in.Taught && in.Match.Played() < in.sent { // or an earlier run has done so
		return nil
	}
	select {
	case <-time.After(time.Until(in.read.Add(logTick))):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// decision takes one decision: it scores it, once those of all earlier rounds are there,
// and appends the outcomes that are due after it.
func (in *Injection) decision(ctx context.Context, r *stream.Record) error {
	if err := codec.ParseDecision(&in.dec, r.Value); codec.Foreign(err) {
		return nil // the system passes over it, too
	} else if err != nil {
		return err
	}
	t := in.round()
	if t == in.sent || in.early[t].Value != nil || in.Partitions == 1 && t > in.Match.Played() {
		return fmt.Errorf("decision %d is of round %q, not %q: someone else writes contexts to this system", in.dec.N,
			in.dec.ID, in.rounds.ID(in.Match.Played()))
	}
	if t > in.Match.Played() {
		in.early[t] = stream.Record{Time: r.Time, Value: bytes.Clone(r.Value)}
		return nil
	}
	for {
		if err := in.decided(ctx, t); err != nil {
			return err
		}
		t++
		early := in.early[t]
		if early.Value == nil {
			return nil
		}
		delete(in.early, t)
		in.time = early.Time
		if err := codec.ParseDecision(&in.dec, early.Value); err != nil {
			return err
		}
	}
}

// round returns the round of the decision at hand, in.sent if it is of none that waits for it.
func (in *Injection) round() int {
	t := in.Match.Played()
	if in.rows != nil {
		if at, ok := in.rows[in.dec.ID]; ok && t <= at {
			return min(at, in.sent)
		}
		return in.sent
	}
	for t < in.sent && in.dec.ID != in.rounds.ID(t) {
		t++
	}
	return t
}

// decided scores the decision of round t.
func (in *Injection) decided(ctx context.Context, t int) error {
	in.Match.Decided(&in.dec)
	in.Match.Ended(int64(t)-in.reported, max(0, int64(t)-in.due.finals.Among(in.dec.LearnedThrough)))
	if err := in.due.decided(&in.dec, in.time, in.Match.Schedule.Silent); err != nil {
		return err
	}
	if err := in.reportAll(ctx, in.Match.Schedule.After(t)); err != nil {
		return err
	}
	if !in.Taught {
		return nil
	}
	return in.closeDue(ctx)
}

// reportAll appends the outcomes that come right after the last decision: later than it where that matters.
func (in *Injection) reportAll(ctx context.Context, due []delay.Awaited) error {
	if in.due.ending() || in.due.measures && len(due) > 0 {
		if err := in.apart(ctx); err != nil {
			return err
		}
		in.due.later()
	}
	for _, of := range due {
		if err := in.report(ctx, of); err != nil {
			return err
		}
	}
	return nil
}

// report appends the outcome of a round.
func (in *Injection) report(ctx context.Context, of delay.Awaited) error {
	in.Match.Outcome(&in.out, of)
	if err := in.due.outcome(&in.out, of.Last); err != nil {
		return err
	}
	in.buf = codec.AppendOutcome(in.buf[:0], &in.out)
	if of.Last {
		in.reported++
	}
	_, err := in.outcomes[in.partition(int(of.Round))].Append(ctx, &stream.Record{Key: []byte(in.out.ID),
		Value: in.buf})
	return err
}
