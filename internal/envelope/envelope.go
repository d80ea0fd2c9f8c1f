// Package envelope puts what the programs write to topics into the encoding of their model.
package envelope

import (
	"time"

	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// Headers of the records of a model whose encoding is JSON.
const (
	ContentType = "content-type"
	EventTime   = "hindsight-time" // log time of what a record tells of (RFC 3339); none if it is not known
)

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
		r.Headers = append(r.Headers, stream.Header{Key: EventTime, Value: time.Unix(0, at).UTC().Format(time.RFC3339Nano)})
	}
}
