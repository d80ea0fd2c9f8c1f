package service

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"hindsight/internal/monitor"
	"hindsight/pkg/codec"
)

// Roles of the parts of a process.
const (
	RoleDecider = "decider"
	RoleJoiner  = "joiner"
)

// Values of labels.
const (
	fromTopic   = "topic"
	fromRequest = "request"
	otherValue  = "other" // what no list has: it would be a fault of this program

	noInboxCode = -1         // in place of the code of an error that is not sent,
	noInbox     = "no-inbox" // for its reply was wanted where no inbox is
)

// The kinds of topics that are written here.
const (
	decisionsKind = "decisions"
	feedbackKind  = "feedback"
	contextsKind  = "contexts"
	outcomesKind  = "outcomes"
	rejectsKind   = "rejects"
	snapshotsKind = "snapshots"
)

// Events of leases.
const (
	leaseAcquired = "acquired"
	leaseReleased = "released"
	leaseLost     = "lost"
)

// Metrics are all that the services of one process count.
type Metrics struct {
	docs []MetricDoc

	rejects      map[[2]string]prometheus.Counter // topic, reason
	refused      map[string]map[int]prometheus.Counter
	appendErrors map[string]prometheus.Counter
	stored       prometheus.Counter // outcomes by request
	fences       *prometheus.CounterVec
	restarts     *prometheus.CounterVec
	leases       *prometheus.CounterVec
	work         *prometheus.GaugeVec

	decider deciderMetrics
	joiner  joinerMetrics
	scope   *monitor.Scope
	store   atomic.Pointer[StoreUsage]
	log     *slog.Logger // of refused requests; nil: they are not logged
	modes   modeMetrics
}

// Scope returns what the services of the process saw of their loop.
func (m *Metrics) Scope() *monitor.Scope { return m.scope }

// NewMetrics returns the metrics of one process, registered with reg unless that is
// nil. health may be nil: nothing is ready then.
func NewMetrics(reg prometheus.Registerer, health *Health) *Metrics {
	c := &catalog{reg: reg}
	m := newMetrics(c)
	m.decider = newDeciderMetrics(c)
	m.joiner = newJoinerMetrics(c)
	m.scope = newScope(c)
	m.modes = newModeMetrics(c)
	m.storeMetrics(c)
	c.gaugeFunc("hindsight_ready", "1 if /readyz says ready, else 0.", "0 for 2 minutes", func() float64 {
		if health == nil || health.Ready() != nil {
			return 0
		}
		return 1
	})
	c.gaugeFunc("hindsight_standing_by", "1 if the process is not ready only because others do the work that it is there for, else 0.", "", func() float64 {
		if health != nil && errors.Is(health.Ready(), errStandingBy) {
			return 1
		}
		return 0
	})
	m.docs = c.docs
	return m
}

// newMetrics makes what deciders and joiners share.
func newMetrics(c *catalog) *Metrics {
	m := &Metrics{rejects: map[[2]string]prometheus.Counter{}, refused: map[string]map[int]prometheus.Counter{}, appendErrors: map[string]prometheus.Counter{}}
	role := label{"role", []string{RoleDecider, RoleJoiner}}
	topics := []string{"contexts", outcomesKind}
	reasons := []string{codec.ReasonDuplicateID, codec.ReasonLate, codec.ReasonDuplicate, codec.ReasonOrphan, codec.ReasonMismatch, codec.ReasonMalformed, otherValue}
	rejects := c.counter("hindsight_rejects_total", "Contexts and outcomes written to rejects, by reason.",
		"its rate passes a tenth of the rate of outcomes", label{"topic", topics}, label{"reason", reasons})
	for _, r := range reasons {
		if r == codec.ReasonDuplicateID || r == codec.ReasonMalformed || r == otherValue { // all that a decider says
			m.rejects[[2]string{"contexts", r}] = rejects.WithLabelValues("contexts", r)
		}
		if r != codec.ReasonDuplicateID { // a joiner tells a repeated id by a feedback
			m.rejects[[2]string{outcomesKind, r}] = rejects.WithLabelValues(outcomesKind, r)
		}
	}
	subjects, codes := []string{"decide", "outcome"}, []string{"400", "409", "413", "429", "503", noInbox, otherValue}
	refused := c.counter("hindsight_requests_refused_total", "Requests answered with an error, by its code; no-inbox: not answered, for they want their reply where no inbox is.",
		"code 503 grows again and again, for 6 minutes", label{"subject", subjects}, label{"code", codes})
	for _, s := range subjects {
		m.refused[s] = map[int]prometheus.Counter{}
		for _, code := range codes {
			n, _ := strconv.Atoi(code) // 0: other
			if code == noInbox {
				n = noInboxCode
			}
			m.refused[s][n] = refused.WithLabelValues(s, code)
		}
	}
	kinds := []string{decisionsKind, feedbackKind, outcomesKind, rejectsKind, snapshotsKind}
	errs := c.counter("hindsight_append_errors_total", "Records whose append failed or is in doubt, by the kind of topic.",
		"it grows", label{"topic", kinds})
	for _, k := range kinds {
		m.appendErrors[k] = errs.WithLabelValues(k)
	}
	m.stored = c.counter("hindsight_outcomes_stored_total", "Outcomes that came by request and are stored.", "").WithLabelValues()
	m.fences = c.counter("hindsight_fences_total", "Times that another owner took a partition over from this process.", "more than 3 in 10 minutes: two processes fight", role)
	m.restarts = c.counter("hindsight_restarts_total", "Times that a part stopped with an error and was to be opened again.", "more than 3 in 10 minutes", role)
	events := []string{leaseAcquired, leaseReleased, leaseLost}
	m.leases = c.counter("hindsight_lease_events_total", "Leases of the log, on Kafka assignments by its groups, acquired, given back and lost.", "lost grows", role,
		label{"event", events})
	m.work = c.gauge("hindsight_at_work", "Deciders (one for each partition) and joiners at work in this process.",
		"summed over all processes, deciders are not P or joiners are not 1, for a minute", role)
	for _, r := range []string{RoleDecider, RoleJoiner} { // 0 from the start: what is not there neither grows nor is missed
		m.fences.WithLabelValues(r)
		m.restarts.WithLabelValues(r)
		m.work.WithLabelValues(r)
		for _, event := range events {
			m.leases.WithLabelValues(r, event)
		}
	}
	return m
}

