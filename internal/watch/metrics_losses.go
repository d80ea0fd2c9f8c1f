package watch

import "hindsight/internal/latelosses"

// lossMetrics compare the losses that came late with those in time.
type lossMetrics struct {
	count, mean, se     []*gauge // in time, late
	differ              *gauge
	shownTime, shownLat int64 // losses at the last look; -1: none was
}

func newLosses(o *owner) lossMetrics {
	const since = " since this joiner took over or the last mark before that, in the last epoch that has any. Of a " +
		"model with named outcomes: of the outcome that differs, or of which most came late."
	came := label{"came", []string{"in-time", "late"}}
	return lossMetrics{
		count: o.gauges("hindsight_losses",
			"Rounds observed, and rounds without a loss in time for which one came late,"+since, "", came),
		mean: o.gauges("hindsight_loss_mean", "Mean of those losses, on the scale of 0 to 1; NaN of none.", "", came),
		se: o.gauges("hindsight_loss_standard_error", "Standard error of that mean; NaN of fewer than two.", "",
			came),
		differ: o.gauge("hindsight_late_losses_differ",
			"1 if the two means differ significantly, else 0: if both expectations are equal it is ever 1 with a "+
				"probability of at most 1 in 100 (empirical-Bernstein confidence sequences), since this joiner took "+
				"over.",
			"1 for an hour: rounds that are skipped or imputed bias what is learned; lengthen the window"),
		shownTime: -1, shownLat: -1,
	}
}

// show publishes the losses of a joiner's heart, if there are more than there were: those of the outcome that differs,
// or of which most came late.
func (m *lossMetrics) show(all latelosses.ByOutcome) {
	shownTime, shownLate := int64(0), int64(0)
	for _, l := range all {
		shownTime, shownLate = shownTime+l.OnTime.N, shownLate+l.Late.N
	}
	if shownTime == m.shownTime && shownLate == m.shownLat {
		return
	}
	m.shownTime, m.shownLat = shownTime, shownLate
	_, l := all.Worst()
	for i, x := range []*latelosses.Moments{&l.OnTime, &l.Late} {
		m.count[i].Set(float64(x.N))
		m.mean[i].Set(x.Mean())
		m.se[i].Set(x.SE())
	}
	m.differ.Set(truth(l.Differ()))
}
