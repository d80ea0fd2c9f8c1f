package explain

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"

	"hindsight/internal/follow"
	"hindsight/internal/join"
	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

var errTooOld = errors.New("neither a snapshot before it is kept, nor all feedback that it had learned")

// replay follows the feedback log with a replica of the learner of its own.
type replay struct {
	x       *explainer
	audit   *follow.Follower
	decided bool  // the decision was recomputed
	at      int64 // log time of the last feedback taken; 0: none was
}

// recompute decides the round again with what had been learned, looks at what its feedback
// teaches, and returns the rules of its epoch, nil if they are gone.
func (x *explainer) recompute(ctx context.Context) (*loop.Rules, error) {
	for _, bySnapshot := range []bool{true, false} {
		r := &replay{x: x, audit: follow.New(x.Log, x.Name, x.Build, x.partitions)}
		err := r.run(ctx, bySnapshot)
		switch {
		case err == nil && r.decided:
			return r.audit.Rules(x.dec.Epoch), nil
		case err != nil && !errors.Is(err, loop.ErrGap) && !errors.Is(err, loop.ErrNoEpoch) &&
			!errors.Is(err, codec.ErrCorrupt):
			return nil, err
		}
		x.e.Taught = nil
	}
	x.e.Check = "not recomputed: " + errTooOld.Error()
	return nil, nil
}

// run brings the replica from a start to the decision, and on to its feedback.
func (r *replay) run(ctx context.Context, bySnapshot bool) error {
	x := r.x
	from, err := r.begin(ctx, bySnapshot)
	if err != nil {
		return err
	}
	_, end, err := x.Log.Bounds(ctx, x.topics.Feedback, 0)
	if err != nil {
		return err
	}
	err = stream.Scan(ctx, x.Log, x.topics.Feedback, 0, from, end, func(rec *stream.Record) error {
		if !r.decided && r.here() {
			if err := r.decide(ctx); err != nil {
				return err
			}
		}
		if r.decided && (x.fedRec == nil || rec.Offset >= x.fedRec.Offset) {
			return r.last(ctx, rec)
		}
		return r.take(ctx, rec)
	})
	if err == nil && !r.decided && r.here() {
		err = r.decide(ctx)
	}
	return err
}

// begin restores the last snapshot that had learned no more than the decision, and returns
// where to go on reading; without one, or if it is not wanted, the first epoch that is kept.
func (r *replay) begin(ctx context.Context, bySnapshot bool) (from int64, err error) {
	x := r.x
	if !bySnapshot {
		return stream.Earliest, nil
	}
	var best *follow.Snapshot
	err = follow.ReadSnapshots(ctx, x.Log, join.TopicsOf(x.Name), func(s *follow.Snapshot, err error) error {
		if err == nil && s.Through <= x.dec.LearnedThrough && s.Rec.Epoch <= x.dec.Epoch &&
			(best == nil || s.Through >= best.Through) {
			best = s
		}
		return nil // a damaged one is for verify to tell
	})
	if err != nil || best == nil {
		return stream.Earliest, err
	}
	return best.FeedbackFrom, r.audit.Restore(best)
}

// here reports whether the replica is where the decision was made.
func (r *replay) here() bool {
	rep, d := r.audit.Replica(), &r.x.dec
	return rep.Epoch() != nil && rep.Epoch().Number == d.Epoch && rep.LearnedThrough() == d.LearnedThrough
}

// take learns from a record. Before the first epoch that is kept, feedback is passed over: an
// epoch begins with a fresh learner.
func (r *replay) take(ctx context.Context, rec *stream.Record) error {
	if r.audit.Replica().Epoch() == nil {
		switch rec.Type {
		case "":
			return nil
		case codec.TypeEpoch:
			e, err := codec.ParseEpoch(rec.Value)
			if codec.Foreign(err) {
				return nil
			}
			if err != nil {
				return err
			}
			return r.audit.TakeFrom(ctx, rec, e.Through)
		}
	}
	if rec.Type == "" {
		r.at = rec.Time
		r.x.tellStage(rec)
	}
	return r.audit.Take(ctx, rec)
}

