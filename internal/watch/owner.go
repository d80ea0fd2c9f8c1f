package watch

import (
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// owner declares the metrics of one part of the process: of a decider, which all have the label of
// its partition, or of the joiner.
type owner struct {
	c      *catalog
	labels []label
	values []string
	resets []func()

	mu     sync.Mutex
	shown  []*gauge
	closed bool
}

// reset removes all counts, of all owners.
func (o *owner) reset() {
	for _, f := range o.resets {
		f()
	}
}

// each declares a metric with one more label, if that has a name, and returns what it is for each value of that.
func each[V interface{ Reset() }, M any](o *owner, l label, declare func(labels []label) V,
	of func(metric V, values ...string) M) (out []M) {
	labels, values := o.labels, [][]string{nil}
	if l.name != "" {
		labels, values = append(slices.Clone(labels), l), slices.Collect(slices.Chunk(l.values, 1))
	}
	vec := declare(labels)
	o.resets = append(o.resets, vec.Reset)
	for _, v := range values {
		out = append(out, of(vec, slices.Concat(o.values, v)...))
	}
	return out
}

func (o *owner) counter(name, help, alert string) prometheus.Counter {
	return o.counters(name, help, alert, label{})[0]
}

// counters returns one for each value of a label.
func (o *owner) counters(name, help, alert string, l label) (out []prometheus.Counter) {
	return each(o, l, func(all []label) *prometheus.CounterVec { return o.c.counter(name, help, alert, all...) },
		(*prometheus.CounterVec).WithLabelValues)
}

// histograms returns one for each value of a label.
func (o *owner) histograms(name, help, alert string, buckets []float64, l label) (out []prometheus.Observer) {
	return each(o, l, func(all []label) *prometheus.HistogramVec {
		return o.c.histogram(name, help, alert, buckets, all...)
	}, (*prometheus.HistogramVec).WithLabelValues)
}

// gauge is gone when its owner is.
type gauge struct {
	owner  *owner
	vec    *prometheus.GaugeVec
	values []string
	prom   prometheus.Gauge // nil: it is not shown
}

// Set shows a value.
func (g *gauge) Set(v float64) {
	if g.prom == nil {
		g.owner.show(g)
	}
	g.prom.Set(v)
}

// later returns a gauge that is shown from when it is set.
func (o *owner) later(name, help, alert string) *gauge {
	return o.laterBy(name, help, alert, label{})[0]
}

// laterBy returns one for each value of a label.
func (o *owner) laterBy(name, help, alert string, l label) (out []*gauge) {
	return each(o, l, func(all []label) *prometheus.GaugeVec { return o.c.gauge(name, help, alert, all...) },
		func(vec *prometheus.GaugeVec, values ...string) *gauge {
			return &gauge{owner: o, vec: vec, values: values}
		})
}

// gauge returns a gauge that is shown from now on.
func (o *owner) gauge(name, help, alert string) *gauge {
	return o.gauges(name, help, alert, label{})[0]
}

// gauges returns one for each value of a label.
func (o *owner) gauges(name, help, alert string, l label) []*gauge {
	all := o.laterBy(name, help, alert, l)
	for _, g := range all {
		o.show(g)
	}
	return all
}

func (o *owner) show(g *gauge) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		g.prom = prometheus.NewGauge(prometheus.GaugeOpts{Name: "gone"})
		return
	}
	g.prom = g.vec.WithLabelValues(g.values...)
	o.shown = append(o.shown, g)
}

// drop takes away gauges that have nothing to say any more, until they are set again.
func (o *owner) drop(all ...*gauge) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.shown = slices.DeleteFunc(o.shown, func(g *gauge) bool {
		gone := slices.Contains(all, g)
		if gone {
			g.vec.DeleteLabelValues(g.values...)
			g.prom = nil
		}
		return gone
	})
}

// Close takes all gauges away.
func (o *owner) Close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, g := range o.shown {
		g.vec.DeleteLabelValues(g.values...)
	}
	o.shown, o.closed = nil, true
}
