package judge

import (
	"fmt"
	"math"

	"hindsight/internal/dataset"
	"hindsight/internal/loop"
	"hindsight/internal/replay"
	"hindsight/pkg/codec"
)

// Progressive is a learner as a policy to be judged on a log: in each row it says with which probabilities it would
// play, and then learns the recorded action and its outcome, at once. What it says of a row depends on earlier rows
// only, so that estimates of its mean loss over the log are as unbiased as those of a fixed policy. It learns of every
// row, not of those alone that it would have played: it is what a learner becomes that watches the logging policy. Its
// laws are those of the live code.
//
// One that is frozen learns nothing: it is a policy that was trained elsewhere.
type Progressive struct {
	rounds  *replay.Reader // of a frozen one nil
	env     *replay.Rounds
	index   map[string]int // of the log's actions
	replica *loop.Replica
	decider *loop.Decider
	epoch   int64
	madeOf  string

	decision codec.Decision
	feedback codec.Feedback
	context  codec.Context // of a frozen one, and its bytes
	raw      []byte
	n        int64 // rows so far
	stopped  func() error
	err      error // the first
}

// NewProgressive returns the policy of a fresh learner over the rounds of a log; name and seed are those of [Backtest].
func NewProgressive(ep loop.Epoch, name string, seed []byte, rounds *replay.Rounds) *Progressive {
	p := NewFrozen(ep, name, seed, rounds)
	p.rounds = rounds.Reader()
	return p
}

// NewFrozen returns the policy of a learner as it is, on the rows of env, whose actions it must know or take by name.
func NewFrozen(ep loop.Epoch, name string, seed []byte, env *replay.Rounds) *Progressive {
	p := &Progressive{env: env, index: map[string]int{}, replica: loop.NewReplica(), epoch: ep.Number, madeOf: unknown}
	for a, name := range env.Actions {
		p.index[name] = a
	}
	p.replica.Begin(ep)
	p.decider = loop.NewDecider(p.replica, seed, name, 0, 1)
	return p
}

// StopWhen lets the policy end with the error that stopped returns: that of a context. It is asked now and then.
func (p *Progressive) StopWhen(stopped func() error) { p.stopped = stopped }

// contextOf returns the bytes of the context of row t. A model that has a list of its
// own actions is asked with the log's, in whatever order.
func (p *Progressive) contextOf(t int) []byte {
	if p.rounds != nil {
		return p.rounds.Bytes(t)
	}
	p.env.Context(&p.context, t)
	p.context.ID = dataset.RoundID(t)
	p.raw = codec.AppendContext(p.raw[:0], &p.context)
	return p.raw
}

// spread sets dst to the law of the decision, which may list the actions in an order of its own.
func (p *Progressive) spread(dst []float64) error {
	d := &p.decision
	for i, name := range d.Actions {
		a, ok := p.index[name]
		if !ok {
			return fmt.Errorf("the model plays %q, which the log does not know", name)
		}
		dst[a] = d.Propensities[i]
	}
	return nil
}

// law sets dst, which is zeroed, to the learner's probabilities in row t, then learns the row.
func (p *Progressive) law(dst []float64, t int) {
	d := &p.decision
	if p.n&1023 == 0 && p.stopped != nil && p.err == nil {
		p.err = p.stopped()
	}
	if p.err == nil {
		p.n++
		res := p.decider.Decide(d, p.contextOf(t), "", loop.Source{Offset: p.n - 1, Through: p.n})
		if res.Verdict != loop.Decided {
			p.err = res.Err
		}
	}
	if p.err == nil {
		p.err = p.spread(dst)
	}
	if p.err != nil {
		clear(dst)
		dst[0] = 1
		return
	}
	log, row := p.env.Log, p.env.Row(t)
	slot := log.Slot(row)
	loss := p.env.Loss(t, slot)
	fate, outcomes := codec.Observed, p.env.Closed(p.feedback.Outcomes[:0], t, slot)
	if math.IsNaN(loss) {
		fate, loss = codec.Skipped, 0
	}
	if p.rounds == nil || fate == codec.Skipped && len(outcomes) == 0 {
		return
	}
	// What weighs by importance must weigh by what was done and kept, not by what it would do.
	d.Propensities[slot] = log.Kept(row)
	p.feedback = codec.Feedback{N: p.n, Round: p.n, ID: d.ID, Epoch: p.epoch, LearnedThrough: d.LearnedThrough,
		Gamma:   d.Gamma,
		Actions: d.Actions, Propensities: d.Propensities, Action: slot, Fate: fate, Loss: loss, Context: d.Context,
		Outcomes: outcomes}
	p.err = p.replica.Learn(&p.feedback, nil)
}
