package replay

import (
	"math"
	"slices"
	"strconv"

	"hindsight/internal/certify"
	"hindsight/internal/delay"
	"hindsight/internal/ledger"
	"hindsight/internal/ope"
)

// courseStretches is the most stretches that a [Course] has; an even number.
const courseStretches = 128

// Course is how a run went: what happened in stretches of equally many rounds. However long the run is there are at
// most 128, for two neighbours are made one when there are more; so its memory is constant. Means and sums have seven
// significant digits; null is what is not known.
type Course struct {
	Stretch int64   `json:"stretch"` // rounds in a stretch; the last has from half to half as many again
	Rounds  []int64 `json:"rounds"`  // decided by the end of each stretch
	// log time of the last decision of each, in ms since 1970; of data with times
	Times []int64 `json:"times_ms,omitempty"`

	Loss    CourseLine  `json:"loss"`              // of the actions played; on a log with propensities weighted (SNIPS)
	Uniform *CourseLine `json:"uniform,omitempty"` // expected loss of the uniform policy, where the truth is known
	First   *CourseLine `json:"first,omitempty"`   // of always the first action
	Best    *CourseLine `json:"best,omitempty"`    // of the best action of each round
	Logged  *CourseLine `json:"logged,omitempty"`  // loss of what a log recorded, matched or not

	// from the first round on, where the truth is known and the best policy is free
	Regret []ope.Figure `json:"regret,omitempty"`
	// on it, by kind as in certificate; rounds not yet released are charged 1
	Bounds map[string][]ope.Figure `json:"bounds,omitempty"`

	// mean number of earlier rounds without outcome when a round is decided
	Arriving []ope.Figure `json:"outstanding_raw"`
	Waiting  []ope.Figure `json:"outstanding_released"`     // of those that were not released, and so not learned
	Most     []int64      `json:"outstanding_released_max"` // the most
	// mean number of rounds that have their fate and wait for those before them
	Held []ope.Figure `json:"held"`

	Delays []delay.Bin `json:"delays"` // histogram over the whole run

	// of a model with named outcomes, by name: outcomes of the actions played, what was spent of budgets, and their
	// prices
	Outcomes map[string]*CourseLine `json:"outcomes,omitempty"`
	Spent    map[string]*CourseLine `json:"spent,omitempty"`
	Prices   map[string]*CourseLine `json:"prices,omitempty"`

	Candidates []CandidateCourse `json:"candidates,omitempty"` // of a model that names some
}

// CandidateCourse is the mean loss of a candidate, with its interval, by what was known at the end of each stretch.
type CandidateCourse struct {
	Policy string       `json:"policy"`
	Mean   []ope.Figure `json:"mean"`
	Low    []ope.Figure `json:"low"`
	High   []ope.Figure `json:"high"`
}

// CourseLine is a mean over time, with standard errors: in each stretch, and from the
// first round to the end of each stretch.
type CourseLine struct {
	Mean    []ope.Figure `json:"mean"`
	SE      []ope.Figure `json:"se"`
	SoFar   []ope.Figure `json:"so_far"`
	SoFarSE []ope.Figure `json:"so_far_se"`
}

// Lines of a stretch.
const (
	lineLoss = iota
	lineUniform
	lineFirst
	lineBest
	lineLogged
	lines
)

// stretch is what happened in some rounds.
type stretch struct {
	rounds, time int64
	of           [lines]ope.Weighted
	regret       float64
	arriving     float64 // sums
	waiting      float64
	held         float64
	most         int64
	bounds       map[string]float64 // at its end
	judged       []ledger.Estimate  // likewise
	named        []ope.Weighted     // outcomes, budgets, prices
}

// join adds a later stretch.
func (s *stretch) join(o *stretch) {
	s.rounds, s.time = s.rounds+o.rounds, o.time
	for i := range s.of {
		s.of[i].Merge(&o.of[i], 1)
	}
	s.regret += o.regret
	if s.named == nil {
		s.named = o.named
	} else {
		for i := range o.named {
			s.named[i].Merge(&o.named[i], 1)
		}
	}
	s.arriving += o.arriving
	s.waiting += o.waiting
	s.held += o.held
	s.most, s.bounds, s.judged = max(s.most, o.most), o.bounds, o.judged
}

// course records a [Course]. What is said of a round comes before [course.end], which ends it.
type course struct {
	size  int64
	done  []stretch // of size rounds each
	now   stretch
	timed bool
	// bounds returns those on the regret so far; nil: there are none.
	bounds func() map[string]float64
	judged func() []ledger.Estimate // what is known of candidates so far; nil: nothing is
}

func newCourse() *course { return &course{size: 1, done: make([]stretch, 0, courseStretches)} }

// truth adds what a round's actions are worth: what each loses in expectation, and the
// regret of the law that was drawn from.
func (c *course) truth(losses []float64, regret float64) {
	sum, low := 0.0, losses[0]
	for _, v := range losses {
		sum += v
		low = min(low, v)
	}
	c.now.of[lineUniform].Add(1, sum/float64(len(losses)))
	c.now.of[lineFirst].Add(1, losses[0])
	c.now.of[lineBest].Add(1, low)
	c.now.regret += regret
}

