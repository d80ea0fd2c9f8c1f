package watch

import (
	"math"
)

// newScope makes a scope, and the metrics that are computed from it when they are asked for.
func newScope(c *catalog) *Scope {
	s := NewScope()
	show := func(name, help, alert string, of func() float64) {
		c.gaugeFunc(name, help, alert, func() float64 {
			s.mu.Lock()
			defer s.mu.Unlock()
			return of()
		})
	}
	show("hindsight_propensity_floor",
		"Least propensity of any action in the last 1,000 decisions known here; NaN before the first.",
		"it is 0 where the learner should explore: off-policy estimates have no support",
		func() float64 { return s.decisions.exploration().Floor })
	show("hindsight_propensity_entropy_ratio",
		"Mean entropy of the laws of those decisions, each as a share of the uniform law's: 1 explores all alike, 0 "+
			"nothing.",
		"it falls to 0 within a day of a change: nothing more is learned",
		func() float64 { return s.decisions.exploration().Entropy })
	show("hindsight_draw_evidence", "Evidence that drawn actions do not follow their logged propensities, the largest "+
		"since the start: while they do, it ever reaches 10,000 with probability at most 1 in 10,000.",
		"it is 10,000: no estimate from this log holds; run replayer verify", s.draws.evidence)
	show("hindsight_draws_checked", "Draws among 2 actions or more that this evidence is of.", "",
		func() float64 { return float64(s.draws.draws) })
	s.showRecent(show)
	s.showShadow(show)
	show("hindsight_apprentice_match_ratio",
		"Mean probability that the learner agrees with the baseline, over the last 1,000 rounds of mode apprentice, "+
			"each asked just before it is learned; NaN of none.", "",
		func() float64 { return s.match().Rate })
	return s
}

// showRecent shows what the last rounds released were worth.
func (s *Scope) showRecent(show func(name, help, alert string, of func() float64)) {
	recent := s.feedback.recent
	shown := func(loss float64) float64 {
		if s.rewards == nil {
			return math.NaN()
		}
		return s.rewards.Shown(loss)
	}
	show("hindsight_join_ratio",
		"Share of the last 1,000 rounds released here, withdrawn ones left out, whose outcome came in time; NaN of "+
			"none.",
		"it falls to half of what it was", func() float64 { return recent().JoinRatio })
	show("hindsight_recent_loss", "Mean loss of those of them that have one, on the scale of 0 to 1; of rewards how "+
		"far they are from the largest, as a share of their range.",
		"hindsight_recent_excess_loss says so", func() float64 { return recent().Loss })
	show("hindsight_recent_uniform_loss",
		"What uniform play would have lost in them, estimated from the logged propensities.", "",
		func() float64 { return recent().Uniform })
	show("hindsight_recent_reward",
		"Mean reward of the same rounds, on the model's own range; NaN where outcomes are losses.", "",
		func() float64 { return shown(recent().Loss) })
	show("hindsight_recent_uniform_reward",
		"What uniform play would have earned in them, estimated in the same way; NaN where outcomes are losses.", "",
		func() float64 { return shown(recent().Uniform) })
	show("hindsight_recent_excess_loss", "What they lost a round over uniform play, by importance weights about their "+
		"mean loss: an action that was not played counts as losing that.",
		"it is over 0.05 and over three times its error for half an hour", func() float64 { return recent().Excess })
	show("hindsight_recent_excess_loss_error", "Standard error of that, as if rounds were independent.", "",
		func() float64 { return recent().StdErr })
	show("hindsight_importance_effective_ratio",
		"(Σw)²/(n·Σw²) of their importance weights for uniform play: near 0 a few rounds say all.", "",
		func() float64 { return recent().Effective })
	show("hindsight_importance_largest_ratio", "The largest of those weights as a share of all.", "",
		func() float64 { return recent().Largest })
}

// showShadow shows what the learner would have done in mode shadow.
func (s *Scope) showShadow(show func(name, help, alert string, of func() float64)) {
	show("hindsight_shadow_agreement_ratio",
		"Mean probability that the learner agrees with the baseline, over those of the last 1,000 decisions that "+
			"were made in mode shadow; NaN of none.", "",
		func() float64 { return s.shadow().Agreement })
	show("hindsight_shadow_uncovered_ratio",
		"Mean share of the learner's law that the baseline never plays, over those of the last 1,000 rounds released "+
			"that were made in shadow and have a loss; NaN of none.",
		"it is over 0.05 and you want to know what the learner is worth: give the baseline some chance for every "+
			"action",
		func() float64 { return s.shadow().Uncovered })
	show("hindsight_shadow_excess_loss",
		"Estimate of what the learner would have lost a round over the baseline in them, by importance weights, wrong "+
			"by at most the uncovered ratio beside its error; NaN where that is over 0.05.",
		"it stays above 0 by more than twice its error: do not go live",
		func() float64 { return s.shadow().Excess })
	show("hindsight_shadow_excess_loss_error",
		"Standard error of that estimate, as if rounds were independent.", "",
		func() float64 { return s.shadow().StdErr })
}
