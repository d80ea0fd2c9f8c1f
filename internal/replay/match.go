package replay

import (
	"cmp"
	"math"

	"hindsight/internal/delay"
	"hindsight/internal/loop"
	"hindsight/internal/ope"
	"hindsight/pkg/codec"
)

// Match plays rounds against a learner: it scores each decision and says which
// outcomes come back after it. Backtests and injections share it.
type Match struct {
	rounds   *Reader
	scale    loop.Range // on which the model takes outcomes
	delays   *delay.Delays
	Schedule *delay.Schedule
	play     delay.Play
	truth    []float64
	n        int // rounds so far

	loss, regret float64
	scored       float64 // rounds in loss, or the events that they stand for
	matched      int64   // of a log: those that drew the recorded action
	replay       replaySums
	course       *course
	contexts     *contextTable // nil: not looked at

	parts []part       // of named outcomes
	when  []delay.Part // used again
	said  []codec.Value
	tally []ope.Weighted // of named outcomes, budgets and prices
	y     []float64
	debts []debt // of budgets
}

// NewMatch returns the match of rounds of which nothing was played yet.
func NewMatch(rounds *Rounds, d *delay.Delays, scale loop.Range) *Match {
	n := rounds.Len()
	m := &Match{rounds: rounds.Reader(), scale: scale, delays: d, Schedule: delay.NewSchedule(n, d.Times),
		truth: make([]float64, len(rounds.Actions)), course: newCourse(), parts: rounds.partsOf(d)}
	if r := rounds.named; r != nil {
		m.y, m.debts = make([]float64, len(r.rules)), make([]debt, len(r.spend))
		m.tally = make([]ope.Weighted, len(r.rules)+2*len(r.spend))
	}
	for _, of := range d.Of {
		m.Schedule.Timed = m.Schedule.Timed || of.Times != nil
	}
	return m
}

// Decided scores the decision of the next round and chooses its delay.
func (m *Match) Decided(d *codec.Decision) {
	t, a := m.n, d.Action
	m.n++
	if m.rounds.Log != nil {
		m.recorded(t, a, d)
	} else {
		m.told(t, a, d)
	}
	if m.contexts != nil {
		m.look(t, a)
	}
}

// Played returns the rounds decided so far.
func (m *Match) Played() int { return m.n }

// LookAtContexts has the match look for the contexts in which the learner does worst.
func (m *Match) LookAtContexts() { m.contexts = newContextTable() }

// Ended ends the round decided last, of an injection: so many earlier rounds were without an outcome then, and so
// many not released.
func (m *Match) Ended(arriving, waiting int64) {
	m.course.decided(arriving, waiting, notKnown)
	m.course.end(m.fileTime(m.n - 1))
}

// told is decided for an environment that says the loss of every action.
func (m *Match) told(t, a int, d *codec.Decision) {
	loss := m.rounds.Loss(t, a)
	m.loss += loss
	m.scored++
	m.course.now.of[lineLoss].Add(1, loss)
	m.play = delay.Play{Round: t, Action: a, Loss: loss}
	if m.rounds.Known {
		m.rounds.Truth(m.truth, t)
		regret := lawRegret(d.Propensities, m.truth)
		m.regret += regret
		m.course.truth(m.truth, regret)
		m.play.Truth = m.truth
	}
	m.count(t, a, 1, d)
	m.lay(t, a)
}

