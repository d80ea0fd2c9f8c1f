package service

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"hindsight/internal/loop"
	"hindsight/internal/watch"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// front takes requests for any partition and hands each to the owner of its round's
// id, so that a retry meets the decision: to a decider of this process, or one hop
// further. It serves as long as a decider of this process is at work.
type front struct {
	bus        stream.Bus
	metrics    *watch.Metrics // may be nil
	rates      *rates         // may be nil
	name       string
	partitions int
	apart      bool   // nobody else hears what is asked on this bus
	pass       string // by which processes of the model know what another one forwards

	serving sync.Mutex // held to begin and end serving
	stop    func()

	here  atomic.Pointer[local]
	turn  atomic.Uint64 // of requests without an id
	rooms []room        // by partition
}

// local is the deciders of this process. It is not changed once others see it.
type local struct {
	deciders []*Decider // by partition; nil: another process's
	ours     []int      // partitions that have one
}

func newFront(bus stream.Bus, name string, partitions int) *front {
	f := &front{bus: bus, name: name, partitions: partitions, rooms: make([]room, partitions)}
	f.here.Store(&local{deciders: make([]*Decider, partitions)})
	return f
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
	ours := f.here.Load().ours
	last := len(ours) == 0 || len(ours) == 1 && ours[0] == d.cfg.Partition
	if last && f.stop != nil { // before it is away: what has arrived is still answered
		f.stop()
		f.stop = nil
	}
	f.set(d.cfg.Partition, nil)
}

// set is called while serving is held.
func (f *front) set(p int, d *Decider) {
	l := &local{deciders: slices.Clone(f.here.Load().deciders)}
	l.deciders[p] = d
	for p, d := range l.deciders {
		if d != nil {
			l.ours = append(l.ours, p)
		}
	}
	f.here.Store(l)
}

// request hands one request on.
func (f *front) request(m stream.Message) {
	m.Data = codec.TrimMark(m.Data)
	json := !codec.IsMap(m.Data)
	p, d := f.owner(&m)
	if d != nil {
		d.gate.request(m)
		return
	}
	size := heldBytes(&m)
	if requestSize(&m) > codec.MaxRecordBytes {
		f.refuse(m, 413, "the context is too large", "", json)
		return
	}
	if !f.rooms[p].take(size, maxWaitingBytes/f.partitions) {
		f.refuse(m, 503, "overloaded: retry with the same id", "", json)
		return
	}
	go func() {
		defer f.rooms[p].give(size)
		f.forward(p, m, json)
	}()
}

// owner returns the partition of a request, and its decider if that is in this
// process. Requests without an id, and those that cannot be read, take turns among ours.
func (f *front) owner(m *stream.Message) (p int, d *Decider) {
	id := requestID(m)
	var c codec.Context
	if err := codec.ParseContext(&c, m.Data); err != nil {
		id = ""
	} else if c.ID != "" {
		id = c.ID
	}
	here := f.here.Load()
	switch {
	case id != "":
		p = f.partitionOf(id)
	case len(here.ours) > 0:
		p = here.ours[f.turn.Add(1)%uint64(len(here.ours))]
	}
	return p, here.deciders[p]
}

// partitionOf returns the partition whose decider would know a round's id: the one that
// mints it for requests, if that is its shape, so that who asks again with the id that
// was told meets the decision.
func (f *front) partitionOf(id string) int {
	if p, ok := loop.MintedBy(id); ok && p < f.partitions {
		return p
	}
	return loop.PartitionOf([]byte(id), f.partitions)
}

func (f *front) refuse(m stream.Message, code int, message, id string, json bool) {
	f.metrics.RefuseID("decide", code, id)
	data, headers := errorReply(code, message, id, json)
	m.Respond(data, headers...)
}