// notKnown is how many rounds are held back where only a joiner elsewhere knows.
const notKnown int64 = -1

// decided adds how many earlier rounds were open when the round was decided: without an
// outcome, not released, and with a fate but not released.
func (c *course) decided(arriving, waiting, held int64) {
	c.now.arriving += float64(arriving)
	c.now.waiting += float64(waiting)
	if c.now.held += float64(held); held == notKnown {
		c.now.held = math.NaN()
	}
	c.now.most = max(c.now.most, waiting)
}

// end ends a round that was decided at a log time.
func (c *course) end(time int64) {
	c.now.rounds++
	c.now.time = time
	if c.now.rounds == c.size {
		c.close()
	}
}

func (c *course) close() {
	if c.bounds != nil {
		c.now.bounds = c.bounds()
	}
	if c.judged != nil {
		c.now.judged = c.judged()
	}
	c.done = append(c.done, c.now)
	c.now = stretch{}
	if len(c.done) < courseStretches {
		return
	}
	for i := range courseStretches / 2 {
		c.done[i] = c.done[2*i]
		c.done[i].join(&c.done[2*i+1])
	}
	c.done = c.done[:courseStretches/2]
	c.size *= 2
}

// finish returns the course of the whole run; its last bounds are those of the end, when all is released.
func (c *course) finish() *Course {
	switch n := len(c.done); {
	case c.now.rounds == 0:
	case n > 0 && 2*c.now.rounds < c.size:
		c.done[n-1].join(&c.now)
		c.now = stretch{}
	default:
		c.close()
	}
	out := &Course{Stretch: c.size}
	if c.bounds != nil && len(c.done) > 0 {
		c.done[len(c.done)-1].bounds = c.bounds()
	}
	if c.judged != nil && len(c.done) > 0 {
		c.done[len(c.done)-1].judged = c.judged()
	}
	rounds, regret := int64(0), 0.0
	for i := range c.done {
		s := &c.done[i]
		n := float64(s.rounds)
		rounds, regret = rounds+s.rounds, regret+s.regret
		out.Rounds = append(out.Rounds, rounds)
		if c.timed {
			out.Times = append(out.Times, s.time/1e6)
		}
		out.Regret = append(out.Regret, seven(regret))
		out.Arriving = append(out.Arriving, seven(s.arriving/n))
		out.Waiting = append(out.Waiting, seven(s.waiting/n))
		out.Held = append(out.Held, seven(s.held/n))
		out.Most = append(out.Most, s.most)
	}
	out.Loss = *c.orEmpty(lineLoss)
	out.Uniform, out.First, out.Best, out.Logged = c.line(lineUniform), c.line(lineFirst), c.line(lineBest),
		c.line(lineLogged)
	if out.Best == nil {
		out.Regret = nil
	}
	out.Bounds = c.boundLines()
	for i := range c.done {
		for k, e := range c.done[i].judged {
			if i == 0 {
				out.Candidates = append(out.Candidates, CandidateCourse{Policy: e.Policy})
			}
			v, l := e.Value, &out.Candidates[k]
			if e.Rounds == 0 {
				v.Mean = math.NaN()
			}
			l.Mean, l.Low, l.High = append(l.Mean, seven(v.Mean)), append(l.Low, seven(v.Low)), append(l.High,
				seven(v.High))
		}
	}
	return out
}

// line returns a line; nil if no round has a value.
func (c *course) line(of int) *CourseLine {
	if !slices.ContainsFunc(c.done, func(s stretch) bool { return s.of[of].N > 0 }) {
		return nil
	}
	return c.orEmpty(of)
}

func (c *course) orEmpty(of int) *CourseLine {
	return c.lineOf(func(s *stretch) *ope.Weighted { return &s.of[of] })
}

func (c *course) lineOf(of func(s *stretch) *ope.Weighted) *CourseLine {
	l := &CourseLine{}
	var sum ope.Weighted
	for i := range c.done {
		s := of(&c.done[i])
		sum.Merge(s, 1)
		l.Mean, l.SE = append(l.Mean, seven(s.Mean())), append(l.SE, seven(s.SE()))
		l.SoFar, l.SoFarSE = append(l.SoFar, seven(sum.Mean())), append(l.SoFarSE, seven(sum.SE()))
	}
	return l
}

// boundLines returns the bounds by kind, those that there are at the end: what voids a bound
// voids it from the beginning.
func (c *course) boundLines() map[string][]ope.Figure {
	out := map[string][]ope.Figure{}
	for _, kind := range certify.Kinds() {
		line := make([]ope.Figure, len(c.done))
		for i := range c.done {
			v, ok := c.done[i].bounds[kind]
			if !ok || math.IsInf(v, 0) {
				v = math.NaN()
			}
			line[i] = seven(v)
		}
		if n := len(line); n > 0 && !math.IsNaN(float64(line[n-1])) {
			out[kind] = line
		}
	}
	return out
}

// seven rounds to seven significant digits.
func seven(x float64) ope.Figure {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return ope.Figure(math.NaN())
	}
	v, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 7, 64), 64)
	return ope.Figure(v)
}
