package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"hindsight/internal/service"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/lease"
	"hindsight/pkg/stream/nats"
	"hindsight/pkg/stream/natstest"
)

// sharedTTL is the TTL of the leases in these tests: they wait for leases to end.
const sharedTTL = 1500 * time.Millisecond

// shared is a model on a server of its own, with any number of processes at work.
type shared struct {
	t          *testing.T
	server     *natstest.Server
	url        string // with user and password
	dir        string
	client     *nats.Client
	leases     lease.Store
	partitions int
	args       []string
}

const sharedPassword = "shared-secret"

func newShared(t *testing.T, partitions int) *shared {
	t.Helper()
	server := natstest.Start(t, natstest.Options{Users: []natstest.User{{Name: "shop", Password: sharedPassword}}})
	s := newSharedOn(t, "nats://shop:"+sharedPassword+"@"+server.Addr(), partitions, 1)
	s.server = server
	return s
}

func newSharedOn(t *testing.T, url string, partitions, replicas int) *shared {
	t.Helper()
	s := &shared{t: t, dir: t.TempDir(), partitions: partitions, url: url}
	var err error
	if s.client, err = (&nats.Access{URL: s.url}).Dial("test", nats.Options{Replicas: replicas}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.client.Close() })
	if s.leases, err = s.client.Leases(t.Context(), service.LeaseBucket("shop"),
		sharedTTL*time.Duration(replicas)); err != nil {
		t.Fatal(err)
	}
	s.args = []string{"--log", s.url, "--model", writeModel(t, s.dir, shop), "--seed-file",
		filepath.Join(s.dir, "seed"), "--nats-replicas", fmt.Sprint(replicas)}
	return s
}

// decider starts a decider that is not waited for.
func (s *shared) decider(more ...string) *process {
	s.t.Helper()
	return start(s.t, decider(s.t, append(append(slices.Clone(s.args), "--partitions", fmt.Sprint(s.partitions)),
		more...)...))
}

// holders returns who holds the leases of the partitions, by process id.
func (s *shared) holders() map[string]int {
	claims, err := lease.NewKeeper(s.leases, "test").Claims(s.t.Context())
	if err != nil && !stream.IsRetryable(err) {
		s.t.Error(err)
	}
	have := map[string]int{}
	for _, c := range claims {
		if strings.HasPrefix(c.Key, "decider.") {
			have[c.Holder[strings.LastIndexByte(c.Holder, '/')+1:]]++
		}
	}
	return have
}

// shares waits until each process has so many partitions.
func (s *shared) shares(want map[*process]int) {
	s.t.Helper()
	eventually(s.t, fmt.Sprintf("the partitions are shared %v", slices.Collect(mapsValues(want))), func() bool {
		have, all := s.holders(), 0
		for p, n := range want {
			if have[fmt.Sprint(p.cmd.Process.Pid)] != n {
				return false
			}
			all += n
		}
		return all == s.partitions
	})
}

func mapsValues(m map[*process]int) func(func(int) bool) {
	return func(yield func(int) bool) {
		for _, n := range m {
			if !yield(n) {
				return
			}
		}
	}
}

// answered waits until each partition's owner answers.
func (s *shared) answered() {
	s.t.Helper()
	for p := range s.partitions {
		eventually(s.t, fmt.Sprintf("partition %d answers", p), func() bool {
			ctx, cancel := context.WithTimeout(s.t.Context(), time.Second)
			defer cancel()
			// is refused, and leaves no trace
			_, headers, err := s.client.Bus().Request(ctx, fmt.Sprintf("shop.decide.%d", p), []byte(`{"actions":`))
			return err == nil && errorCode(headers) == 400
		})
	}
}