// lease counts what happened to a lease.
func (m *Metrics) lease(role, event string) {
	if m != nil {
		m.leases.WithLabelValues(role, event).Inc()
	}
}

// reject counts a record written to rejects.
func (m *Metrics) reject(topic, reason string) {
	c := m.rejects[[2]string{topic, reason}]
	if c == nil {
		c = m.rejects[[2]string{topic, otherValue}]
	}
	if c != nil {
		c.Inc()
	}
}

// noteReject counts a reject that was written, and keeps it for who looks.
func (m *Metrics) noteReject(r *codec.Reject) {
	m.reject(r.Topic, r.Reason)
	m.scope.Reject(r)
}

// refuse counts a request that was answered with an error.
func (m *Metrics) refuse(subject string, code int) {
	if m == nil {
		return
	}
	c := m.refused[subject][code]
	if c == nil {
		c = m.refused[subject][0]
	}
	c.Inc()
}

// refuseReply counts a request that a bus did not hand over.
func (m *Metrics) refuseReply(subject string) {
	kind := "decide"
	if strings.HasSuffix(subject, ".outcome") {
		kind = "outcome"
	}
	m.refuse(kind, noInboxCode)
}

// appendError counts a record that was not, or perhaps not, stored. What ends with its
// caller is no error of the log.
func (m *Metrics) appendError(kind string, err error) {
	if err != nil && !errors.Is(err, context.Canceled) {
		m.appendErrors[kind].Inc()
	}
}

// LogTo makes refused requests be logged, for who asks for debugging: by code and round id,
// without what was asked. It must come before the services.
func (m *Metrics) LogTo(l *slog.Logger) { m.log = l }

// refuseID is refuse of a request whose round has an id.
func (m *Metrics) refuseID(subject string, code int, id string) {
	m.refuse(subject, code)
	if m != nil && m.log != nil && m.log.Enabled(context.Background(), slog.LevelDebug) {
		m.log.Debug("request refused", "subject", subject, "code", code, "id", id)
	}
}

// gauges makes gauges that are gone when their owner is.
type gauges struct {
	values []string // of the labels of all of them

	mu     sync.Mutex
	made   []*prometheus.GaugeVec
	closed bool
}

func (g *gauges) of(v *prometheus.GaugeVec) prometheus.Gauge {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed { // too late: nobody is to see it
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: "gone"})
	}
	if !slices.Contains(g.made, v) {
		g.made = append(g.made, v)
	}
	return v.WithLabelValues(g.values...)
}

// drop takes away gauges that have nothing to say any more.
func (g *gauges) drop(all ...*prometheus.GaugeVec) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.made = slices.DeleteFunc(g.made, func(v *prometheus.GaugeVec) bool {
		gone := slices.Contains(all, v)
		if gone {
			v.DeleteLabelValues(g.values...)
		}
		return gone
	})
}

func (g *gauges) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, v := range g.made {
		v.DeleteLabelValues(g.values...)
	}
	g.made, g.closed = nil, true
}
