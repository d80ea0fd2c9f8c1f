package kafka

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"hindsight/pkg/stream/lease"
)

// groupTimes are short: the brokers of these tests allow that.
var groupTimes = GroupOptions{Heartbeat: 100 * time.Millisecond, Session: 1500 * time.Millisecond,
	Rebalance: 1500 * time.Millisecond, Backoff: 50 * time.Millisecond}

// office is a topic and the members of a group that share it.
type office struct {
	t       *testing.T
	cluster *kfake.Cluster // nil: real brokers
	brokers []string
	times   GroupOptions // zero: groupTimes
	topic   string

	mu     sync.Mutex
	work   map[int]string // who works on what
	begun  map[int]int    // how often a run of a partition began
	doubly bool           // two may work on one partition: one of them is cut off
	lost   map[string]int // runs that ended with ErrLost
	slow   time.Duration  // a clean stop takes so long
}

func newOffice(t *testing.T, partitions int32) *office {
	t.Helper()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(2), kfake.SeedTopics(partitions, "m.contexts"),
		kfake.GroupMinSessionTimeout(100*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	return &office{t: t, cluster: cluster, brokers: cluster.ListenAddrs(), topic: "m.contexts", work: map[int]string{},
		begun: map[int]int{}, lost: map[string]int{}}
}

// cable is the network of one member.
type cable struct{ cut atomic.Bool }

var errCut = errors.New("the network is cut")

func (c *cable) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if c.cut.Load() {
		return nil, errCut
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, address)
	if err == nil {
		conn = &cableConn{Conn: conn, cable: c}
	}
	return conn, err
}

// cableConn swallows what is sent while the cable is cut.
type cableConn struct {
	net.Conn
	cable *cable
}

func (c *cableConn) Write(b []byte) (int, error) {
	if c.cable.cut.Load() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

// member joins the group, until stop is called, which waits for its end.
func (o *office) member(who string, c *cable) (stop func()) {
	ctx, cancel := context.WithCancel(o.t.Context())
	times := o.times
	if times == (GroupOptions{}) {
		times = groupTimes
	}
	g := newGroup(Options{Brokers: o.brokers, Dial: c.dial, ClientID: who, Logger: slog.New(slog.DiscardHandler)},
		"m.deciders", o.topic, times)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := g.Run(ctx, o.run(who)); err != nil {
			o.t.Errorf("%s: %v", who, err)
		}
	}()
	stop = sync.OnceFunc(func() { cancel(); <-done })
	o.t.Cleanup(stop)
	return stop
}

