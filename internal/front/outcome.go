package front

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"hindsight/internal/join"
	"hindsight/internal/loop"
	"hindsight/internal/trace"
	"hindsight/internal/watch"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// Outcomes takes outcomes by request: it appends each to the partition of its round's id and replies when it is stored.
type Outcomes struct {
	writers []*outcomeWriter
	gate    *Gate
	quota   *quota
	stop    func()
	metrics *watch.Metrics
	trace   trace.Tracer // nil: disabled
}

// ServeOutcomes starts to take outcomes, for all partitions. Close ends it.
func (s *Server) ServeOutcomes(ctx context.Context, log stream.Log) (*Outcomes, error) {
	o, topics := &Outcomes{metrics: s.Metrics, trace: s.Trace}, join.TopicsOf(s.Name)
	for p := range s.Partitions {
		w := newOutcomeWriter(log, topics.Outcomes, p)
		if err := w.open(ctx); err != nil {
			o.Close()
			return nil, err
		}
		o.writers = append(o.writers, w)
	}
	o.quota = newQuota(ctx, log, topics, s.Metrics)
	o.gate = NewGate("outcome", s.Metrics, o.store)
	var err error
	if o.stop, err = s.Bus.Serve(s.Name+".outcome", "outcome", s.limit("outcome", o.gate.Request)); err != nil {
		o.Close()
		return nil, err
	}
	return o, nil
}

// Close stops the service after the requests that it has.
func (o *Outcomes) Close() {
	if o.stop != nil {
		o.stop()
	}
	if o.gate != nil {
		o.gate.Close()
	}
	for _, w := range o.writers {
		w.close()
	}
	o.quota.close()
}

// maxHeaderBytes bounds the headers of an outcome as they are stored: their names and values,
// and 4 bytes more for each.
const maxHeaderBytes = 16 << 10

// plainHeaders returns the headers that are stored, or why they cannot be. Left out are the spaces around a value, and
// headers that would be ours, or orders to the server that keeps the log, in the name of the service: an expectation
// that does not hold, for instance, which ends the writer.
func plainHeaders(headers []stream.Header) ([]stream.Header, error) {
	headers = slices.DeleteFunc(headers, func(h stream.Header) bool {
		key := strings.ToLower(h.Key)
		return strings.HasPrefix(key, "nats-") || strings.HasPrefix(key, "hindsight-")
	})
	size := 0
	for i := range headers {
		h := &headers[i]
		h.Value = strings.TrimSpace(h.Value)
		if !h.Plain() {
			return nil, fmt.Errorf("header %.64q: a name is visible ASCII without spaces and colons, a value is one "+
				"line", h.Key)
		}
		size += len(h.Key) + len(h.Value) + 4
	}
	if size > maxHeaderBytes {
		return nil, fmt.Errorf("%w: its headers have %d bytes, at most %d are taken", codec.ErrTooLarge, size,
			maxHeaderBytes)
	}
	return headers, nil
}

// Store takes one outcome that comes now, past the gate.
func (o *Outcomes) Store(m stream.Message) { o.store(m, time.Now()) }

// store stores one outcome that came at start. Whether its round exists, and whether
// it came in time, is for the joiner to find out.
func (o *Outcomes) store(m stream.Message, start time.Time) {
	json, refuse := !codec.IsMap(m.Data), Refuser(&m, o.metrics, "outcome")
	if n := RequestSize(&m); n > codec.MaxOutcomeBytes {
		refuse(413, fmt.Sprintf("the outcome is too large: %d bytes with its headers, at most %d are taken",
			n, codec.MaxOutcomeBytes), "")
		return
	}
	var parsed codec.Outcome
	headers, err := plainHeaders(m.Headers)
	if err == nil {
		err = codec.ParseOutcome(&parsed, m.Data)
	}
	if err == nil {
		err = parsed.Validate()
	}
	if err != nil {
		refuse(CodeOf(err), WhyOf(err), "")
		return
	}
	id := strings.Clone(cmp.Or(parsed.ID, parsed.Unit))
	if !o.quota.take(RequestSize(&m)) {
		refuse(503, overQuota, id)
		return
	}
	w := o.writers[loop.PartitionOf([]byte(id), len(o.writers))]
	r := &stream.Record{Key: []byte(id), Value: m.Data, Headers: headers}
	span := o.span(headers, start, id)
	w.append(r, start.Add(MaxPatience), func(_ int64, err error) {
		if span != nil {
			span.Stored(err)
			defer span.End(true)
		}
		switch {
		case err == nil:
			o.metrics.Stored.Inc()
			m.Respond(codec.AppendStored(nil, id, json))
		case errors.Is(err, stream.ErrTooLarge):
			refuse(413, "the outcome is too large", id)
		case errors.Is(err, stream.ErrUnfit):
			refuse(400, err.Error(), id)
		case errors.Is(err, errNoRoom):
			refuse(503, err.Error(), id)
		default:
			o.metrics.AppendError(watch.OutcomesKind, err)
			refuse(503, fmt.Sprintf("the outcome log failed (%v); send it again, as it was: of the first outcome of "+
				"a round, or of one outcome_id, repeats do no harm", err), id)
		}
	})
}

// span begins the span of an outcome; nil: there is no tracer.
func (o *Outcomes) span(headers []stream.Header, start time.Time, id string) trace.Span {
	if o.trace == nil {
		return nil
	}
	return o.trace.Outcome(trace.Of(headers), start, id)
}
