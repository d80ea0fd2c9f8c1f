package nats

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"hindsight/pkg/stream"
	"hindsight/pkg/stream/natstest"
)

// TestBoundsSettle has a leader that has taken more than it tells of, or that has not
// heard from its replicas.
func TestBoundsSettle(t *testing.T) {
	const lately, long = `[{"active":1},{"active":4000000000}]`, `[{"active":3600000000},{"active":4000000000}]`
	s, _ := runServer(t, t.TempDir(), -1)
	for i, c := range []struct {
		name   string
		heard  string
		told   []int    // last sequence, by question; the last answer stays
		taken  []string // by question
		want   int64
		rounds int32 // questions at least
		says   string
	}{
		{"most replicas have all", lately, []int{3}, []string{"3"}, 4, 1, ""},
		{"one record is on its way", lately, []int{3, 3, 4}, []string{"4"}, 5, 3, ""},
		{"more is written meanwhile", lately, []int{1, 2, 3}, []string{"3", "7", "8"}, 4, 3, ""},
		{"a new leader has less", lately, []int{1, 2}, []string{"3", "2"}, 3, 2, ""},
		{"an empty stream", lately, []int{0}, []string{"0"}, 1, 1, ""},
		{"replicas hang", lately, []int{1}, []string{"3"}, 0, 3, "has had records up to 3, and most replicas up to 1"},
		{"a leader that was replaced", long, []int{3}, []string{"3"}, 0, 3, "hears from too few"},
		{"a replica that never spoke", `[{"active":0},{"active":0}]`, []int{3}, []string{"3"}, 0, 3, "hears " +
			"from too few"},
		{"a refusal without a sequence", lately, []int{3}, []string{""}, 0, 1, "expected a sequence"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			topic := fmt.Sprint("t", i)
			player := connect(t, s.ClientURL())
			var infos, probes atomic.Int32
			nth := func(n *atomic.Int32, of int) int { return min(int(n.Add(1)), of) - 1 }
			play(t, player, "fake.STREAM.INFO."+topic+"_0", func() string {
				last := c.told[nth(&infos, len(c.told))]
				return fmt.Sprintf(
					`{"config":{"num_replicas":3},"state":{"first_seq":1,"last_seq":%d},"cluster":{"leader":"a","replicas":%s}}`,
					last, c.heard)
			})
			play(t, player, topic+".0", func() string {
				seq := c.taken[nth(&probes, len(c.taken))]
				return fmt.Sprintf(
					`{"error":{"code":400,"err_code":10071,"description":"wrong last sequence: %s"},"stream":"t_0","seq":0}`, seq)
			})
			l := dialTest(t, s.ClientURL(), Options{APIPrefix: "fake", APITimeout: 300 * time.Millisecond}).Log()
			_, next, err := l.Bounds(t.Context(), topic, 0)
			switch {
			case c.says == "" && (err != nil || next != c.want):
				t.Errorf("next %d, want %d: %v", next, c.want, err)
			case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)):
				t.Errorf("next %d: %v", next, err)
			}
			if n := infos.Load(); n < c.rounds {
				t.Errorf("asked %d times", n)
			}
		})
	}
}

// play answers requests on a subject, one at a time.
func play(t *testing.T, conn *natsgo.Conn, subject string, answer func() string) {
	t.Helper()
	hear(t, conn, subject, func(m *natsgo.Msg) { _ = m.Respond([]byte(answer())) })
}

