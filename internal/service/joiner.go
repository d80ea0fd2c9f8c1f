package service

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"hindsight/internal/follow"
	"hindsight/internal/front"
	"hindsight/internal/join"
	"hindsight/internal/latelosses"
	"hindsight/internal/loop"
	"hindsight/internal/watch"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// Joiner is the joiner of a model at work: [join.Core] joins decisions with outcomes and releases
// feedback; this announces the model, takes orders, and tells people. One goroutine uses it.
type Joiner struct {
	cfg    SystemConfig
	topics join.Topics
	core   *join.Core
	epochs *follow.LoggedEpochs
	lost   claims
	dead   error // of an order

	wall     func() time.Time      // the process's clock; nil: all log times are believed
	ahead    atomic.Pointer[error] // why a record is not believed; nil: all are
	aheadOwn bool                  // it is one of our own
	latest   int64                 // a log time up to this one is believed
	seen     int64                 // log time
	seenAt   time.Time             // when it was first seen
	late     *latelosses.Follow
	warned   time.Time     // of late losses; zero: never
	wakeup   chan struct{} // something may have come
	orders   chan order    // between steps
	next     []order       // taken meanwhile
	pause    func() error  // called now and then while a new model is tried; its error gives that up; nil: nobody waits
	over     chan struct{} // closed when nothing more is done
	ended    sync.Once
	shownAt  time.Time // the last look at the guard
	alarmed  int64     // the epoch from which the guard counts whose alarm was told; 0: none
	judged   judged    // for the page
	promoted int64     // the epoch from which candidates are judged whose promotion was told; 0: none

	m       *watch.JoinerMetrics
	others  *follow.Strangers
	surplus surplus
	traced  *traced
	part    *watch.Part    // of the process's health; may be nil
	at      []atomic.Int64 // by input, decisions of all partitions, then outcomes: next unread offset
}

// OpenJoiner takes the feedback log over from any earlier owner, restores what that one knew, and
// announces the model if the log does not have it.
func OpenJoiner(ctx context.Context, cfg SystemConfig) (*Joiner, error) {
	j := &Joiner{cfg: cfg, topics: join.TopicsOf(cfg.Source.Name), wakeup: make(chan struct{}, 1),
		orders: make(chan order), over: make(chan struct{}), at: make([]atomic.Int64, 2*cfg.Partitions)}
	source := *cfg.Source // which a renewal changes
	j.cfg.Source = &source
	j.cfg.complete()
	j.m = j.cfg.Metrics.Joiner()
	j.others = follow.NewStrangers(j.cfg.Metrics, j.cfg.Logger)
	j.epochs = follow.NewLoggedEpochs(cfg.Log, j.topics, cfg.Build, j.cfg.Logger)
	j.traced = newTraced(cfg.Trace)
	j.late = latelosses.NewFollow(int64(cfg.Dedup), j.epochs.Rules)
	if err := j.open(ctx); err != nil {
		j.Close()
		return nil, err
	}
	return j, nil
}

func (j *Joiner) open(ctx context.Context) (err error) {
	if j.core, err = join.Open(ctx, j.coreConfig()); err != nil {
		return err
	}
	j.traced.forget(j.Heart())
	j.adoptModel()
	if err := j.announce(ctx); err != nil {
		return err
	}
	j.show()
	return nil
}

func (j *Joiner) coreConfig() join.Config {
	return join.Config{Log: j.cfg.Log, Partitions: j.cfg.Partitions, Limits: j.cfg.limits(),
		Topics: j.topics, Encoding: j.cfg.Encoding,
		MarkEvery: int64(j.cfg.MarkEvery), Seed: loop.TableSeed(j.cfg.Seed), Owner: j.cfg.Owner, Skew: join.ClockSkew,
		AcceptLoss: j.cfg.AcceptLoss, Patient: j.cfg.Learned != nil, Logger: j.cfg.Logger, Epochs: j.epochs,
		Wake: j.wake, Believe: j.believe,
		Claims: j.readClaims, Hooks: join.Hooks{
			Cut: j.tookCut, Era: j.m.Eras.Inc, Decision: j.tookDecision, Again: j.traced.decided,
			Outcome:  j.tookOutcome,
			Feedback: j.released,
			Reject:   j.rejected, Foreign: j.others.Pass, Append: j.appendFailed}}
}

// tookCut publishes what waits: the appends behind a cut may hang.
func (j *Joiner) tookCut() {
	j.m.Cuts.Inc()
	j.m.Heart(j.Heart(), j.late.Losses, j.cfg.Metrics.Scope(), time.Now())
}

