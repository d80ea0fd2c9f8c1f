package door

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"hindsight/pkg/stream"
)

const (
	maxBatch    = 1000
	batchAhead  = 64               // of its requests that are asked at once
	batchLimit  = 20 * time.Second // for all of them; the others are then not asked
	batchFormat = "a JSON array of objects, each with the key context or the key outcome"
)

// batchItem is one request of a batch.
type batchItem struct {
	Context, Outcome json.RawMessage // one of them
}

// batch answers many requests, in their order. An outcome is sent when the contexts before it are decided.
type batch struct {
	d       *Door
	w       http.ResponseWriter
	ctx     context.Context
	client  client
	headers []stream.Header
	asked   []asked
	written int
	subject string // of the last request
}

// asked is a request of a batch whose result is not written yet.
type asked struct {
	e       *exchange // nil: it was not asked, because of the problem
	problem *problem
	status  int // if it is answered without an error
}

func (d *Door) batch(w http.ResponseWriter, r *http.Request, c client) *problem {
	kind, body, p := d.read(w, r)
	if p != nil {
		return p
	}
	defer d.release(body)
	headers, p := headersOf(r)
	if p != nil {
		return p
	}
	if kind != typeJSON {
		return newProblem(http.StatusUnsupportedMediaType, "a batch is "+typeJSON)
	}
	var items []batchItem
	if err := json.Unmarshal(body, &items); err != nil {
		return newProblem(http.StatusBadRequest, fmt.Sprintf("the body is not %s: %s", batchFormat, notJSON(err)))
	}
	if len(items) > maxBatch {
		return newProblem(http.StatusRequestEntityTooLarge, fmt.Sprintf("the batch has %d requests, at most %d are "+
			"taken", len(items), maxBatch))
	}
	ctx, cancel := context.WithTimeout(r.Context(), batchLimit)
	defer cancel()
	b := &batch{d: d, w: w, ctx: ctx, client: c, headers: headers}
	w.Header()["Content-Type"] = kinds[typeJSON]
	w.Write([]byte(`{"results":[`))
	for i := range items {
		b.ask(&items[i])
	}
	b.writeAll(0)
	w.Write([]byte("]}"))
	return nil
}

// ask asks for one request, and writes the results that must be there before.
func (b *batch) ask(item *batchItem) {
	subject, body, needs, status := "decide", item.Context, mayDecide, http.StatusOK
	if item.Outcome != nil {
		subject, body, needs, status = "outcome", item.Outcome, mayOutcome, http.StatusAccepted
	}
	a := asked{status: status}
	switch {
	case (item.Context == nil) == (item.Outcome == nil):
		a.problem = newProblem(http.StatusBadRequest, "expected "+batchFormat)
	case b.client.role&needs == 0:
		a.problem = b.client.without(needs)
	default:
		room := batchAhead - 1
		if subject != b.subject {
			room = 0
		}
		b.subject = subject
		if b.writeAll(room); b.ctx.Err() != nil {
			a.problem = newProblem(http.StatusServiceUnavailable, "not asked: the batch took longer than "+
				batchLimit.String()+"; retry with the same id")
			break
		}
		a.e, a.problem = b.d.ask(subject, body, b.headers, b.client)
	}
	if a.problem != nil {
		b.d.o.Metrics.Refuse(subject, a.problem.Status)
	}
	b.asked = append(b.asked, a)
}

// writeAll writes results until at most so many wait.
func (b *batch) writeAll(left int) {
	for len(b.asked) > left {
		a := b.asked[0]
		b.asked = b.asked[1:]
		var reply []byte
		answered := false
		if a.problem == nil {
			if a.problem = a.e.answered(b.ctx, longest); a.problem == nil {
				answered = true
				a.problem, reply = problemOf(a.e.reply, a.e.headers), a.e.reply
			}
		}
		if a.problem != nil {
			a.status = a.problem.Status
			reply, _ = json.Marshal(a.problem) // of text and numbers
		}
		if b.written++; b.written > 1 {
			b.w.Write([]byte(","))
		}
		b.w.Write(strconv.AppendInt([]byte(`{"status":`), int64(a.status), 10))
		b.w.Write([]byte(`,"body":`))
		b.w.Write(reply)
		b.w.Write([]byte("}")) // errors of writing are the client's: it is gone
		if answered {
			a.e.release()
		}
	}
}
