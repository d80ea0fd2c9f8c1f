package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"hindsight/internal/follow"
	"hindsight/internal/watch"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// Control lets operators change what a model does while it runs: the joiner at work in this process writes the change
// into the feedback log, which all processes follow.
// All methods are safe for concurrent use; those of a nil *Control do nothing.
type Control struct {
	Reload func() (*follow.Source, error) // reads the model file again; nil: there is none
	// Rejudge returns the next version of a model, with other candidates and rule of promotion; nil: there is none.
	Rejudge func(s *follow.Source, candidates, promote []byte) (*follow.Source, error)

	mu     sync.Mutex
	joiner *Joiner // at work in this process; nil: none
	mode   ModePage
	guard  GuardPage
	judged *CandidatesPage // no one changes it; nil: not yet known
}

// errElsewhere reports that the joiner is at work in another process.
var errElsewhere = errors.New("the joiner is not at work in this process: ask the decider or feedback-joiner whose " +
	"page /mode answers")

// order is something that the joiner is to do between two steps.
type order struct {
	do     func(ctx context.Context, j *Joiner) (int64, error)
	urgent bool           // it does not wait until a new model is tried
	done   chan orderDone // has room for one
}

// errOvertaken reports a new model whose trial was given up for something urgent.
var errOvertaken = errors.New("the joiner was asked for another mode, or to stop, before it had tried the new model, " +
	"of which nothing is written: ask again")

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

// see stores the joiner's mode, guard and candidates for the pages.
func (c *Control) see(m ModePage, g GuardPage, judged *CandidatesPage) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mode, c.guard, c.judged = m, g, judged
}

