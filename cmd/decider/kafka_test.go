package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"hindsight/internal/check"
	"hindsight/internal/daemon"
	"hindsight/internal/loop"
	"hindsight/internal/service"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/kafka"
	"hindsight/pkg/stream/kafkatest"
	"hindsight/pkg/stream/nats"
	"hindsight/pkg/stream/natstest"
)

// kafkaSession is the session of the groups in these tests: they wait for its end.
const kafkaSession = 1500 * time.Millisecond

// brokered is a model on brokers, with any number of processes at work.
type brokered struct {
	t          *testing.T
	log        stream.Log
	session    time.Duration
	url, dir   string
	partitions int
	args       []string
}

func newBrokered(t *testing.T, partitions int, more ...string) *brokered {
	t.Helper()
	addrs, _ := kafkatest.Fake(t, 1)
	return newBrokeredOn(t, addrs, kafkaSession, partitions, more...)
}

func newBrokeredOn(t *testing.T, addrs []string, session time.Duration, partitions int, more ...string) *brokered {
	t.Helper()
	s := &brokered{t: t, session: session, dir: t.TempDir(), partitions: partitions}
	s.url = fmt.Sprintf("kafka://%s/?session=%v", strings.Join(addrs, ","), session)
	c, err := kafka.Dial(t.Context(), kafka.Options{Brokers: addrs})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	s.log = c.Log()
	s.args = append([]string{"--log", s.url, "--model", writeModel(t, s.dir, shop), "--seed-file", filepath.Join(s.dir, "seed"), "--admin", "127.0.0.1:0"}, more...)
	return s
}

// decider starts a decider that is not waited for.
func (s *brokered) decider(more ...string) *process {
	s.t.Helper()
	return start(s.t, decider(s.t, append(append(slices.Clone(s.args), "--partitions", fmt.Sprint(s.partitions)), more...)...))
}

// metric waits until a line of a process's metrics is there.
func (p *process) metric(line string) {
	p.t.Helper()
	addr, want := p.admin(), regexp.MustCompile("(?m)^"+line+"$")
	eventually(p.t, "the metric "+line, func() bool {
		_, page := p.page(addr, "/metrics")
		return want.MatchString(page)
	})
}

// owns waits until a process decides so many partitions.
func (p *process) owns(n int) {
	p.t.Helper()
	p.metric(fmt.Sprintf(`hindsight_at_work{role="decider"} %d`, n))
}

// pipeline writes contexts to all partitions, reads the decisions, and writes most of
// their outcomes, some twice, until it is stopped.
type pipeline struct {
	s     *brokered
	ctx   context.Context
	stop  context.CancelFunc
	group sync.WaitGroup
	n     int64 // contexts
}

func (s *brokered) pipeline(seed uint64) *pipeline {
	w := &pipeline{s: s}
	w.ctx, w.stop = context.WithCancel(s.t.Context())
	w.group.Go(func() { w.write(rand.New(rand.NewPCG(seed, 1))) })
	for p := range s.partitions {
		w.group.Go(func() { w.answer(p, rand.New(rand.NewPCG(seed, uint64(2+p)))) })
	}
	s.t.Cleanup(w.end)
	return w
}

func (w *pipeline) writers(topic string) (all []stream.Appender) {
	for p := range w.s.partitions {
		a, err := w.s.log.Writer(w.s.t.Context(), topic, p, nil)
		if err != nil {
			w.s.t.Error(err)
			return nil
		}
		all = append(all, a)
	}
	return all
}

func (w *pipeline) put(a stream.Appender, value []byte) {
	if _, err := a.Append(w.s.t.Context(), &stream.Record{Value: value}); err != nil {
		w.s.t.Error(err)
	}
}

func (w *pipeline) flush(all []stream.Appender) {
	for _, a := range all {
		if err := a.Flush(w.s.t.Context()); err != nil {
			w.s.t.Error(err)
		}
		a.Close()
	}
}

// write writes contexts, to any partition.
func (w *pipeline) write(r *rand.Rand) {
	contexts := w.writers("shop.contexts")
	defer w.flush(contexts)
	for ; w.ctx.Err() == nil; w.n++ {
		w.put(contexts[r.IntN(len(contexts))], context1(r, fmt.Sprintf("c%d", w.n)))
		<-time.After(3 * time.Millisecond)
	}
}

// answer reads the decisions of a partition and writes outcomes. Several of one round
// are in one partition, so that they keep their order.
func (w *pipeline) answer(p int, r *rand.Rand) {
	outcomes := w.writers("shop.outcomes")
	defer w.flush(outcomes)
	reader, err := w.s.log.Read(w.ctx, "shop.decisions", p, stream.Earliest)
	if err != nil {
		w.s.t.Error(err)
		return
	}
	defer reader.Close()
	var batch []stream.Record
	for {
		if batch, err = reader.Next(w.ctx, batch[:0]); err != nil {
			return
		}
		for i := range batch {
			var d codec.Decision
			if batch[i].Type != "" {
				continue
			}
			if err := codec.ParseDecision(&d, batch[i].Value); err != nil {
				w.s.t.Error(err)
			}
			for range []int{0, 1, 1, 2}[r.IntN(4)] {
				w.put(outcomes[loop.PartitionOf([]byte(d.ID), len(outcomes))], fmt.Appendf(nil, `{"id":%q,"loss":%g}`, d.ID, float64(r.IntN(5))/4))
			}
		}
	}
}

