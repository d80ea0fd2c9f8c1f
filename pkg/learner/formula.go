package learner

// Formula turns the named outcomes of a round into its reward: an expression of names, numbers, constants by action,
// + − * /, min, max and clip, whose operations have a fixed order and whose range is known beforehand. It is not
// changed once it is made.
type Formula struct{}

// Loss returns (hi − r)/(hi − lo) in [0,1] for the reward r of an action, where y are the values of all outcomes of
// the model on their own scales, in the order of their names, and [lo, hi] is the range of the formula.
func (f *Formula) Loss(action string, y []float64) float64 { return 0 }

// Uses reports whether the formula needs the k-th outcome.
func (f *Formula) Uses(k int) bool { return false }
