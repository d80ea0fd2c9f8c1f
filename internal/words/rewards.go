package words

import "fmt"

// Rewards is the range of the rewards of a model or a log: the worth of its rounds, which is worked out as losses in
// [0,1], is shown in it. nil: they have losses, which are shown as they are.
type Rewards struct {
	Min float64 `json:"min"` // the least
	Max float64 `json:"max"` // the largest
}

// Of names what is shown: reward or loss.
func (r *Rewards) Of() string { return r.either("loss", "reward") }

// either chooses between what is said of losses and of rewards.
func (r *Rewards) either(losses, rewards string) string {
	if r == nil {
		return losses
	}
	return rewards
}

// Beyond says on which side of the best the others are.
func (r *Rewards) Beyond() string { return r.either("above", "below") }

// Shown returns a loss in [0,1] as it is shown.
func (r *Rewards) Shown(loss float64) float64 {
	if r == nil {
		return loss
	}
	return r.Max - loss*(r.Max-r.Min)
}

// Length returns a distance between losses, or an error of them, as it is shown: of rewards one that is lost is missed.
func (r *Rewards) Length(loss float64) float64 {
	if r == nil {
		return loss
	}
	return loss * (r.Max - r.Min)
}

// Gap returns the difference of two losses as that of what is shown.
func (r *Rewards) Gap(loss float64) float64 {
	if r == nil {
		return loss
	}
	return 0 - r.Length(loss)
}

// Regret says what regret and its bounds are counted in, of rewards.
func (r *Rewards) Regret() string {
	return fmt.Sprintf("regret is missed reward, in units of the whole range from %s to %s", Digits(r.Min),
		Digits(r.Max))
}

// Lost says what was done with what regret sums.
func (r *Rewards) Lost() string { return r.either("lost", "missed") }

// Missed names what regret sums.
func (r *Rewards) Missed() string { return r.either("loss", "missed reward") }