// TestShared kills and pauses deciders that share two partitions: the others take
// over, nothing is lost or decided twice, and one that wakes up late changes nothing.
func TestShared(t *testing.T) {
	notShort(t)
	t.Parallel()
	seed := testSeed(t)
	r := rand.New(rand.NewPCG(seed, 7))
	s := newShared(t, 2)
	a := s.decider().ready()
	s.shares(map[*process]int{a: 2})
	b := s.decider().ready()
	s.shares(map[*process]int{a: 1, b: 1})
	u := s.newUsers(seed)
	var over []time.Duration
	for range long(2, 60) {
		after(a, time.Duration(200+r.IntN(500))*time.Millisecond)
		if r.IntN(2) == 0 {
			a, b = b, a
		}
		began := time.Now()
		a.kill()
		s.shares(map[*process]int{b: 2})
		s.answered()
		over = append(over, time.Since(began))
		a = s.decider().ready()
		s.shares(map[*process]int{a: 1, b: 1})
	}
	for i := range long(1, 20) { // a paused writer wakes up after another has taken over
		after(a, time.Duration(200+r.IntN(300))*time.Millisecond)
		b.signal(syscall.SIGSTOP)
		answers := s.askPaused(b, i)
		s.shares(map[*process]int{a: 2})
		s.answered()
		lost := b.said("lease lost")
		b.signal(syscall.SIGCONT)
		for range pausedRequests {
			if m, err := answers.NextMsg(patience); err != nil || m.Header.Get("Nats-Service-Error-Code") != "503" {
				t.Errorf("a request to a writer that had lost its partition: %v %v", m, err)
			}
		}
		s.shares(map[*process]int{a: 1, b: 1})
		eventually(t, "who was paused says that it lost its lease", func() bool { return b.said("lease lost") > lost })
	}
	s.invisible("late-")
	began := time.Now()
	b.stop(patience) // gives back at once
	s.shares(map[*process]int{a: 2})
	t.Logf("taken over %v after kill -9, %v after SIGTERM; the TTL is %v", over,
		time.Since(began).Round(time.Millisecond), sharedTTL)
	u.end()
	a.stop(patience)
	u.audit()
	for _, p := range []*process{a, b} {
		if strings.Contains(p.log(), sharedPassword) {
			t.Error("the log shows the password")
		}
	}
}

// TestSharedCluster runs two deciders on three servers with three copies of each
// stream, and kills deciders and servers.
func TestSharedCluster(t *testing.T) {
	if long(0, 1) == 0 {
		t.Skip("three servers take their time: HINDSIGHT_LONG=1")
	}
	seed := testSeed(t)
	r := rand.New(rand.NewPCG(seed, 8))
	servers := natstest.Cluster(t, 3)
	s := newSharedOn(t, servers[0].URL()+","+servers[1].URL()+","+servers[2].URL(), 2, 3)
	a := s.decider().ready()
	b := s.decider().ready()
	s.shares(map[*process]int{a: 1, b: 1})
	u := s.newUsers(seed)
	for i := range 6 {
		after(b, time.Duration(300+r.IntN(500))*time.Millisecond)
		if i%2 == 0 {
			a.kill()
			s.shares(map[*process]int{b: 2})
			s.answered()
			a = s.decider().ready()
		} else {
			k := servers[r.IntN(3)]
			k.Kill()
			s.answered()
			k.Restart()
		}
		s.shares(map[*process]int{a: 1, b: 1})
		s.answered()
	}
	u.end()
	a.stop(patience)
	b.stop(patience)
	u.audit()
}

// pausedRequests is how many requests wait for a process that is paused.
const pausedRequests = 5

// askPaused asks a process that is paused for decisions: it gets to see the requests
// when it wakes up and its partition is another's.
func (s *shared) askPaused(p *process, n int) *natsgo.Subscription {
	s.t.Helper()
	conn, err := natsgo.Connect(s.url)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(conn.Close)
	answers, err := conn.SubscribeSync(conn.NewInbox())
	if err != nil {
		s.t.Fatal(err)
	}
	claims, err := lease.NewKeeper(s.leases, "test").Claims(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	for _, c := range claims {
		at, mine := strings.CutPrefix(c.Key, "decider.")
		if !mine || !strings.HasSuffix(c.Holder, fmt.Sprint("/", p.cmd.Process.Pid)) {
			continue
		}
		for i := range pausedRequests {
			if err := conn.PublishRequest("shop.decide."+at, answers.Subject,
				fmt.Appendf(nil, `{"id":"late-%d-%d","actions":["x","y"]}`, n, i)); err != nil {
				s.t.Fatal(err)
			}
		}
		if err := conn.Flush(); err != nil {
			s.t.Fatal(err)
		}
		return answers
	}
	s.t.Fatalf("%d has no partition: %v", p.cmd.Process.Pid, claims)
	return nil
}

// invisible holds that no decision has an id that begins so.
func (s *shared) invisible(prefix string) {
	s.t.Helper()
	n := 0
	for p := range s.partitions {
		err := stream.Scan(s.t.Context(), s.client.Log(), "shop.decisions", p, stream.Earliest, 1<<62,
			func(r *stream.Record) error {
				var d codec.Decision
				if r.Type != "" {
					return nil
				}
				n++
				err := codec.ParseDecision(&d, r.Value)
				if strings.HasPrefix(d.ID, prefix) {
					s.t.Errorf("decision %d of partition %d, of %s, is of a writer that had lost the partition",
						d.N, p, d.ID)
				}
				return err
			})
		if err != nil {
			s.t.Error(err)
		}
	}
	if n == 0 {
		s.t.Error("nothing was decided")
	}
}
