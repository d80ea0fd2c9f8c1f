package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/vmihailenco/msgpack/v5"

	"hindsight/internal/check"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// watch reads the decisions of a partition and reports what they were worth, after
// some more of them, much too late, twice, or never.
func (l *load) watch(partition int, r *rand.Rand) {
	from, n := stream.Earliest, 0
	due := map[int][]*item{}
	for {
		k := l.link()
		if k == nil {
			return
		}
		ctx, cancel := context.WithCancel(k.ctx)
		detach := context.AfterFunc(l.stopping, cancel)
		decisions, err := k.log.Read(ctx, l.name+".decisions", partition, from)
		var batch []stream.Record
		for err == nil {
			if batch, err = decisions.Next(ctx, batch[:0]); err != nil {
				break
			}
			for i := range batch {
				from = batch[i].Offset + 1
				if batch[i].Type != "" {
					continue
				}
				n++
				l.judge(r, partition, batch[i].Value, due, n)
				for _, it := range due[n] {
					l.send(r, it)
				}
				delete(due, n)
			}
		}
		if decisions != nil {
			decisions.Close()
		}
		detach()
		cancel()
		if l.stopping.Err() != nil {
			for _, items := range due {
				l.outcomes.push(items...)
			}
			return
		}
		if l.o.lossy && errors.Is(err, stream.ErrAhead) {
			if _, end, err := k.log.Bounds(k.ctx, l.name+".decisions", partition); err == nil {
				from = end
			}
			continue
		}
		if k.ctx.Err() == nil && !stream.IsRetryable(err) && !errors.Is(err, stream.ErrClosed) {
			l.t.Errorf("read decisions: %v", err)
			return
		}
	}
}

// judge plans the outcomes of a decision.
func (l *load) judge(r *rand.Rand, partition int, value []byte, due map[int][]*item, n int) {
	var d codec.Decision
	if err := codec.ParseDecision(&d, value); err != nil {
		l.t.Errorf("a decision that users cannot read: %v", err)
		return
	}
	o := codec.Outcome{ID: strings.Clone(d.ID), Kind: codec.Loss, Value: float64(r.IntN(5)) / 4,
		OutcomeID: fmt.Sprintf("o%d-%d", partition, n)}
	wait := 8.0
	switch r.IntN(30) {
	case 0, 1, 2:
		return // never
	case 3:
		o.Kind, o.Value = codec.Withdrawn, 0
	case 4:
		o.Action = "brown"
	case 5:
		o.ID = "nobody-" + o.ID
	case 6:
		o.Value = 7
	case 7:
		wait = 800 // beyond most windows
	}
	parts := []codec.Outcome{o}
	if l.o.named && o.Kind == codec.Loss {
		parts = namedParts(r, o)
	}
	for _, o := range parts {
		value = codec.AppendOutcomeJSON(nil, &o)
		if r.IntN(3) == 0 {
			value = codec.AppendOutcome(nil, &o)
		}
		for range 1 + r.IntN(8)/7 {
			at := n + int(r.ExpFloat64()*wait)
			due[at] = append(due[at], &item{id: o.OutcomeID, record: stream.Record{Key: []byte(o.ID), Value: value}})
		}
	}
}

// namedParts makes of a loss what a round cost and what it was good for, in one record or two.
func namedParts(r *rand.Rand, o codec.Outcome) []codec.Outcome {
	cost, quality := codec.Value{Name: "cost", X: 4 * o.Value}, codec.Value{Name: "quality", X: 1 - o.Value}
	switch r.IntN(15) {
	case 0:
		quality = codec.Value{Name: "quality", Withdrawn: true}
	case 1:
		cost.Name = "color" // which the model does not name
	}
	o.Kind, o.Value, o.Values = codec.Named, 0, []codec.Value{cost, quality}
	if r.IntN(4) == 0 {
		return []codec.Outcome{o}
	}
	later := o
	o.Values, later.Values, later.OutcomeID = o.Values[:1], o.Values[1:], o.OutcomeID+"q"
	return []codec.Outcome{o, later}[r.IntN(5)/4:] // of one in five the cost is never told
}

func (l *load) send(r *rand.Rand, it *item) {
	switch k := r.IntN(30); {
	case k < 10 && !l.o.mute:
		l.reports.push(it)
	case k == 29: // it is found wherever it is put
		l.outcomes.pushTo(r.IntN(l.o.partitions), it)
	default:
		l.outcomes.push(it)
	}
}

