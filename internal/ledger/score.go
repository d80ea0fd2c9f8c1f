package ledger

import "math"

// k is the K of the package comment: scores are at least −K. A larger one keeps more of the predictions
// where weights are large, and costs more in the first rounds.
const k = 4

// Round is what is known of a final round.
type Round struct {
	N       int64     // ascending
	Actions []string  // those that it could have played
	Law     []float64 // probabilities with which the log drew
	Action  int       // index of the one drawn
	Loss    float64   // in [0,1]
	Known   bool      // whether it has a loss
}

// score returns the score, at least 0, of a policy in a round, whose mean is at most (m + K + shift)/(1 + K + shift):
// of shift 0 m is the mean of x under the policy, of shift 1 the same less that under the law. x is the loss or one
// minus the loss of the action drawn, and predicted what it was expected to be of each action.
func score(r *Round, policy, predicted []float64, x, shift float64) float64 {
	s := 0.0
	for a, p := range r.Law {
		if p == 0 {
			continue
		}
		u, q := policy[a]/p-shift, predicted[a]
		if u > 0 {
			q = math.Min(q, k/u)
		}
		s += float64((policy[a] - float64(shift*p)) * q)
		if a == r.Action {
			s += float64(u * (x - q))
		}
	}
	return math.Max(0, (s+k+shift)/(1+k+shift))
}

// unscale returns what a mean of scores is on the scale of losses.
func unscale(mean, shift float64) float64 { return float64(mean*(1+k+shift)) - k - shift }

// worst returns the x that makes the score of the action drawn least.
func worst(r *Round, policy []float64, shift float64) float64 {
	if policy[r.Action]/r.Law[r.Action] > shift {
		return 0
	}
	return 1
}

// buckets is how many means a [Predictor] keeps.
const buckets = 64

// Predictor predicts the loss of an action from the rounds before: the mean of its bucket, shrunk by one round to the
// mean of all. Actions share buckets by a hash of their names: a bad prediction makes intervals wider, never wrong.
type Predictor struct {
	n, sum [buckets]float64
}

func bucket(action string) int {
	h := uint32(2166136261) // FNV-1a
	for i := range len(action) {
		h = (h ^ uint32(action[i])) * 16777619
	}
	return int((h ^ h>>16) % buckets)
}

// Predict appends the predicted loss of each action.
func (p *Predictor) Predict(dst []float64, actions []string) []float64 {
	n, sum := 0.0, 0.0
	for b := range p.n {
		n, sum = n+p.n[b], sum+p.sum[b]
	}
	mean := (sum + 0.5) / (n + 1)
	for _, name := range actions {
		b := bucket(name)
		dst = append(dst, (p.sum[b]+mean)/(p.n[b]+1))
	}
	return dst
}

// Learn adds a round with a loss.
func (p *Predictor) Learn(r *Round) {
	b := bucket(r.Actions[r.Action])
	p.n[b]++
	p.sum[b] += r.Loss
}
