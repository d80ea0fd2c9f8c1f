package words

import (
	"math"
	"testing"
)

// By hand: of rewards in [0, 2] a loss of 0.72 earns 0.56, and 0.06 less loss 0.12 more, which is
// 27 % of 0.44; 1.96 times 0.01 is 0.0392 more or less, and with 0.4008 below or 0.0808 above the
// widest. Of losses less is better, below 0 there are no percentages, and what may be chance is said.
func TestVerdict(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		rewards          *Rewards
		loss, excess, se float64
		want             string
	}{
		{&Rewards{0, 2}, .72, -.06, .01, "It earned 28% of the best possible; " +
			"27% more than uniform play (95% interval: 17% to 40%)."},
		{&Rewards{0, 2}, .72, -.06, .04, "It earned 28% of the best possible; " +
			"not shown to be more or less than uniform play (95% interval of the difference: −8.4% to 98%)."},
		{&Rewards{0, 2}, .72, -.06, .06, "It earned 28% of the best possible; " +
			"not shown to be more or less than uniform play (95% interval of the difference a round: −0.12 to 0.36)."},
		{nil, .2, -.2, .01, "It lost 20% of the most possible; " +
			"50% less than uniform play (95% interval: 45% to 55%)."},
		{nil, .5, .1, .01, "It lost 50% of the most possible; " +
			"25% more than uniform play (95% interval: 19% to 31%)."},
		{&Rewards{-1, 3}, .25, -.25, .01, "It earned 2 a round, of −1 to 3; " +
			"1 more a round than uniform play (95% interval: 0.92 to 1.1)."},
		{&Rewards{0, 1}, .9, -.1, .01, "It earned 10% of the best possible; " +
			"0.10 more a round than uniform play (95% interval: 0.080 to 0.12)."},
		{nil, .2, nan, nan, "It lost 20% of the most possible; " +
			"how that compares with uniform play is not known yet."},
	} {
		if got := c.rewards.Verdict("It", c.loss, c.excess, c.se, "uniform play"); got != c.want {
			t.Errorf("%v: %s\nwant %s", c.rewards, got, c.want)
		}
	}
}