// report sends outcomes by request, each until it is stored.
func (l *load) report() {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		it, open := l.reports.take()
		if it == nil && !open {
			return
		}
		if it == nil {
			select {
			case <-tick.C:
			case <-l.quit.Done():
				return
			}
			continue
		}
		if _, code := l.request(".outcome", it.record.Value); code != 0 {
			l.t.Errorf("the outcome %s was refused with %d", it.record.Value, code)
		}
		it.stored = append(it.stored, -1)
		l.reports.mu.Lock()
		l.reports.sent = append(l.reports.sent, it)
		l.reports.mu.Unlock()
	}
}

// request asks until there is an answer that is not about now: data, or an error's
// code.
func (l *load) request(verb string, data []byte) (reply []byte, code int) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		k := l.link()
		if k == nil {
			return nil, 0
		}
		ctx, cancel := context.WithTimeout(k.ctx, 2*time.Second)
		reply, headers, err := k.bus.Request(ctx, l.name+verb, data)
		cancel()
		switch code = errorCode(headers); {
		case err == nil && code != 503:
			return reply, code
		case err == nil, k.ctx.Err() != nil, errors.Is(err, context.DeadlineExceeded), errors.Is(err,
			stream.ErrNoResponder),
			errors.Is(err, stream.ErrUnavailable), errors.Is(err, stream.ErrClosed):
		default:
			l.t.Errorf("request %s%s: %v", l.name, verb, err)
			return nil, 0
		}
		select {
		case <-tick.C:
		case <-l.quit.Done():
			return nil, 0
		}
	}
}

func errorCode(headers []stream.Header) (code int) {
	for _, h := range headers {
		if h.Key == "Nats-Service-Error-Code" {
			fmt.Sscan(h.Value, &code)
		}
	}
	return code
}

// ask asks for decisions, some twice at once, some again much later, some with a
// used id for another context.
func (l *load) ask(user int, r *rand.Rand) {
	tick := l.every(6 * time.Millisecond)
	defer tick.Stop()
	for n := 0; l.pause(tick.C); {
		id := fmt.Sprintf("%sq%d-%d", l.o.prefix, user, n)
		old, data := l.earlier(r)
		switch k := r.IntN(20); {
		case k == 0 && old != "":
			l.decide(old, data)
		case k == 1 && old != "":
			if !l.o.lossy {
				l.refused(fmt.Sprintf(`{"id":%q,"features":{"hour":99},"actions":["red"]}`, old), 409)
			}
			l.refused(fmt.Sprintf(`{"id":%q,"features":`, old), 400)
		case k == 2: // what may be in contexts too, by two ways at once
			n++
			it := &item{id: id, record: stream.Record{Key: []byte(id), Value: context1(r, id)}}
			l.contexts.push(it)
			l.decide(id, it.record.Value)
		case k < 6:
			n++
			data := context1(r, id)
			var twice sync.WaitGroup
			twice.Go(func() { l.decide(id, data) })
			l.decide(id, data)
			twice.Wait()
		default:
			n++
			l.decide(id, context1(r, id))
		}
	}
}

// refused asks for what must be refused.
func (l *load) refused(data string, want int) {
	if reply, code := l.request(".decide", []byte(data)); code != want && l.quit.Err() == nil {
		l.t.Errorf("the request %s was answered with %d %s, want %d", data, code, reply, want)
	}
}

// earlier returns a request that was answered.
func (l *load) earlier(r *rand.Rand) (id string, data []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.ids) == 0 {
		return "", nil
	}
	id = l.ids[r.IntN(len(l.ids))]
	return id, l.asked[id]
}

// decide asks until there is a decision.
func (l *load) decide(id string, data []byte) {
	reply, code := l.request(".decide", data)
	if l.quit.Err() != nil {
		return
	}
	if code != 0 {
		l.t.Errorf("the request %s was refused with %d: %s", id, code, reply)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.replies = append(l.replies, check.Reply{ID: id, Data: reply})
	if l.asked[id] == nil {
		l.asked[id] = data
		l.ids = append(l.ids, id)
	}
}

// told is what a reply says.
type told struct {
	ID     string `json:"id" msgpack:"id"`
	Action string `json:"action" msgpack:"action"`
	N      int64  `json:"n" msgpack:"n"`
}

func parseReply(b []byte) (r told, err error) {
	if codec.IsJSON(b) {
		return r, json.Unmarshal(b, &r)
	}
	return r, msgpack.Unmarshal(b, &r)
}
