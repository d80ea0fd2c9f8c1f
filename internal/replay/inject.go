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
	Log      stream.Log
	Topics   service.Topics
	Rounds   *Rounds
	Schedule *Schedule
	Lead     int // contexts that may be ahead of the decisions read; at least 1
	// Rules of the model: before a context is sent, what could be released by then must
	// have been, so that the loop's own latency adds no more than Lead to the delays.
	Rules *loop.Rules

	released           *counter
	contexts, outcomes stream.Appender
	failed             atomic.Pointer[error]
	played             []int32 // action a round
	buf                []byte
	dec                codec.Decision
	truth              []float64
	loss, regret       float64
	known              bool
}

// injectStall is how long an injection waits for the next decision or feedback
// before it gives up.
const injectStall = 30 * time.Second

var errInjectStalled = errors.New("no progress for " + injectStall.String())

// Run plays all rounds and waits until their feedback is in the log.
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
	in.truth = make([]float64, len(in.Rounds.Env.Actions()))
	if err := in.play(ctx, decisions, progress); err != nil {
		return err
	}
	for _, t := range in.Schedule.Rest {
		if err := in.report(ctx, int(t)); err != nil {
			return err
		}
	}
	if err := in.outcomes.Flush(ctx); err != nil {
		return err
	}
	return in.released.wait(ctx, int64(in.Rounds.Len()))
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

func (in *Injection) play(ctx context.Context, decisions stream.Reader, progress func(done int)) error {
	n, sent := in.Rounds.Len(), 0
	due := newReleases(in.Schedule, in.Rules)
	var batch []stream.Record
	for len(in.played) < n {
		for ; sent < n && sent < len(in.played)+in.Lead; sent++ {
			// What was reported is stored before anything later is asked.
			if err := in.outcomes.Flush(ctx); err != nil {
				return err
			}
			if err := in.released.wait(ctx, due.after(sent-in.Lead)); err != nil {
				return err
			}
			if _, err := in.contexts.Append(ctx, &stream.Record{Key: []byte(RoundID(sent)), Value: in.Rounds.Context(sent)}); err != nil {
				return err
			}
		}
		var err error
		if batch, err = next(ctx, decisions, batch[:0]); err != nil {
			return fmt.Errorf("wait for decision %d of %d: %w", len(in.played)+1, n, err)
		}
		for i := range batch {
			if batch[i].Type != "" {
				continue
			}
			if err := in.decision(ctx, &batch[i]); err != nil {
				return err
			}
		}
		progress(len(in.played))
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
	t := len(in.played)
	if in.dec.ID != RoundID(t) {
		return fmt.Errorf("decision %d is of round %q, not %q: someone else writes contexts to this system", in.dec.N, in.dec.ID, RoundID(t))
	}
	in.played = append(in.played, int32(in.dec.Action))
	in.loss += in.Rounds.Env.Loss(t, in.dec.Action)
	if in.known = in.Rounds.Env.Truth(in.truth, t); in.known {
		in.regret += Regret(in.dec.Propensities, in.truth)
	}
	for r := in.Schedule.head[t]; r >= 0; r = in.Schedule.next[r] {
		if err := in.report(ctx, int(r)); err != nil {
			return err
		}
	}
	return nil
}

// report appends the outcome of a round.
func (in *Injection) report(ctx context.Context, t int) error {
	o := codec.Outcome{ID: RoundID(t), Kind: codec.Loss, Value: in.Rounds.Env.Loss(t, int(in.played[t]))}
	in.buf = codec.AppendOutcome(in.buf[:0], &o)
	_, err := in.outcomes.Append(ctx, &stream.Record{Key: []byte(o.ID), Value: in.buf})
	return err
}

// Score returns the mean realised loss of the actions played and, where the truth
// is known, the regret.
func (in *Injection) Score() (meanLoss float64, regret *float64) {
	if in.known {
		regret = &in.regret
	}
	return in.loss / float64(max(len(in.played), 1)), regret
}
