// Package front stands between the clients of a model and its deciders. It takes requests for decisions
// and outcomes from a bus, bounds how often one client asks ([Config]), admits what can be answered in
// time ([Gate]), and hands each request for a decision to the decider of its partition, in this process
// or in another ([Server]). Outcomes it appends itself ([Outcomes]).
package front

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"hindsight/internal/loop"
	"hindsight/internal/trace"
	"hindsight/internal/watch"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// Config is what a process's server of requests needs.
type Config struct {
	Bus        stream.Bus
	Name       string // of the model
	Partitions int
	Seed       []byte         // secret: by it the processes of a model recognise each other's requests
	ClientRate int            // most requests a second of one client; 0: any number
	Apart      bool           // requests on this bus reach no other process
	Metrics    *watch.Metrics // nil: disabled
	Trace      trace.Tracer   // nil: disabled
}

// Server takes requests for any partition and hands each to the owner of its round's id, so that a retry meets the
// decision: to a decider of this process, or one hop further. It serves while a decider of this process is at work.
type Server struct {
	Config
	rates *rates // may be nil
	pass  string // by which processes of the model know what another one forwards

	serving sync.Mutex // held to begin and end serving
	stop    func()

	here  atomic.Pointer[local]
	turn  atomic.Uint64 // of requests without an id
	rooms []Room        // by partition
}

// local is the gates to the deciders of this process. It is not changed once others see it.
type local struct {
	gates []*Gate // by partition; nil: another process's
	ours  []int   // partitions that have one
}

// NewServer returns a server without deciders.
func NewServer(c Config) *Server {
	if c.Metrics == nil {
		c.Metrics = watch.NewMetrics(nil, nil)
	}
	s := &Server{Config: c, rates: newRates(c.ClientRate), pass: passOf(c.Seed, c.Name), rooms: make([]Room,
		c.Partitions)}
	s.here.Store(&local{gates: make([]*Gate, c.Partitions)})
	if b, ok := c.Bus.(Fallback); ok {
		b.ServeElse(s.Name+".decide", s.limit("decide", s.Decide))
	}
	return s
}

// Fallback is a bus that has requests of its own, which no other process gets.
type Fallback interface {
	// ServeElse has h take those requests while nothing else serves the subject.
	ServeElse(subject string, h func(stream.Message))
}

// subject is where the owner of a partition takes requests.
func (s *Server) subject(p int) string { return fmt.Sprintf("%s.decide.%d", s.Name, p) }

// Enter has the gate of a decider take the requests for its partition, from clients and from other
// processes, until leave is called.
func (s *Server) Enter(p int, g *Gate) (leave func(), err error) {
	ofClients := s.limit("decide", g.Request)
	unserve, err := s.Bus.Serve(s.subject(p), "decider", func(m stream.Message) {
		if s.isForwarded(&m) {
			g.Request(m)
			return
		}
		ofClients(m)
	})
	if err != nil {
		return nil, err
	}
	s.serving.Lock()
	defer s.serving.Unlock()
	s.set(p, g)
	if s.stop == nil {
		if s.stop, err = s.Bus.Serve(s.Name+".decide", "decider", s.limit("decide", s.Decide)); err != nil {
			s.set(p, nil)
			unserve()
			return nil, err
		}
	}
	return func() {
		s.leave(p)
		unserve()
	}, nil
}

func (s *Server) leave(p int) {
	s.serving.Lock()
	defer s.serving.Unlock()
	ours := s.here.Load().ours
	if len(ours) == 1 && ours[0] == p { // before it is away: what has arrived is still answered
		s.stop()
		s.stop = nil
	}
	s.set(p, nil)
}

// set is called while serving is held.
func (s *Server) set(p int, g *Gate) {
	l := &local{gates: slices.Clone(s.here.Load().gates)}
	l.gates[p] = g
	for p, g := range l.gates {
		if g != nil {
			l.ours = append(l.ours, p)
		}
	}
	s.here.Store(l)
}

// Decide takes one request for a decision, of any partition, that has passed the limit of its client.
// It does not block: the answer comes by m.Respond, from another goroutine.
func (s *Server) Decide(m stream.Message) {
	m.Data = codec.TrimMark(m.Data)
	p, g := s.owner(&m)
	if g != nil {
		g.Request(m)
		return
	}
	refuse := Refuser(&m, s.Metrics, "decide")
	size := HeldBytes(&m)
	if RequestSize(&m) > codec.MaxRecordBytes {
		refuse(413, "the context is too large", "")
		return
	}
	if !s.rooms[p].Take(size, maxWaitingBytes/s.Partitions) {
		refuse(503, "overloaded: retry with the same id", "")
		return
	}
	go s.forward(p, m, size, refuse)
}

// owner returns the partition of a request, and the gate of its decider if that is in this
// process. A request for a unit belongs to the unit's, whatever its id. Requests without either, and those that cannot
// be read, take turns among ours.
func (s *Server) owner(m *stream.Message) (p int, g *Gate) {
	here := s.here.Load()
	if s.Partitions == 1 {
		return 0, here.gates[0]
	}
	id := RequestID(m)
	var c codec.Context
	if err := codec.ParseContext(&c, m.Data); err != nil {
		id, c.Unit = "", ""
	} else if c.ID != "" {
		id = c.ID
	}
	switch {
	case c.Unit != "" && c.CheckUnit() == nil:
		p = loop.PartitionOf([]byte(c.Unit), s.Partitions)
	case id != "":
		p = s.partitionOf(id)
	case len(here.ours) > 0:
		p = here.ours[s.turn.Add(1)%uint64(len(here.ours))]
	default:
		p = int(s.turn.Add(1) % uint64(s.Partitions))
	}
	return p, here.gates[p]
}

// partitionOf returns the partition whose decider would know a round's id. An id that a decider minted
// belongs to that decider's partition, so that a retry with it meets the decision.
func (s *Server) partitionOf(id string) int {
	if p, ok := loop.MintedBy(id); ok && p < s.Partitions {
		return p
	}
	return loop.PartitionOf([]byte(id), s.Partitions)
}