// recorded is decided for a bandit log. Where the recorded action was not drawn nothing
// is known of the round: it is withdrawn at once.
func (m *Match) recorded(t, a int, d *codec.Decision) {
	log, row := m.rounds.Log, m.rounds.Row(t)
	logged, stands := m.rounds.Loss(t, log.Slot(row)), log.Stands(row)
	observed := !math.IsNaN(logged)
	unit := m.replay.unit(log, row)
	if observed {
		m.replay.row(unit, stands)
		m.course.now.of[lineLogged].Add(stands, logged)
	}
	if !log.Played(row, a) {
		m.withdrawn(t, a)
		return
	}
	m.matched++
	m.count(t, a, log.Weight(row), d)
	m.play = delay.Play{Round: t, Action: a}
	if !observed && m.parts == nil {
		m.Schedule.Add(delay.Never, a)
		return
	} else if !observed {
		m.lay(t, a)
		return
	}
	loss, weight := logged, log.Weight(row)
	m.loss += stands * loss
	m.scored += stands
	if log.Props != nil {
		m.replay.accept(unit, weight, loss)
	}
	m.course.now.of[lineLoss].Add(weight, loss)
	m.play.Loss = loss
	m.lay(t, a)
}

// withdrawn lays out a round that comes back at once.
func (m *Match) withdrawn(t, a int) {
	if m.Schedule.Timed {
		m.Schedule.AddAt(0, m.rounds.Time(t), a)
		return
	}
	m.Schedule.Add(0, a)
}

// Outcome sets o to what is reported of a round, valid until the next call.
func (m *Match) Outcome(o *codec.Outcome, of delay.Awaited) {
	t, a := int(of.Round), int(of.Action)
	*o = codec.Outcome{ID: m.rounds.ID(t), Values: o.Values[:0]}
	switch log, row := m.rounds.Log, m.rounds.Row(t); {
	case log != nil && !log.Played(row, a):
		o.Kind = codec.Withdrawn
	case m.parts != nil:
		o.Kind, o.Values = codec.Named, m.values(o.Values, m.parts[of.Part], t, a)
	case log == nil:
		o.Kind, o.Value = codec.Loss, m.scale.FromLoss(m.rounds.Loss(t, a))
	default:
		o.Kind, o.Value = log.Kind, log.Value[row]
	}
}

// meanLoss returns the mean realised loss over the rounds that have one, each as often
// as the events that it stands for; NaN if none has.
func (m *Match) meanLoss() float64 {
	if m.scored == 0 {
		return math.NaN()
	}
	return m.loss / m.scored
}

// Score fills in what the run's outcomes say of the learner. Nothing in r points into
// m, which would keep all rounds in memory as long as the result.
func (m *Match) Score(r *Result) {
	if mean := m.meanLoss(); !math.IsNaN(mean) {
		r.MeanLoss = &mean
	}
	if m.rounds.Known && m.n > 0 {
		regret := m.regret
		r.Regret = &regret
	}
	r.Rewards = m.rounds.rewards()
	m.scoreNamed(r)
	if log := m.rounds.Log; log != nil {
		matched := m.matched
		r.Matched = &matched
		if decided, came := m.rounds.Times(); came != nil {
			r.Delays.Recorded = delay.Describe(decided, came, log.Pass)
		}
		if log.Props != nil {
			r.Replay = m.replay.result(cmp.Or(log.Accept, 1))
		}
	}
	if uniform, best, known := reference(m.rounds.Rounds); known {
		if m.rounds.Policies != nil { // regret is against the best policy
			n := float64(max(m.rounds.Len(), 1))
			policy := bestPolicy(m.rounds.Rounds) / n
			if r.Regret != nil {
				*r.Regret += (best - policy) * n
			}
			best = policy
		}
		r.UniformLoss, r.BestLoss = &uniform, &best
	}
}

// Tell returns the course of a run that is over, with the histogram of its delays.
func (m *Match) Tell(delays []delay.Bin) *Course {
	m.course.timed = m.rounds.Timed()
	c := m.course.finish()
	m.tellNamed(c)
	if m.rounds.Policies != nil { // there regret is against a policy
		c.Regret = nil
	}
	c.Delays = delays
	return c
}

// fileTime returns when the data says that round t was decided; 0 if it has no times.
func (m *Match) fileTime(t int) int64 {
	if m.rounds.Timed() {
		return m.rounds.Time(t)
	}
	return 0
}