func (o *office) run(who string) func(context.Context, int) error {
	return func(ctx context.Context, p int) error {
		o.mu.Lock()
		if other := o.work[p]; other != "" && !o.doubly {
			o.t.Errorf("%s takes partition %d from %s", who, p, other)
		}
		o.work[p] = who
		o.begun[p]++
		slow := o.slow
		o.mu.Unlock()
		<-ctx.Done()
		if slow > 0 {
			<-time.After(slow)
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		if errors.Is(context.Cause(ctx), lease.ErrLost) {
			o.lost[who]++
		}
		if o.work[p] == who {
			delete(o.work, p)
		}
		return nil
	}
}

// shares returns how many partitions each member works on.
func (o *office) shares() map[string]int {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := map[string]int{}
	for _, who := range o.work {
		n[who]++
	}
	return n
}

// until waits until the partitions are shared so, and returns how long that took.
func (o *office) until(when string, want ...int) time.Duration {
	o.t.Helper()
	began := time.Now()
	for {
		var got []int
		for _, n := range o.shares() {
			got = append(got, n)
		}
		if slices.Sort(got); slices.Equal(got, want) {
			return time.Since(began)
		}
		if time.Since(began) > 40*time.Second {
			o.t.Fatalf("%s: shared %v, want %v", when, o.shares(), want)
		}
		<-time.After(2 * time.Millisecond)
	}
}

func (o *office) starts() map[int]int {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := map[int]int{}
	for p, k := range o.begun {
		n[p] = k
	}
	return n
}

// TestGroupShares lets members come, go and die: partitions are shared evenly, never
// worked on by two, taken over in time, and those that stay are not touched.
func TestGroupShares(t *testing.T) {
	before := goleak.IgnoreCurrent()
	o := newOffice(t, 4)
	o.slow = 50 * time.Millisecond
	stopA := o.member("a", &cable{})
	t.Logf("the first: %v", o.until("alone", 4))
	stopB := o.member("b", &cable{})
	t.Logf("a second: %v", o.until("two", 2, 2))
	if s := o.starts(); s[0]+s[1]+s[2]+s[3] != 6 {
		t.Errorf("two partitions moved, and these runs began: %v", s)
	}
	stopC := o.member("c", &cable{})
	t.Logf("a third: %v", o.until("three", 1, 1, 2))
	was := o.starts()
	if n := was[0] + was[1] + was[2] + was[3]; n != 7 {
		t.Errorf("one partition moved, and these runs began: %v", was)
	}
	stopC()
	t.Logf("one went: %v", o.until("one went", 2, 2))
	stopB()
	t.Logf("another went: %v", o.until("another went", 4))
	stopA()
	o.until("none")
	o.cluster.Close()
	goleak.VerifyNone(t, before)
}

// TestGroupMemberDies cuts a member off: after the session the others have its part,
// and it knows that it has lost it. When its network is back it gets a part again.
func TestGroupMemberDies(t *testing.T) {
	t.Parallel()
	o := newOffice(t, 2)
	o.doubly = true // who is cut off works until its time is over
	o.member("a", &cable{})
	o.until("alone", 2)
	var network cable
	o.member("b", &network)
	o.until("two", 1, 1)
	network.cut.Store(true)
	took := o.until("a has all", 2)
	t.Logf("taken over after %v; the session is %v", took, groupTimes.Session)
	if o.shares()["a"] != 2 {
		t.Errorf("shared %v", o.shares())
	}
	for {
		o.mu.Lock()
		lost := o.lost["b"]
		o.mu.Unlock()
		if lost == 1 {
			break
		}
		<-time.After(5 * time.Millisecond)
	}
	o.mu.Lock()
	o.doubly = false
	o.mu.Unlock()
	network.cut.Store(false)
	o.until("back", 1, 1)
}

// TestGroupHiccups ends generations in every way a coordinator can; none of the runs
// is touched by that.
func TestGroupHiccups(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		key  kmsg.Key
		err  *kerr.Error
	}{
		{"a heartbeat meets a coordinator that loads", kmsg.Heartbeat, kerr.CoordinatorLoadInProgress},
		{"a coordinator that is none", kmsg.Heartbeat, kerr.NotCoordinator},
		{"a join meets a coordinator that loads", kmsg.JoinGroup, kerr.CoordinatorLoadInProgress},
		{"a coordinator is not known", kmsg.FindCoordinator, kerr.CoordinatorNotAvailable},
		{"a rebalance", kmsg.SyncGroup, kerr.RebalanceInProgress},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := newOffice(t, 2)
			o.member("a", &cable{})
			o.until("alone", 2)
			if c.key != kmsg.Heartbeat {
				o.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Heartbeat}, Err: kerr.NotCoordinator, Count: 1})
			}
			if err := o.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{c.key}, Err: c.err, Count: 2}).Wait(t.Context(),
				2); err != nil {
				t.Fatal(err)
			}
			o.member("b", &cable{})
			o.until("two", 1, 1)
			if s := o.starts(); s[0]+s[1] != 3 {
				t.Errorf("one partition moved, and these runs began: %v", s)
			}
		})
	}
}

