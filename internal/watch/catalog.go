package watch

import (
	"fmt"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// label is a label of metrics with all the values that it can have. No value ever
// comes from outside.
type label struct {
	name   string
	values []string // nil: the numbers of partitions
}

var partitionLabel = label{name: "partition"}

// MetricDoc says what one metric is.
type MetricDoc struct {
	Name, Type  string
	Unit        string              // of its values
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

func declare[V prometheus.Collector](c *catalog, kind, name, help, alert string, labels []label, create func(labels []string) V) V {
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
	d := MetricDoc{Name: name, Type: kind, Unit: unitOf(name), Help: help, Alert: alert, Values: map[string][]string{}}
	for _, l := range labels {
		names = append(names, l.name)
		d.Values[l.name] = l.values
	}
	d.Labels = names
	c.docs = append(c.docs, d)
	return names
}

// units are those that a metric's name does not end with.
var units = map[string]string{
	"hindsight_gamma": "1/loss", "hindsight_epoch": "number", "hindsight_joiner_epoch": "number", "hindsight_learned_through": "number",
	"hindsight_regret_bound": "losses", "hindsight_exploration_cost": "losses", "hindsight_recent_loss": "loss", "hindsight_recent_uniform_loss": "loss",
	"hindsight_recent_excess_loss": "loss", "hindsight_recent_excess_loss_error": "loss",
	"hindsight_loss_mean": "loss", "hindsight_loss_standard_error": "loss", "hindsight_propensity_floor": "probability", "hindsight_top_weight": "ratio",
	"hindsight_head_of_line_partition": "number", "hindsight_head_of_line_round": "number", "hindsight_draw_evidence": "betting odds",
	"hindsight_shadow_excess_loss": "loss", "hindsight_shadow_excess_loss_error": "loss", "hindsight_guard_excess_loss": "loss", "hindsight_mode": "0 to 3",
	"hindsight_ready": "0 or 1", "hindsight_standing_by": "0 or 1", "hindsight_class_refuted": "0 or 1", "hindsight_late_losses_differ": "0 or 1", "hindsight_guard_alarm": "0 or 1",
}

// unitOf returns the unit of a metric: what its name ends with, as the convention has it.
func unitOf(name string) string {
	if u := units[name]; u != "" {
		return u
	}
	name = strings.TrimSuffix(name, "_total")
	switch last := name[strings.LastIndexByte(name, '_')+1:]; last {
	case "seconds", "bytes", "records", "rounds", "ratio":
		return last
	}
	return "count"
}

// MetricDocs returns all metrics of the services, in the order of the page that
// lists them.
func MetricDocs() []MetricDoc { return NewMetrics(nil, nil).c.docs }

// MetricsPage returns the page that lists all metrics, in Markdown.
func MetricsPage() string {
	var b strings.Builder
	b.WriteString(`# Metrics

What ` + "`/metrics`" + ` of ` + "`decider`" + ` and ` + "`feedback-joiner`" + ` shows (` + "`--admin`" + `, by default http://127.0.0.1:9464/metrics). A metric of the
joiner is there while a joiner is at work in the process, one of a decider for each partition that it owns. Labels have
the values listed here and no others; ` + "`partition`" + ` is 0 … P−1. Beside these there are the collectors of the Go runtime,
the process and the build (` + "`go_*`, `process_*`" + `). ` + "`/healthz`" + ` is 200 while the loops are alive; ` + "`/readyz`" + ` is 503, with
the reason in one line, while the process recovers, owns nothing, has no model, cannot reach the log, or a loop of it stands still. Of a decider
` + "`/certificate`" + ` says in JSON what bounds the regret, on which assumptions and whether they hold, and ` + "`/models?alpha=0.05&limit=1000`" + `
which functions of its class the data have not refuted.

This page is made from the code by ` + "`go test ./internal/service -run MetricsPage -update`" + `.

The alarms made of them, with what to do about each, are in [ALERTS.md](ALERTS.md); alerts.yml has them for Prometheus, and
grafana/ a dashboard. The page at / of the same port shows most of this without any of it: [PAGE.md](PAGE.md).

| metric | type | unit | labels | meaning | look when |
|---|---|---|---|---|---|
`)
	for _, d := range MetricDocs() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s |\n", d.Name, d.Type, d.Unit, d.labelCell(), cell(d.Help), cell(d.Alert))
	}
	return b.String()
}

func (d *MetricDoc) labelCell() string {
	var out []string
	for _, l := range d.Labels {
		if v := d.Values[l]; v != nil {
			l += ": " + strings.Join(v, ", ")
		}
		out = append(out, l)
	}
	return strings.Join(out, "; ")
}

func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
