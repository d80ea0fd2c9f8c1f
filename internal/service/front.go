package service

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// maxForwarded bounds the requests that wait for an answer of another process.
const maxForwarded = 1024

// forwardLimit is how long a forwarded request waits for its answer.
const forwardLimit = 5 * time.Second

// front takes requests for any partition and hands each to the owner of its round's
// id, so that a retry meets the decision: to a decider of this process, or one hop
// further. It serves as long as a decider of this process is at work.
type front struct {
	bus        stream.Bus
	metrics    *Metrics // may be nil
	rates      *rates   // may be nil
	name       string
	partitions int
	apart      bool // nobody else hears what is asked on this bus

	serving sync.Mutex // held to begin and end serving
	stop    func()

	mu    sync.RWMutex
	local []*Decider // by partition; nil: another process's

	room chan struct{}
}

func newFront(bus stream.Bus, name string, partitions int) *front {
	return &front{bus: bus, name: name, partitions: partitions, local: make([]*Decider, partitions), room: make(chan struct{}, maxForwarded)}
}

// decideSubject is where the owner of a partition takes requests.
func decideSubject(name string, p int) string { return fmt.Sprintf("%s.decide.%d", name, p) }

// enter adds a decider that takes requests; leave takes it away.
func (f *front) enter(d *Decider) (leave func(), err error) {
	f.serving.Lock()
	defer f.serving.Unlock()
	f.set(d.cfg.Partition, d)
	if f.stop == nil {
		if f.stop, err = f.bus.Serve(f.name+".decide", "decider", f.rates.limit("decide", f.metrics, f.request)); err != nil {
			f.set(d.cfg.Partition, nil)
			return nil, err
		}
	}
	return func() { f.leave(d) }, nil
}

func (f *front) leave(d *Decider) {
	f.serving.Lock()
	defer f.serving.Unlock()
	f.mu.Lock()
	last := true
	for p, x := range f.local {
		last = last && (x == nil || p == d.cfg.Partition)
	}
	f.mu.Unlock()
	if last && f.stop != nil { // before it is away: what has arrived is still answered
		f.stop()
		f.stop = nil
	}
	f.set(d.cfg.Partition, nil)
}

func (f *front) set(p int, d *Decider) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.local[p] = d
}

// request hands one request on.
func (f *front) request(m stream.Message) {
	json := codec.IsJSON(m.Data)
	p, d := f.owner(&m)
	if d != nil {
		d.gate.request(m)
		return
	}
	if len(m.Data) > codec.MaxRecordBytes {
		f.refuse(m, 413, "the context is too large", "", json)
		return
	}
	select {
	case f.room <- struct{}{}:
		go func() {
			defer func() { <-f.room }()
			f.forward(p, m, json)
		}()
	default:
		f.refuse(m, 503, "overloaded: retry with the same id", "", json)
	}
}

// owner returns the partition of a request, and its decider if that is in this
// process. A request without an id, and one that cannot be read, goes to any of ours.
func (f *front) owner(m *stream.Message) (p int, d *Decider) {
	id := requestID(m)
	var c codec.Context
	if err := codec.ParseContext(&c, m.Data); err != nil {
		id = ""
	} else if c.ID != "" {
		id = c.ID
	}
	f.mu.RLock()
	defer f.mu.RUnlock()
	if id != "" {
		p = loop.PartitionOf([]byte(id), f.partitions)
		return p, f.local[p]
	}
	for p, d := range f.local {
		if d != nil {
			return p, d
		}
	}
	return 0, nil
}

// forward asks the owner of a partition and passes the answer on.
func (f *front) forward(p int, m stream.Message, json bool) {
	ctx, cancel := context.WithTimeout(context.Background(), forwardLimit)
	defer cancel()
	data, headers, err := f.bus.Request(ctx, decideSubject(f.name, p), m.Data, m.Headers...)
	switch {
	case err == nil:
		m.Respond(data, headers...)
	case errors.Is(err, stream.ErrNoResponder) && f.apart:
		f.refuse(m, 503, fmt.Sprintf("this decider does not own partition %d, and cannot ask the one that does: start all deciders with the same --nats URL, or write the context to the topic %s", p, TopicsOf(f.name).Contexts), "", json)
	case errors.Is(err, stream.ErrNoResponder):
		f.refuse(m, 503, fmt.Sprintf("no responders: no decider owns partition %d now; retry with the same id", p), "", json)
	case errors.Is(err, context.DeadlineExceeded):
		f.refuse(m, 503, fmt.Sprintf("the decider of partition %d does not answer; whether the decision exists is unknown: retry with the same id", p), "", json)
	default:
		f.refuse(m, 503, fmt.Sprintf("the decider of partition %d cannot be asked (%v); retry with the same id", p, err), "", json)
	}
}

func (f *front) refuse(m stream.Message, code int, message, id string, json bool) {
	f.metrics.refuseID("decide", code, id)
	data, headers := errorReply(code, message, id, json)
	m.Respond(data, headers...)
}
