package watch

import (
	"math"
	"math/rand/v2"
	"testing"

	"hindsight/pkg/codec"
)

// shadowRound tells a scope of a round in shadow, its decision and its feedback.
func shadowRound(s *Scope, epoch, n int64, action int, loss float64, law, would []float64) {
	d := decision(0, n, action, law...)
	d.Mode, d.Would, d.Epoch = codec.Shadow, would, epoch
	s.Decision(d)
	s.Feedback(&codec.Feedback{N: n, Fate: codec.Observed, Loss: loss, Actions: d.Actions, Propensities: law,
		Action: action, Mode: codec.Shadow, Would: would, Epoch: epoch})
}

// TestHeldOutIsNotShadow: rounds that a live epoch holds out are none of mode shadow, those before its first live round
// included, and those of a shadow epoch behind it are.
func TestHeldOutIsNotShadow(t *testing.T) {
	s := NewScope()
	half, would := []float64{.5, .5}, []float64{.75, .25}
	shadowRound(s, 1, 1, 0, 0, half, would)
	shadowRound(s, 2, 2, 1, 1, half, would)
	d, f := decision(0, 3, 0, half...), feedback(3, codec.Observed, 1, .5)
	d.Epoch, f.Epoch = 2, 2
	s.Decision(d)
	s.Feedback(f)
	shadowRound(s, 2, 4, 1, 1, half, would)
	if x := s.shadow(); x.Decisions != 1 || x.Rounds != 1 || x.Agreement != .75 {
		t.Errorf("of the epoch before the live one: %+v", x)
	}
	shadowRound(s, 3, 5, 1, 1, half, would)
	if x := s.shadow(); x.Decisions != 2 || x.Rounds != 2 || x.Agreement != .5 {
		t.Errorf("of both shadow epochs: %+v", x)
	}
}

// By hand: two rounds under the baseline's law (½, ½), where the learner has (¾, ¼): action 0
// loses 0, action 1 loses 1. It would have done the same with ¾ and ¼. The mean loss is ½, the
// weights are 3/2 and ½: the excess is (3/2·(−½) + ½·½)/2 = −¼, its square's mean 5/16, so
// that its error is √((5/16 − 1/16)/2) = √⅛. Rounds that are not of shadow do not count.
func TestShadow(t *testing.T) {
	s := NewScope()
	if x := s.shadow(); x.Decisions != 0 || x.Rounds != 0 || !math.IsNaN(x.Agreement) || !math.IsNaN(x.Uncovered) ||
		!math.IsNaN(x.Excess) || !math.IsNaN(x.StdErr) {
		t.Errorf("of nothing: %+v", x)
	}
	half, would := []float64{.5, .5}, []float64{.75, .25}
	shadowRound(s, 1, 1, 0, 0, half, would)
	shadowRound(s, 1, 2, 1, 1, half, would)
	s.Decision(decision(0, 3, 0, half...))
	s.Feedback(feedback(3, codec.Observed, 1, .5))
	skipped := feedback(4, codec.Skipped, 0, .5)
	skipped.Mode, skipped.Would, skipped.Epoch = codec.Shadow, would, 1
	s.Feedback(skipped)
	if x := s.shadow(); x != (shadowWorth{Decisions: 2, Agreement: .5, Rounds: 2, Uncovered: 0, Excess: -.25,
		StdErr: math.Sqrt(.125)}) || s.View().Shadow != x {
		t.Errorf("%+v", x)
	}
}

// What the baseline never plays cannot be judged: up to 5 % of it the estimate stands.
func TestShadowUncovered(t *testing.T) {
	for _, c := range []struct {
		would []float64
		want  float64
		known bool
	}{{[]float64{.95, .05}, .05, true}, {[]float64{.9, .1}, .1, false}, {[]float64{1, 0}, 0, true}} {
		s := NewScope()
		for n := int64(1); n <= 8; n++ {
			shadowRound(s, 1, n, 0, float64(n%2), []float64{1, 0}, c.would)
		}
		if x := s.shadow(); math.Abs(x.Uncovered-c.want) > 1e-12 || math.IsNaN(x.Excess) == c.known ||
			math.IsNaN(x.StdErr) == c.known || math.Abs(x.Agreement-c.would[0]) > 1e-12 {
			t.Errorf("%v: %+v", c.would, x)
		}
	}
}

// The estimate is near the truth, and its error says how near, for a learner that is better
// than a uniform baseline by 0.3 a round.
func TestShadowExcess(t *testing.T) {
	const worlds = 100
	r := rand.New(rand.NewPCG(7, 7))
	within := 0
	var sum float64
	for range worlds {
		s := NewScope()
		for n := int64(1); n <= windowSize; n++ {
			action, loss := r.IntN(2), 0.0
			if r.Float64() < []float64{.2, .8}[action] {
				loss = 1
			}
			shadowRound(s, 1, n, action, loss, []float64{.5, .5}, []float64{1, 0})
		}
		x := s.shadow()
		sum += x.Excess / worlds
		if math.Abs(x.Excess+.3) < 2*x.StdErr {
			within++
		}
	}
	if math.Abs(sum+.3) > .005 || within < 88 {
		t.Errorf("the mean is %v, the truth −0.3; %d of %d within two errors", sum, within, worlds)
	}
}
