package door

import (
	"encoding/json"
	"net/http"
	"strings"

	"hindsight/pkg/codec"
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
	code, target string // of the error of another API; "": what the status says, and nothing
}

func newProblem(status int, detail string) *problem {
	return &problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: detail}
}

// refused returns a problem with a code of another API, and the part of the request that it is about.
func refused(status int, code, target, detail string) *problem {
	p := newProblem(status, detail)
	p.code, p.target = code, target
	return p
}

// problemOf returns the error that a reply of a bus is, nil if it is none.
func problemOf(reply []byte, headers []stream.Header) *problem {
	if len(headers) == 0 {
		return nil
	}
	return readProblem(reply)
}

// readProblem reads an error that a service, or a page, answered with.
func readProblem(reply []byte) *problem {
	if codec.IsMap(reply) {
		reply = codec.AppendJSON(nil, "", reply)
	}
	var e struct {
		Error struct {
			Code        int
			Message, ID string
		}
	}
	if json.Unmarshal(reply, &e) != nil || e.Error.Code == 0 {
		return newProblem(http.StatusInternalServerError, "the reply cannot be read")
	}
	p := newProblem(e.Error.Code, e.Error.Message)
	p.ID, p.counted = e.Error.ID, true
	return p
}

// retryAfter is the time, in seconds, after which to ask again; clients spread it at random.
const retryAfter = "1"

// refuse answers with a problem, in the shape of the API that is asked.
func refuse(w http.ResponseWriter, r *http.Request, p *problem) {
	h := w.Header()
	kind, body := typeJSON, any(p)
	switch {
	case strings.HasPrefix(r.URL.Path, personalizerRoot+"/"):
		e := p.personalizerError()
		h.Set("X-Ms-Error-Code", e.Code)
		body = map[string]any{"error": e}
	case strings.HasPrefix(r.URL.Path, flagRoot+"/"):
		body = flagFailure{r.PathValue("key"), p.flagCode(), p.Detail}
	default:
		kind = typeProblem
	}
	if p.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", "Bearer")
	}
	if p.Status == http.StatusTooManyRequests || p.Status == http.StatusServiceUnavailable {
		h.Set("Retry-After", retryAfter)
	}
	b, _ := json.Marshal(body) // of text and numbers
	send(w, r, p.Status, kind, b)
}
