package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"
)

// insist asks until the answer is none to come again for, as clients are told to, and reports
// whether the decision was there before.
func insist(t *testing.T, conn *natsgo.Conn, subject, data string) (again bool) {
	for {
		m, err := conn.Request(subject, []byte(data), 2*time.Second)
		if err == nil && m.Header.Get("Nats-Service-Error-Code") == "" {
			return strings.Contains(string(m.Data), `"duplicate":true`)
		}
		if err == nil && m.Header.Get("Nats-Service-Error-Code") != "503" {
			t.Errorf("%s: %s", data, m.Data)
			return false
		}
		select {
		case <-t.Context().Done():
			return false
		case <-time.After(time.Second/8 + rand.N(time.Second/4)):
		}
	}
}

// TestAskedAgainAfterKill kills a decider with its joiner, whose clients then all ask again for
// what it had decided, at once and until they are answered: each gets its decision, and a round
// that is decided meanwhile is learned; no part of the process is opened again.
func TestAskedAgainAfterKill(t *testing.T) {
	notShort(t)
	rounds, askers := 1500, 1500
	if os.Getenv("HINDSIGHT_LONG") != "" {
		rounds, askers = 90_000, 3000 // as many ids are remembered, and more
	}
	dir := t.TempDir()
	run := func() (*process, *natsgo.Conn) {
		p := start(t, decider(t, "--log", "embedded:"+dir, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0",
			"--model", writeModel(t, t.TempDir(), "name: shop\nversion: 1\nwindow: 1s\n"))).ready()
		conn, err := natsgo.Connect(p.reached(dir).URL)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(conn.Close)
		return p, conn
	}
	context := func(n int) string { return fmt.Sprintf(`{"id":"r%d","actions":["x","y"]}`, n) }
	// all asks for all rounds, so many at once, and returns how many were decided before.
	all := func(conn *natsgo.Conn, at int) (before int) {
		var askers sync.WaitGroup
		var mu sync.Mutex
		for i := range at {
			askers.Go(func() {
				for n := i; n < rounds; n += at {
					if insist(t, conn, "shop.decide", context(n)) {
						mu.Lock()
						before++
						mu.Unlock()
					}
				}
			})
		}
		askers.Wait()
		return before
	}
	p, conn := run()
	all(conn, 64)
	p.kill()
	p, conn = run()
	began := time.Now()
	before := make(chan int)
	go func() { before <- all(conn, askers) }()
	for _, id := range []string{"a", "b"} {
		insist(t, conn, "shop.decide", fmt.Sprintf(`{"id":%q,"actions":["x","y"]}`, id))
		insist(t, conn, "shop.outcome", fmt.Sprintf(`{"id":%q,"loss":0.5}`, id))
	}
	p.metric(`hindsight_feedback_total\{.*fate="observed".*\} 2`)
	t.Logf("learning goes on after %v", time.Since(began))
	if n := <-before; n != rounds {
		t.Errorf("%d of %d rounds were decided before", n, rounds)
	}
	t.Logf("all repeats are answered after %v", time.Since(began))
	p.metric(`hindsight_restarts_total\{role="joiner"\} 0`)
	p.metric(`hindsight_restarts_total\{role="decider"\} 0`)
	p.stop(patience)
}
