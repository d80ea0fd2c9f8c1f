package watch

import "math"

// drawLevel is the level of a [drawCheck]: while draws follow their laws its evidence ever
// reaches 1/drawLevel with at most this probability.
const drawLevel = 1e-4

// ruin is the capital at which a bet is given up until the next block: so little is never won
// back, and numbers below it are slow.
const ruin = 1e-200

// drawBlock is how many draws a block has.
const drawBlock = 10_000

// faults are the laws that a [drawCheck] bets on, each of which some plausible fault would draw from.
const (
	uniformly  = iota // propensities are ignored
	greedily          // the likeliest action is played
	leastLike         // the least likely one
	first             // always the first
	last              // always the last
	slipBack          // the action before the one that was drawn
	slipAhead         // the one behind it
	backwards         // the list is read from its end
	tooSharply        // p² instead of p
	faults
)

// stakes are the shares of the capital that are bet on each of them: a small one for a fault
// that strikes now and then, a large one for one that always does.
var stakes = [...]float64{.05, .5}

// drawCheck tests, at all times at once, that actions are drawn from the laws that are
// logged with them. The null hypothesis is that given all before it, round t draws action a
// with probability p_t(a). For a law q_t that is known before the draw the capital
//
//	M = Π_t (1 − s + s·q_t(a_t)/p_t(a_t))
//
// is then a nonnegative martingale that starts at 1 (a supermartingale where q_t plays what p_t does not), and so is
// the mean over faults q and stakes s. A fault that begins late must not have to make up for what was lost before it,
// so block j of 10,000 draws has capital 1/(j(j+1)) of its own, which sums to 1 over all blocks: the evidence E is what
// all blocks together are worth, and P(sup E ≥ 1/α) ≤ α (Ville 1939; Ramdas et al., Game-theoretic statistics and safe
// anytime-valid inference, Statistical Science 2023, section 3). Of a fault in block j one needs log(j²/α) instead of
// log(1/α). A zero DrawCheck has seen nothing.
type drawCheck struct {
	draws  int64
	in     int64 // draws of the block at work
	block  int64 // blocks ended
	closed float64
	// M of the block at work, by fault and stake; meaningful if in > 0.
	capital [faults * len(stakes)]float64
	peak    float64 // largest E so far
}

// add takes a draw: the law of a round with 2 actions or more, and the one played.
func (c *drawCheck) add(law []float64, action int) {
	if len(law) < 2 || action < 0 || action >= len(law) {
		return
	}
	c.draws++
	c.in++
	if !(law[action] > 0) {
		c.peak = math.Inf(1) // it cannot be
		return
	}
	ratios := rivals(law, action)
	if c.in == 1 {
		for i := range c.capital {
			c.capital[i] = 1
		}
	}
	i := 0
	for _, r := range ratios {
		for _, s := range stakes {
			if c.capital[i] *= 1 + s*(r-1); c.capital[i] < ruin {
				c.capital[i] = 0
			}
			i++
		}
	}
	e := c.worth()
	c.peak = max(c.peak, c.closed+e+1/float64(c.block+2)) // the blocks to come are worth what they were given
	if c.in == drawBlock {
		c.closed += e
		c.block++
		c.in = 0
	}
}

// worth returns what the block at work is worth: its part of the capital times the mean of M.
func (c *drawCheck) worth() float64 {
	j := float64(c.block + 1)
	sum := 0.0
	for _, m := range c.capital {
		sum += m
	}
	return sum / float64(len(c.capital)) / (j * (j + 1))
}

// count returns how many draws were checked.
func (c *drawCheck) count() int64 { return c.draws }

// evidence returns the largest evidence so far that draws do not follow their laws; 1 at the start.
func (c *drawCheck) evidence() float64 { return max(c.peak, 1) }

// refuted reports whether the evidence has reached 1/drawLevel.
func (c *drawCheck) refuted() bool { return c.peak >= 1/drawLevel }

// rivals returns q(action)/p(action) of each fault.
func rivals(p []float64, a int) (r [faults]float64) {
	most, least, squares := 0, 0, 0.0
	for b, v := range p {
		squares += v * v
		if v > p[most] {
			most = b
		}
		if v < p[least] {
			least = b
		}
	}
	k, own := len(p), p[a]
	r[uniformly] = 1 / (float64(k) * own)
	for fault, b := range [...]int{greedily: most, leastLike: least, first: 0, last: k - 1} {
		if fault != uniformly && a == b {
			r[fault] = 1 / own
		}
	}
	r[slipBack] = p[(a+1)%k] / own
	r[slipAhead] = p[(a+k-1)%k] / own
	r[backwards] = p[k-1-a] / own
	r[tooSharply] = own / squares
	return r
}
