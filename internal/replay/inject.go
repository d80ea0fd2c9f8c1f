package replay

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"hindsight/internal/loop"
	"hindsight/internal/service"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// Injection plays an environment to a live system: it appends contexts, reads the
// decisions, and appends each outcome after as many later decisions as its delay
// says.
type Injection struct {
	Log    stream.Log
	Topics service.Topics
	Rounds *Rounds
	Delays Delays
	Lead   int // contexts that may be ahead of the decisions read; at least 1
	// Rules of the model: before a context is sent, what could be released by then must
	// have been, so that the loop's own latency adds no more than Lead to the delays.
	Rules *loop.Rules

	match              *match
	released           *counter
	contexts, outcomes stream.Appender
	failed             atomic.Pointer[error]
	buf                []byte
	dec                codec.Decision
	out                codec.Outcome
}

// injectStall is how long an injection waits for the next decision or feedback
// before it gives up.
const injectStall = 30 * time.Second

var errInjectStalled = errors.New("no progress for " + injectStall.String())

// Run plays all rounds and waits until their feedback is in the log, but not for rounds
// whose outcome never comes and whose window only later decisions would end.
func (in *Injection) Run(ctx context.Context, progress func(done int)) error {
	_, from, err := in.Log.Bounds(ctx, in.Topics.Decisions, 0)
	if err != nil {
		return err
	}
	decisions, err := in.Log.Read(ctx, in.Topics.Decisions, 0, from)
	if err != nil {
		return err
	}
	defer decisions.Close()
	if in.released, err = countFeedback(ctx, in.Log, in.Topics.Feedback); err != nil {
		return err
	}
	defer in.released.close()
	if err := in.openWriters(ctx); err != nil {
		return err
	}
	defer in.contexts.Close()
	defer in.outcomes.Close()
	in.match = newMatch(in.Rounds, in.Delays)
	due := &releases{s: in.match.s, rules: in.Rules}
	if err := in.play(ctx, decisions, due, progress); err != nil {
		return err
	}
	for _, t := range in.match.s.rest() {
		if err := in.report(ctx, int(t)); err != nil {
			return err
		}
	}
	if err := in.outcomes.Flush(ctx); err != nil {
		return err
	}
	return in.released.wait(ctx, due.atEnd())
}

func (in *Injection) openWriters(ctx context.Context) (err error) {
	ack := func(_ uint64, _ int64, err error) {
		if err != nil {
			in.failed.CompareAndSwap(nil, &err)
		}
	}
	if in.contexts, err = in.Log.Writer(ctx, in.Topics.Contexts, 0, ack); err != nil {
		return err
	}
	in.outcomes, err = in.Log.Writer(ctx, in.Topics.Outcomes, 0, ack)
	return err
}

func (in *Injection) play(ctx context.Context, decisions stream.Reader, due *releases, progress func(done int)) error {
	n, sent := in.Rounds.Len(), 0
	var batch []stream.Record
	for len(in.match.actions) < n {
		for ; sent < n && sent < len(in.match.actions)+in.Lead; sent++ {
			// What was reported is stored before anything later is asked.
			if err := in.outcomes.Flush(ctx); err != nil {
				return err
			}
			if err := in.released.wait(ctx, due.after(sent-in.Lead)); err != nil {
				return err
			}
			if _, err := in.contexts.Append(ctx, &stream.Record{Key: []byte(in.Rounds.ID(sent)), Value: in.Rounds.Context(sent)}); err != nil {
				return err
			}
		}
		var err error
		if batch, err = next(ctx, decisions, batch[:0]); err != nil {
			return fmt.Errorf("wait for decision %d of %d: %w", len(in.match.actions)+1, n, err)
		}
		for i := range batch {
			if batch[i].Type != "" {
				continue
			}
			if err := in.decision(ctx, &batch[i]); err != nil {
				return err
			}
		}
		progress(len(in.match.actions))
		if e := in.failed.Load(); e != nil {
			return *e
		}
	}
	return nil
}

// next reads on, but not for ever.
func next(ctx context.Context, r stream.Reader, dst []stream.Record) ([]stream.Record, error) {
	stalled, cancel := context.WithTimeoutCause(ctx, injectStall, errInjectStalled)
	defer cancel()
	dst, err := r.Next(stalled, dst)
	if err != nil && ctx.Err() == nil && stalled.Err() != nil {
		return dst, errInjectStalled
	}
	return dst, err
}

// decision scores one decision and appends the outcomes that are due after it.
func (in *Injection) decision(ctx context.Context, r *stream.Record) error {
	if err := codec.ParseDecision(&in.dec, r.Value); err != nil {
		return err
	}
	t := len(in.match.actions)
	if in.dec.ID != in.Rounds.ID(t) {
		return fmt.Errorf("decision %d is of round %q, not %q: someone else writes contexts to this system", in.dec.N, in.dec.ID, in.Rounds.ID(t))
	}
	in.match.decided(&in.dec)
	for _, r := range in.match.s.after(t) {
		if err := in.report(ctx, int(r)); err != nil {
			return err
		}
	}
	return nil
}

// report appends the outcome of a round.
func (in *Injection) report(ctx context.Context, t int) error {
	in.match.outcome(&in.out, t)
	in.buf = codec.AppendOutcome(in.buf[:0], &in.out)
	_, err := in.outcomes.Append(ctx, &stream.Record{Key: []byte(in.out.ID), Value: in.buf})
	return err
}

// Score fills in what the outcomes say of the learner: mean loss and, where the truth
// is known, regret.
func (in *Injection) Score(r *Result) { in.match.score(r) }
