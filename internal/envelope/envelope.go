// Package envelope puts what the programs write to topics into the encoding of their model.
package envelope

import (
	"slices"
	"strings"
	"time"
	"unsafe"

	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// Headers of records: of all on Kafka, elsewhere of those of a model whose encoding is JSON.
const (
	ContentType = "content-type"
	EventTime   = "hindsight-time" // log time of what a record tells of (RFC 3339); see [Headers.Of] if it tells none
)

// Headers are the headers that the records of one topic of Kafka get. One goroutine uses it.
type Headers struct {
	raw  bool // the topic's records are as clients wrote them
	text []byte
	all  []stream.Header
}

// NewHeaders returns the headers of a topic.
func NewHeaders(topic string) *Headers {
	return &Headers{raw: strings.HasSuffix(topic, ".contexts") || strings.HasSuffix(topic, ".outcomes")}
}

// Of returns the headers that a record gets beside its own, until the next call. Its event's time is now where the
// record tells none: what it tells of happens at its append.
func (h *Headers) Of(r *stream.Record) []stream.Header {
	h.all = h.all[:0]
	if len(r.Value) == 0 {
		return nil
	}
	if !has(r, ContentType) {
		kind := codec.EncodingOf(r.Value).ContentType()
		if h.raw {
			kind = codec.MediaType(r.Value)
		}
		h.all = append(h.all, stream.Header{Key: ContentType, Value: kind})
	}
	if !has(r, EventTime) {
		at := time.Now()
		if !h.raw {
			if told := codec.EventTime(r.Value); told > 0 {
				at = time.Unix(0, told)
			}
		}
		h.text = at.UTC().AppendFormat(h.text[:0], time.RFC3339Nano)
		h.all = append(h.all, stream.Header{Key: EventTime, Value: unsafe.String(&h.text[0], len(h.text))})
	}
	return h.all
}

// has reports whether a record has a header, whose name a client may have written otherwise.
func has(r *stream.Record, key string) bool {
	return slices.ContainsFunc(r.Headers, func(h stream.Header) bool { return strings.EqualFold(h.Key, key) })
}

// Encoder encodes the records of one model. One goroutine uses it.
type Encoder struct {
	Encoding codec.Encoding
	buf      []byte
}

// Encode turns the bytes of a record, which are MessagePack, into the model's encoding. The record is
// valid until the next call.
func (e *Encoder) Encode(r *stream.Record) {
	if e.Encoding == codec.MessagePack {
		return
	}
	at := codec.EventTime(r.Value)
	if r.Value = codec.Stored(e.buf[:0], e.Encoding, r.Type, r.Value); codec.IsJSON(r.Value) {
		e.buf = r.Value
	}
	r.Headers = append(r.Headers, stream.Header{Key: ContentType, Value: codec.EncodingOf(r.Value).ContentType()})
	if at > 0 {
		r.Headers = append(r.Headers, stream.Header{Key: EventTime, Value: time.Unix(0,
			at).UTC().Format(time.RFC3339Nano)})
	}
}
