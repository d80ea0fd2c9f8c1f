package replay

import (
	"fmt"
	"math"

	"hindsight/internal/ope"
)

// Replay is what a log with propensities says of a learner that was replayed on it: its
// mean loss in [0,1] over the policies that it had from row to row, without bias but for
// the rows that it met: it learned from those alone.
//
// A row whose recorded action the learner drew is accepted with probability min(1, c/p)
// and weighs 1/min(p, c). With the smallest propensity as c that is rejection sampling:
// all weights are equal, and what the learner met is what it would have met live, in
// fewer rounds (Li, Chu, Langford, Wang, 2011, Unbiased Offline Evaluation, for uniform
// p). With c = 1 every match counts: more rounds, but contexts and actions that the
// logging policy preferred are over-represented in what it learned from.
type Replay struct {
	Accept float64      `json:"accept"` // c
	Rounds int64        `json:"rounds"` // accepted, with an outcome
	ESS    ope.Figure   `json:"ess"`
	IPS    ope.Estimate `json:"ips"`   // Σ w·l / n over n rows with an outcome
	SNIPS  ope.Estimate `json:"snips"` // Σ w·l / Σ w
}

// replaySums are running sums over the rows of a log that have an outcome.
type replaySums struct {
	rows     float64 // events that the rows stand for
	weighted         // those accepted
}

// result returns the estimates; those of no row are null.
func (s *replaySums) result(accept float64) *Replay {
	n := s.rows
	ips := s.wl / n
	variance := max(0, s.wwll-n*ips*ips) / (n - 1)
	return &Replay{Accept: accept, Rounds: s.n, ESS: ope.Figure(s.w * s.w / s.ww),
		IPS: ope.Normal("ips", ips, math.Sqrt(variance/n)), SNIPS: ope.Normal("snips", s.mean(), s.spread())}
}

// Accepting returns env, a bandit log with propensities, such that replay accepts rows
// by c: 1 all, 0 by the smallest propensity. Which ones is drawn from the seed. Other
// environments are returned as they are, if c is 1.
func Accepting(env Environment, c float64, seed uint64) (Environment, error) {
	if !(c >= 0 && c <= 1) {
		return nil, fmt.Errorf("%v: expected a propensity in (0, 1], or 0 for the smallest of the log", c)
	}
	if c == 1 {
		return env, nil
	}
	log, ok := env.(*BanditLog)
	if !ok || log.props == nil {
		return nil, errNoPropensities
	}
	if c == 0 {
		c = 1
		for _, p := range log.props {
			c = min(c, p)
		}
	}
	out := *log
	out.accept, out.rejected = c, make([]bool, log.Len())
	stream := NewStream(seed, "accept")
	for t, p := range log.props {
		out.rejected[t] = stream.Uniform(uint64(t), 0)*p >= c
	}
	return &out, nil
}

// played reports whether replay takes action a for that of row t.
func (v *logView) played(t, a int) bool {
	return a == v.slot(t) && (v.log.rejected == nil || !v.log.rejected[v.row(t)])
}

// weight returns that of an accepted row, times the events that it stands for.
func (v *logView) weight(t int) float64 {
	if c := v.log.accept; c > 0 {
		return v.stands(t) / min(c, v.propensity(t))
	}
	return v.stands(t) / v.propensity(t)
}
