package main

import (
	"fmt"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"hindsight/pkg/stream/kafkatest"
	"hindsight/pkg/stream/nats"
	"hindsight/pkg/stream/natstest"
)

// TestKafkaShared runs two deciders on one and on three partitions: they share them
// through the group, take over from each other after kill -9 and SIGTERM, answer
// requests on a NATS server beside, and have one learner.
func TestKafkaShared(t *testing.T) {
	notShort(t)
	t.Parallel()
	for _, partitions := range []int{1, 3} {
		t.Run(fmt.Sprint("partitions=", partitions), func(t *testing.T) {
			t.Parallel()
			server := natstest.Start(t, natstest.Options{})
			kafkaShared(newBrokered(t, partitions, "--nats", server.URL()), server)
		})
	}
}

// TestKafkaRealShared does the same on a real broker, with the shortest session that
// brokers grant.
func TestKafkaRealShared(t *testing.T) {
	kafkatest.Heavy(t)
	cluster, server := cleaned(kafkatest.Shared(t)), natstest.Start(t, natstest.Options{})
	kafkaShared(newBrokeredOn(t, cluster.Brokers(), 6*time.Second, 3, "--nats", server.URL()), server)
}

func kafkaShared(s *brokered, server *natstest.Server) {
	t, partitions := s.t, s.partitions
	a := s.decider().ready()
	a.owns(partitions)
	user, err := nats.Dial(server.URL(), "test", nats.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer user.Close()
	b := s.decider()
	w := s.pipeline(testSeed(t))
	if partitions > 1 {
		a.owns(2)
		b.owns(1)
	}
	for i := range 20 { // whoever owns the partition is asked
		if code, reply := say(t, user.Bus(), "shop.decide", fmt.Sprintf(`{"id":"q%d","actions":["x","y"]}`,
			i)); code != 0 {
			t.Errorf("request %d: %d %s", i, code, reply)
		}
	}
	began := time.Now()
	a.kill()
	b.owns(partitions)
	killed := time.Since(began)
	c := s.decider()
	if partitions > 1 {
		b.owns(2)
		c.owns(1)
	}
	began = time.Now()
	b.stop(10 * time.Second)
	c.owns(partitions)
	stopped := time.Since(began)
	d := s.decider()
	if partitions > 1 {
		d.owns(1)
	}
	after(c, 300*time.Millisecond)
	w.end()
	s.settled()
	if partitions > 1 {
		s.alike(c, d)
	} else {
		s.alike(c)
		d.stop(patience)
	}
	r := s.audit()
	if partitions > 1 {
		t.Logf("a partition that moves is without decider for %v", gap(t, b, c))
	}
	t.Logf("taken over %v after kill -9 (session %v), %v after SIGTERM; %d of %d contexts decided",
		killed.Round(time.Millisecond), s.session, stopped.Round(time.Millisecond), r.Decisions, w.n+20)
	if int64(r.Decisions) != w.n+20 {
		t.Errorf("%d decisions of %d contexts and 20 requests", r.Decisions, w.n)
	}
}

var moved = regexp.MustCompile(
	`(?m)time=(\S+) .*msg="(handing a partition|partition taken).*role=decider.* partition=(\d+)`)

// gap returns the time from the first partition that a process hands over to its being
// taken by another.
func gap(t *testing.T, from, to *process) time.Duration {
	t.Helper()
	var given time.Time
	var partition string
	for _, m := range moved.FindAllStringSubmatch(from.log(), -1) {
		if at, err := time.Parse(time.RFC3339, m[1]); err == nil && m[2] == "handing a partition" && partition == "" {
			given, partition = at, m[3]
		}
	}
	for _, m := range moved.FindAllStringSubmatch(to.log(), -1) {
		if at, err := time.Parse(time.RFC3339, m[1]); err == nil && m[2] == "partition taken" && m[3] == partition &&
			at.After(given) {
			return at.Sub(given)
		}
	}
	t.Errorf("no partition moved:\n%s\n%s", from.log(), to.log())
	return 0
}

// TestKafkaApart kills the joiner that works: the one that stands by takes over. There
// are no requests.
func TestKafkaApart(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: go test without it runs this")
	}
	t.Parallel()
	s := newBrokered(t, 1)
	d := s.decider("--joiner=false", "--nats", "none")
	j := start(t, feedbackJoiner(t, s.args...)).ready()
	k := start(t, feedbackJoiner(t, s.args...))
	d.ready()
	eventually(t, "the second joiner stands by", func() bool { return strings.Contains(k.log(), "standing by") })
	w := s.pipeline(testSeed(t))
	after(d, 300*time.Millisecond)
	began := time.Now()
	j.kill()
	k.ready()
	t.Logf("a joiner took over %v after kill -9", time.Since(began).Round(time.Millisecond))
	after(d, 300*time.Millisecond)
	w.end()
	s.settled()
	d.stop(patience)
	k.stop(patience)
	s.audit()
}

// TestKafkaPaused pauses a decider until another one has taken over, and wakes it up: it
// knows that it has lost its part, changes nothing, and gets a part again.
func TestKafkaPaused(t *testing.T) {
	notShort(t)
	t.Parallel()
	s := newBrokered(t, 2, "--nats", "none")
	a := s.decider().ready()
	a.owns(2)
	b := s.decider().ready()
	b.owns(1)
	a.owns(1)
	w := s.pipeline(testSeed(t))
	after(b, 300*time.Millisecond)
	for _, p := range []*process{b, a} { // a is the joiner, too
		other := a
		if p == a {
			other = b
		}
		p.signal(syscall.SIGSTOP)
		other.owns(2)
		after(other, 200*time.Millisecond)
		p.signal(syscall.SIGCONT)
		other.owns(1)
		p.owns(1)
		eventually(t, "who was paused says that it lost its part", func() bool { return p.said("lease lost") > 0 })
	}
	w.end()
	s.settled()
	s.alike(a, b)
	if r := s.audit(); int64(r.Decisions) != w.n {
		t.Errorf("%d decisions of %d contexts", r.Decisions, w.n)
	}
}

// TestKafkaRequestsApart asks each of two deciders on a server of its own: who does not
// own the partition cannot ask the other one, and says what to do.
func TestKafkaRequestsApart(t *testing.T) {
	s := newBrokered(t, 2, "--listen", "127.0.0.1:0")
	a := s.decider().ready()
	a.owns(2)
	b := s.decider().ready()
	a.owns(1)
	b.owns(1)
	var decided, refused int
	for _, p := range []*process{a, b} {
		user, err := nats.Dial(p.answersAt(), "test", nats.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer user.Close()
		for i := range 10 {
			code, reply := say(t, user.Bus(), "shop.decide", fmt.Sprintf(`{"id":"r%d","actions":["x","y"]}`, i))
			switch {
			case code == 0:
				decided++
			case code == 503 && strings.Contains(reply, "--nats URL") && strings.Contains(reply, "shop.contexts"):
				refused++
			default:
				t.Errorf("%d %s", code, reply)
			}
		}
		// anybody may decide it
		if code, reply := say(t, user.Bus(), "shop.decide", `{"actions":["x","y"]}`); code != 0 {
			t.Errorf("%d %s", code, reply)
		}
	}
	if decided != 10 || refused != 10 {
		t.Errorf("%d decided, %d refused, of 10 that were asked of both", decided, refused)
	}
	a.stop(patience)
	b.stop(patience)
}