// TestGroupWaitsForOthers holds that a member whose question, to join again, is not yet
// answered keeps what it has for as long as others have to join beside the session: the
// coordinator waits for them. Without a question the session is all.
func TestGroupWaitsForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		times := GroupOptions{Heartbeat: 5 * time.Millisecond, Session: 300 * time.Millisecond,
			Rebalance: 300 * time.Millisecond}
		for _, c := range []struct {
			asks        bool
			least, most time.Duration
		}{{false, times.Session, times.Session + times.Rebalance}, {true, times.Session + times.Rebalance,
			time.Minute}} {
			ours, theirs := net.Pipe()
			go func() { _, _ = io.Copy(io.Discard, theirs) }()
			link := newGroupLink(func(context.Context, string, string) (net.Conn, error) { return ours, nil })
			conn, err := link.Dial(t.Context(), "tcp", "coordinator")
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			if c.asks {
				if _, err := conn.Write([]byte("may I join?")); err != nil {
					t.Fatal(err)
				}
			}
			ctx, stop := context.WithCancel(t.Context())
			lost := make(chan time.Duration, 1)
			m := &groupMember{g: &Group{o: times}, log: slog.New(slog.DiscardHandler), ctx: ctx, link: link,
				mine: map[int]bool{0: true}, hands: map[int]*groupHand{0: {stop: func(error) {
					lost <- time.Since(began)
				}}}}
			done := make(chan error)
			go func() { done <- m.watch() }()
			if after := <-lost; after < c.least || after > c.most {
				t.Errorf("a question is out: %v; the part was given up after %v", c.asks, after)
			}
			stop()
			if err := <-done; err != nil {
				t.Error(err)
			}
			ours.Close()
			theirs.Close()
		}
	})
}

// TestGroupTells holds that what keeps a member out of its group is told once, and again when it was something else or
// the member was in the group meanwhile.
func TestGroupTells(t *testing.T) {
	var log bytes.Buffer
	m := &groupMember{g: &Group{topic: "t"}, log: slog.New(slog.NewTextHandler(&log, nil))}
	for i, x := range []struct {
		text string
		err  error
		join bool
		told int
	}{{"away", errCut, false, 1}, {"away", errCut, false, 1}, {"away", io.EOF, false, 2}, {"refused", io.EOF, false, 3},
		{"refused", io.EOF, true, 4}, {"refused", io.EOF, false, 4}} {
		if x.join {
			m.assigned(&kafkago.Generation{})
		}
		m.tell(x.text, x.err)
		if n := strings.Count(log.String(), "level=WARN"); n != x.told {
			t.Errorf("%d: told %d times, want %d:\n%s", i, n, x.told, log.String())
		}
	}
	if n := strings.Count(log.String(), "standing by"); n != 1 {
		t.Errorf("%d times it stands by:\n%s", n, log.String())
	}
}

// TestGroupOfClient holds that a group commits what the log of its client is told, and asks the brokers that it knows.
func TestGroupOfClient(t *testing.T) {
	c := &Client{o: Options{ClientID: "us"}, log: &Log{}}
	c.cluster.init([]string{"a:1", "b:2"})
	g := c.Group("g", "t", GroupOptions{Partitions: 3}, nil).Reporting("r")
	if g.log != c.log || !slices.Equal(g.access.Brokers, []string{"a:1", "b:2"}) || g.access.ClientID != "us" ||
		g.access.Logger == nil || g.name != "g" || g.topic != "t" || g.o.Partitions != 3 ||
		!slices.Equal(g.reports, []string{"r"}) {
		t.Errorf("%+v", g)
	}
}

// TestReported holds that what was reported of topics is taken once.
func TestReported(t *testing.T) {
	l := &Log{at: map[place]int64{}}
	l.Report("a", 1, 4)
	l.Report("a", 1, 5)
	l.Report("b", 0, 7)
	for i, want := range []map[place]int64{{{Topic: "a", Partition: 1}: 5}, {}} {
		if got := l.reported([]string{"a", "c"}); !maps.Equal(got, want) {
			t.Errorf("%d: %v, want %v", i, got, want)
		}
	}
	if got := l.reported([]string{"b"}); got[place{Topic: "b"}] != 7 {
		t.Errorf("%v", got)
	}
}

