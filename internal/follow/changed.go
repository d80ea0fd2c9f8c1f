package follow

import (
	"cmp"

	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

// changes returns the changes that the oracle at work noticed.
func (f *Follower) changes() (c oracle.Changes) {
	if e := f.heart.Epoch(); e != nil {
		c, _ = learner.Changes(e.Learner)
	}
	return c
}

// tellChange warns if the feedback that was just learned raised the alarm of the oracle, which
// had noticed so many changes before. A restart learns again what came after the last snapshot,
// and warns of it again, with the same number.
func (f *Follower) tellChange(before int64) {
	c := f.changes()
	if !f.warns || c.Count <= before {
		return
	}
	f.logger.Warn("what is played loses more than predicted: regressions start anew; "+
		"look whether the world, a feature or the meaning of outcomes changed",
		"feedback", f.parsed.N, "action", cmp.Or(c.Last[len(c.Last)-1].Action, "all"),
		"changes", c.Count, "false_alarm_probability", oracle.ChangeAlarms)
}
