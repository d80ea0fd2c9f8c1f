package front

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"hindsight/internal/join"
	"hindsight/internal/watch"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// The headers of an error reply, as the NATS service convention has them.
const (
	errorHeader     = "Nats-Service-Error"
	errorCodeHeader = "Nats-Service-Error-Code"
)

// A transient error says after how many seconds to ask again, as in HTTP. Clients spread
// that at random, so that they do not come back all at once.
const (
	retryHeader  = "Retry-After"
	retrySeconds = "1"
)

// Refuser returns a function that answers a request with an error, in the format of the request, and
// counts that; id is that of the round, "" if it is not known.
func Refuser(m *stream.Message, metrics *watch.Metrics, subject string) func(code int, message, id string) {
	json, respond := !codec.IsMap(m.Data), m.Respond
	return func(code int, message, id string) {
		metrics.RefuseID(subject, code, id)
		headers := []stream.Header{{Key: errorHeader, Value: strings.ReplaceAll(message, "\n", " ")},
			{Key: errorCodeHeader, Value: strconv.Itoa(code)}}
		if code == 429 || code == 503 {
			headers = append(headers, stream.Header{Key: retryHeader, Value: retrySeconds})
		}
		respond(codec.ErrorReply(nil, code, message, id, json), headers...)
	}
}

// CodeOf returns the code of the answer to a request that cannot be taken as it is.
func CodeOf(err error) int {
	if errors.Is(err, codec.ErrTooLarge) {
		return 413
	}
	return 400
}

// WhyOf returns what is wrong with a request that cannot be taken as it is. The codec speaks of records.
func WhyOf(err error) string {
	return strings.ReplaceAll(err.Error(), codec.ErrCorrupt.Error()+": ", "")
}

// RecordedHeader asks for the decision that the id of a request has, whatever the context that it was made of. Without
// the header a request whose id was used for another context is refused.
const RecordedHeader = "hindsight-recorded"

// The values of [RecordedHeader].
const (
	RecordedOrNew = "or-new" // decide if there is none
	RecordedOnly  = "only"   // reply with no bytes if there is none
)

// RecordedOf returns which recorded decision a request asks for; "": none.
func RecordedOf(m *stream.Message) string {
	for _, h := range m.Headers {
		if strings.EqualFold(h.Key, RecordedHeader) {
			return h.Value
		}
	}
	return ""
}

// RequestID returns the id that the headers of a request give its round, "" if they give none.
func RequestID(m *stream.Message) string {
	return join.CloudEventID(&stream.Record{Headers: m.Headers})
}

// RequestSize is what a request counts against the limit on records: its headers are stored with it.
func RequestSize(m *stream.Message) int {
	n := len(m.Data)
	for _, h := range m.Headers {
		n += len(h.Key) + len(h.Value)
	}
	return n
}

// headerBytes is about what a header takes beside its name and value.
const headerBytes = 64

// HeldBytes is about what a request that waits takes of memory.
func HeldBytes(m *stream.Message) int { return RequestSize(m) + headerBytes*len(m.Headers) }

// MaxPatience is how long a request waits at most: for its decision, for the answer of another process,
// for room in the log.
const MaxPatience = 5 * time.Second

// Brief is a context that ends a second after it is first waited for: an append rarely waits, and a timer for each one
// costs more than the rest of its context. One goroutine at a time uses it.
type Brief struct {
	context.Context
	cancel context.CancelFunc // nil: it was not waited for
}

// NewBrief returns a brief context. End must follow.
func NewBrief() *Brief { return &Brief{Context: context.Background()} }

// Done implements [context.Context].
func (b *Brief) Done() <-chan struct{} {
	if b.cancel == nil {
		b.Context, b.cancel = context.WithTimeout(context.Background(), time.Second)
	}
	return b.Context.Done()
}

// End frees the timer, if there is one, and makes b ready to be used again.
func (b *Brief) End() {
	if b.cancel != nil {
		b.cancel()
		*b = *NewBrief()
	}
}

// timeoutHeader says for how long the client waits for the answer, as a duration: 250ms.
// A request whose client waits no more is not decided.
const timeoutHeader = "hindsight-timeout"

// PatienceOf returns how long a request may wait before it is decided, as its header says.
func PatienceOf(m *stream.Message) (time.Duration, error) {
	for _, h := range m.Headers {
		if !strings.EqualFold(h.Key, timeoutHeader) { // client libraries capitalise
			continue
		}
		t, err := time.ParseDuration(h.Value)
		if err != nil || t <= 0 {
			return 0, fmt.Errorf("header %s: %.64q is no positive duration, such as 250ms", timeoutHeader, h.Value)
		}
		return min(t, MaxPatience), nil
	}
	return MaxPatience, nil
}