func (j *Joiner) tookDecision(e *loop.DecisionEvent, r *stream.Record) {
	if e.D.N > 0 && e.GapTo == 0 {
		j.m.Decided(e.Time)
		j.cfg.Metrics.Scope().Decision(&e.D)
		j.traced.decided(e, r)
	}
}

func (j *Joiner) tookOutcome(e *loop.OutcomeEvent) {
	j.m.Outcomes.Inc()
	if !e.Pass {
		j.m.OutcomeCame()
	}
}

func (j *Joiner) released(f *codec.Feedback) {
	j.m.Release(f)
	j.cfg.Metrics.Scope().Feedback(f)
	j.late.AddFeedback(f)
	j.traced.released(f)
}

func (j *Joiner) rejected(r *codec.Reject) {
	j.cfg.Metrics.NoteReject(r)
	j.late.AddReject(r)
}

func (j *Joiner) appendFailed(topic string, err error) {
	kind := watch.FeedbackKind
	if topic == j.topics.Rejects {
		kind = watch.RejectsKind
	}
	j.cfg.Metrics.AppendError(kind, err)
}

// Step joins what is there, and stores what follows. It reports whether it did anything. After an
// error the joiner is dead.
func (j *Joiner) Step(ctx context.Context) (busy bool, err error) {
	busy, _, err = j.step(ctx, time.Time{})
	return busy, err
}

// step is Step at a time, of which the pace of cuts goes. It returns how long to wait if nothing comes; 0: for ever.
func (j *Joiner) step(ctx context.Context, now time.Time) (busy bool, wait time.Duration, err error) {
	if j.dead != nil {
		return true, 0, j.dead
	}
	busy, wait, err = j.core.Step(ctx, now)
	if errors.Is(err, loop.ErrNoEpoch) {
		if err := j.core.Stop(ctx); err != nil { // another joiner may have begun it
			return busy, 0, err
		}
		return busy, 0, fmt.Errorf("%w: was the feedback log lost?", err)
	}
	if err != nil {
		return busy, 0, err
	}
	if err := j.refuseSurplus(ctx); err != nil {
		return busy, 0, err
	}
	if err := j.watchGuard(ctx); err != nil {
		return busy, 0, err
	}
	if err := j.watchRule(ctx); err != nil {
		return busy, 0, err
	}
	j.show()
	return busy, wait, nil
}

// clock returns the log time of now as far as this process can tell, whose clock may be
// wrong: by that clock, or by how long ago it saw log time move, whichever is more.
func (j *Joiner) clock(now time.Time) int64 {
	if t := j.Heart().Now(); t != j.seen {
		j.seen, j.seenAt = t, now
	}
	return max(now.UnixNano(), j.seen+int64(now.Sub(j.seenAt)))
}

// Tick moves log time on if the oldest round is due by a clock that only triggers it.
func (j *Joiner) Tick(ctx context.Context, now time.Time) error {
	if j.whyHeld() != nil && !j.aheadOwn {
		return nil
	}
	clock := j.clock(now)
	// A deadline that a record has told is that of a window in rounds. The next record ends it: log time is
	// moved only where none comes, or rounds would be released sooner by chance. An injection ends it itself,
	// however long the machine stalls between two records.
	if due, _ := j.Heart().Due(); due <= j.core.Told() && (j.cfg.Learned != nil || now.Sub(j.seenAt) < time.Second) {
		return nil
	}
	return j.core.Tick(ctx, now, clock)
}

// stop stores the joiner's positions, so that the next one starts there.
func (j *Joiner) stop(ctx context.Context) error { return j.core.Stop(ctx) }

func (j *Joiner) wake() { front.Signal(j.wakeup) }

// Epoch returns the number of the epoch at work.
func (j *Joiner) Epoch() int64 { return j.epochs.Last.Rec.Epoch }

// Heart returns the joiner's heart, for figures.
func (j *Joiner) Heart() *loop.Joiner { return j.core.Heart() }

// Close releases everything. What was not acknowledged is unknown.
func (j *Joiner) Close() {
	j.ended.Do(func() { close(j.over) })
	j.m.Close()
	for _, inputs := range j.surplus.inputs {
		for _, in := range inputs {
			in.Close()
		}
	}
	if j.core != nil {
		j.core.Close()
	}
}

// warnEvery is how often the same warning is logged at most.
const warnEvery = time.Hour

// warnLate says once in a while that losses that come late differ from those in time: what is learned is biased then.
func (j *Joiner) warnLate() {
	if !j.warned.IsZero() && time.Since(j.warned) < warnEvery {
		return
	}
	arrival := j.epochs.Last != nil && j.epochs.Rules(j.epochs.Last.Rec.Epoch).Arrival
	if text := latelosses.Warning(j.late.Losses, arrival); text != "" {
		j.warned = time.Now()
		j.cfg.Logger.Warn(text)
	}
}
