package service

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"

	"hindsight/internal/front"
	"hindsight/internal/loop"
	"hindsight/internal/trace"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// Request answers one request for a decision that comes now.
func (d *Decider) Request(m stream.Message) { d.requestOf(m, time.Now()) }

// requestInTurn is requestOf that waits, as long as the request may, while the log has as many decisions as it is given
// at once: a log that stalls makes up for it, and the gate behind which requests wait meanwhile sees it.
func (d *Decider) requestInTurn(m stream.Message, start time.Time) {
	if patience, err := front.PatienceOf(&m); err == nil && !d.flight.room() {
		d.flight.awaitRoom(patience - time.Since(start))
	}
	d.requestOf(m, start)
}

// requestOf answers one request for a decision that came at start. The reply is sent when
// the decision is in the log; the next one may be made meanwhile.
func (d *Decider) requestOf(m stream.Message, start time.Time) {
	json, refuse := !codec.IsMap(m.Data), front.Refuser(&m, d.cfg.Metrics, "decide")
	if front.RequestSize(&m) > codec.MaxRecordBytes {
		refuse(413, "the context is too large", "")
		return
	}
	patience, err := front.PatienceOf(&m)
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
	recorded := front.RecordedOf(&m)
	if recorded == front.RecordedOnly {
		d.find(m)
		return
	}
	res := d.decide(m.Data, front.RequestID(&m), loop.Source{Offset: loop.RequestSource, Reached: d.reached})
	switch {
	case errors.Is(res.Err, loop.ErrSlots):
		d.requestSlots(m)
	case res.Verdict == loop.Invalid:
		refuse(front.CodeOf(res.Err), front.WhyOf(res.Err), res.ID)
	case res.Verdict == loop.Conflict && recorded == "":
		d.conflict(&res, m, refuse)
	case res.Verdict != loop.Decided:
		d.repeat(&repeat{res.N, m, ""})
	default:
		d.answer(ticket{n: d.dec.N, at: start, reply: reply(&d.dec, d.unreadOf(m.Data, &res), false, json),
			send: m.Respond, refuse: refuse, id: strings.Clone(d.dec.ID), parent: trace.Of(m.Headers)})
	}
}

// find answers with the decision that an id has, and with no bytes if it has none.
func (d *Decider) find(m stream.Message) {
	var c codec.Context
	if err := codec.ParseContext(&c, m.Data); err != nil {
		front.Refuser(&m, d.cfg.Metrics, "decide")(front.CodeOf(err), front.WhyOf(err), "")
	} else if n, ok := d.heart.Find(c.ID); ok {
		d.repeat(&repeat{n, m, ""})
	} else {
		m.Respond(nil)
	}
}

// markPassed notes contexts that were rejected since the last record of decisions: a decision that was asked for does
// not tell the log time of contexts that it passes, and a restart needs that to see what was lost.
func (d *Decider) markPassed() error {
	if !d.unmarked {
		return nil
	}
	defer d.brief.End()
	return d.mark(d.brief, codec.DecisionMark{})
}

// answer appends a decision that was asked for; its reply waits for the acknowledgement.
func (d *Decider) answer(t ticket) {
	defer d.brief.End()
	if d.appendDecision(d.brief, t) != nil && !d.flight.has(t.n) {
		d.flight.refuse(&t) // else it is refused when the decider is closed
	}
}

// conflict refuses a request whose id another one used, once that one's decision is known to be stored. One that may be
// a repeat of a request without an id, with the id that this was told, is looked at.
func (d *Decider) conflict(res *loop.Result, m stream.Message, refuse func(code int, message, id string)) {
	n, id := res.N, strings.Clone(res.ID)
	if strings.HasPrefix(id, fmt.Sprintf("r-%d-", d.cfg.Partition)) {
		d.repeat(&repeat{n, m, id})
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

func reply(dec *codec.Decision, unread string, duplicate, json bool) []byte {
	b := make([]byte, 0, 192+len(dec.ID)+len(unread)+32*len(dec.Actions)) // a short name and a number each
	if json {
		return codec.AppendDecisionJSON(b, dec, unread, duplicate)
	}
	return codec.AppendDecisionReply(b, dec, unread, duplicate)
}

// sameButForID reports whether a context has no id, and another, which has one, is else the same.
func sameButForID(plain, named []byte) bool {
	var a, b codec.Context
	if codec.ParseContext(&a, plain) != nil || codec.ParseContext(&b, named) != nil || a.ID != "" {
		return false
	}
	b.ID = ""
	return bytes.Equal(codec.AppendContext(nil, &a), codec.AppendContext(nil, &b))
}
