package door

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"hindsight/internal/trace"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// longest is how long a reply is waited for. The log may be away for longer.
const longest = 10 * time.Second

func (d *Door) decide(w http.ResponseWriter, r *http.Request, c client) *problem {
	if name := r.PathValue("model"); name != "" && name != d.o.Model {
		return newProblem(http.StatusNotFound,
			fmt.Sprintf("this process serves the model %s: ask it at /v1/models/%[1]s/decide",
				d.o.Model))
	}
	return d.relay(w, r, c, "decide", http.StatusOK, nil)
}

func (d *Door) outcome(w http.ResponseWriter, r *http.Request, c client) *problem {
	return d.relay(w, r, c, "outcome", http.StatusAccepted, nil)
}

// read reads a request's content type, and its body, which is held until it is released.
func (d *Door) read(w http.ResponseWriter, r *http.Request) (kind string, body []byte, p *problem) {
	if kind, p = contentType(r); p == nil {
		body, p = d.body(w, r)
	}
	return kind, body, p
}

// readJSON reads a body that must be JSON, of what is told. code is that of another API if it is not.
func (d *Door) readJSON(w http.ResponseWriter, r *http.Request, dst any, what, code string) *problem {
	kind, body, p := d.read(w, r)
	if p != nil {
		return p
	}
	defer d.release(body)
	if kind != typeJSON {
		return newProblem(http.StatusUnsupportedMediaType, "send "+typeJSON)
	}
	if err := json.Unmarshal(body, dst); err != nil {
		return refused(http.StatusBadRequest, code, "", fmt.Sprintf("the body is not %s: %s", what, notJSON(err)))
	}
	return nil
}

// sendJSON answers with a value.
func sendJSON(w http.ResponseWriter, r *http.Request, status int, v any) *problem {
	b, err := json.Marshal(v)
	if err != nil {
		return newProblem(http.StatusInternalServerError, "the answer cannot be written: "+err.Error())
	}
	send(w, r, status, typeJSON, b)
	return nil
}

// relay hands a request to who answers it on the bus, and answers with the reply. check, if there is one, says what is
// wrong with its body.
func (d *Door) relay(w http.ResponseWriter, r *http.Request, c client, subject string, status int,
	check func(body []byte) *problem) *problem {
	kind, body, p := d.read(w, r)
	if p != nil {
		return p
	}
	defer d.release(body)
	if len(body) == 0 {
		return newProblem(http.StatusBadRequest, "the body is empty")
	}
	if !matches(body, kind) {
		return newProblem(http.StatusBadRequest, "the body is not what its Content-Type says: "+kind)
	}
	if check != nil {
		if p := check(body); p != nil {
			return p
		}
	}
	e, p := d.call(r, c, subject, body)
	if p != nil {
		return p
	}
	defer e.release()
	if kind = typeJSON; codec.IsMap(e.reply) {
		kind = typePack
	}
	send(w, r, status, kind, e.reply)
	return nil
}

// call asks, with headers beside those that go with the request, and waits for a reply that is no error. Its bytes may
// be read until the exchange is released.
func (d *Door) call(r *http.Request, c client, subject string, body []byte, more ...stream.Header) (*exchange, *problem) {
	headers, p := headersOf(r)
	if p != nil {
		return nil, p
	}
	e, p := d.ask(subject, body, append(headers, more...), c)
	if p != nil {
		return nil, p
	}
	if p = e.answered(r.Context(), longest); p != nil {
		return nil, p
	}
	if p = problemOf(e.reply, e.headers); p != nil {
		e.release()
		return nil, p
	}
	return e, nil
}

// ask hands a request to who answers it on the bus.
func (d *Door) ask(subject string, body []byte, headers []stream.Header, c client) (*exchange, *problem) {
	e := exchanges.Get().(*exchange)
	e.message.Data, e.message.Headers, e.message.From = body, headers, c.name
	if !d.bus.hand(d.subjects[subject], e) {
		e.release()
		return nil, newProblem(http.StatusServiceUnavailable, "not ready: retry with the same id")
	}
	return e, nil
}

// answered waits for the reply.
func (e *exchange) answered(ctx context.Context, limit time.Duration) *problem {
	if e.await(ctx, limit) {
		return nil
	}
	return newProblem(http.StatusServiceUnavailable, "no answer came within "+limit.String()+
		", and whether the request was carried out is unknown: retry with the same id")
}

// headersOf returns the headers that go with a request: for how long its client waits, and the attributes of a
// CloudEvent in binary mode.
func headersOf(r *http.Request) (headers []stream.Header, p *problem) {
	if v := r.Header.Get("Hindsight-Timeout"); v != "" {
		headers = append(headers, stream.Header{Key: "hindsight-timeout", Value: v})
	} else if v := r.Header.Get("Prefer"); v != "" {
		t, ok := waitOf(v)
		if !ok {
			return nil, newProblem(http.StatusBadRequest, fmt.Sprintf("header Prefer: %.64q: wait is no positive number of "+
				"seconds, such as wait=0.25", v))
		}
		if t > 0 {
			headers = append(headers, stream.Header{Key: "hindsight-timeout", Value: t.String()})
		}
	}
	if v := r.Header["Traceparent"]; len(v) == 1 && trace.Valid(v[0]) {
		headers = append(headers, stream.Header{Key: trace.Header, Value: v[0]})
	}
	if r.Header.Get("Ce-Specversion") == "" {
		return headers, nil
	}
	for _, key := range slices.Sorted(maps.Keys(r.Header)) {
		if strings.HasPrefix(key, "Ce-") {
			headers = append(headers, stream.Header{Key: strings.ToLower(key), Value: r.Header.Get(key)})
		}
	}
	return headers, nil
}

// waitOf reads the preference wait of RFC 7240, which here may have a fraction; 0: there is none.
func waitOf(prefer string) (t time.Duration, ok bool) {
	for preference := range strings.SplitSeq(prefer, ",") {
		name, value, _ := strings.Cut(preference, "=")
		if !strings.EqualFold(strings.TrimSpace(name), "wait") {
			continue
		}
		seconds, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		t = time.Duration(min(seconds, longest.Seconds()) * float64(time.Second))
		return t, err == nil && t > 0
	}
	return 0, true
}
