package explain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"hindsight/internal/follow"
	"hindsight/internal/join"
	"hindsight/internal/loop"
	"hindsight/internal/topics"
	"hindsight/pkg/codec"
	"hindsight/pkg/learner"
	"hindsight/pkg/stream"
)

// Config is what [Round] needs.
type Config struct {
	Log      stream.Log
	Name     string // of the model
	Seed     []byte // the secret seed of its draws
	Build    follow.Build
	Features bool // the context may be shown
}

// ErrNotFound reports an id that no decision kept has.
var ErrNotFound = errors.New("no decision that is kept has this id")

// explainer is the state of one Round.
type explainer struct {
	Config
	topics     join.Topics
	partitions int
	e          *Explanation

	rec    *stream.Record // of the decision
	dec    codec.Decision
	fedRec *stream.Record // of its feedback; nil: none is there
	fed    codec.Feedback
}

// Round tells the life of the last round that has an id. It reads decisions back from their end until it finds it, and
// of the other logs what was written since, and recomputes from the last snapshot before it.
func Round(ctx context.Context, c Config, id string) (*Explanation, error) {
	x := &explainer{Config: c, topics: join.TopicsOf(c.Name)}
	x.e = &Explanation{ID: id, Model: c.Name, Outcomes: []outcome{}, Notes: []string{}}
	if err := x.run(ctx, id); err != nil {
		return nil, fmt.Errorf("explain %q: %w", id, err)
	}
	return x.e, nil
}

func (x *explainer) run(ctx context.Context, id string) (err error) {
	if x.partitions, err = topics.Partitions(ctx, x.Log, x.Name); err != nil {
		return err
	}
	if err := x.findDecision(ctx, id); err != nil {
		return err
	}
	x.decided()
	for _, step := range []func(context.Context) error{x.arrival, x.findFeedback, x.findCut, x.findRejects} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	rules, err := x.recompute(ctx)
	if err != nil {
		return err
	}
	x.unread(rules)
	several := rules != nil && (rules.Outcomes != loop.First || rules.Activation || rules.Named != nil)
	if err := x.findOutcomes(ctx, several); err != nil {
		return err
	}
	slices.SortStableFunc(x.e.Outcomes, func(a, b outcome) int { return cmp.Compare(a.LogTime, b.LogTime) })
	return nil
}

func (x *explainer) note(format string, args ...any) {
	x.e.Notes = append(x.e.Notes, fmt.Sprintf(format, args...))
}

// decided fills in what the decision's record says.
func (x *explainer) decided() {
	d, out := &x.dec, &x.e.Decision
	*out = decision{Partition: d.Partition, N: d.N, Offset: x.rec.Offset, LogTime: logTime(x.rec.Time), Epoch: d.Epoch,
		Gamma: d.Gamma, Mode: d.Mode.String(), Action: d.Actions[d.Action], Propensity: known(d, d.Action)}
	for i, name := range d.Actions {
		a := action{Action: name, Propensity: known(d, i), Drawn: i == d.Action}
		if i < len(d.Would) {
			a.Would = &d.Would[i]
		}
		out.Actions = append(out.Actions, a)
	}
	for _, p := range d.Prices {
		out.Prices = append(out.Prices, value{p.Name, new(p.X)})
	}
	x.e.Had = had{LearnedThrough: d.LearnedThrough, Learned: d.Learned}
	if d.Mode == codec.External {
		var c codec.Context
		if codec.ParseContext(&c, d.Context) == nil {
			out.By = c.Assigned.By
		}
		return // nothing was drawn
	}
	u := float64(learner.Uniform(x.Seed, x.Name, d.Partition, d.N, d.ID)) * 0x1p-53
	out.Draw = &u
}

// known returns the propensity of an action, nil if it is unknown.
func known(d *codec.Decision, action int) *float64 {
	if d.Unknown == codec.UnknownLaw || d.Unknown == codec.UnknownRest && action != d.Action {
		return nil
	}
	return &d.Propensities[action]
}

// arrival fills in how the context came.
func (x *explainer) arrival(ctx context.Context) error {
	d, out := &x.dec, &x.e.Context
	*out = roundContext{Source: "request", Partition: d.Partition, Offset: d.Source, Bytes: len(d.Context)}
	if x.Features {
		out.Text = contextText(d.Context)
	}
	if d.Source == loop.RequestSource {
		return nil
	}
	out.Source, out.LogTime = "topic", logTime(d.Time)
	return stream.Scan(ctx, x.Log, x.topics.Contexts, d.Partition, d.Source, d.Source+1, func(r *stream.Record) error {
		out.Kept = codec.SameContext(r.Value, d.Context)
		if !out.Kept {
			x.note("the record at this offset of contexts is not what was decided: run replayer verify")
		}
		return nil
	})
}

// unread fills in what nobody read of the context, under the rules of its epoch; where they are gone only keys tell.
func (x *explainer) unread(rules *loop.Rules) {
	n, names := loop.Unread(rules, x.dec.Context)
	switch {
	case n == 0:
	case x.Features:
		x.e.Context.NotRead = names.String()
	default:
		x.e.Context.NotRead = fmt.Sprintf("%d features or keys", n)
	}
}

// closed fills in what became of the round.
func (x *explainer) closed() {
	f := &x.fed
	x.e.Feedback = &feedback{N: f.N, Offset: x.fedRec.Offset, LogTime: logTime(x.fedRec.Time), Fate: f.Fate.String(),
		Reason: f.Reason,
		Loss:   f.Loss, Delay: seconds(f.ClosedAt - f.Time), Waited: seconds(x.fedRec.Time - f.ClosedAt),
		Overtaken: max(0, f.N-1-f.LearnedThrough)}
	if f.ClosedAt != loop.End {
		x.e.Feedback.ClosedAt = logTime(f.ClosedAt)
	} else {
		x.e.Feedback.Delay, x.e.Feedback.Waited = 0, 0
		x.note("the round was closed by the end of a file")
	}
}

func seconds(ns int64) float64 { return max(0, float64(ns)/1e9) }

// contextText returns a context as JSON.
func contextText(raw []byte) string {
	if codec.IsJSON(raw) {
		return strings.TrimSpace(string(raw))
	}
	var c codec.Context
	if err := codec.ParseContext(&c, raw); err != nil {
		return ""
	}
	return string(codec.AppendContextJSON(nil, &c))
}
