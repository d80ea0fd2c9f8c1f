package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"hindsight/internal/model"
	"hindsight/internal/watch"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// causeLost says in an epoch's record that the joiner wanted it: the record of an earlier one was lost.
// [watch.CauseAdmin] and [watch.CauseGuard] are the others.
const causeLost = "lost"

// Control lets people change what a model does while it runs: they ask the process whose
// joiner is at work, which writes it into the feedback log, where all see it at one place.
// All methods are safe for concurrent use; those of a nil *Control do nothing.
type Control struct {
	Reload func() (*Source, error) // reads the model file again; nil: there is none

	mu     sync.Mutex
	joiner *Joiner // at work in this process; nil: none
	mode   ModePage
	guard  GuardPage
}

// ErrElsewhere reports that the joiner is at work in another process.
var ErrElsewhere = errors.New("the joiner is not at work in this process: ask the decider or feedback-joiner whose page /mode answers")

// order is something that the joiner is to do between two steps.
type order struct {
	do     func(ctx context.Context) (int64, error)
	urgent bool           // it does not wait until a new model is tried
	done   chan orderDone // has room for one
}

// errOvertaken reports a new model whose trial was given up for something urgent.
var errOvertaken = errors.New("the joiner was asked for another mode, or to stop, before it had tried the new model, of which nothing is written: ask again")

type orderDone struct {
	epoch int64
	err   error
}

// enter makes j the joiner that takes orders.
func (c *Control) enter(j *Joiner) (leave func()) {
	if c == nil {
		return func() {}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.joiner = j
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.joiner == j {
			c.joiner = nil
		}
	}
}

// see notes what the joiner says of the mode and the guard.
func (c *Control) see(m ModePage, g GuardPage) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mode, c.guard = m, g
}

// ask has the joiner do something, and returns the number of the epoch that follows.
func (c *Control) ask(ctx context.Context, urgent bool, do func(j *Joiner) func(ctx context.Context) (int64, error)) (int64, error) {
	if c == nil {
		return 0, ErrElsewhere
	}
	c.mu.Lock()
	j := c.joiner
	c.mu.Unlock()
	if j == nil {
		return 0, ErrElsewhere
	}
	o := order{do: do(j), urgent: urgent, done: make(chan orderDone, 1)}
	select {
	case j.orders <- o:
	case <-j.over:
		return 0, ErrElsewhere
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	select {
	case d := <-o.done:
		return d.epoch, d.err
	case <-j.over:
		return 0, fmt.Errorf("the joiner has stopped; whether it is done is not known: %w", stream.ErrUnavailable)
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// Switch changes the mode, and returns the number of the epoch in which it holds.
func (c *Control) Switch(ctx context.Context, mode codec.Mode, why string) (int64, error) {
	return c.ask(ctx, true, func(j *Joiner) func(context.Context) (int64, error) {
		return func(ctx context.Context) (int64, error) { return j.Switch(ctx, mode, cause(watch.CauseAdmin, why)) }
	})
}

// Renew reads the model file again, and begins an epoch with it if its version is higher.
func (c *Control) Renew(ctx context.Context) (int64, error) {
	if c == nil || c.Reload == nil {
		return 0, errNoFile
	}
	s, err := c.Reload()
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrModel, err)
	}
	return c.ask(ctx, false, func(j *Joiner) func(context.Context) (int64, error) {
		return func(ctx context.Context) (int64, error) { return j.Renew(ctx, s) }
	})
}

var errNoFile = errors.New("this process has no model file to read again")

// mostCause bounds what people say of their reasons, in bytes.
const mostCause = 200

// cause is who wanted an epoch, and what they say of it.
func cause(who, why string) string {
	why = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == 0xfffd {
			return ' '
		}
		return r
	}, why)
	if why == "" {
		return who
	}
	return who + ": " + strings.ToValidUTF8(why[:min(len(why), mostCause)], "") // a character is not cut in two
}

// obey does what was asked for since the last step.
func (j *Joiner) obey(ctx context.Context) {
	for {
		if len(j.next) > 0 {
			o := j.next[0]
			j.next = j.next[1:]
			j.follow(ctx, o)
			continue
		}
		select {
		case o := <-j.orders:
			j.follow(ctx, o)
		default:
			return
		}
	}
}

// overtaken takes the orders that come while a new model is tried, to be done next, an
// urgent one first, for which it returns an error.
func (j *Joiner) overtaken() error {
	for {
		select {
		case o := <-j.orders:
			if o.urgent {
				j.next = slices.Insert(j.next, 0, o)
				return errOvertaken
			}
			j.next = append(j.next, o)
		default:
			return nil
		}
	}
}

