package kafkatest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Proxy stands between clients and a broker, which tells them its address in place of its own: connections through it
// can be lost, or hang as on a network that drops every packet, and be whole again.
type Proxy struct {
	addr, target string
	plain        bool // what passes is not Kafka's protocol

	mu       sync.Mutex
	listener net.Listener // nil while dropping
	state    proxyState
	moved    *sync.Cond // state has changed, or the proxy is closed
	conns    map[net.Conn]struct{}
	closed   bool
}

type proxyState uint8

const (
	passing proxyState = iota
	dropping
	holding
	holdingGroups
)

// NewProxy returns a proxy before any server of this machine, which ends with the test, and its own port.
func NewProxy(t testing.TB, target int) (p *Proxy, port int) {
	t.Helper()
	ports, err := freePorts(1)
	if err == nil {
		p, err = newProxy(ports[0], target, true)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.close)
	return p, ports[0]
}

func newProxy(port, target int, plain bool) (*Proxy, error) {
	p := &Proxy{addr: fmt.Sprintf("127.0.0.1:%d", port), target: fmt.Sprintf("127.0.0.1:%d", target), plain: plain,
		conns: map[net.Conn]struct{}{}}
	p.moved = sync.NewCond(&p.mu)
	return p, p.listen()
}

// listen begins to take connections. The caller holds mu, or nobody has p yet.
func (p *Proxy) listen() error {
	l, err := net.Listen("tcp", p.addr)
	if err != nil {
		return fmt.Errorf("%w: %w", errPortTaken, err)
	}
	p.listener = l
	go p.serve(l)
	return nil
}

// Addr returns the address that clients connect to.
func (p *Proxy) Addr() string { return p.addr }

// Drop breaks all connections and refuses new ones.
func (p *Proxy) Drop() { p.set(dropping) }

// Hold keeps connections, also new ones, and passes nothing on. What was sent arrives
// after Heal, as TCP sends it again.
func (p *Proxy) Hold() { p.set(holding) }

// HoldGroups passes on everything but what members of consumer groups ask their
// coordinator: it counts them as dead, while they write on.
func (p *Proxy) HoldGroups() { p.set(holdingGroups) }

// Heal ends Drop, Hold and HoldGroups.
func (p *Proxy) Heal() { p.set(passing) }

// Open returns how many connections of clients there are.
func (p *Proxy) Open() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns) / 2
}

func (p *Proxy) set(s proxyState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state = s
	if s == dropping {
		_ = p.listener.Close()
		p.listener = nil
		for c := range p.conns {
			_ = c.Close()
		}
	}
	if s != dropping && p.listener == nil {
		if err := p.listen(); err != nil {
			panic(err) // the port was chosen so that nobody else takes it
		}
	}
	p.moved.Broadcast()
}

func (p *Proxy) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	if p.listener != nil {
		_ = p.listener.Close()
	}
	for c := range p.conns {
		_ = c.Close()
	}
	p.moved.Broadcast()
}

func (p *Proxy) serve(l net.Listener) {
	for {
		c, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			go p.carry(c)
		}
	}
}

// carry connects a client to the broker.
func (p *Proxy) carry(client net.Conn) {
	defer client.Close()
	if !p.waits(holding) {
		return
	}
	broker, err := net.Dial("tcp", p.target)
	if err != nil {
		return
	}
	defer broker.Close()
	p.mu.Lock()
	if p.closed || p.state == dropping {
		p.mu.Unlock()
		return
	}
	p.conns[client], p.conns[broker] = struct{}{}, struct{}{}
	p.mu.Unlock()
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{client, broker}, {broker, client}} {
		both.Go(func() {
			if way[0] == client && !p.plain {
				p.copyRequests(way[1], way[0])
			} else {
				p.copy(way[1], way[0])
			}
			_ = client.Close()
			_ = broker.Close()
		})
	}
	both.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, client)
	delete(p.conns, broker)
}

func (p *Proxy) copy(to io.Writer, from io.Reader) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if !p.waits(holding) {
			return
		}
		if _, failed := to.Write(buf[:n]); err != nil || failed != nil {
			return
		}
	}
}

// copyRequests copies one whole request after the other.
func (p *Proxy) copyRequests(to io.Writer, from io.Reader) {
	var frame []byte
	for {
		frame = slices.Grow(frame[:0], 6)[:6]
		if _, err := io.ReadFull(from, frame); err != nil {
			return
		}
		size, key := binary.BigEndian.Uint32(frame), kmsg.Key(binary.BigEndian.Uint16(frame[4:]))
		if size < 2 || size > 1<<30 {
			return
		}
		frame = slices.Grow(frame, int(size)-2)[:4+size]
		if _, err := io.ReadFull(from, frame[6:]); err != nil {
			return
		}
		states := []proxyState{holding}
		switch key {
		case kmsg.JoinGroup, kmsg.SyncGroup, kmsg.Heartbeat, kmsg.LeaveGroup:
			states = append(states, holdingGroups)
		}
		if !p.waits(states...) {
			return
		}
		if _, err := to.Write(frame); err != nil {
			return
		}
	}
}

// waits returns when the state is none of those given, and reports false if nothing is ever to pass again.
func (p *Proxy) waits(states ...proxyState) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for slices.Contains(states, p.state) && !p.closed {
		p.moved.Wait()
	}
	return p.state != dropping && !p.closed
}
