package inject

import (
	"errors"
	"fmt"
	"slices"

	"hindsight/internal/delay"
	"hindsight/internal/loop"
	"hindsight/internal/model"
	"hindsight/internal/replay"
	"hindsight/internal/scan"
	"hindsight/pkg/codec"
)

// Lesson is a log of what another system decided, as it is taught to the system of a model
// before that goes live: each round is one of an apprentice whose baseline is what was played.
type Lesson struct {
	Model *model.Model // of the epoch in which it is taught, one version below the live one
	Late  int          // outcomes that came after the live model's window

	env  *replay.Rounds
	late []lateness // of the model's named outcomes in their order; of one loss, its own
}

// lateness says when one outcome is late.
type lateness struct {
	window        loop.Window // of the live model
	decided, came []int64     // log times; nil: the log has none
}

var (
	errNoLesson = errors.New("it does not say which actions were taken: a log of decisions does, in CSV by " +
		"--action-column")
)

// NewLesson returns the lesson of a log for a model that goes on with it. Windows are those of
// the live model, in the log's own times, or in rounds: an outcome that came later is left out.
// A round without one ends by the rule for silence, once every outcome in time would have come.
func NewLesson(env *replay.Rounds, live *model.Model) (*Lesson, error) {
	l := &Lesson{env: env.For(live), Model: live.Clone()}
	switch {
	case env.Log == nil:
		return nil, fmt.Errorf("%s: %w", env.Name, errNoLesson)
	case live.Version < 2 || !live.Warm.Keep:
		return nil, errors.New("the model must go on with what was taught, as its next version: write version: 2, or " +
			"higher, and warm: keep; the log is taught as the version before")
	}
	m := l.Model
	m.Version--
	m.Warm, m.Mode, m.Baseline = model.Warm{}, codec.Apprentice, loop.Baseline{Kind: loop.NamedAction}
	// What was played was played, and shown; in order it is all the same how far learning has come.
	m.Masked, m.Guard, m.Activation, m.Early = nil, loop.GuardRules{}, false, false
	l.windows(live)
	longest := l.longest()
	if m.Window.Rounds == 0 {
		m.Window = loop.Window{Rounds: 1 + slices.Max(longest)}
	}
	for i := range m.Named {
		if o := &m.Named[i]; o.Window.Rounds == 0 {
			o.Window = loop.Window{Rounds: 1 + longest[i]}
		}
	}
	return l, l.check()
}

// windows finds when outcomes are late.
func (l *Lesson) windows(live *model.Model) {
	decided, came := l.env.Times()
	l.late = []lateness{{live.Window, decided, came}}
	if live.Named == nil {
		return
	}
	l.late = nil
	o := l.env.DelayOptions(0)
	for _, rule := range live.Named {
		l.late = append(l.late, lateness{rule.Window, o.Decided, o.Named[rule.Name]})
	}
}

// longest returns of each outcome the most later decisions that were made before one in time, and
// counts those that came late.
func (l *Lesson) longest() []int64 {
	most := make([]int64, len(l.late))
	for t := range l.env.Len() {
		l.env.Log.Pass(t)
		for i := range l.late {
			of := &l.late[i]
			d := of.delay(&delay.Play{Round: t})
			if most[i] = max(most[i], d); d == delay.Never && of.came[t] != scan.NoTime {
				l.Late++
			}
		}
	}
	return most
}

// check looks at every context before the first is taught.
func (l *Lesson) check() error {
	check, r := l.Model.Rules().Check(), l.Rounds().Reader()
	for t := range l.env.Len() {
		l.env.Log.Pass(t)
		if err := check(r.Bytes(t)); err != nil {
			return fmt.Errorf("round %d of %s, %q: the model does not take it: %w", t+1, l.env.Name, r.ID(t), err)
		}
	}
	return nil
}

// Rounds returns the contexts, which name what was played, and its propensity if that is known.
func (l *Lesson) Rounds() *replay.Rounds {
	r := *l.env
	r.Complete = l.complete
	return &r
}

// Propensities reports whether the log has them.
func (l *Lesson) Propensities() bool { return l.env.Log.Props != nil }

// Delays returns the log's own, none where it has none, and never beyond the window.
func (l *Lesson) Delays() *delay.Delays {
	d := &delay.Delays{Spec: delay.Own, Delay: l.late[0].delay}
	for i, rule := range l.Model.Named {
		if d.Of == nil {
			d.Of = map[string]*delay.Delays{}
		}
		d.Of[rule.Name] = &delay.Delays{Spec: delay.Own, Delay: l.late[i].delay}
	}
	return d
}

func (l *lateness) delay(p *delay.Play) int64 {
	if l.came == nil {
		return 0
	}
	t := p.Round
	d := delay.Of(l.decided, l.came[t], t)
	late := d >= l.window.Rounds
	if l.window.Rounds == 0 && d != delay.Never {
		late = l.came[t]-l.decided[t] > l.window.Nanos
	}
	if late {
		return delay.Never
	}
	return d
}

// complete adds what was played to the context of round t. Actions that the model lists are left out.
func (l *Lesson) complete(c *codec.Context, t int) {
	log, row := l.env.Log, l.env.Row(t)
	c.Baseline = append(c.Baseline[:0], codec.Share{Name: c.Actions[log.Slot(row)].Name, P: 1})
	c.LoggedPropensity = 0
	if log.Props != nil {
		c.LoggedPropensity = log.Props[row]
	}
	bare := func(a codec.Action, name string) bool { return a.Name == name && len(a.Features) == 0 }
	if slices.EqualFunc(c.Actions, l.Model.Actions, bare) {
		c.Actions = nil
	}
}
