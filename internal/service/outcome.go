package service

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"hindsight/internal/loop"
	"hindsight/internal/watch"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// requestSize is what a request counts against the limit on records: its headers are
// stored with it.
func requestSize(m *stream.Message) int {
	n := len(m.Data)
	for _, h := range m.Headers {
		n += len(h.Key) + len(h.Value)
	}
	return n
}

// maxHeaderBytes bounds the headers of an outcome as they are stored: their names and values,
// and 4 bytes more for each.
const maxHeaderBytes = 16 << 10

// plainHeaders returns the headers that are stored, or why they cannot be. Left out are the
// spaces around a value, and headers that would be ours, or orders to the server that keeps
// the log, in the name of the service: an expectation that does not hold, for instance, which
// ends the writer.
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
			return nil, fmt.Errorf("header %.64q: a name is visible ASCII without spaces and colons, a value is one line", h.Key)
		}
		size += len(h.Key) + len(h.Value) + 4
	}
	if size > maxHeaderBytes {
		return nil, fmt.Errorf("%w: its headers have %d bytes, at most %d are taken", codec.ErrTooLarge, size, maxHeaderBytes)
	}
	return headers, nil
}

// codeOf returns the code of the answer to what cannot be taken as it is.
func codeOf(err error) int {
	if errors.Is(err, codec.ErrTooLarge) {
		return 413
	}
	return 400
}

// request stores one outcome that comes now.
func (s *OutcomeService) request(m stream.Message) { s.requestOf(m, time.Now()) }

// requestOf stores one outcome that came at start. Whether its round exists, and whether
// it came in time, is for the joiner to find out.
func (s *OutcomeService) requestOf(m stream.Message, start time.Time) {
	json := !codec.IsMap(m.Data)
	refuse := func(code int, message, id string) {
		s.metrics.RefuseID("outcome", code, id)
		data, headers := errorReply(code, message, id, json)
		m.Respond(data, headers...)
	}
	if n := requestSize(&m); n > codec.MaxOutcomeBytes {
		refuse(413, fmt.Sprintf("the outcome is too large: %d bytes with its headers, at most %d are taken",
			n, codec.MaxOutcomeBytes), "")
		return
	}
	var o codec.Outcome
	headers, err := plainHeaders(m.Headers)
	if err == nil {
		err = codec.ParseOutcome(&o, m.Data)
	}
	if err == nil {
		err = o.Validate()
	}
	if err != nil {
		refuse(codeOf(err), err.Error(), "")
		return
	}
	id := strings.Clone(o.ID)
	if !s.quota.take(requestSize(&m)) {
		refuse(503, overQuota, id)
		return
	}
	w := s.writers[loop.PartitionOf([]byte(id), len(s.writers))]
	r := &stream.Record{Key: []byte(id), Value: m.Data, Headers: headers}
	w.append(r, start.Add(forwardLimit), func(_ int64, err error) {
		switch {
		case err == nil:
			s.metrics.StoreOutcome()
			m.Respond(codec.AppendStored(nil, id, json))
		case errors.Is(err, stream.ErrTooLarge):
			refuse(413, "the outcome is too large", id)
		case errors.Is(err, stream.ErrUnfit):
			refuse(400, err.Error(), id)
		case errors.Is(err, errNoRoom):
			refuse(503, err.Error(), id)
		default:
			s.metrics.AppendError(watch.OutcomesKind, err)
			refuse(503, fmt.Sprintf("the outcome log failed (%v); send it again, as it was: of the first outcome of a round, or of one outcome_id, repeats do no harm", err), id)
		}
	})
}
