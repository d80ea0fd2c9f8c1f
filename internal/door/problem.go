package door

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"hindsight/pkg/stream"
)

// problem is an answer that is an error (RFC 9457). Its status is the code of the same error on a bus.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	ID     string `json:"id,omitempty"` // of the round, if it could be read

	counted      bool   // by the service
	code, target string // of Personalizer's error; "": what the status says, and nothing
	shape        any    // what is written instead, as JSON, where another API has errors of its own; nil: the problem
}

func newProblem(status int, detail string) *problem {
	return &problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: detail}
}

// problemOf returns the error that a reply of a bus is, nil if it is none.
func problemOf(reply []byte, headers []stream.Header) *problem {
	if len(headers) == 0 {
		return nil
	}
	p := newProblem(http.StatusInternalServerError, "")
	p.counted = true
	for _, h := range headers {
		switch h.Key {
		case "Nats-Service-Error-Code":
			p.Status, _ = strconv.Atoi(h.Value) // a number of ours
			p.Title = http.StatusText(p.Status)
		case "Nats-Service-Error":
			p.Detail = h.Value
		}
	}
	var told struct{ Error struct{ Message, ID string } }
	if json.Unmarshal(reply, &told) == nil { // of MessagePack the headers tell all but the id
		p.Detail, p.ID = told.Error.Message, told.Error.ID
	}
	return p
}

// retryAfter is the time, in seconds, after which to ask again; clients spread it at random.
const retryAfter = "1"

// refuse answers with a problem, in the shape of the API that is asked.
func refuse(w http.ResponseWriter, r *http.Request, p *problem) {
	if strings.HasPrefix(r.URL.Path, personalizerRoot+"/") {
		e := p.personalizerError()
		w.Header().Set("X-Ms-Error-Code", e.Code)
		p.shape = map[string]any{"error": e}
	}
	p.write(w)
}

// write answers with the problem, or what stands for it.
func (p *problem) write(w http.ResponseWriter) {
	h := w.Header()
	kind, body := typeProblem, any(p)
	if p.shape != nil {
		kind, body = typeJSON, p.shape
	}
	h.Set("Content-Type", kind)
	if p.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", "Bearer")
	}
	if p.Status == http.StatusTooManyRequests || p.Status == http.StatusServiceUnavailable {
		h.Set("Retry-After", retryAfter)
	}
	b, _ := json.Marshal(body) // of text and numbers
	w.WriteHeader(p.Status)
	w.Write(b) // an error is the client's: it is gone
}
