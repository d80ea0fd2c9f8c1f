package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"hindsight/internal/daemon"
	"hindsight/internal/testkit/locked"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/kafka"
	"hindsight/pkg/stream/kafkatest"
	"hindsight/pkg/stream/nats"
	"hindsight/pkg/stream/natstest"
)

// newGuarded is a system of a user with a password, in a cluster whose connections can
// be hurt. The test itself is another, behind them, that may do everything.
func newGuarded(t *testing.T) (*brokered, *kafkatest.Cluster) {
	t.Helper()
	k := kafkatest.Start(
		t, kafkatest.Options{ACL: true, Proxied: true, Users: []kafkatest.User{{Name: "shop", Password: "secret-1"}}})
	s := newBrokeredOn(t, k.Internal(), kafkaSession, 2)
	s.args = slices.DeleteFunc(s.args, func(a string) bool { return a == "--log" || a == s.url })
	s.args = append(s.args, "--log", "kafka://"+strings.Join(k.Brokers(), ",")+"/?session=2s", "--kafka-user", "shop",
		"--kafka-password-file", s.password("secret-1"), "--nats", "none")
	return s, k
}

// password writes a file with one.
func (s *brokered) password(is string) string {
	s.t.Helper()
	path := filepath.Join(s.dir, is)
	if err := os.WriteFile(path, []byte(is), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return path
}

// rights of the service's user.
func allowShop(k *kafkatest.Cluster, topics ...string) {
	for _, topic := range topics {
		k.Allow("shop", kafkatest.Topic("shop."+topic), kmsg.ACLOperationRead, kmsg.ACLOperationWrite,
			kmsg.ACLOperationDescribe, kmsg.ACLOperationDescribeConfigs, kmsg.ACLOperationCreate,
			kmsg.ACLOperationDelete)
	}
}

func allowGroup(k *kafkatest.Cluster, group string) {
	k.Allow("shop", kafkatest.Group(group), kmsg.ACLOperationRead, kmsg.ACLOperationDescribe)
}

// TestKafkaRealFaults takes from a system what it needs of its brokers, at the start and
// under load: it says by name what it lacks, in its log and on /readyz, and goes on by
// itself when it is there again. In the end every context has its one decision.
func TestKafkaRealFaults(t *testing.T) {
	kafkatest.Heavy(t)
	s, k := newGuarded(t)
	proxy := k.Proxy(1)
	refused := func(name, says string, more ...string) {
		t.Helper()
		p := s.decider(more...)
		if code := p.wait(patience); code != 1 || !strings.Contains(p.log(), says) {
			t.Errorf("%s: exit code %d, not %q:\n%s", name, code, says, p.log())
		}
		t.Logf("%s: %s", name, lastLine(p))
	}
	refused("no rights", "not authorized")
	refused("wrong password", "authentication failed", "--kafka-password-file", s.password("secret-2"))
	proxy.Drop()
	refused("no broker", "connection refused")
	proxy.Hold()
	refused("a broker that does not answer", "timeout")
	proxy.Heal()
	allowShop(k, shopTopics...)
	allowGroup(k, "shop.joiner")
	server := natstest.Start(t, natstest.Options{})
	user, err := nats.Dial(server.URL(), "test", nats.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer user.Close()
	d := s.decider("--nats", server.URL())
	eventually(t, "a right on the group is wanting", func() bool {
		return strings.Contains(d.log(), "ACL operation Read on the group shop.deciders")
	})
	d.becomes(d.admin(), 503, "")
	allowGroup(k, "shop.deciders")
	d.ready()
	w := s.pipeline(testSeed(t))
	for i, f := range []struct {
		name       string
		take, give func()
		says, logs string // of readyz, and of the log, "": the same
	}{
		{"connections are lost", proxy.Drop, proxy.Heal, "connection refused", ""},
		{"the network drops packets", proxy.Hold, proxy.Heal, "timeout", "no broker has answered"},
		{"no right to decisions", func() { k.Disallow("shop", kafkatest.Topic("shop.decisions")) }, func() {
			allowShop(k, "decisions")
		}, "not authorized", ""},
		{"no right to feedback", func() { k.Disallow("shop", kafkatest.Topic("shop.feedback")) }, func() {
			allowShop(k, "feedback")
		}, "not authorized", ""},
		{"no right to contexts", func() { k.Disallow("shop", kafkatest.Topic("shop.contexts")) }, func() {
			allowShop(k, "contexts")
		}, "not authorized", ""},
		{"another password", func() {
			k.SetPassword("shop", "secret-3")
			proxy.Drop()
			proxy.Heal()
		}, func() { k.SetPassword("shop", "secret-1") }, "authentication failed", ""},
	} {
		d.becomes(d.admin(), 200, "")
		began := time.Now()
		f.take()
		d.becomes(d.admin(), 503, f.says)
		_, page := d.page(d.admin(), "/readyz")
		told := time.Since(began)
		logs := cmp.Or(f.logs, f.says)
		eventually(t, "the log says "+logs, func() bool {
			return strings.Contains(strings.Join(d.since(began), "\n"), logs)
		})
		ask := fmt.Sprintf(`{"id":"asked%d","actions":["x","y"]}`, i)
		meanwhile := tryToAsk(t, user.Bus(), ask)
		began = time.Now()
		f.give()
		d.becomes(d.admin(), 200, "")
		was := s.next("shop.decisions")
		eventually(t, "decisions go on", func() bool { return s.next("shop.decisions") > was })
		t.Logf("%s: after %v readyz says %q; a request: %s; all is well %v after it ended", f.name,
			told.Round(time.Millisecond), strings.TrimSpace(page), meanwhile, time.Since(began).Round(time.Millisecond))
		eventually(t, "who asks again has a decision", func() bool { return tryToAsk(t, user.Bus(), ask) == "decided" })
	}
	w.end()
	s.settled()
	if r := s.audit(); int64(r.Decisions) != w.n+6 || r.Requests != 6 {
		t.Errorf("%d decisions of %d contexts, %d of 6 requests", r.Decisions, w.n, r.Requests)
	}
	for _, word := range []string{"secret-1", "secret-3"} {
		if strings.Contains(strings.ReplaceAll(strings.Join(d.since(time.Time{}), "\n"), s.dir, ""), word) {
			t.Errorf("the log shows a password, %s", word)
		}
	}
	d.stop(patience)
	leavesNothing(s, proxy)
	topicDeleted(s, k, s.decider().ready())
}

// tryToAsk asks for a decision that may not be made now.
func tryToAsk(t *testing.T, bus stream.Bus, data string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	reply, headers, err := bus.Request(ctx, "shop.decide", []byte(data))
	switch code := errorCode(headers); {
	case errors.Is(err, stream.ErrNoResponder):
		return "nobody answers"
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer in time"
	case err == nil && code == 0:
		return "decided"
	case err == nil && code == 503:
		return "503"
	default:
		t.Errorf("a request: %v %s", err, reply)
		return ""
	}
}

// leavesNothing runs two deciders with their joiners in this process, with requests on a
// server beside, and stops them: no goroutine and no connection stays.
func leavesNothing(s *brokered, proxy *kafkatest.Proxy) {
	t := s.t
	t.Helper()
	server := natstest.Start(t, natstest.Options{})
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	eventually(t, "the process's connections are gone", func() bool { return proxy.Open() == 0 })
	before := runtime.NumGoroutine()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var both sync.WaitGroup
	for range 2 {
		log := &locked.Buffer{}
		env := &daemon.Env{Args: append(slices.Clone(s.args), "--nats", server.URL()),
			Getenv: func(string) string { return "" }, Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: log}
		both.Go(func() {
			if code := daemon.Run(ctx, env, command(env)); code != 0 {
				t.Errorf("exit code %d:\n%s", code, log)
			}
		})
		eventually(t, "a decider has its part", func() bool { return strings.Contains(log.String(), "msg=ready ") })
	}
	was := s.next("shop.decisions")
	put(t, s.log, "shop.contexts", 0, `{"actions":["x","y"]}`)
	eventually(t, "it is decided", func() bool { return s.next("shop.decisions") > was })
	most := proxy.Open()
	cancel()
	both.Wait()
	t.Logf("%d goroutines, %d connections at work", runtime.NumGoroutine(), most)
	if most == 0 {
		t.Error("no connection was counted")
	}
	after, stacks := 0, make([]byte, 1<<20)
	for limit := time.Now().Add(5 * time.Second); time.Now().Before(limit); runtime.Gosched() {
		if after = runtime.NumGoroutine(); after <= before && proxy.Open() == 0 {
			return
		}
	}
	t.Errorf("%d goroutines before, %d after, %d connections:\n%s", before, after, proxy.Open(),
		stacks[:runtime.Stack(stacks, true)])
}

// topicDeleted deletes a topic under a decider, which says so and does not make it
// again, nor when it is started again.
func topicDeleted(s *brokered, k *kafkatest.Cluster, d *process) {
	t := s.t
	t.Helper()
	k.DeleteTopic("shop.decisions")
	put(t, s.log, "shop.contexts", 0, `{"id":"last","actions":["x","y"]}`)
	d.becomes(d.admin(), 503, "no such topic or partition")
	_, page := d.page(d.admin(), "/readyz")
	t.Logf("a topic deleted: readyz says %q", strings.TrimSpace(page))
	d.signal(syscall.SIGTERM)
	d.wait(patience)
	again := s.decider()
	if code := again.wait(patience); code != 1 || !strings.Contains(again.log(),
		"shop.decisions is gone, but shop.snapshots is there") {
		t.Errorf("started again: exit code %d:\n%s", code, again.log())
	}
	t.Log(lastLine(again))
	if _, err := s.log.Partitions(t.Context(), "shop.decisions"); err == nil {
		t.Error("it made the topic again")
	}
}

// since returns the lines of a process's log from a moment on.
func (p *process) since(began time.Time) (lines []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, line := range p.lines {
		text, _, _ := strings.Cut(strings.TrimPrefix(line, "time="), " ")
		if at, err := time.Parse(time.RFC3339, text); err == nil && at.Before(began.Truncate(time.Millisecond)) {
			continue
		}
		lines = append(lines, line)
	}
	return lines
}

// TestKafkaRealDiskFull fills the broker's disk, which ends the broker, under a system
// at work: it says that nobody is there, waits, and when there is room and a broker
// again it goes on with all that was acknowledged.
func TestKafkaRealDiskFull(t *testing.T) {
	kafkatest.Heavy(t)
	t.Parallel() // on a cluster of its own
	k := kafkatest.Start(t, kafkatest.Options{DiskMB: 64})
	s := newBrokeredOn(t, k.Brokers(), kafkaSession, 1, "--nats", "none")
	d := s.decider().ready()
	// users wait as long as it takes
	c, err := kafka.Dial(t.Context(), kafka.Options{Brokers: k.Brokers(), AckTimeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s.log = c.Log()
	w := s.pipeline(testSeed(t))
	after(d, 300*time.Millisecond)
	fillDisk(t, nil, k.DataDir(1))
	<-k.Ended(1)
	d.becomes(d.admin(), 503, "connection refused")
	_, page := d.page(d.admin(), "/readyz")
	if err := os.Remove(filepath.Join(k.DataDir(1), "ballast")); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	k.Restart(1)
	up := time.Since(began)
	d.becomes(d.admin(), 200, "")
	t.Logf("readyz said %q; the broker was up after %v, and the system %v", strings.TrimSpace(page),
		up.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
	after(d, 300*time.Millisecond)
	w.end()
	s.settled()
	d.stop(patience)
	if r := s.audit(); int64(r.Decisions) != w.n {
		t.Errorf("%d decisions of %d contexts", r.Decisions, w.n)
	}
}
