package watch

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"hindsight/pkg/codec"
)

// Roles of the parts of a process.
const (
	RoleDecider = "decider"
	RoleJoiner  = "joiner"
)

// Causes of a switch of the mode.
const (
	CauseAdmin = "admin"
	CauseGuard = "guard"
	CauseRule  = "promote" // the rule of promotion
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
	DecisionsKind = "decisions"
	FeedbackKind  = "feedback"
	ContextsKind  = "contexts"
	OutcomesKind  = "outcomes"
	RejectsKind   = "rejects"
	SnapshotsKind = "snapshots"
)

// Events of leases.
const (
	LeaseAcquired = "acquired"
	LeaseReleased = "released"
	LeaseLost     = "lost"
)

// Metrics are all that the services of one process count.
type Metrics struct {
	c *catalog

	rejects      map[[2]string]prometheus.Counter // topic, reason
	refused      map[string]map[int]prometheus.Counter
	appendErrors map[string]prometheus.Counter
	Stored       prometheus.Counter // outcomes that came by request and are stored
	LostTails    prometheus.Counter // losses of acknowledged records
	fences       *prometheus.CounterVec
	restarts     *prometheus.CounterVec
	leases       *prometheus.CounterVec
	AtWork       *prometheus.GaugeVec   // parts of a role
	Switches     *prometheus.CounterVec // of the mode, by cause

	scope *Scope
	store atomic.Pointer[StoreUsage]
	// Log takes refused requests at level debug, by code and round id and without their content. It is set before the
	// services start; nil: they are not logged.
	Log *slog.Logger
}

// Scope returns what the services of the process saw of their loop.
func (m *Metrics) Scope() *Scope { return m.scope }

// NewMetrics returns the metrics of one process, registered with reg unless that is
// nil. health may be nil: nothing is ready then.
func NewMetrics(reg prometheus.Registerer, health *Health) *Metrics {
	c := &catalog{reg: reg, made: map[string]prometheus.Collector{}}
	m := newMetrics(c)
	decider, joiner := &owner{c: c, labels: []label{partitionLabel}, values: []string{"0"}}, &owner{c: c}
	d, j := newDecider(decider), newJoiner(joiner) // to declare their metrics; there are none yet
	m.scope = newScope(c)
	d.declareMode()
	j.declareGuard()
	m.Switches = c.counter("hindsight_mode_switches_total", "Switches of the mode by this process, by who wanted them.",
		"cause guard grows", label{"cause", []string{CauseAdmin, CauseGuard, CauseRule}})
	for _, cause := range []string{CauseAdmin, CauseGuard, CauseRule} {
		m.Switches.WithLabelValues(cause)
	}
	decider.reset()
	joiner.reset()
	m.storeMetrics(c)
	c.gaugeFunc("hindsight_ready", "1 if /readyz says ready, else 0.", "0 for 2 minutes", func() float64 {
		return truth(health != nil && health.Ready() == nil)
	})
	c.gaugeFunc("hindsight_standing_by", "1 if the process is not ready only because others do the work that it is "+
		"there for, else 0.", "", func() float64 {
		return truth(health != nil && errors.Is(health.Ready(), errStandingBy))
	})
	return m
}

// Decider returns the metrics of the decider of a partition, which Close takes away.
func (m *Metrics) Decider(partition int) *DeciderMetrics {
	d := newDecider(&owner{c: m.c, labels: []label{partitionLabel}, values: []string{strconv.Itoa(partition)}})
	d.declareMode()
	return d
}

// Joiner returns the metrics of a joiner, which Close takes away.
func (m *Metrics) Joiner() *JoinerMetrics {
	j := newJoiner(&owner{c: m.c})
	j.declareGuard()
	return j
}

// Foreign counts records that the service did not write.
func (m *Metrics) Foreign() prometheus.Counter { return foreignRecords(&owner{c: m.c}) }

