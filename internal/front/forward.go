package front

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

	"hindsight/internal/join"
	"hindsight/pkg/stream"
)

// maxForwarded bounds the requests that wait for the answer of one partition in another process: one that does not
// answer holds none of the others'. Their bytes are bounded by its share of maxWaitingBytes.
const maxForwarded = 1024

// Room bounds requests that wait for the same, and their bytes. The zero value is ready, and safe for concurrent use.
type Room struct {
	mu       sync.Mutex
	requests int
	bytes    int
}

// Take makes a request of so many bytes one of them, unless there are too many.
func (r *Room) Take(size, most int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.requests >= maxForwarded || r.requests > 0 && r.bytes+size > most {
		return false
	}
	r.requests++
	r.bytes += size
	return true
}

// Give takes a request out again.
func (r *Room) Give(size int) {
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
func (s *Server) isForwarded(m *stream.Message) bool {
	for i, h := range m.Headers {
		if strings.EqualFold(h.Key, passHeader) && hmac.Equal([]byte(h.Value), []byte(s.pass)) {
			m.Headers = slices.Delete(m.Headers, i, i+1)
			return true
		}
	}
	return false
}

// forward asks the owner of a partition and passes the answer on. The room that the request takes is then free.
func (s *Server) forward(p int, m stream.Message, size int, refuse func(code int, message, id string)) {
	defer s.rooms[p].Give(size)
	ctx, cancel := context.WithTimeout(context.Background(), MaxPatience)
	defer cancel()
	signed := append(slices.Clip(m.Headers), stream.Header{Key: passHeader, Value: s.pass})
	data, headers, err := s.Bus.Request(ctx, s.subject(p), m.Data, signed...)
	why := ""
	switch {
	case err == nil:
		m.Respond(data, headers...)
		return
	case errors.Is(err, stream.ErrNoResponder) && s.Apart:
		why = fmt.Sprintf("this decider does not own partition %d, and cannot ask the one that does: start all "+
			"deciders with the same --nats URL, or write the context to the topic %s",
			p, join.TopicsOf(s.Name).Contexts)
	case errors.Is(err, stream.ErrNoResponder):
		why = fmt.Sprintf("no responders: no decider owns partition %d now; retry with the same id", p)
	case errors.Is(err, context.DeadlineExceeded):
		why = fmt.Sprintf("the decider of partition %d does not answer; whether the decision exists is unknown: "+
			"retry with the same id", p)
	default:
		why = fmt.Sprintf("the decider of partition %d cannot be asked (%v); retry with the same id", p, err)
	}
	refuse(503, why, "")
}
