package service

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hindsight/internal/latelosses"
	"hindsight/internal/loop"
)

// Values of the label of losses by when they came.
const (
	inTime    = "in-time"
	afterTime = "late"
)

// lossMetrics compare the losses that came late with those in time.
type lossMetrics struct{ count, mean, se, differ *prometheus.GaugeVec }

func newLossMetrics(c *catalog) lossMetrics {
	const since = " since this joiner took over or the last mark before that, in the last epoch that has any."
	came := label{"came", []string{inTime, afterTime}}
	return lossMetrics{
		count: c.gauge("hindsight_losses", "Rounds observed, and rounds without a loss in time for which one came late,"+since, "", came),
		mean:  c.gauge("hindsight_loss_mean", "Mean of those losses, on the scale of 0 to 1; NaN of none.", "", came),
		se:    c.gauge("hindsight_loss_standard_error", "Standard error of that mean; NaN of fewer than two.", "", came),
		differ: c.gauge("hindsight_late_losses_differ", "1 if the two means differ by more than chance has it, else 0: where both are expected to be the same it is ever 1 with a probability of at most 1 in 100 (empirical-Bernstein confidence sequences), since this joiner took over.",
			"1 for an hour: rounds that are skipped or imputed bias what is learned; lengthen the window"),
	}
}

// lossPart is what one joiner shows of them.
type lossPart struct {
	gauges              [3]gauges // in time, late, without labels
	onTime, late        lossGauges
	differ              prometheus.Gauge
	shownTime, shownLat int64 // losses at the last look; -1: none was
}

type lossGauges struct{ count, mean, se prometheus.Gauge }

func (p *lossPart) open(m *lossMetrics) {
	of := func(g *gauges, came string) lossGauges {
		g.values = []string{came}
		return lossGauges{g.of(m.count), g.of(m.mean), g.of(m.se)}
	}
	p.onTime, p.late = of(&p.gauges[0], inTime), of(&p.gauges[1], afterTime)
	p.differ = p.gauges[2].of(m.differ)
	p.shownTime, p.shownLat = -1, -1
}

func (p *lossPart) close() {
	for i := range p.gauges {
		p.gauges[i].close()
	}
}

// show publishes the losses of a joiner's heart, if there are more than there were.
func (p *lossPart) show(l *loop.LateLosses) {
	if l.OnTime.N == p.shownTime && l.Late.N == p.shownLat {
		return
	}
	p.shownTime, p.shownLat = l.OnTime.N, l.Late.N
	p.onTime.show(&l.OnTime)
	p.late.show(&l.Late)
	differ := 0.0
	if l.Differ() {
		differ = 1
	}
	p.differ.Set(differ)
}

func (g *lossGauges) show(m *loop.Moments) {
	g.count.Set(float64(m.N))
	g.mean.Set(m.Mean())
	g.se.Set(m.SE())
}

// warnEvery is how often the same warning is logged at most.
const warnEvery = time.Hour

// warnLate says once in a while that losses that come late differ from those in time:
// what is learned is biased then.
func (j *Joiner) warnLate() {
	if l := j.heart.LateLosses(); l.Differ() && (j.warned.IsZero() || time.Since(j.warned) >= warnEvery) {
		j.warned = time.Now()
		j.cfg.Logger.Warn(latelosses.Warning(&l))
	}
}