// ask sends an order to the joiner, and returns the number of the epoch at work afterwards.
func (c *Control) ask(ctx context.Context, urgent bool, do func(ctx context.Context, j *Joiner) (int64, error)) (int64,
	error) {
	if c == nil {
		return 0, errElsewhere
	}
	c.mu.Lock()
	j := c.joiner
	c.mu.Unlock()
	if j == nil {
		return 0, errElsewhere
	}
	o := order{do: do, urgent: urgent, done: make(chan orderDone, 1)}
	select {
	case j.orders <- o:
	case <-j.over:
		return 0, errElsewhere
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
	return c.ask(ctx, true, func(ctx context.Context, j *Joiner) (int64, error) {
		return j.Switch(ctx, mode, cause(watch.CauseAdmin, why))
	})
}

// Renew reads the model file again, and begins an epoch with it if its version is higher.
func (c *Control) Renew(ctx context.Context) (int64, error) {
	if c == nil || c.Reload == nil {
		return 0, errNoFile
	}
	s, err := c.Reload()
	if err != nil {
		return 0, fmt.Errorf("%w: %w", follow.ErrModel, err)
	}
	return c.ask(ctx, false, func(ctx context.Context, j *Joiner) (int64, error) { return j.Renew(ctx, s) })
}

// judgeOthers begins an epoch with other candidates, which goes on with all else that the model says, and in the mode
// at work. It returns the model, too.
func (c *Control) judgeOthers(ctx context.Context, candidates, promote []byte) (epoch int64, model string, err error) {
	if c == nil || c.Rejudge == nil {
		return 0, "", errNoFile
	}
	epoch, err = c.ask(ctx, false, func(ctx context.Context, j *Joiner) (int64, error) {
		last := j.epochs.Last
		if last.Rules.Promote.Share < 1 && last.Rec.Shares() {
			return 0, fmt.Errorf("%w: the rule of promotion shares the ids of this epoch: switch the mode first",
				follow.ErrModel)
		}
		s, err := c.Rejudge(j.cfg.Source, candidates, promote)
		if err != nil {
			return 0, fmt.Errorf("%w: %w", follow.ErrModel, err)
		}
		s.Mode, s.Cause = last.Rules.Mode, cause(watch.CauseAdmin, "candidates")
		n, err := j.Renew(ctx, s)
		model = string(j.epochs.Last.Rec.LoggedModel())
		return n, err
	})
	return epoch, model, err
}

var errNoFile = errors.New("this process has no model file to read again")

// mostCause bounds an operator's reason, in bytes.
const mostCause = 200

// cause returns the cause of an epoch: its author and the reason.
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

// obey executes the orders that came since the last step.
func (j *Joiner) obey(ctx context.Context) {
	for {
		for len(j.next) > 0 {
			o := j.next[0]
			j.next = j.next[1:]
			j.follow(ctx, o)
		}
		select {
		case o := <-j.orders:
			j.next = append(j.next, o)
		default:
			return
		}
	}
}

// follow executes an order. After an error of the log the joiner's next step ends with it.
func (j *Joiner) follow(ctx context.Context, o order) {
	epoch, err := o.do(ctx, j)
	o.done <- orderDone{epoch, err}
}

// overtaken queues the orders that come while a new model is tried. An urgent one goes first, and ends the trial with
// an error.
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

// Switch changes the mode of the model at work: an epoch begins that goes on with the learner, and with all else that
// the model says. It returns its number. If the mode is already at work it returns the epoch at work; but an operator
// who asks for the mode that the guard or the rule of promotion switched to has seen that, and a new epoch ends the
// alarm, and the share that the rule gave. An error that is no [follow.ErrModel] leaves the joiner dead.
func (j *Joiner) Switch(ctx context.Context, mode codec.Mode, cause string) (int64, error) {
	last := j.epochs.Last
	asked := codec.Epoch{Cause: cause}
	if last.Rules.Mode == mode && (last.Rec.Alarm() == 0 && !last.Rec.Shares() || asked.Alarm() > 0 || asked.ByRule()) {
		return last.Rec.Epoch, nil
	}
	if err := j.goOn(ctx, last.Rec.Epoch+1, mode, cause); err != nil {
		if !errors.Is(err, follow.ErrModel) {
			j.dead = err
		}
		return 0, err
	}
	n := j.epochs.Last.Rec.Epoch
	j.cfg.Logger.Warn("mode switched", "mode", mode.String(), "was", last.Rules.Mode.String(), "epoch", n,
		"cause", cause)
	by := watch.CauseAdmin
	if asked.Alarm() > 0 {
		by = watch.CauseGuard
	} else if asked.ByRule() {
		by = watch.CauseRule
	}
	j.cfg.Metrics.Switches.WithLabelValues(by).Inc()
	return n, nil
}

// goOn begins an epoch that differs from the one at work in its mode alone.
func (j *Joiner) goOn(ctx context.Context, number int64, mode codec.Mode, cause string) error {
	if err := j.epochs.Continue(number, j.Heart().LastN(), mode, cause); err != nil {
		return err
	}
	return j.begin(ctx)
}

// Renew makes another model the one that this joiner announces, if it may follow the one
// at work, and returns the number of the epoch at work then.
func (j *Joiner) Renew(ctx context.Context, s *follow.Source) (int64, error) {
	if err := j.core.Flush(ctx); err != nil { // a learner may start from what is there
		j.dead = err
		return 0, err
	}
	was, last := *j.cfg.Source, j.epochs.Last
	*j.cfg.Source = *s
	err := j.announce(ctx)
	if errors.Is(err, follow.ErrModel) || errors.Is(err, errOvertaken) { // nothing of it is written
		*j.cfg.Source = was
		j.epochs.Undo(last)
		return 0, err
	}
	j.dead = err
	return j.epochs.Last.Rec.Epoch, err
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
		"rounds", s.Rounds, "worse_by", rules.Guard.Margin, "alpha", rules.Guard.Alpha, "feedback", s.Raised,
		"then", page.Then)
	if rules.Guard.Then == codec.Live || rules.Mode != codec.Live {
		return nil
	}
	_, err := j.Switch(ctx, rules.Guard.Then, codec.AlarmCause(s.Raised))
	return err
}

// switchWait is how long an answer waits for the deciders of its process.
const switchWait = 5 * time.Second
