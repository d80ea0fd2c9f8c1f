package loop

import (
	"fmt"
	"slices"

	"hindsight/pkg/codec"
	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

// BaselineKind says what is done without a learner when the context does not name it.
type BaselineKind uint8

// The kinds of baselines.
const (
	FirstAction   BaselineKind = iota // the first eligible action: whoever asks lists its own first
	UniformAction                     // all eligible actions alike
	FixedAction                       // one action; all alike where it is not eligible
	NamedAction                       // the context names it, or is refused
)

// Baseline is the law that is drawn from in every mode but live, and that the guard
// compares the learner with. A context that brings its own comes first.
type Baseline struct {
	Kind   BaselineKind
	Action string // of FixedAction
}

// baseline appends the baseline's law over the eligible actions of the parsed context, on
// the grid that is drawn from. Of the law that the context brings the part that is
// eligible counts, in proportion; if that is nothing, for it is masked, all are alike.
func (r *reader) baseline(dst []float64) []float64 {
	in, own, b, n := &r.in, r.ctx.Baseline, &r.rules.Baseline, len(dst)
	dst = appendZeros(dst, len(in.Actions))
	p := dst[n:]
	switch {
	case len(own) > 0:
		r.match(own, in.Actions, func(i, a int) {
			if a >= 0 {
				p[a] = own[i].P
			}
		})
	case b.Kind == FirstAction:
		p[0] = 1
	case b.Kind == FixedAction:
		for a := range in.Actions {
			if in.Actions[a].Name == b.Action {
				p[a] = 1
			}
		}
	}
	normalise(p)
	learner.Law(p, p)
	return dst
}

func appendZeros(dst []float64, n int) []float64 {
	for range n {
		dst = append(dst, 0)
	}
	return dst
}

// normalise makes p sum to 1, up to rounding; equal shares if all of it is 0.
func normalise(p []float64) {
	sum := 0.0
	for _, v := range p {
		sum += v
	}
	for i := range p {
		if sum > 0 {
			p[i] /= sum
		} else {
			p[i] = 1 / float64(len(p))
		}
	}
}

// checkBaseline checks what a context says of its baseline.
func (r *reader) checkBaseline() error {
	c := r.ctx
	if len(c.Baseline) == 0 {
		if r.rules.Baseline.Kind == NamedAction && r.rules.asksBaseline() {
			return codec.ContextError("baseline", errNoBaseline)
		}
		return nil
	}
	strange := -1
	r.match(c.Baseline, r.in.Actions, func(i, a int) {
		if _, masked := r.masked[c.Baseline[i].Name]; a < 0 && !masked {
			strange = i
		}
	})
	if strange >= 0 {
		return codec.ContextError("baseline", fmt.Errorf("%w: %q", errBaseline, c.Baseline[strange].Name))
	}
	return nil
}

// match calls found with the index of each name among actions, -1 if it is not there. Many names take a table.
func (r *reader) match(own []codec.Share, actions []oracle.Action, found func(i, a int)) {
	const few = 4096
	if len(own)*len(actions) > few {
		places := make(map[string]int32, len(actions))
		for a := range actions {
			places[actions[a].Name] = int32(a)
		}
		for i := range own {
			if a, ok := places[own[i].Name]; ok {
				found(i, int(a))
			} else {
				found(i, -1)
			}
		}
		return
	}
	for i := range own {
		found(i, slices.IndexFunc(actions, func(a oracle.Action) bool { return a.Name == own[i].Name }))
	}
}

// asksBaseline reports whether the baseline of a context matters.
func (r *Rules) asksBaseline() bool { return r.Mode != codec.Live || r.Guard.On() || r.HoldOut > 0 }

// decideLaw fills in what a round is drawn from by the mode at work: the learner's law, or the
// baseline's and perhaps the learner's beside it.
func (d *Decider) decideLaw(dst *codec.Decision, in *oracle.Input, id string) (gamma float64) {
	r := d.replica
	if dst.Unit != "" {
		id = dst.Unit // whom the share of the baseline is held out for
	}
	dst.Mode, dst.Would, dst.Prices, dst.Unknown = d.mode(id), dst.Would[:0], dst.Prices[:0], 0
	if dst.Mode == codec.Live {
		d.law, gamma = r.epoch.Learner.Propensities(d.law[:0], in)
		d.addPrices(dst)
		d.holdBack(dst, in)
		return gamma
	}
	if dst.Mode == codec.Shadow {
		dst.Would, gamma = r.epoch.Learner.Propensities(dst.Would, in)
		d.addPrices(dst)
	}
	d.law = r.reader.baseline(d.law[:0])
	return gamma
}

// mode returns the mode that applies to an id, or to the unit that a context names.
func (d *Decider) mode(id string) codec.Mode {
	if m := d.replica.epoch.Rules.Mode; m != codec.Live || !d.heldOut(id) {
		return m
	}
	return codec.Shadow
}

// addPrices adds what the learner charged when it was asked.
func (d *Decider) addPrices(dst *codec.Decision) {
	rules := d.replica.epoch.Rules
	if len(rules.Budgets) == 0 {
		return
	}
	if l, ok := d.replica.epoch.Learner.(learner.Priced); ok {
		d.prices = l.Prices(d.prices[:0])
		for i, x := range d.prices {
			dst.Prices = append(dst.Prices, codec.Price{Name: rules.Budgets[i], X: x})
		}
	}
}

// teach gives a feedback to a learner as the modes say: that of the round, and that of now.
//
//   - a round decided live is learned; while paused it is charged as one without a loss,
//     for it was the learner's own;
//   - a round in shadow, of an apprentice or of another system is learned as one that another
//     law played, with the propensities that it was drawn with; not while paused;
//   - a round decided while paused is never learned;
//   - a round that repeats the draw of its unit is not learned: the draw is.
//
// c is the feedback's context if it is at hand, else nil.
func teach(l learner.Learner, rd *reader, round *learner.Round, f *codec.Feedback, c *codec.Context,
	paused bool) error {
	fate, borrowed := learner.Fate(f.Fate), f.Mode != codec.Live
	if f.Stage > 0 && (paused || f.Mode == codec.Paused || len(rd.rules.Named) == 0 && rd.rules.Provisional == nil) {
		return nil // it has nothing to say, and its round comes again
	}
	switch {
	case f.Mode == codec.Paused, paused && borrowed, f.First.N > 0:
		fate = learner.Withdrawn // it has its place in the order, and nothing to say
	case paused && (fate == learner.Observed || fate == learner.Imputed):
		fate = learner.Skipped
	}
	return learn(l, rd, round, f, c, fate, borrowed)
}