// TestGroupCommits holds that a member commits what is reported of its topics, when it has changed, and that one that
// may not join is told which right it needs.
func TestGroupCommits(t *testing.T) {
	o := newOffice(t, 2)
	commits := make(chan string, 9)
	o.cluster.ControlKey(int16(kmsg.OffsetCommit), func(r kmsg.Request) (kmsg.Response, error, bool) {
		o.cluster.KeepControl()
		text := ""
		for _, topic := range r.(*kmsg.OffsetCommitRequest).Topics {
			for _, p := range topic.Partitions {
				text += fmt.Sprintf("%s/%d %d;", topic.Topic, p.Partition, p.Offset)
			}
		}
		commits <- text
		return nil, nil, false
	})
	c := client(t, o.cluster, Options{})
	defer c.Close()
	o.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.JoinGroup}, Err: kerr.GroupAuthorizationFailed, Count: 1})
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- c.Group("g", o.topic, groupTimes, logger).Reporting(o.topic).Run(ctx, o.run("a"))
	}()
	o.until("alone", 2)
	for _, x := range []struct {
		partition, same int
		next            int64
		want            string
	}{{0, 1, 5, "m.contexts/0 5;"}, {1, 0, 3, "m.contexts/1 3;"}, {0, 1, 6, "m.contexts/0 6;"}} {
		c.log.Report("another", 0, x.next)
		if x.want != "m.contexts/0 5;" { // what was committed before
			c.log.Report(o.topic, x.same, map[int]int64{0: 5, 1: 3}[x.same])
		}
		c.log.Report(o.topic, x.partition, x.next)
		if got := <-commits; got != x.want {
			t.Errorf("committed %s, want %s", got, x.want)
		}
	}
	cancel()
	if err := <-done; err != nil || strings.Count(log.String(), "it needs the ACL operation Read on the group g") != 1 {
		t.Errorf("%v\n%s", err, &log)
	}
}

// TestLinkHears holds that a broker was heard when what it answers was sent, that it is waited for until then, and that
// an answer to an older question changes nothing.
func TestLinkHears(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var brokers []net.Conn
		link := newGroupLink(func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			brokers = append(brokers, theirs)
			return ours, nil
		})
		var conns []net.Conn
		for range 2 {
			conn, err := link.Dial(t.Context(), "tcp", "a broker")
			if err != nil {
				t.Fatal(err)
			}
			conns = append(conns, conn)
		}
		ask := func(i int) {
			go func() { _, _ = brokers[i].Read(make([]byte, 1)) }()
			if _, err := conns[i].Write([]byte{1}); err != nil {
				t.Error(err)
			}
		}
		answer := func(i int) {
			go func() { _, _ = brokers[i].Write([]byte{1}) }()
			if n, err := conns[i].Read(make([]byte, 1)); n != 1 || err != nil {
				t.Error(n, err)
			}
		}
		for i, x := range []struct {
			do     func()
			silent time.Duration
			waits  bool
		}{{func() {}, 1, false}, {func() { ask(0) }, 2, true}, {func() { ask(1) }, 3, true},
			{func() { answer(1) }, 1, true}, {func() { answer(0) }, 2, false},
			{func() { conns[0].Close() }, 3, false}} {
			time.Sleep(time.Second)
			if x.do(); link.silent() != x.silent*time.Second || link.waits() != x.waits {
				t.Errorf("%d: silent for %v, waits %v; want %+v", i, link.silent(), link.waits(), x)
			}
		}
		link.cut()
		if _, err := conns[1].Read(make([]byte, 1)); err == nil {
			t.Error("a link that is cut hears")
		}
		if _, err := link.Dial(t.Context(), "tcp", "a broker"); !errors.Is(err, net.ErrClosed) {
			t.Errorf("a link that is cut connects: %v", err)
		}
	})
}

// TestGroupForgets has the coordinator forget a member: it stops at once, knowing that
// it has lost what it had, and joins anew.
func TestGroupForgets(t *testing.T) {
	t.Parallel()
	o := newOffice(t, 2)
	o.member("a", &cable{})
	o.until("alone", 2)
	o.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Heartbeat, kmsg.JoinGroup}, Err: kerr.UnknownMemberID, Count: 2})
	began := time.Now()
	for o.starts()[0] < 2 || o.starts()[1] < 2 {
		if time.Since(began) > time.Minute {
			t.Fatalf("runs began: %v", o.starts())
		}
		<-time.After(5 * time.Millisecond)
	}
	o.until("again", 2)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.lost["a"] != 2 {
		t.Errorf("%d runs knew that they had lost their partition", o.lost["a"])
	}
}

