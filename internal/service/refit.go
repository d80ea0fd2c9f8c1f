package service

import (
	"context"
	"fmt"
	"time"

	"hindsight/internal/loop"
	"hindsight/internal/watch"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// refit is a decider that decides on in the old epoch while the learner of the next one is taught what the log keeps.
type refit struct {
	next   int64     // feedback offset from which epoch records have not been searched
	looked time.Time // of the last search
	until  int64     // under mu: the epoch that must have begun before anything is decided; 0: none
}

// unlocked runs f, which teaches the learner of the epoch that begins at an offset, without mu, which is held.
func (d *Decider) unlocked(ctx context.Context, offset int64, f func() error) error {
	d.refit.next, d.refit.looked = offset, time.Time{}
	d.mu.Unlock()
	defer d.mu.Lock()
	d.ahead(ctx)
	return f()
}

// ahead searches the feedback log, at most once each [watch.BeatEvery], for an epoch that takes the decisions from
// the learner at work. Nothing is decided then until that epoch has begun. mu is not held.
func (d *Decider) ahead(ctx context.Context) {
	if time.Since(d.refit.looked) < watch.BeatEvery {
		return
	}
	d.refit.looked = time.Now()
	if until := d.lookAhead(ctx); until > 0 {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.halt(until)
	}
}

// lookAhead returns the last epoch not yet searched that takes the decisions over, 0 if there is none or the log
// cannot be read: the next call searches again.
func (d *Decider) lookAhead(ctx context.Context) (until int64) {
	r := &d.refit
	_, end, err := d.cfg.Log.Bounds(ctx, d.topics.Feedback, 0)
	if err != nil {
		return 0
	}
	err = stream.Scan(ctx, d.cfg.Log, d.topics.Feedback, 0, r.next, end, func(rec *stream.Record) error {
		if rec.Type == codec.TypeEpoch {
			if x, err := codec.ParseEpoch(rec.Value); err == nil && takesOver(&x) {
				until = max(until, x.Epoch)
			}
		}
		return nil
	})
	if err == nil {
		r.next = end
	}
	return until
}

// takesOver reports whether an epoch stops the learner's decisions at once, before its own learner is taught: it is a
// pause, or a switch to another mode than live.
func takesOver(rec *codec.Epoch) bool {
	return rec.Mode == codec.Paused || rec.Mode != codec.Live && rec.Continues > 0
}

// halt has nothing decided before an epoch, unless the learner decides nothing now.
func (d *Decider) halt(until int64) {
	if ep := d.follower.Replica().Epoch(); ep != nil && ep.Rules.Mode == codec.Live && until > d.refit.until {
		d.refit.until = until
		d.part.Set(watch.Waiting, fmt.Sprintf("nothing is decided until epoch %d has begun: a learner is being "+
			"taught first", until))
		d.cfg.Logger.Warn("nothing is decided until the learner of the next epoch is taught, and the mode asked for "+
			"follows", "epoch", until)
	}
}

// goOn says that decisions are made again, if none were and the epoch has begun that was to begin first. mu is held.
func (d *Decider) goOn() {
	if d.refit.until > 0 && d.decides() != nil {
		d.refit.until = 0
		d.part.Set(watch.Working, "")
	}
}

// decides returns the epoch in which decisions are made now, nil if there is none.
func (d *Decider) decides() *loop.Epoch {
	ep := d.follower.Replica().Epoch()
	if ep == nil || ep.Number < d.refit.until || d.awaitsLive(ep) {
		return nil
	}
	return ep
}

// awaitsLive reports whether a log was taught and has not gone live: decisions wait for the epoch of the model
// file, as on a new log. Only the process that teaches decides before.
func (d *Decider) awaitsLive(ep *loop.Epoch) bool {
	return d.follower.Epoch(ep.Number).Rec.Cause == codec.CauseTaught &&
		(d.cfg.Source == nil || d.cfg.Source.Cause != codec.CauseTaught)
}
