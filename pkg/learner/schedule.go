package learner

import (
	"fmt"
	"math"
	"strconv"

	"hindsight/pkg/oracle"
)

// Schedule says how greedy [DAFA] is: γ of a round with k eligible actions when learned rounds were learned and the
// oracle's [oracle.Regressor.Regret] is regret. It must be a pure function, finite and at least 0; 0 plays uniformly.
type Schedule interface {
	Gamma(k int, learned int64, regret float64) float64
}

// Constants of [Anytime] and, scaled by 20/8, of [Root].
const (
	Cautious   = 2 * math.Sqrt2 // minimises the bound: factor 1.41
	Guaranteed = 4.0            // factor 1.5
	Balanced   = 8.0            // factor 2.25, the best all-round in practice

	RootBalanced = 20.0 // of Root; 15 to 50 is the good range
)

// Anytime is γ = C·√((K−1)·max(t,1)/R), for oracles with a proved constant R,
// t = rounds learned. Its bound is (2/C + C/4)√((K−1)TR) + (σ_max/C)√((K−1)R) + drift.
type Anytime struct{ C float64 }

// Gamma implements [Schedule].
func (s Anytime) Gamma(k int, learned int64, regret float64) float64 {
	return s.C * math.Sqrt(float64(float64(k-1)*float64(max(learned, 1)))/regret)
}

// Root is γ = C·√max(1, t), the measured choice for the linear oracle: no T, K or d.
type Root struct{ C float64 }

// Gamma implements [Schedule].
func (s Root) Gamma(_ int, learned int64, _ float64) float64 {
	return s.C * math.Sqrt(float64(max(learned, 1)))
}

// Theory is γ = C·√((K−1)·t/R_t) with the measured R_t of the linear oracle, taken as at least 1.
type Theory struct{ C float64 }

// Gamma implements [Schedule].
func (s Theory) Gamma(k int, learned int64, regret float64) float64 {
	return s.C * math.Sqrt(float64(float64(k-1)*float64(learned))/math.Max(regret, 1))
}

// Paper is the paper's fixed γ = √(K·T/R), which needs the horizon T ≥ 1; with
// the paper's preset of Hedge-Vovk it is √(KT/(36 log|F|)) (cor. thm:Vovk-regret).
type Paper struct{ T int64 }

// Gamma implements [Schedule].
func (s Paper) Gamma(k int, _ int64, regret float64) float64 {
	return math.Sqrt(float64(float64(k)*float64(s.T)) / regret)
}

// Fixed is a constant γ.
type Fixed struct{ G float64 }

// Gamma implements [Schedule].
func (s Fixed) Gamma(int, int64, float64) float64 { return s.G }

// NewSchedule returns what "explore:" of a model file names: cautious, guaranteed, balanced, theory, or a positive
// number c. For oracles with a proved regret bound that is [Anytime]; for others [Root], where the names are scaled so
// that balanced is 20, and [Theory].
func NewSchedule(explore string, reg oracle.Regressor) (Schedule, error) {
	proved := isProved(reg)
	c, err := 0.0, error(nil)
	switch explore {
	case "cautious", "theory":
		c = Cautious
	case "guaranteed":
		c = Guaranteed
	case "balanced", "":
		c = Balanced
	default:
		c, err = strconv.ParseFloat(explore, 64)
		if err != nil || !(c > 0) || c > 1e9 {
			return nil, fmt.Errorf("explore: %q: give cautious, guaranteed, balanced, theory, or a positive number",
				explore)
		}
		if proved {
			return Anytime{c}, nil
		}
		return Root{c}, nil
	}
	switch {
	case proved:
		return Anytime{c}, nil
	case explore == "theory":
		return Theory{c}, nil
	}
	return Root{c * (RootBalanced / Balanced)}, nil
}