// hear has a function called with what is published on a subject, one message at a time.
func hear(t *testing.T, conn *natsgo.Conn, subject string, f natsgo.MsgHandler) *natsgo.Subscription {
	t.Helper()
	sub, err := conn.Subscribe(subject, f)
	if err == nil {
		err = conn.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	return sub
}

// cluster is three servers and a stream on all of them.
type cluster struct {
	t       *testing.T
	servers []*natstest.Server
	clients []*Client
}

func newCluster(t *testing.T) *cluster {
	if os.Getenv("HINDSIGHT_LONG") != "1" {
		t.Skip("three servers take their time: HINDSIGHT_LONG=1")
	}
	c := &cluster{t: t, servers: natstest.Cluster(t, 3)}
	for _, s := range c.servers {
		c.clients = append(c.clients, dialTest(t, s.URL(), Options{Replicas: 3}))
	}
	if err := c.clients[0].Log().Create(t.Context(), "x", 1, stream.TopicOptions{}); err != nil {
		t.Fatal(err)
	}
	return c
}

// leader waits until a stream has a leader, asked through server via.
func (c *cluster) leader(via int) int {
	c.t.Helper()
	p, _ := newPlace("x", 0)
	for c.t.Context().Err() == nil {
		i, err := c.clients[via].Log().info(c.t.Context(), c.clients[via].conns[3], &p)
		for n := range c.servers {
			if err == nil && i.Cluster.Leader == fmt.Sprint("test", n) {
				return n
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	c.t.Fatal("no leader")
	return 0
}

// bounds asks until there is an answer.
func (c *cluster) bounds(via int) int64 {
	for c.t.Context().Err() == nil {
		_, next, err := c.clients[via].Log().Bounds(context.WithoutCancel(c.t.Context()), "x", 0)
		if err == nil {
			return next
		}
		if !stream.IsRetryable(err) {
			c.t.Error(err)
			return 0
		}
	}
	return 0
}

// TestBoundsWaitForReplicas has a record that the leader alone holds: nobody can read
// it yet, and nobody is told that it is not there, for it has its time.
func TestBoundsWaitForReplicas(t *testing.T) {
	c := newCluster(t)
	leader := c.leader(0)
	if next := c.bounds(leader); next != 1 {
		t.Fatal(next)
	}
	for i, s := range c.servers {
		if i != leader {
			s.Pause()
		}
	}
	l := c.clients[leader]
	if err := l.conns[1].Publish("x.0", []byte("outcome")); err != nil {
		t.Fatal(err)
	}
	p, _ := newPlace("x", 0)
	for { // until the leader has taken it
		n, err := l.Log().taken(t.Context(), l.conns[3], &p)
		if err != nil {
			t.Fatal(err)
		}
		if n == 1 {
			break
		}
	}
	asked := time.Now()
	if i, err := l.Log().info(t.Context(), l.conns[3], &p); err != nil || i.State.LastSeq != 0 {
		t.Fatalf("the leader tells of what others do not have: %+v %v", i, err)
	}
	answer := make(chan int64, 1)
	go func() { answer <- c.bounds(leader) }()
	select {
	case next := <-answer:
		t.Errorf("told that the end is %d while a record waits for its replicas", next)
	case <-time.After(time.Second):
	}
	for i, s := range c.servers {
		if i != leader {
			s.Resume()
		}
	}
	if next := <-answer; next != 2 {
		t.Errorf("told that the end is %d", next)
	}
	r, err := l.Log().Read(t.Context(), "x", 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	recs, err := r.Next(t.Context(), nil)
	if err != nil || len(recs) != 1 || recs[0].Time >= asked.UnixNano() {
		t.Errorf("%v %v: the test wants a record with a time of before the question, %d", recs, err, asked.UnixNano())
	}
}

// TestBoundsOfOldLeader pauses leaders until there is another, writes, and wakes them up:
// nobody is told an end of before what was written, through whichever server one asks.
func TestBoundsOfOldLeader(t *testing.T) {
	c := newCluster(t)
	p, _ := newPlace("x", 0)
	stale := 0 // answers of old leaders that the plain question got
	for round := range 5 {
		old := c.leader(0)
		via := (old + 1) % 3
		c.servers[old].Pause()
		for c.leader(via) == old {
			time.Sleep(50 * time.Millisecond)
		}
		w, err := c.clients[via].Log().Writer(t.Context(), "x", 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Append(t.Context(), &stream.Record{Value: []byte("outcome")}); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		_ = w.Close()
		want := int64(round + 2)
		var mu sync.Mutex
		var all sync.WaitGroup
		for i := range c.clients {
			all.Go(func() {
				if next := c.bounds(i); next != want {
					t.Errorf("round %d: through server %d the end is %d, not %d; the old leader is %d", round, i, next,
						want, old)
				}
			})
			for range 4 { // the plain question
				all.Go(func() {
					for end := time.Now().Add(2 * time.Second); time.Now().Before(end); {
						info, err := c.clients[i].Log().info(t.Context(), c.clients[i].conns[2], &p)
						if err == nil && int64(info.State.LastSeq)+1 < want {
							mu.Lock()
							stale++
							mu.Unlock()
							if info.fresh() {
								t.Errorf("round %d: an old answer passes for a fresh one: %+v", round, info)
							}
						}
					}
				})
			}
		}
		c.servers[old].Resume()
		all.Wait()
	}
	t.Logf("the plain question got %d answers of old leaders", stale)
}