// newMetrics makes what deciders and joiners share.
func newMetrics(c *catalog) *Metrics {
	m := &Metrics{c: c, rejects: map[[2]string]prometheus.Counter{}, refused: map[string]map[int]prometheus.Counter{},
		appendErrors: map[string]prometheus.Counter{}}
	role := label{"role", []string{RoleDecider, RoleJoiner}}
	topics := []string{"contexts", OutcomesKind}
	reasons := []string{codec.ReasonDuplicateID, codec.ReasonLate, codec.ReasonDuplicate, codec.ReasonOrphan,
		codec.ReasonMismatch, codec.ReasonMalformed, otherValue}
	rejects := c.counter("hindsight_rejects_total", "Contexts and outcomes written to rejects, by reason.",
		"its rate passes a tenth of the rate of outcomes", label{"topic", topics}, label{"reason", reasons})
	for _, r := range reasons {
		if r == codec.ReasonDuplicateID || r == codec.ReasonMalformed || r == otherValue { // all that a decider says
			m.rejects[[2]string{"contexts", r}] = rejects.WithLabelValues("contexts", r)
		}
		if r != codec.ReasonDuplicateID { // a joiner tells a repeated id by a feedback
			m.rejects[[2]string{OutcomesKind, r}] = rejects.WithLabelValues(OutcomesKind, r)
		}
	}
	subjects, codes := []string{"decide", "outcome"}, []string{"400", "409", "413", "429", "503", noInbox, otherValue}
	refused := c.counter("hindsight_requests_refused_total", "Requests answered with an error, by its code; no-inbox: "+
		"not answered, for they want their reply where no inbox is.",
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
	kinds := []string{DecisionsKind, FeedbackKind, OutcomesKind, RejectsKind, SnapshotsKind}
	errs := c.counter("hindsight_append_errors_total", "Records whose append failed or is in doubt, by the kind of "+
		"topic.", "it grows", label{"topic", kinds})
	for _, k := range kinds {
		m.appendErrors[k] = errs.WithLabelValues(k)
	}
	m.Stored = c.counter("hindsight_outcomes_stored_total", "Outcomes that came by request and are stored.",
		"").WithLabelValues()
	m.LostTails = c.counter("hindsight_lost_tails_total", "Times that a decider, when it took a partition or after it "+
		"gave one away, found records gone that were acknowledged. The log names them.",
		"it is not 0: a log has lost its tail").WithLabelValues()
	m.fences = c.counter("hindsight_fences_total", "Times that another owner took a partition over from this process.",
		"more than 3 in 10 minutes: two processes fight", role)
	m.restarts = c.counter("hindsight_restarts_total", "Times that a part stopped with an error and was to be opened "+
		"again.", "more than 3 in 10 minutes", role)
	events := []string{LeaseAcquired, LeaseReleased, LeaseLost}
	m.leases = c.counter("hindsight_lease_events_total", "Leases of the log, on Kafka assignments by its groups, "+
		"acquired, given back and lost.", "lost grows", role, label{"event", events})
	m.AtWork = c.gauge("hindsight_at_work", "Deciders (one for each partition) and joiners at work in this process.",
		"summed over all processes, deciders are not P or joiners are not 1, for a minute", role)
	for _, r := range []string{RoleDecider, RoleJoiner} {
		// 0 from the start: what is not there neither grows nor is missed
		m.fences.WithLabelValues(r)
		m.restarts.WithLabelValues(r)
		m.AtWork.WithLabelValues(r)
		for _, event := range events {
			m.leases.WithLabelValues(r, event)
		}
	}
	return m
}

// Lease counts what happened to a lease.
func (m *Metrics) Lease(role, event string) {
	if m != nil {
		m.leases.WithLabelValues(role, event).Inc()
	}
}

// Reject counts a record written to rejects.
func (m *Metrics) Reject(topic, reason string) {
	c := m.rejects[[2]string{topic, reason}]
	if c == nil {
		c = m.rejects[[2]string{topic, otherValue}]
	}
	if c != nil {
		c.Inc()
	}
}

// NoteReject counts a reject that was written, and stores it for the status page.
func (m *Metrics) NoteReject(r *codec.Reject) {
	m.Reject(r.Topic, r.Reason)
	m.scope.Reject(r)
}

// Refuse counts a request that was answered with an error.
func (m *Metrics) Refuse(subject string, code int) {
	if m == nil {
		return
	}
	c := m.refused[subject][code]
	if c == nil {
		c = m.refused[subject][0]
	}
	c.Inc()
}

// RefuseReply counts a request that a bus did not hand over.
func (m *Metrics) RefuseReply(subject string) {
	kind := "decide"
	if strings.HasSuffix(subject, ".outcome") {
		kind = "outcome"
	}
	m.Refuse(kind, noInboxCode)
}

// AppendError counts a record that was not, or perhaps not, stored. What ends with its caller is no error of the log.
func (m *Metrics) AppendError(kind string, err error) {
	if err != nil && !errors.Is(err, context.Canceled) {
		m.appendErrors[kind].Inc()
	}
}

// RefuseID is Refuse of a request whose round has an id.
func (m *Metrics) RefuseID(subject string, code int, id string) {
	m.Refuse(subject, code)
	if m != nil && m.Log != nil && m.Log.Enabled(context.Background(), slog.LevelDebug) {
		m.Log.Debug("request refused", "subject", subject, "code", code, "id", id)
	}
}

// Restart counts a part of a role that stopped, because another owner took it over or not.
func (m *Metrics) Restart(role string, fenced bool) {
	m.restarts.WithLabelValues(role).Inc()
	if fenced {
		m.fences.WithLabelValues(role).Inc()
	}
}
