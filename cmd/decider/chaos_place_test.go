package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hindsight/internal/service"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/nats"
)

// chaosPlace is where the logs of a system lie that is to be hurt. What is hurt by
// signals to the system's own processes, its users and what is held against the logs
// are the same in every place.
type chaosPlace interface {
	// flags are those of every process: --log, and what it needs.
	flags() []string
	// deciderFlags are those of deciders beside them.
	deciderFlags() []string
	// dial connects somebody who may do everything, until the end of the test, over
	// every fault. Without a bus (nil) nobody can ask for decisions.
	dial() (stream.Log, stream.Bus)
	// faults are those of the place itself.
	faults() []chaosFault
	// openings returns, for each record of a partition in its order, the opening under
	// which it was written: equal for two records just if one appender wrote both.
	openings(topic string, partition int) []string
	// writes reports whether nearly everybody who wakes up writes before it sees that it
	// has lost its part: elsewhere it is one in four.
	writes() bool
	// lapse is how long a part can be paused before another takes over.
	lapse() time.Duration
}

// onNATS is a single nats-server in a process of its own.
type onNATS struct {
	t      *testing.T
	server *natsProgram
}

const chaosPassword = "chaos-secret"

// newOnNATS starts a server and makes the bucket of leases, with a TTL for tests: the
// processes take a bucket that is there as it is.
func newOnNATS(t *testing.T) *onNATS {
	p := &onNATS{t, startNATS(t, "shop", chaosPassword)}
	c, err := (&nats.Access{URL: p.server.url}).Dial("test", nats.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Leases(t.Context(), service.LeaseBucket("shop"), sharedTTL); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *onNATS) flags() []string { return []string{"--log", p.server.url} }

func (p *onNATS) deciderFlags() []string { return nil }

func (p *onNATS) writes() bool { return true }

func (p *onNATS) lapse() time.Duration { return sharedTTL }

func (p *onNATS) dial() (stream.Log, stream.Bus) {
	p.t.Helper()
	c, err := (&nats.Access{URL: p.server.url}).Dial("test", nats.Options{})
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { c.Close() })
	return c.Log(), c.Bus()
}

func (p *onNATS) faults() []chaosFault {
	return []chaosFault{{"kill -9 of nats-server", func(c *chaos) {
		p.server.kill()
		c.wait(c.r.IntN(3) == 0)
		p.server.start()
	}}}
}

func (p *onNATS) openings(topic string, partition int) []string {
	p.t.Helper()
	conn, err := natsgo.Connect(p.server.url)
	if err != nil {
		p.t.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		p.t.Fatal(err)
	}
	s, err := js.Stream(p.t.Context(), fmt.Sprintf("%s_%d", strings.ReplaceAll(topic, ".", "_"), partition))
	if err != nil {
		p.t.Fatal(err)
	}
	all, err := s.OrderedConsumer(p.t.Context(), jetstream.OrderedConsumerConfig{HeadersOnly: true})
	if err != nil {
		p.t.Fatal(err)
	}
	names := make([]string, 0, s.CachedInfo().State.Msgs)
	for len(names) < cap(names) {
		batch, err := all.Fetch(min(1000, cap(names)-len(names)))
		if err != nil {
			p.t.Fatal(err)
		}
		for m := range batch.Messages() {
			chain, _, _ := strings.Cut(m.Headers().Get(natsgo.MsgIdHdr), "-") // of <epoch>.<nonce>-<n>
			names = append(names, chain)
		}
		if err := batch.Error(); err != nil {
			p.t.Fatal(err)
		}
	}
	return names
}
