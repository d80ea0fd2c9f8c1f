package service

import (
	"github.com/prometheus/client_golang/prometheus"

	"hindsight/internal/loop"
	"hindsight/pkg/oracle"
)

// modeMetrics say who decides, and whether the guard is content.
type modeMetrics struct {
	mode                    *prometheus.GaugeVec
	alarm, evidence, excess *prometheus.GaugeVec
	switches                map[string]prometheus.Counter // by who wanted it
}

func newModeMetrics(c *catalog) modeMetrics {
	m := modeMetrics{
		mode: c.gauge("hindsight_mode", "Mode of the epoch at work: 0 live, 1 shadow, 2 apprentice, 3 paused.", "it is not what you want it to be", partitionLabel),
		alarm: c.gauge("hindsight_guard_alarm", "1 if the guard has found the learner worse than the baseline by more than worse_by since its epoch began, or has switched the mode for that and nobody has asked for one since, else 0; not there without a guard.",
			"it is 1: see /guard, and switch to the baseline if the guard has not"),
		evidence: c.gauge("hindsight_guard_evidence_ratio", "Evidence that the learner is worse than the baseline by more than worse_by, as a share of what raises the alarm (of the logarithms).", "it passes 0.5"),
		excess:   c.gauge("hindsight_guard_excess_loss", "Estimate of what the learner loses a round over the baseline, of the rounds that the guard counts.", ""),
		switches: map[string]prometheus.Counter{},
	}
	causes := []string{causeAdmin, causeGuard}
	switches := c.counter("hindsight_mode_switches_total", "Switches of the mode by this process, by who wanted them.", "cause guard grows", label{"cause", causes})
	for _, s := range causes {
		m.switches[s] = switches.WithLabelValues(s)
	}
	return m
}

// show publishes what the guard has seen in an epoch of a cause; g holds the gauges of its
// joiner.
func (m *modeMetrics) show(g *gauges, guard *loop.Guard, cause string) {
	s, rules := guard.Sums(), guard.Rules()
	if rules == nil || !rules.Guard.On() {
		g.drop(m.alarm, m.evidence, m.excess) // an epoch before may have had one
		return
	}
	raised := 0.0
	if _, on := alarm(&s, cause); on {
		raised = 1
	}
	g.of(m.alarm).Set(raised)
	g.of(m.evidence).Set(max(0, s.Peak) / -oracle.Log(rules.Guard.Alpha))
	g.of(m.excess).Set(s.Excess / float64(max(s.Rounds, 1)))
}
