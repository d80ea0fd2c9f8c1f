package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"hindsight/pkg/codec"
)

// attacksEnv is how long TestAttacks takes, 2m or 1h; without it the test is left out.
const attacksEnv = "HINDSIGHT_ATTACKS"

// attacker does what anybody without a name may try at the address of an embedded server.
type attacker struct {
	t     *testing.T
	url   string
	admin string
	end   time.Time // of the whole
	asked [][]byte  // its last requests that were decided
	n     int
}

// TestAttacks starts a decider at its defaults and lets one client do all that is known to hurt a
// server, one thing after the other, while another asks and reports as it should. The second is
// served, memory stays within what LIMITS says, and verify finds nothing.
func TestAttacks(t *testing.T) {
	if os.Getenv(attacksEnv) == "" {
		t.Skipf("takes long: set %s=2m, or 1h", attacksEnv)
	}
	length, err := time.ParseDuration(os.Getenv(attacksEnv))
	if err != nil {
		t.Fatalf("%s: %v", attacksEnv, err)
	}
	dir := filepath.Join(t.TempDir(), "log")
	args := []string{"--log", "embedded:" + dir, "--model", writeModel(t, t.TempDir(), "name: shop\nversion: 1\n")}
	p := start(t, decider(t, append(args, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")...)).ready()
	a := &attacker{t: t, url: p.reached(dir).URL, admin: p.admin(), end: time.Now().Add(length)}
	b := &behaving{t: t, url: a.url, end: make(chan struct{})}
	var group sync.WaitGroup
	group.Go(b.run)
	for turn := 0; time.Now().Before(a.end); turn++ {
		for _, attack := range a.attacks() {
			before := b.seen()
			began := time.Now()
			said := attack.run()
			now := b.seen()
			if turn == 0 || now.failed > before.failed {
				t.Logf("%s, %.1f s: %s; beside it %d served, %d not; at most %d MiB", attack.name,
					time.Since(began).Seconds(),
					said, now.served-before.served, now.failed-before.failed, p.resident()>>20)
			}
			select {
			case <-p.ended:
				t.Fatalf("%s: it has ended: %v\n%s", attack.name, p.cmd.ProcessState, p.log())
			default:
			}
		}
		for _, topic := range []string{"decisions", "outcomes"} {
			p.metric(fmt.Sprintf(`hindsight_joiner_lag_records\{topic=%q\} \d`, topic)) // fewer than ten
		}
	}
	close(b.end)
	group.Wait()
	b.judge()
	if most := p.resident(); most > defaultBound {
		t.Errorf("at most %d MiB, the bound is %d MiB", most>>20, defaultBound>>20)
	}
	p.stop(patience)
	out, most, err := output(program(t, "replayer", append([]string{"verify", "--name", "shop"}, args[0], args[1])...))
	t.Logf("verify, at most %d MiB: %s", most>>20, out)
	if err != nil {
		t.Errorf("replayer verify: %v", err)
	}
}

// defaultBound is what a decider at its defaults takes at most, whatever its users do.
const defaultBound = 5 << 30

type attack struct {
	name string
	run  func() (said string)
}

func (a *attacker) attacks() []attack {
	return []attack{
		{"fresh names of actions", a.freshNames},
		{"decided rounds asked again", a.askAgain},
		{"headers that cannot be stored", a.badHeaders},
		{"deep subscriptions", a.deepSubscriptions},
		{"idle connections to the admin port", a.idle},
		{"large outcomes of no round", a.largeOutcomes},
		{"requests whose answers nobody reads", a.deaf},
		{"connections", a.connections},
		{"nonsense", a.nonsense},
	}
}

// moment is how long an attack of no fixed size goes on.
const moment = 5 * time.Second

// freshNames asks with actions that nobody has seen.
func (a *attacker) freshNames() string {
	const n = 500
	answered := a.ask(n, func(int) []byte {
		a.n++
		data := fmt.Appendf(nil, `{"id":"fresh%d","actions":["a%d","b%d"]}`, a.n, a.n, a.n)
		a.asked = append(a.asked, data)
		return data
	})
	a.asked = a.asked[max(0, len(a.asked)-3000):]
	return fmt.Sprintf("%d of %d answered", answered, n)
}

// askAgain asks ten times at once for the last rounds that were decided.
func (a *attacker) askAgain() string {
	n := 10 * len(a.asked)
	answered := a.ask(n, func(i int) []byte { return a.asked[i%len(a.asked)] })
	return fmt.Sprintf("%d of %d answered with a decision", answered, n)
}

// ask sends requests all at once, and returns how many got a decision within some seconds.
func (a *attacker) ask(n int, data func(i int) []byte) (answered int) {
	c := a.dial()
	defer c.Close()
	inbox := c.NewInbox()
	sub, err := c.SubscribeSync(inbox)
	if err != nil {
		a.t.Fatal(err)
	}
	_ = sub.SetPendingLimits(-1, -1)
	for i := range n {
		_ = c.PublishRequest("shop.decide", inbox, data(i))
	}
	for range n {
		m, err := sub.NextMsg(moment)
		if err != nil {
			break
		}
		if m.Header.Get("Nats-Service-Error-Code") == "" {
			answered++
		}
	}
	return answered
}

func (a *attacker) dial() *natsgo.Conn {
	a.t.Helper()
	var c *natsgo.Conn
	eventually(a.t, "a connection", func() bool {
		var err error
		c, err = natsgo.Connect(a.url, natsgo.MaxReconnects(-1),
			natsgo.ErrorHandler(func(*natsgo.Conn, *natsgo.Subscription, error) {}))
		return err == nil
	})
	return c
}

// raw sends bytes over a connection of its own, as a client library would not.
func (a *attacker) raw(data string) net.Conn {
	c, err := net.Dial("tcp", strings.TrimPrefix(a.url, "nats://"))
	if err != nil {
		return nil
	}
	_ = c.SetDeadline(time.Now().Add(2 * moment))
	_, _ = fmt.Fprint(c, "CONNECT {\"verbose\":false,\"headers\":true}\r\n"+data)
	return c
}

// badHeaders reports with headers that are too long, and with names that no header may have.
func (a *attacker) badHeaders() string {
	sent := 0
	for end := time.Now().Add(moment); time.Now().Before(end); sent++ {
		name, value := "a b", "x"
		if sent%2 == 0 {
			name, value = "long", strings.Repeat("h", 70<<10)
		}
		header := "NATS/1.0\r\n" + name + ": " + value + "\r\n\r\n"
		body := fmt.Sprintf(`{"id":"none%d","loss":1}`, sent)
		c := a.raw(fmt.Sprintf("HPUB shop.outcome _INBOX.h %d %d\r\n%s%s\r\nPING\r\n", len(header), len(header)+
			len(body), header, body))
		if c != nil {
			c.Close()
		}
		<-time.After(5 * time.Millisecond)
	}
	return fmt.Sprintf("%d sent", sent)
}

// deepSubscriptions sends 15 MB of subjects of many tokens over each of four connections.
func (a *attacker) deepSubscriptions() string {
	var all strings.Builder
	for i := 0; all.Len() < 15<<20; i++ {
		fmt.Fprintf(&all, "SUB _INBOX.%d%s %d\r\n", i, strings.Repeat(".a", 1900), i+1)
	}
	for range 4 {
		if c := a.raw(all.String()); c != nil {
			defer c.Close()
		}
	}
	return "4 connections"
}

// idle holds connections to the admin port, and asks it whether it is well.
func (a *attacker) idle() string {
	address := strings.TrimPrefix(a.admin, "http://")
	for range 200 {
		if c, err := net.Dial("tcp", address); err == nil {
			defer c.Close()
			_, _ = fmt.Fprint(c, "GET /")
		}
	}
	well := 0
	for range 10 {
		if healthy(address) {
			well++
		}
	}
	if well < 10 {
		a.t.Errorf("beside 200 idle connections /healthz answered %d times of 10", well)
	}
	return fmt.Sprintf("/healthz answered %d times of 10", well)
}

// healthy asks /healthz over a new connection.
func healthy(address string) bool {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return false
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(moment))
	_, _ = fmt.Fprint(c, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
	first := make([]byte, 15)
	_, _ = c.Read(first)
	return bytes.HasPrefix(first, []byte("HTTP/1.1 200"))
}

// largeOutcomes reports what no round waits for, as large as it may be and larger: 6 MB are stored each
// time, since an hour has 500 turns and must not fill the store.
func (a *attacker) largeOutcomes() string {
	c := a.dial()
	defer c.Close()
	for i := range 100 {
		a.n++
		size := 60 << 10
		if i%20 == 0 {
			size = 1000 << 10
		}
		_ = c.PublishRequest("shop.outcome", c.NewInbox(), fmt.Appendf(nil, `{"id":"large%d","loss":1,"unknown":"%s"}`,
			a.n, strings.Repeat("u", size)))
	}
	_ = c.Flush()
	return "100 sent"
}

// deaf asks with large contexts over connections that read nothing: 10 MB each time.
func (a *attacker) deaf() string {
	for range 4 {
		var all strings.Builder
		all.WriteString("SUB _INBOX.deaf 1\r\n")
		for range 10 {
			a.n++
			data := fmt.Sprintf(`{"id":"deaf%d","actions":["x","y"],"unknown":"%s"}`, a.n, strings.Repeat("u", 256<<10))
			fmt.Fprintf(&all, "PUB shop.decide _INBOX.deaf %d\r\n%s\r\n", len(data), data)
		}
		if c := a.raw(all.String()); c != nil {
			defer c.Close()
		}
	}
	return "40 sent"
}

// connections opens more than there may be.
func (a *attacker) connections() string {
	opened := 0
	for range 1500 {
		if c := a.raw("PING\r\n"); c != nil {
			defer c.Close()
			opened++
		}
	}
	<-time.After(time.Second)
	return fmt.Sprintf("%d opened", opened)
}

func (a *attacker) nonsense() string {
	c := a.dial()
	defer c.Close()
	for i := range 2000 {
		_ = c.PublishRequest([]string{"shop.decide", "shop.outcome"}[i%2], c.NewInbox(),
			[]byte(`{"id":"`+strings.Repeat("[", i)))
	}
	_ = c.Flush()
	return "2000 sent"
}

// behaving is a client that asks, waits for its answer, asks again after a pause when it got none,
// and reports.
type behaving struct {
	t    *testing.T
	url  string
	end  chan struct{}
	mu   sync.Mutex
	took []time.Duration // until the answer, of each round that was served
	tally
}

type tally struct {
	served  int // with a decision, and its outcome was accepted
	again   int // times that it had to ask or report again
	failed  int // rounds given up after ten tries
	refused int
}

func (b *behaving) seen() tally { b.mu.Lock(); defer b.mu.Unlock(); return b.tally }

func (b *behaving) run() {
	c, err := natsgo.Connect(b.url, natsgo.MaxReconnects(-1), natsgo.ReconnectWait(50*time.Millisecond))
	if err != nil {
		b.t.Error(err)
		return
	}
	defer c.Close()
	r := rand.New(rand.NewPCG(1, 2))
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-b.end:
			return
		case <-tick.C:
		}
		context := codec.Context{ID: fmt.Sprintf("well%d", n), Actions: []codec.Action{{Name: "red"}, {Name: "green"}}}
		began := time.Now()
		decided := b.try(c, r, "shop.decide", codec.AppendContextJSON(nil, &context))
		took := time.Since(began)
		reported := decided != nil && b.try(c, r, "shop.outcome", outcomeOf(decided)) != nil
		b.mu.Lock()
		if reported {
			b.served++
			b.took = append(b.took, took)
		} else {
			b.failed++
		}
		b.mu.Unlock()
	}
}

// outcomeOf reports that red is right.
func outcomeOf(decided []byte) []byte {
	var d struct{ ID, Action string }
	_ = json.Unmarshal(decided, &d)
	return fmt.Appendf(nil, `{"id":%q,"loss":%g}`, d.ID, lossUnless("red")(d.Action))
}

// try sends a request up to ten times, each time after a longer pause, as README advises.
func (b *behaving) try(c *natsgo.Conn, r *rand.Rand, subject string, data []byte) []byte {
	for i := range 10 {
		m, err := c.Request(subject, data, 2*time.Second)
		if err == nil && m.Header.Get("Nats-Service-Error-Code") == "" {
			return append(m.Data, ' ')
		}
		b.mu.Lock()
		b.again++
		if err == nil {
			b.refused++
		}
		b.mu.Unlock()
		<-time.After(time.Duration((0.5 + r.Float64()) * float64(20*time.Millisecond<<min(i, 6))))
	}
	return nil
}

func (b *behaving) judge() {
	b.t.Helper()
	slices.Sort(b.took)
	n := len(b.took)
	if n == 0 {
		b.t.Fatal("nobody was served")
	}
	b.t.Logf("%d rounds served, %d not; %d tries more, %d of them after a refusal; half within %v, 99 of 100 "+
		"within %v, all within %v", b.served, b.failed, b.again, b.refused, b.took[n/2], b.took[n*99/100], b.took[n-1])
	if b.failed > 0 {
		b.t.Errorf("%d rounds of %d were not served in ten tries", b.failed, b.served+b.failed)
	}
}