// decide lets the heart decide again and compares, and fills in why.
func (r *replay) decide(ctx context.Context) error {
	x, d := r.x, &r.x.dec
	r.decided = true
	heart := loop.NewDecider(r.audit.Replica(), x.Seed, x.Name, d.Partition, 1)
	if d.First.N > 0 {
		if err := x.findRound(ctx, d.First, heart.Units.Remember); err != nil {
			return err
		}
	}
	heart.Resume(d.N, d.ContextsThrough)
	src := loop.Source{Offset: d.Source, Through: d.ContextsThrough, Time: d.Time, Reached: d.Time}
	var again codec.Decision
	res := heart.Decide(&again, d.Context, d.ID, src)
	switch {
	case res.Verdict != loop.Decided:
		x.e.Check = fmt.Sprintf("different: this context would not be decided (%v)", res.Err)
	case !bytes.Equal(codec.Like(x.rec.Value, codec.AppendDecision(nil, &again)), x.rec.Value):
		x.e.Check = "different: run replayer verify, which names the first difference in the log"
	default:
		x.e.Check = "identical"
	}
	x.had(r.audit.Rounds())
	x.e.Had.LastAt = logTime(r.at)
	look, err := r.audit.Replica().Look(d.Context)
	if err != nil {
		return nil // said by Check
	}
	x.why(&look, r.audit.Replica().Epoch().Rules.Mode)
	return nil
}

// had fills in what the model had learned of the round's own partition.
func (x *explainer) had(rounds []int64) {
	if d := &x.dec; d.Partition < len(rounds) {
		through, out := rounds[d.Partition], max(0, d.N-1-rounds[d.Partition])
		x.e.Had.OwnThrough, x.e.Had.Outstanding = &through, &out
	}
}

// why fills in what the learner thought.
func (x *explainer) why(l *loop.Look, model codec.Mode) {
	out := &x.e.Decision
	for i := range out.Actions {
		if i < len(l.Predicted) {
			out.Actions[i].Predicted = &l.Predicted[i]
		}
	}
	switch mu, ok := barrier(l); {
	case x.dec.First.N > 0:
		out.Why = fmt.Sprintf("one unit has one draw for a time, and this repeats that of round %d of partition %d",
			x.dec.First.N, x.dec.First.Partition)
	case model == codec.Live && x.dec.Mode == codec.Shadow:
		out.Why = "the guard held the learner back: its law, which would have been drawn from without lose_at_most, " +
			"was mixed into the baseline's"
	case x.dec.Mode == codec.External:
		out.Why = "another system decided, and the propensities are those that it gave"
	case x.dec.Mode != codec.Live:
		out.Why = "the model was in this mode: the baseline answered, and the propensities are its own"
	case len(l.Law) == 1:
		out.Why = "there was one action"
	case ok:
		out.Mu = &mu
		out.Why = "p(a) = 1/(μ + γ·(f̂(a) − min f̂)): the smaller the expected loss of an action, the larger p(a); " +
			"the larger γ, the more so"
	case l.Predicted != nil:
		out.Why = "the probabilities follow from the expected losses"
	default:
		out.Why = "this learner predicts no losses: its probabilities are the votes of its policies, or fixed"
	}
}

// barrier returns μ if the law is that of DA-FA over all actions.
func barrier(l *loop.Look) (mu float64, ok bool) {
	if !(l.Gamma > 0) || l.Predicted == nil {
		return 0, false
	}
	low, k := math.Inf(1), float64(len(l.Law))
	for _, f := range l.Predicted {
		low = min(low, f)
	}
	mu = k
	for i, p := range l.Law { // Σ p·(f̂ − min f̂) = (K − μ)/γ
		mu -= l.Gamma * p * (l.Predicted[i] - low)
	}
	for i, p := range l.Law {
		if math.Abs(p*(mu+l.Gamma*(l.Predicted[i]-low))-1) > 1e-6 {
			return 0, false
		}
	}
	return mu, true
}

// last takes the round's feedback and looks at what that changes; without one there is nothing more to read.
func (r *replay) last(ctx context.Context, rec *stream.Record) error {
	x := r.x
	if x.fedRec == nil || rec.Offset > x.fedRec.Offset {
		return stream.ErrStop
	}
	rep := r.audit.Replica()
	before, err := rep.Look(x.dec.Context)
	if err != nil {
		return stream.ErrStop
	}
	learned := rep.Epoch().Learner.Learned()
	if err := r.take(ctx, rec); err != nil {
		return err
	}
	after, err := rep.Look(x.dec.Context)
	if err != nil {
		return stream.ErrStop
	}
	t := &taught{Learned: rep.Epoch().Learner.Learned() > learned}
	for i, name := range before.Actions {
		c := changed{Action: name, PropensityBefore: before.Law[i], PropensityAfter: after.Law[i]}
		if before.Predicted != nil {
			c.PredictedBefore, c.PredictedAfter = &before.Predicted[i], &after.Predicted[i]
		}
		t.Actions = append(t.Actions, c)
	}
	if fate := x.fed.Fate; !t.Learned && (fate == codec.Observed || fate == codec.Imputed) {
		x.note("it has a loss and was not learned: another epoch had begun with a learner of its own, or the model " +
			"was paused")
	}
	x.e.Taught = t
	return stream.ErrStop
}
