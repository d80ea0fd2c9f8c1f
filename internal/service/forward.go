package service

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"hindsight/internal/join"
	"hindsight/pkg/stream"
)

// maxForwarded bounds the requests that wait for the answer of one partition in another
// process: one that does not answer holds none of the others'. Their bytes are bounded by
// its share of maxWaitingBytes.
const maxForwarded = 1024

// forwardLimit is how long a forwarded request waits for its answer.
const forwardLimit = 5 * time.Second

// room counts the requests that wait for the answer of one partition.
type room struct {
	mu       sync.Mutex
	requests int
	bytes    int
}

// take makes a request of so many bytes one of them, unless there are too many.
func (r *room) take(size, most int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.requests >= maxForwarded || r.requests > 0 && r.bytes+size > most {
		return false
	}
	r.requests++
	r.bytes += size
	return true
}

func (r *room) give(size int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests--
	r.bytes -= size
}

// passHeader is a header of what a process of the model forwards to another. Its value
// follows from the secret seed, which all of them have and no client.
const passHeader = "hindsight-forwarded"

func passOf(seed []byte, name string) string {
	h := hmac.New(sha256.New, seed)
	h.Write([]byte("hindsight/forward/1 " + name))
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// isForwarded reports whether a request was forwarded by a process of the model, which has
// asked the limits of clients already, and takes the sign of it away.
func (f *front) isForwarded(m *stream.Message) bool {
	for i, h := range m.Headers {
		if strings.EqualFold(h.Key, passHeader) && f.pass != "" && hmac.Equal([]byte(h.Value), []byte(f.pass)) {
			m.Headers = slices.Delete(m.Headers, i, i+1)
			return true
		}
	}
	return false
}

// forward asks the owner of a partition and passes the answer on.
func (f *front) forward(p int, m stream.Message, json bool) {
	ctx, cancel := context.WithTimeout(context.Background(), forwardLimit)
	defer cancel()
	data, headers, err := f.bus.Request(ctx, decideSubject(f.name, p), m.Data, append(slices.Clip(m.Headers), stream.Header{Key: passHeader, Value: f.pass})...)
	switch {
	case err == nil:
		m.Respond(data, headers...)
	case errors.Is(err, stream.ErrNoResponder) && f.apart:
		f.refuse(m, 503, fmt.Sprintf("this decider does not own partition %d, and cannot ask the one that does: start all deciders with the same --nats URL, or write the context to the topic %s", p, join.TopicsOf(f.name).Contexts), "", json)
	case errors.Is(err, stream.ErrNoResponder):
		f.refuse(m, 503, fmt.Sprintf("no responders: no decider owns partition %d now; retry with the same id", p), "", json)
	case errors.Is(err, context.DeadlineExceeded):
		f.refuse(m, 503, fmt.Sprintf("the decider of partition %d does not answer; whether the decision exists is unknown: retry with the same id", p), "", json)
	default:
		f.refuse(m, 503, fmt.Sprintf("the decider of partition %d cannot be asked (%v); retry with the same id", p, err), "", json)
	}
}