// follow does what was asked for. If that fails for the log's sake, the next step ends.
func (j *Joiner) follow(ctx context.Context, o order) {
	epoch, err := o.do(ctx)
	o.done <- orderDone{epoch, err}
}

// Switch changes the mode of the model at work: an epoch begins that goes on with the
// learner, and with all else that the model says. It returns its number; if the mode is
// the one at work, that of the epoch at work, unless it was the guard's switch: whoever
// asks for that mode has seen the alarm, and an epoch says so. An error that is no
// [ErrModel] leaves the joiner dead.
func (j *Joiner) Switch(ctx context.Context, mode codec.Mode, cause string) (int64, error) {
	last := j.epochs.last
	asked := codec.Epoch{Cause: cause}
	if last.rules.Mode == mode && (last.rec.Alarm() == 0 || asked.Alarm() > 0) {
		return last.rec.Epoch, nil
	}
	if err := j.goOn(ctx, last.rec.Epoch+1, mode, cause); err != nil {
		if !errors.Is(err, ErrModel) {
			j.dead = err
		}
		return 0, err
	}
	n := j.epochs.last.rec.Epoch
	j.cfg.Logger.Warn("mode switched", "mode", mode.String(), "was", last.rules.Mode.String(), "epoch", n, "cause", cause)
	by := watch.CauseAdmin
	if asked.Alarm() > 0 {
		by = watch.CauseGuard
	}
	j.cfg.Metrics.Switch(by)
	return n, nil
}

// goOn begins an epoch that differs from the one at work in its mode alone.
func (j *Joiner) goOn(ctx context.Context, number int64, mode codec.Mode, cause string) error {
	last := j.epochs.last
	rec := last.rec
	rec.Epoch, rec.Through = number, j.Heart().LastN()
	rec.WarmFrom, rec.WarmTo, rec.WarmEpoch = 0, 0, 0
	rec.Mode, rec.Cause, rec.Continues = mode, cause, lineage(&last.rec)
	rec.SHA256 = hexSum(rec.LoggedModel())
	order := make([]string, len(rec.Files))
	for i, f := range rec.Files {
		order[i] = f.Name
	}
	if _, err := j.epochs.define(&rec, last.files); err != nil {
		return fmt.Errorf("%w: %w", ErrModel, err)
	}
	return j.begin(ctx, &rec, classRecords(order, last.files))
}

// Renew makes another model the one that this joiner announces, if it may follow the one
// at work, and returns the number of the epoch at work then.
func (j *Joiner) Renew(ctx context.Context, s *Source) (int64, error) {
	if err := j.core.Flush(ctx); err != nil { // a learner may start from what is there
		j.dead = err
		return 0, err
	}
	was, last := *j.cfg.Source, j.epochs.last
	*j.cfg.Source = *s
	err := j.announce(ctx)
	if errors.Is(err, ErrModel) || errors.Is(err, errOvertaken) { // nothing of it is written
		*j.cfg.Source = was
		j.epochs.undo(last)
		return 0, err
	}
	j.dead = err
	return j.epochs.last.rec.Epoch, err
}

// lineage returns the first of the epochs that share a learner.
func lineage(rec *codec.Epoch) int64 {
	if rec.Continues > 0 {
		return rec.Continues
	}
	return rec.Epoch
}

// sameLearner reports whether the learner of one model can be that of another as it is.
func sameLearner(a, b []byte) bool { return !differ(a, b, "actions", "warm") }

// differ reports whether two models differ in any of some keys.
func differ(a, b []byte, keys ...string) bool {
	key, _ := model.Differing(a, b, keys...)
	return key != ""
}

// watchGuard tells of an alarm of the guard, and does what the model says about it.
func (j *Joiner) watchGuard(ctx context.Context) error {
	g := j.Heart().Guard()
	s, rules := g.Sums(), g.Rules()
	if rules == nil || !rules.Guard.On() || s.Raised == 0 || j.alarmed == s.Epoch {
		return nil
	}
	j.alarmed = s.Epoch
	page := guardPage(g, 0)
	j.cfg.Logger.Error("the learner loses more than the baseline", "learner", page.Learner, "baseline", page.Baseline,
		"rounds", s.Rounds, "worse_by", rules.Guard.Margin, "alpha", rules.Guard.Alpha, "feedback", s.Raised, "then", page.Then)
	if rules.Guard.Then == codec.Live || rules.Mode != codec.Live {
		return nil
	}
	_, err := j.Switch(ctx, rules.Guard.Then, codec.AlarmCause(s.Raised))
	return err
}

// switchWait is how long an answer waits for the deciders of its process.
const switchWait = 5 * time.Second