func (w *pipeline) end() { w.stop(); w.group.Wait() }

// settled waits until every record has its fate.
func (s *brokered) settled() {
	s.t.Helper()
	eventually(s.t, "every record has its fate", func() bool {
		r, err := check.Run(s.t.Context(), s.log, "shop", s.partitions, check.Options{Unfinished: true})
		if err != nil {
			s.t.Error(err)
			return true
		}
		return r.Waiting == 0 && r.Unread == 0
	})
}

// audit holds the logs against every promise.
func (s *brokered) audit() *check.Report {
	s.t.Helper()
	seed, err := daemon.SeedFile(filepath.Join(s.dir, "seed"))
	if err != nil {
		s.t.Fatal(err)
	}
	r, err := check.Run(s.t.Context(), s.log, "shop", s.partitions, check.Options{Seed: seed, Rules: rulesOf, Dedup: 100_000})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, v := range r.Violations {
		s.t.Error(v)
	}
	verifyLogs(s.t.Context(), s.t, s.log, "shop", seed)
	s.t.Log(figures(r))
	return r
}

// alike stops the deciders and holds that all have the same learner, to the byte.
func (s *brokered) alike(all ...*process) {
	s.t.Helper()
	_, end, err := s.log.Bounds(s.t.Context(), service.TopicsOf("shop").Feedback, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, p := range all {
		p.metric(`hindsight_feedback_lag_records{partition="\d+"} 0`)
		p.signal(syscall.SIGTERM)
	}
	most, sums := "", map[string]bool{}
	for _, p := range all {
		if code := p.wait(patience); code != 0 {
			s.t.Fatalf("it ended with %d:\n%s", code, p.log())
		}
		lines := stopLine.FindAllStringSubmatch(p.log(), -1)
		if len(lines) == 0 {
			s.t.Fatalf("it does not say what it has learned:\n%s", p.log())
		}
		last := lines[len(lines)-1]
		if most == "" {
			most = last[1]
		}
		if last[1] != most {
			s.t.Errorf("one has learned through %s, another one through %s of %d", most, last[1], end)
		}
		sums[last[2]] = true
	}
	if len(sums) != 1 {
		s.t.Errorf("%d learners of %d processes", len(sums), len(all))
	}
}

// TestKafkaShared runs two deciders on one and on three partitions: they share them
// through the group, take over from each other after kill -9 and SIGTERM, answer
// requests on a NATS server beside, and have one learner.
func TestKafkaShared(t *testing.T) {
	for _, partitions := range []int{1, 3} {
		t.Run(fmt.Sprint("partitions=", partitions), func(t *testing.T) {
			server := natstest.Start(t, natstest.Options{})
			kafkaShared(newBrokered(t, partitions, "--nats", server.URL()), server)
		})
	}
}

// TestKafkaRealShared does the same on a real broker, with the shortest session that
// brokers grant.
func TestKafkaRealShared(t *testing.T) {
	cluster, server := kafkatest.Start(t, kafkatest.Options{}), natstest.Start(t, natstest.Options{})
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
		if code, reply := say(t, user.Bus(), "shop.decide", fmt.Sprintf(`{"id":"q%d","actions":["x","y"]}`, i)); code != 0 {
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

var moved = regexp.MustCompile(`(?m)time=(\S+) .*msg="(handing a partition|partition taken).*role=decider.* partition=(\d+)`)

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
		if at, err := time.Parse(time.RFC3339, m[1]); err == nil && m[2] == "partition taken" && m[3] == partition && at.After(given) {
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
		t.Skip("without -short")
	}
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
		if log := p.log(); !strings.Contains(log, "lease lost") {
			t.Errorf("who was paused does not say that it lost its part:\n%s", log)
		}
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
	urls := regexp.MustCompile(`msg=ready .*url=(\S+)`)
	var decided, refused int
	for _, p := range []*process{a, b} {
		m := urls.FindStringSubmatch(p.log())
		if m == nil {
			t.Fatalf("it does not say where it answers:\n%s", p.log())
		}
		user, err := nats.Dial(m[1], "test", nats.Options{})
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
		if code, reply := say(t, user.Bus(), "shop.decide", `{"actions":["x","y"]}`); code != 0 { // anybody may decide it
			t.Errorf("%d %s", code, reply)
		}
	}
	if decided != 10 || refused != 10 {
		t.Errorf("%d decided, %d refused, of 10 that were asked of both", decided, refused)
	}
	a.stop(patience)
	b.stop(patience)
}
