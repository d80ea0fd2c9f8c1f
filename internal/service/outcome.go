package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// outcomeWriter appends the outcomes of one partition and answers each request at
// its acknowledgement.
type outcomeWriter struct {
	log       stream.Log
	topic     string
	partition int

	mu      sync.Mutex // guards the appender
	out     stream.Appender
	waiting struct {
		sync.Mutex
		tickets []func(offset int64, err error)
	}
}

// maxOutcomesInFlight bounds the outcomes that wait for their acknowledgement.
const maxOutcomesInFlight = 1024

func (w *outcomeWriter) open(ctx context.Context) (err error) {
	w.out, err = w.log.Writer(ctx, w.topic, w.partition, w.ack)
	return err
}

func (w *outcomeWriter) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.out != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		w.out.Flush(ctx)
		w.out.Close()
		w.out = nil
	}
}

func (w *outcomeWriter) ack(_ uint64, offset int64, err error) {
	w.waiting.Lock()
	done := w.waiting.tickets[0]
	w.waiting.tickets = w.waiting.tickets[1:]
	w.waiting.Unlock()
	done(offset, err)
}

// append sends one outcome; done is called when its fate is known. It reports false
// if too many are on their way.
func (w *outcomeWriter) append(r *stream.Record, done func(offset int64, err error)) (bool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.out == nil {
		if err := w.open(ctx); err != nil {
			return true, err
		}
	}
	w.waiting.Lock()
	if len(w.waiting.tickets) >= maxOutcomesInFlight {
		w.waiting.Unlock()
		return false, nil
	}
	w.waiting.tickets = append(w.waiting.tickets, done)
	w.waiting.Unlock()
	if _, err := w.out.Append(ctx, r); errors.Is(err, stream.ErrTooLarge) { // the appender lives on
		w.withdraw()
		return true, err
	} else if err != nil {
		w.out.Close() // a dead appender: the next request opens another
		w.out = nil
		w.abandon(err)
	}
	return true, nil
}

// withdraw takes back the last ticket, of a record that was not sent.
func (w *outcomeWriter) withdraw() {
	w.waiting.Lock()
	defer w.waiting.Unlock()
	w.waiting.tickets = w.waiting.tickets[:len(w.waiting.tickets)-1]
}

func (w *outcomeWriter) abandon(err error) {
	w.waiting.Lock()
	tickets := w.waiting.tickets
	w.waiting.tickets = nil
	w.waiting.Unlock()
	for _, done := range tickets {
		done(-1, err)
	}
}

// requestSize is what a request counts against the limit on records: its headers are
// stored with it.
func requestSize(m *stream.Message) int {
	n := len(m.Data)
	for _, h := range m.Headers {
		n += len(h.Key) + len(h.Value)
	}
	return n
}

// plainHeaders returns the headers that may be stored. The others would be ours, or orders
// to the server that keeps the log, in the name of the service: an expectation that does
// not hold, for instance, which ends the writer.
func plainHeaders(headers []stream.Header) []stream.Header {
	return slices.DeleteFunc(headers, func(h stream.Header) bool {
		key := strings.ToLower(h.Key)
		return strings.HasPrefix(key, "nats-") || strings.HasPrefix(key, "hindsight-")
	})
}

// request stores one outcome. Whether its round exists, and whether it came in time,
// is for the joiner to find out.
func (s *OutcomeService) request(m stream.Message) {
	json := codec.IsJSON(m.Data)
	refuse := func(code int, message, id string) {
		s.metrics.refuseID("outcome", code, id)
		data, headers := errorReply(code, message, id, json)
		m.Respond(data, headers...)
	}
	if requestSize(&m) > codec.MaxRecordBytes {
		refuse(413, "the outcome is too large", "")
		return
	}
	var o codec.Outcome
	err := codec.ParseOutcome(&o, m.Data)
	if err == nil {
		err = o.Validate()
	}
	if err != nil {
		refuse(400, err.Error(), "")
		return
	}
	id := strings.Clone(o.ID)
	w := s.writers[loop.PartitionOf([]byte(id), len(s.writers))]
	room, err := w.append(&stream.Record{Key: []byte(id), Value: m.Data, Headers: plainHeaders(m.Headers)}, func(_ int64, err error) {
		s.metrics.appendError(outcomesKind, err)
		if err != nil {
			refuse(503, fmt.Sprintf("the outcome log failed (%v); send it again, as it was: of the first outcome of a round, or of one outcome_id, repeats do no harm", err), id)
			return
		}
		s.metrics.stored.Inc()
		m.Respond(codec.AppendStored(nil, id, json))
	})
	if errors.Is(err, stream.ErrTooLarge) {
		refuse(413, "the outcome is too large", id)
	} else if err != nil {
		s.metrics.appendError(outcomesKind, err)
		refuse(503, err.Error(), id)
	} else if !room {
		refuse(503, "overloaded: send it again", id)
	}
}
