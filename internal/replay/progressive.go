package replay

import (
	"math"

	"hindsight/internal/loop"
	"hindsight/pkg/codec"
)

// Progressive is a learner as a policy to be judged on a log: in each row it says with
// which probabilities it would play, and then learns the recorded action and its outcome,
// at once. What it says of a row depends on earlier rows only, so that estimates of its
// mean loss over the log are as unbiased as those of a fixed policy. It learns of every
// row, not of those alone that it would have played: it is what a learner becomes that
// watches the logging policy. Its laws are those of the live code.
type Progressive struct {
	rounds  *Rounds
	replica *loop.Replica
	decider *loop.Decider
	epoch   int64

	decision codec.Decision
	feedback codec.Feedback
	n        int64 // rows so far
	err      error // the first
}

// NewProgressive returns the policy of a fresh learner over the rounds of a log; name
// and seed are those of [Backtest].
func NewProgressive(ep loop.Epoch, name string, seed []byte, rounds *Rounds) *Progressive {
	p := &Progressive{rounds: rounds, replica: loop.NewReplica(), epoch: ep.Number}
	p.replica.Begin(ep)
	p.decider = loop.NewDecider(p.replica, seed, name, 0, 1)
	return p
}

// law sets dst to the learner's probabilities in row t, then learns the row.
func (p *Progressive) law(dst []float64, t int, log *logView) {
	d := &p.decision
	if p.err == nil {
		p.n++
		res := p.decider.Decide(d, p.rounds.Context(t), "", loop.Source{Offset: p.n - 1, Through: p.n})
		if res.Verdict != loop.Decided {
			p.err = res.Err
		}
	}
	if p.err != nil {
		dst[0] = 1
		return
	}
	copy(dst, d.Propensities)
	loss := p.rounds.Env.Loss(t, log.action(t))
	if math.IsNaN(loss) {
		return
	}
	// What weighs by importance must weigh by what was done, not by what it would do.
	d.Propensities[log.action(t)] = log.propensity(t)
	p.feedback = codec.Feedback{N: p.n, Round: p.n, ID: d.ID, Epoch: p.epoch, LearnedThrough: d.LearnedThrough, Gamma: d.Gamma,
		Actions: d.Actions, Propensities: d.Propensities, Action: log.action(t), Fate: codec.Observed, Loss: loss, Context: d.Context}
	p.err = p.replica.Learn(&p.feedback)
}
