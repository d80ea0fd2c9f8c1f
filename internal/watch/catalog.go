package watch

import "github.com/prometheus/client_golang/prometheus"

// label is a label of metrics with all the values that it can have. No value ever comes from outside.
type label struct {
	name   string
	values []string // nil: the numbers of partitions
}

var partitionLabel = label{name: "partition"}

// MetricDoc says what one metric is.
type MetricDoc struct {
	Name, Type  string
	Labels      []string            // names
	Values      map[string][]string // by label: all that it can be; nil: the numbers of partitions
	Help, Alert string              // Alert: when to be woken; "": never by this alone
}

// catalog makes metrics, registers them if there is where to, and notes what they are. A metric is
// declared in one line, where what shows it is made; declared again, it is the same metric.
type catalog struct {
	reg  prometheus.Registerer // nil: disabled
	docs []MetricDoc
	made map[string]prometheus.Collector
}

func declare[V prometheus.Collector](c *catalog, kind, name, help, alert string, labels []label,
	create func(labels []string) V) V {
	if v, ok := c.made[name]; ok {
		return v.(V)
	}
	v := create(c.note(kind, name, help, alert, labels))
	c.made[name] = v
	if c.reg != nil {
		c.reg.MustRegister(v) // fails only when two processes' worth of metrics meet in one registry
	}
	return v
}

func (c *catalog) counter(name, help, alert string, labels ...label) *prometheus.CounterVec {
	return declare(c, "counter", name, help, alert, labels, func(names []string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, names)
	})
}

func (c *catalog) gauge(name, help, alert string, labels ...label) *prometheus.GaugeVec {
	return declare(c, "gauge", name, help, alert, labels, func(names []string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, names)
	})
}

func (c *catalog) gaugeFunc(name, help, alert string, f func() float64) {
	declare(c, "gauge", name, help, alert, nil, func([]string) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, f)
	})
}

func (c *catalog) histogram(name, help, alert string, buckets []float64, labels ...label) *prometheus.HistogramVec {
	return declare(c, "histogram", name, help, alert, labels, func(names []string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, names)
	})
}

func (c *catalog) note(kind, name, help, alert string, labels []label) (names []string) {
	d := MetricDoc{Name: name, Type: kind, Help: help, Alert: alert, Values: map[string][]string{}}
	for _, l := range labels {
		names = append(names, l.name)
		d.Values[l.name] = l.values
	}
	d.Labels = names
	c.docs = append(c.docs, d)
	return names
}

// MetricDocs returns all metrics of the services, in the order of the page that lists them.
func MetricDocs() []MetricDoc { return NewMetrics(nil, nil).c.docs }
