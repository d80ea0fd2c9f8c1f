package main

import (
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"

	"hindsight/pkg/stream/natstest"
)

// pings returns how soon a server with this file of settings cuts off a client that hangs.
func pings(t *testing.T, path string) (interval time.Duration, most int) {
	t.Helper()
	for _, role := range []string{"SERVICE", "PIPELINE", "REQUESTER"} {
		t.Setenv(role+"_PASSWORD", "x")
	}
	o, err := server.ProcessConfigFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return o.PingInterval, o.MaxPingsOut
}

// TestPingSettings holds that the servers we ship settings for notice within 15 s that a
// client hangs.
func TestPingSettings(t *testing.T) {
	for _, path := range []string{"../../compose/ping.conf", "../../compose/nats.conf"} {
		if interval, most := pings(t, path); interval != 5*time.Second || most != 2 {
			t.Errorf("%s: a ping every %v, and %d without an answer", path, interval, most)
		}
	}
}

// TestHungMember pauses one of two deciders, whose connection stays open, on a server with
// the settings that we ship: the other takes its partition over, and soon no request goes to
// the one that cannot answer.
func TestHungMember(t *testing.T) {
	if long(0, 1) == 0 {
		t.Skip("a server waits for pings: HINDSIGHT_LONG=1")
	}
	interval, most := pings(t, "../../compose/ping.conf")
	srv := natstest.Start(t, natstest.Options{Users: []natstest.User{{Name: "shop", Password: sharedPassword}},
		PingInterval: interval, MaxPings: most})
	s := newSharedOn(t, "nats://shop:"+sharedPassword+"@"+srv.Addr(), 2, 1)
	a, b := s.decider().ready(), s.decider().ready()
	s.shares(map[*process]int{a: 1, b: 1})
	s.answered()

	asked := askEverything(t, s.url)
	limit := interval*time.Duration(most+1) + 2*time.Second
	b.signal(syscall.SIGSTOP)
	paused := time.Now()
	s.shares(map[*process]int{a: 2})
	over := time.Since(paused)
	<-time.After(time.Until(paused.Add(limit + 5*time.Second)))
	last, without, all := asked.end()
	t.Logf("taken over after %v; %d of %d requests without an answer, the last %v after the pause",
		over.Round(time.Millisecond), without, all, last.Sub(paused).Round(time.Millisecond))
	if without == 0 {
		t.Error("every request was answered: this shows nothing")
	}
	if last.Sub(paused) > limit {
		t.Errorf("a request goes unanswered %v after the pause", last.Sub(paused))
	}
	b.signal(syscall.SIGCONT)
	s.shares(map[*process]int{a: 1, b: 1})
}

// questions asks on every subject of the service, again and again.
type questions struct {
	mu   sync.Mutex
	at   []time.Time // by number; zero: answered
	stop chan struct{}
	done chan struct{}
}

func askEverything(t *testing.T, url string) *questions {
	t.Helper()
	conn, err := natsgo.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	q := &questions{stop: make(chan struct{}), done: make(chan struct{})}
	inbox := conn.NewInbox()
	if _, err := conn.Subscribe(inbox+".*", func(m *natsgo.Msg) {
		n, err := strconv.Atoi(m.Subject[strings.LastIndexByte(m.Subject, '.')+1:])
		q.mu.Lock()
		defer q.mu.Unlock()
		if err == nil && m.Header.Get("Status") == "" { // somebody answered
			q.at[n] = time.Time{}
		}
	}); err != nil {
		t.Fatal(err)
	}
	ask := func(subject, data string) {
		q.mu.Lock()
		n := len(q.at)
		q.at = append(q.at, time.Now())
		q.mu.Unlock()
		if err := conn.PublishRequest(subject, inbox+"."+strconv.Itoa(n), []byte(data)); err != nil {
			t.Error(err)
		}
	}
	go func() {
		defer close(q.done)
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-q.stop:
				return
			case <-tick.C:
			}
			for _, subject := range []string{"shop.decide", "shop.decide.0", "shop.decide.1", "shop.outcome"} {
				ask(subject, `{"malformed":`) // is refused at once, and leaves no trace
			}
		}
	}()
	return q
}

// end returns when the last request was sent that has no answer, how many have none, and how
// many were asked.
func (q *questions) end() (last time.Time, without, all int) {
	close(q.stop)
	<-q.done
	<-time.After(time.Second)
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, at := range q.at {
		if !at.IsZero() {
			without++
			last = at
		}
	}
	return last, without, len(q.at)
}
