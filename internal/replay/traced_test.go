package replay

import (
	"context"

	"hindsight/internal/delay"
	"hindsight/internal/loop"
)

// tracedRun is a run of which every round is kept.
type tracedRun struct {
	*trace
	Actions []int32 // played, per round
	Raw     []int64 // delays as arrived, per round; -1: never
	Through []int64 // LearnedThrough, per round
}

// traced plays the rounds.
func traced(ctx context.Context, ep loop.Epoch, name string, seed []byte, rounds *Rounds, d *delay.Delays) (*tracedRun,
	error) {
	return traceOf(ctx, newBacktest(ep, name, seed, rounds, d))
}

// traceOf plays a run that has not begun.
func traceOf(ctx context.Context, b *backtest) (*tracedRun, error) {
	r := &tracedRun{}
	b.each = func(int) {
		r.Actions = append(r.Actions, int32(b.dec.Action))
		r.Raw = append(r.Raw, b.match.Schedule.Cut)
		r.Through = append(r.Through, b.dec.LearnedThrough)
	}
	var err error
	r.trace, err = b.run(ctx, nil)
	return r, err
}
