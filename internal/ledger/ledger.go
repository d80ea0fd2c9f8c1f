package ledger

import "math"

// Alpha bounds the chance that any interval of a [Ledger]'s values is ever wrong, and the same of its gains.
const Alpha = 0.05

// Ledger judges candidates on the final rounds of a log, in the order of their decisions.
type Ledger struct {
	rule       Rule
	level      float64 // of each end of an interval
	predictor  Predictor
	rounds     int64
	unknown    int64 // rounds without a loss
	fired      int64 // N of the round after which the rule held first; 0: it has not
	candidates []candidate
	gain       Sequence // of the rule's candidate

	predicted [2][]float64 // of each action: its loss, and one minus that
}

// Rule says when a candidate is promoted: when the lower end of its gain exceeds BetterBy.
type Rule struct {
	Candidate int
	BetterBy  float64
	Alpha     float64 // chance that it is ever promoted although its gain is at most BetterBy; 0: there is no rule
}

// candidate has lower ends: of its value, of one minus its value, of minus its gain, and of its gain.
type candidate struct {
	known           [4]Sequence // rounds with a loss
	all             [4]Sequence // those without one count at their worst; not kept before the first of these
	weight, squares float64     // Σ w and Σ w², of known
}

// New returns a ledger of some candidates that has seen no round.
func New(candidates int, rule Rule) *Ledger {
	return &Ledger{rule: rule, candidates: make([]candidate, candidates), level: Level(Alpha / 2 / float64(candidates))}
}

// Add adds the next final round. policies are the probabilities with which each candidate would have played its
// actions; nil: that is not known of this round, which the candidate skips. It reports whether the rule now holds for
// the first time.
func (l *Ledger) Add(r *Round, policies [][]float64) bool {
	p := &l.predicted
	p[0], p[1] = l.predictor.Predict(p[0][:0], r.Actions), p[1][:0]
	for _, loss := range p[0] {
		p[1] = append(p[1], 1-loss)
	}
	if l.unknown == 0 && !r.Known {
		for i := range l.candidates {
			l.candidates[i].all = l.candidates[i].known
		}
	}
	l.rounds++
	if !r.Known {
		l.unknown++
	}
	for i, policy := range policies {
		if policy != nil {
			l.candidates[i].add(r, policy, p, l.level, l.unknown > 0)
		}
	}
	if !r.Known {
		return false
	}
	l.predictor.Learn(r)
	return l.check(r, policies)
}

// check adds a round with a loss to what the rule reads. Its predictions are those before the round.
func (l *Ledger) check(r *Round, policies [][]float64) bool {
	rule := &l.rule
	if rule.Alpha == 0 || policies[rule.Candidate] == nil {
		return false
	}
	level := Level(rule.Alpha)
	l.gain.Add(score(r, policies[rule.Candidate], l.predicted[1], 1-r.Loss, 1), level)
	if l.fired > 0 || unscale(l.gain.Low(level), 1) <= rule.BetterBy {
		return false
	}
	l.fired = r.N
	return true
}

// add scores a round: the sequences of odd numbers are of one minus the loss, those from 2 on less what is played.
func (c *candidate) add(r *Round, policy []float64, predicted *[2][]float64, level float64, all bool) {
	if r.Known {
		w := policy[r.Action] / r.Law[r.Action]
		c.weight += w
		c.squares += float64(w * w)
	}
	loss := [2]float64{r.Loss, 1 - r.Loss}
	for i := range c.known {
		x, shift := loss[i%2], float64(i/2)
		if !r.Known {
			x = worst(r, policy, shift)
		}
		s := score(r, policy, predicted[i%2], x, shift)
		if r.Known {
			c.known[i].Add(s, level)
		}
		if all {
			c.all[i].Add(s, level)
		}
	}
}

// Estimate is what is known of a candidate. Losses are in [0,1]; without a round intervals say nothing.
type Estimate struct {
	// its name, which the caller gives: baseline, uniform, learner, always:ACTION, or policies:FILE, with #NUMBER where
	// the file has several
	Policy    string   `json:"policy"`
	Rounds    int64    `json:"rounds"`    // with a loss, of which the log tells what the policy would have played
	Effective float64  `json:"effective"` // sample size: (Σw)²/Σw², w the policy's probability over the log's
	Value     Interval `json:"loss"`      // mean a round
	// mean loss of what is played less the policy's: positive if the policy is better
	Gain      Interval `json:"gain"`
	Worst     Interval `json:"worst"`      // the loss, whatever rounds without one have lost
	WorstGain Interval `json:"worst_gain"` // the gain, the same
	Beaten    bool     `json:"beaten"`     // its gain is below 0, or below that of another candidate
}

// Interval is an estimate with its confidence sequence, which holds at all times.
type Interval struct {
	Mean float64 `json:"mean"` // of the rounds so far
	Low  float64 `json:"low"`  // lower end
	High float64 `json:"high"` // upper end
}

// Estimates appends what is known of each candidate.
func (l *Ledger) Estimates(dst []Estimate) []Estimate {
	n, best := len(dst), 0.0
	for i := range l.candidates {
		c := &l.candidates[i]
		e := Estimate{Rounds: c.known[0].N, Value: value(&c.known, l.level), Gain: gain(&c.known, l.level)}
		if c.squares > 0 {
			e.Effective = c.weight * c.weight / c.squares
		}
		if e.Worst, e.WorstGain = e.Value, e.Gain; l.unknown > 0 {
			e.Worst, e.WorstGain = value(&c.all, l.level), gain(&c.all, l.level)
		}
		best = max(best, e.Gain.Low)
		dst = append(dst, e)
	}
	for i := range dst[n:] {
		dst[n+i].Beaten = dst[n+i].Gain.High < best
	}
	return dst
}

// value and gain make an interval of two lower ends each.
func value(s *[4]Sequence, level float64) Interval {
	return Interval{Mean: (unscale(s[0].Mean(), 0) + 1 - unscale(s[1].Mean(), 0)) / 2,
		Low: unscale(s[0].Low(level), 0), High: 1 - unscale(s[1].Low(level), 0)}.within(0, 1)
}

func gain(s *[4]Sequence, level float64) Interval {
	return Interval{Mean: (unscale(s[3].Mean(), 1) - unscale(s[2].Mean(), 1)) / 2,
		Low: unscale(s[3].Low(level), 1), High: -unscale(s[2].Low(level), 1)}.within(-1, 1)
}

func (i Interval) within(lo, hi float64) Interval {
	return Interval{Mean: i.Mean, Low: math.Max(lo, i.Low), High: math.Min(hi, i.High)}
}

// Rounds returns the final rounds added, and those of them without a loss.
func (l *Ledger) Rounds() (all, unknown int64) { return l.rounds, l.unknown }

// Fired returns the N of the round after which the rule held first; 0: it has not.
func (l *Ledger) Fired() int64 { return l.fired }
