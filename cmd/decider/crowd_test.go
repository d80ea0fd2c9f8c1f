package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"hindsight/internal/check"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// TestHTTPCrowd has many connections at once: clients that ask, that go away before the answer, that send half a
// request and no more, and that say nothing. Every answer equals the log, no round is decided twice, and when the
// clients are gone so are the goroutines, files and memory that they took.
func TestHTTPCrowd(t *testing.T) {
	notShort(t)
	dir := t.TempDir()
	p := start(t, decider(t, "--log", "embedded:"+dir, "--listen", "127.0.0.1:0", "--pprof", "--admin", "127.0.0.1:0",
		"--model", writeModel(t, dir, "name: shop\nversion: 1\n"))).ready()
	c := &visitors{t: t, p: p, url: p.http(), replies: map[string][]byte{}}
	c.decide("first")
	before := c.footprint()
	conns := make([]net.Conn, long(400, 10_000))
	c.each(conns, func(i int) {
		var err error
		if conns[i], err = net.Dial("tcp", strings.TrimPrefix(c.url, "http://")); err != nil {
			t.Error(err)
		}
	})
	if t.Failed() {
		t.FailNow()
	}
	full := c.footprint()
	c.each(conns, func(i int) { c.act(i, conns[i]) })
	c.each(conns, func(i int) {
		if i%4 < 2 { // those who went away ask again
			c.decide(fmt.Sprint("q", i))
		}
		conns[i].Close()
	})
	for what, more := range map[string]float64{"go_goroutines": 20, "process_open_fds": 20,
		"go_memstats_heap_inuse_bytes": float64(4<<20 + 4<<10*len(conns))} {
		eventually(t, what+" is as before", func() bool { return c.footprint()[what] <= before[what]+more })
		t.Logf("%s: %.0f, with all of them %.0f, after them %.0f", what, before[what], full[what], c.footprint()[what])
	}
	p.stop(patience)
	var replies []check.Reply
	for id, b := range c.replies {
		replies = append(replies, check.Reply{ID: id, Data: b})
	}
	report := audit(t, dir, "shop", replies, check.Options{Unfinished: true}, func(log stream.Log) {
		seen := map[string]bool{}
		scan(t, log, "shop.decisions", 0, func(r *stream.Record) error {
			var d codec.Decision
			err := codec.ParseDecision(&d, r.Value)
			if seen[d.ID] {
				t.Errorf("%s was decided twice", d.ID)
			}
			seen[strings.Clone(d.ID)] = true
			return err
		})
	})
	if want := 1 + len(conns)/2; report.Decisions != want || len(replies) != want {
		t.Errorf("%d decisions, %d replies, want %d", report.Decisions, len(replies), want)
	}
}

// visitors is the clients of one process.
type visitors struct {
	t   *testing.T
	p   *process
	url string

	mu      sync.Mutex
	replies map[string][]byte // by id, the first
}

// each does something with every connection at once.
func (c *visitors) each(conns []net.Conn, do func(i int)) {
	var all sync.WaitGroup
	for i := range conns {
		all.Go(func() { do(i) })
	}
	all.Wait()
}

// footprint returns what the process has now.
func (c *visitors) footprint() map[string]float64 {
	http.DefaultClient.CloseIdleConnections()
	c.p.page(c.p.admin(), "/debug/pprof/heap?gc=1")
	return (&soak{t: c.t, p: c.p}).metrics()
}

// act is what client i does with its connection, which may be cut off meanwhile.
func (c *visitors) act(i int, conn net.Conn) {
	id := fmt.Sprint("q", i)
	body := fmt.Sprintf(`{"id":%q,"actions":["x","y"]}`, id)
	request := fmt.Sprintf("POST /v1/decide HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"+
		"Content-Length: %d\r\n\r\n%s", len(body), body)
	switch i % 4 {
	case 0:
		_, _ = io.WriteString(conn, request)
		if r, err := http.ReadResponse(bufio.NewReader(conn), nil); err == nil && r.StatusCode == http.StatusOK {
			defer r.Body.Close()
			if b, err := io.ReadAll(r.Body); err == nil {
				c.note(id, b)
			}
		}
	case 1:
		_, _ = io.WriteString(conn, request)
		conn.Close()
	case 2:
		_, _ = io.WriteString(conn, request[:len(request)-i%len(request)/2-1])
		if long(0, 1) == 1 { // until it is cut off
			_, _ = io.Copy(io.Discard, conn)
		}
	}
}

// decide asks until there is a decision.
func (c *visitors) decide(id string) {
	for status := 0; status != http.StatusOK; {
		r, err := http.Post(c.url+"/v1/decide", "application/json",
			strings.NewReader(fmt.Sprintf(`{"id":%q,"actions":["x","y"]}`, id)))
		if err != nil {
			continue
		}
		b, err := io.ReadAll(r.Body)
		r.Body.Close()
		if status = r.StatusCode; err != nil || status == http.StatusServiceUnavailable {
			status = 0
			continue
		}
		if status != http.StatusOK {
			c.t.Errorf("%s: %d %s", id, status, b)
			return
		}
		c.note(id, b)
	}
}

// note keeps a reply, which must be the one that this id had before.
func (c *visitors) note(id string, reply []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	plain := bytes.Replace(reply, []byte(`"duplicate":true`), []byte(`"duplicate":false`), 1)
	if was := c.replies[id]; was != nil && !bytes.Equal(was, plain) {
		c.t.Errorf("%s was answered with %s, then with %s", id, was, reply)
	}
	c.replies[id] = plain
}
