package service

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// The headers of an error reply, as the NATS service convention has them.
const (
	errorHeader     = "Nats-Service-Error"
	errorCodeHeader = "Nats-Service-Error-Code"
)

func errorReply(code int, message, id string, json bool) ([]byte, []stream.Header) {
	return codec.ErrorReply(nil, code, message, id, json),
		[]stream.Header{{Key: errorHeader, Value: strings.ReplaceAll(message, "\n", " ")}, {Key: errorCodeHeader, Value: strconv.Itoa(code)}}
}

// timeoutHeader says for how long whoever asks waits for the answer, as a duration: 250ms.
// A decision that nobody waits for any more is not made.
const timeoutHeader = "hindsight-timeout"

// patienceOf returns how long a request may wait before it is decided: as long as its
// header says, and no longer than a forwarded one is waited for.
func patienceOf(m *stream.Message) (time.Duration, error) {
	for _, h := range m.Headers {
		if !strings.EqualFold(h.Key, timeoutHeader) { // client libraries capitalise
			continue
		}
		t, err := time.ParseDuration(h.Value)
		if err != nil || t <= 0 {
			return 0, fmt.Errorf("header %s: %.64q is no positive duration, such as 250ms", timeoutHeader, h.Value)
		}
		return min(t, forwardLimit), nil
	}
	return forwardLimit, nil
}

// request answers one request for a decision that comes now.
func (d *Decider) request(m stream.Message) { d.requestOf(m, time.Now()) }

// requestInTurn is requestOf that waits, as long as the request may, while the log has as many
// decisions as it is given at once: a log that stalls makes up for it, and the gate behind
// which requests wait meanwhile sees it.
func (d *Decider) requestInTurn(m stream.Message, start time.Time) {
	if patience, err := patienceOf(&m); err == nil {
		d.flight.awaitRoom(patience - time.Since(start))
	}
	d.requestOf(m, start)
}

// requestOf answers one request for a decision that came at start. The reply is sent when
// the decision is in the log; the next one may be made meanwhile.
func (d *Decider) requestOf(m stream.Message, start time.Time) {
	json := !codec.IsMap(m.Data)
	refuse := func(code int, message, id string) {
		d.cfg.Metrics.refuseID("decide", code, id)
		data, headers := errorReply(code, message, id, json)
		m.Respond(data, headers...)
	}
	if requestSize(&m) > codec.MaxRecordBytes {
		refuse(413, "the context is too large", "")
		return
	}
	patience, err := patienceOf(&m)
	if err != nil {
		refuse(400, err.Error(), "")
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case time.Since(start) > patience:
		refuse(503, "overloaded: not decided within the time that was given; retry with the same id", "")
		return
	case d.closed || d.Err() != nil || d.decides() == nil:
		refuse(503, "not ready: retry with the same id", "")
		return
	case !d.flight.room():
		refuse(503, "overloaded: retry with the same id", "")
		return
	}
	if err := d.markPassed(); err != nil {
		refuse(503, unknownFate, "")
		return
	}
	res := d.decide(m.Data, requestID(&m), loop.Source{Offset: loop.RequestSource})
	switch res.Verdict {
	case loop.Invalid:
		refuse(codeOf(res.Err), res.Err.Error(), res.ID)
	case loop.Conflict:
		d.conflict(&res, m, json, refuse)
	case loop.Duplicate:
		d.repeat(res.N, m, json, "")
	default:
		d.answer(m, json, start)
	}
}

// markPassed notes contexts that were rejected since the last record of decisions: a
// decision that was asked for does not tell the log time of contexts that it passes,
// and a restart needs that to see what was lost.
func (d *Decider) markPassed() error {
	if !d.unmarked {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	return d.mark(ctx, codec.DecisionMark{})
}

func requestID(m *stream.Message) string {
	return cloudEventID(&stream.Record{Headers: m.Headers})
}

// answer appends a decision that was asked for; its reply waits for the
// acknowledgement.
func (d *Decider) answer(m stream.Message, json bool, start time.Time) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	t := ticket{n: d.dec.N, at: start, reply: reply(&d.dec, false, json), send: m.Respond, json: json, id: strings.Clone(d.dec.ID)}
	if err := d.flushRejects(ctx); err != nil {
		d.flight.refuse(&t)
		return
	}
	if d.appendDecision(ctx, t) != nil && !d.flight.has(t.n) {
		d.flight.refuse(&t) // else it is refused when the decider is closed
	}
}

// conflict refuses a request whose id another one used, once that one's decision is
// known to be stored. One that may be a repeat of a request without an id, with the id that
// this was told, is looked at.
func (d *Decider) conflict(res *loop.Result, m stream.Message, json bool, refuse func(code int, message, id string)) {
	n, id := res.N, strings.Clone(res.ID)
	if strings.HasPrefix(id, fmt.Sprintf("r-%d-", d.cfg.Partition)) {
		d.repeat(n, m, json, id)
		return
	}
	answer := func(stored bool) {
		if stored {
			refuse(409, d.usedIn(n), id)
			return
		}
		refuse(503, unknownFate, id)
	}
	if !d.flight.join(n, answer) {
		answer(true)
	}
}

func (d *Decider) usedIn(n int64) string {
	return fmt.Sprintf("this id was used for another context, in round %d of partition %d", n, d.cfg.Partition)
}

func reply(dec *codec.Decision, duplicate, json bool) []byte {
	if json {
		return codec.AppendDecisionJSON(nil, dec, duplicate)
	}
	return codec.AppendDecisionReply(nil, dec, duplicate)
}

// repeat answers a request whose round was decided before, from what the log has. With an
// id, which was minted for that round, it was if it is the same request but for the id.
func (d *Decider) repeat(n int64, m stream.Message, json bool, id string) {
	answer := func(stored bool) { d.answerAgain(n, m, json, stored, id) }
	if !d.flight.join(n, answer) {
		d.spawn(func() { answer(true) })
	}
}

// answerAgain reads a decision back and sends it, marked duplicate.
func (d *Decider) answerAgain(n int64, m stream.Message, json, stored bool, id string) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	sent := false
	if offset, ok := d.offsets.get(n); ok && stored {
		scan(ctx, d.cfg.Log, d.topics.Decisions, d.cfg.Partition, offset, offset+1, func(r *stream.Record) error {
			var dec codec.Decision
			if err := codec.ParseDecision(&dec, r.Value); err != nil {
				return err
			}
			sent = true
			if id != "" && !sameButForID(dec.Context, m.Data) {
				d.cfg.Metrics.refuseID("decide", 409, id)
				data, headers := errorReply(409, d.usedIn(n), id, json)
				return m.Respond(data, headers...)
			}
			d.m.repeated.Inc()
			return m.Respond(reply(&dec, true, json))
		})
	}
	if !sent {
		d.cfg.Metrics.refuse("decide", 503)
		data, headers := errorReply(503, "the recorded decision cannot be read now: retry with the same id", "", json)
		m.Respond(data, headers...)
	}
}

// sameButForID reports whether a context has no id, and another, which has one, is else the
// same.
func sameButForID(plain, named []byte) bool {
	var a, b codec.Context
	if codec.ParseContext(&a, plain) != nil || codec.ParseContext(&b, named) != nil || a.ID != "" {
		return false
	}
	b.ID = ""
	return bytes.Equal(codec.AppendContext(nil, &a), codec.AppendContext(nil, &b))
}
