package embedded_test

import (
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"

	natsgo "github.com/nats-io/nats.go"

	"hindsight/pkg/stream/embedded"
)

func userInfo(user, password string) natsgo.Option { return natsgo.UserInfo(user, password) }

// proxy stands between clients and a server and can cut their connections.
type proxy struct {
	l  net.Listener
	wg sync.WaitGroup

	mu     sync.Mutex
	server string
	conns  []net.Conn
	deaf   atomic.Bool // answers of the server are swallowed; the next one cuts
}

func newProxy(t testing.TB, e *embedded.Engine) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{l: l}
	p.to(e)
	p.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.serve(c)
		}
	})
	return p
}

// to sends new connections to e.
func (p *proxy) to(e *embedded.Engine) {
	u, _ := url.Parse(e.URL())
	p.mu.Lock()
	defer p.mu.Unlock()
	p.server = u.Host
}

func (p *proxy) url() string { return "nats://" + p.l.Addr().String() }

func (p *proxy) serve(client net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	server, err := net.Dial("tcp", p.server)
	if err != nil {
		client.Close()
		return
	}
	p.conns = append(p.conns, client, server)
	p.wg.Go(func() {
		_, _ = io.Copy(server, client)
		server.Close()
	})
	p.wg.Go(func() {
		defer client.Close()
		defer server.Close()
		buf := make([]byte, 64<<10)
		for {
			n, err := server.Read(buf)
			if err != nil {
				return
			}
			if p.deaf.Swap(false) { // the client never sees this answer
				p.cut()
				return
			}
			if _, err := client.Write(buf[:n]); err != nil {
				return
			}
		}
	})
}

// cutSoon swallows the server's next answer and cuts all connections.
func (p *proxy) cutSoon() { p.deaf.Store(true) }

// cut closes all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		c.Close()
	}
	p.conns = nil
}

func (p *proxy) close() {
	p.l.Close()
	p.cut()
	p.wg.Wait()
}