// TestGroupStaysOutside holds that a member stops that cannot join again, though brokers answer it: others may have
// what it had.
func TestGroupStaysOutside(t *testing.T) {
	t.Parallel()
	o := newOffice(t, 1)
	o.times = GroupOptions{Heartbeat: 10 * time.Millisecond, Session: 100 * time.Millisecond,
		Rebalance: 100 * time.Millisecond, Backoff: 10 * time.Millisecond}
	o.member("a", &cable{})
	o.until("alone", 1)
	o.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Heartbeat, kmsg.JoinGroup}, Err: kerr.CoordinatorLoadInProgress,
		Count: -1})
	o.until("stopped")
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.lost["a"] != 1 {
		t.Errorf("%d runs knew that they had lost their partition", o.lost["a"])
	}
}

// TestGroupRunFails holds that a run that cannot go on ends the member, and that its
// part is free at once.
func TestGroupRunFails(t *testing.T) {
	o := newOffice(t, 2)
	want := errors.New("refused")
	g := newGroup(Options{Brokers: o.cluster.ListenAddrs()}, "m.deciders", o.topic, groupTimes)
	err := g.Run(t.Context(), func(ctx context.Context, p int) error {
		if p == 1 {
			return fmt.Errorf("decider: %w", want)
		}
		<-ctx.Done()
		return nil
	})
	if !errors.Is(err, want) {
		t.Error(err)
	}
	o.member("b", &cable{})
	if took := o.until("the other one", 2); took > groupTimes.Session {
		t.Errorf("taken over after %v", took)
	}
}

// TestGroupStopWhileJoining stops a member while the group waits for another one that
// is cut off: it does not wait for that, and leaves no trace.
func TestGroupStopWhileJoining(t *testing.T) {
	before := goleak.IgnoreCurrent()
	o := newOffice(t, 2)
	o.doubly = true
	stopA := o.member("a", &cable{})
	o.until("alone", 2)
	var network cable
	stopB := o.member("b", &network)
	o.until("two", 1, 1)
	joining := make(chan struct{}, 100)
	o.cluster.ControlKey(int16(kmsg.JoinGroup), func(kmsg.Request) (kmsg.Response, error, bool) {
		o.cluster.KeepControl()
		joining <- struct{}{}
		return nil, nil, false
	})
	var named, nameless atomic.Int64
	o.cluster.ControlKey(int16(kmsg.LeaveGroup), func(r kmsg.Request) (kmsg.Response, error, bool) {
		o.cluster.KeepControl()
		q := r.(*kmsg.LeaveGroupRequest)
		id := q.MemberID
		for _, m := range q.Members {
			id += m.MemberID
		}
		if id == "" {
			nameless.Add(1)
		} else {
			named.Add(1)
		}
		return nil, nil, false
	})
	network.cut.Store(true)
	stopC := o.member("c", &cable{})
	<-joining // c
	<-joining // and a
	began := time.Now()
	stopC()
	stopA()
	if took := time.Since(began); took > 2*leaveLimit+time.Second {
		t.Errorf("they left after %v", took)
	}
	if named.Load() == 0 || nameless.Load() > 0 {
		t.Errorf("%d have left by name, %d without one", named.Load(), nameless.Load())
	}
	network.cut.Store(false)
	stopB()
	o.cluster.Close()
	goleak.VerifyNone(t, before)
}

// TestGroupRefuses holds that what never heals ends the member, with what to do.
func TestGroupRefuses(t *testing.T) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "m.contexts"))
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	g := newGroup(Options{Brokers: cluster.ListenAddrs()}, "m.deciders", "m.contexts", groupTimes)
	err = g.Run(t.Context(), func(context.Context, int) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "group.min.session.timeout.ms") {
		t.Error(err)
	}
}
