package main

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"
)

// What a decider with its server, log and joiner needs at most, whatever its users do: with
// GOMEMLIMIT somewhat below the first, and without.
const (
	memoryBound = 1 << 30
	looseBound  = 2 << 30
)

// resident returns the most memory that a process has had.
func (p *process) resident() (most int) {
	p.t.Helper()
	if runtime.GOOS != "linux" {
		p.t.Skip("what a process has taken is read from /proc, which only Linux has")
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil { // or the process is gone
		p.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if _, err := fmt.Sscanf(line, "VmHWM: %d kB", &most); err == nil {
			return most << 10
		}
	}
	p.t.Fatalf("no VmHWM in %s", text)
	return 0
}

// TestMemoryBound floods a decider with the largest requests there are, from clients of
// which half never read an answer, and with the largest outcomes, some of them of rounds that
// wait and some of none. Hundreds more do not read either, though each hears all answers, and
// hundreds subscribe to subjects as deep as they may: it stays within its bound, refuses what it cannot decide, closes
// rounds before their time when their contexts hold what they may, and answers after that.
// Rounds wait as long as they do by default.
func TestMemoryBound(t *testing.T) {
	notShort(t)
	length, args, bound := time.Second, []string{"--pending-mib", "32"}, memoryBound // which a second's flood fills
	if os.Getenv("HINDSIGHT_LONG") != "" {
		if length, args = time.Minute, []string{"--pending-mib", "256"}; os.Getenv("GOMEMLIMIT") == "" {
			bound = looseBound
		}
	}
	dir := t.TempDir()
	p := start(t, decider(t, append(args, "--log", "embedded:"+dir, "--listen", "127.0.0.1:0", "--model",
		writeModel(t, t.TempDir(), "name: shop\nversion: 1\n"), "--admin", "127.0.0.1:0")...)).ready()
	url := p.reached(dir).URL
	large := func(id string) []byte {
		return fmt.Appendf(nil, `{"id":%q,"actions":["x","y"],"unknown":"%s"}`, id, strings.Repeat("u", 1<<20-8<<10))
	}
	end := time.Now().Add(length)
	done := make(chan int)
	reported := make(chan int)
	go func() {
		reported <- sendAll(t, url, "shop.outcome", end, func(n int) []byte {
			return fmt.Appendf(nil, `{"id":"q%d-%d","loss":1,"unknown":"%s"}`, 1+n%4, n/4, strings.Repeat("u",
				64<<10-100))
		})
	}()
	for i := range crowd {
		go deepen(url, fmt.Sprint("deep", i), 8, 100, end)
		go overhear(url, end)
		if i < 4 {
			go deepen(url, fmt.Sprint("deeper", i), 2000, 4000, end)
		}
	}
	for i := range 6 {
		go func() {
			if i%2 == 0 {
				done <- shout(url, end, func(n int) []byte { return large(fmt.Sprintf("deaf%d-%d", i, n)) })
				return
			}
			done <- sendAll(t, url, "shop.decide", end, func(n int) []byte {
				return large(fmt.Sprintf("q%d-%d", i, n))
			})
		}()
	}
	sent := 0
	for range 6 {
		sent += <-done
	}
	outcomes := <-reported
	a := &asker{t: t}
	a.connect(url)
	eventually(t, "a decision after the flood", a.ask)
	p.metric(`hindsight_overflow_rounds_total [1-9].*`)
	most := p.resident()
	t.Logf("%d requests of 1 MiB and %d outcomes in %v: at most %d MiB resident", sent, outcomes, length, most>>20)
	if most > bound {
		t.Errorf("%d MiB, the bound is %d MiB", most>>20, bound>>20)
	}
	if sent < 50 {
		t.Errorf("only %d requests: that is no flood", sent)
	}
	p.stop(patience)
}

// crowd is how many clients do each of the things that take no more than a connection.
const crowd = 250

// deepen subscribes to so many subjects of so many parts each, again if it is cut off, and
// stays.
func deepen(url, who string, parts, subjects int, end time.Time) {
	for n := 0; time.Now().Before(end); n++ {
		var b strings.Builder
		for i := range subjects {
			fmt.Fprintf(&b, "SUB _INBOX.%s.%d", who, n*subjects+i)
			for part := 3; part < parts; part++ {
				fmt.Fprintf(&b, ".%d", part%10)
			}
			fmt.Fprintf(&b, " %d\r\n", i+1)
		}
		tell(url, b.String(), end)
	}
}

// overhear listens to all answers and reads none.
func overhear(url string, end time.Time) {
	for time.Now().Before(end) {
		tell(url, "SUB _INBOX.> 1\r\n", end)
	}
}

// tell tells the server something, and then stays until it is cut off, as a write tells.
func tell(url, text string, end time.Time) {
	c, err := net.Dial("tcp", strings.TrimPrefix(url, "nats://"))
	if err != nil {
		return
	}
	defer c.Close()
	_ = c.SetDeadline(end)
	_, err = fmt.Fprint(c, "CONNECT {\"verbose\":false}\r\n"+text)
	for tick := time.NewTicker(50 * time.Millisecond); err == nil && time.Now().Before(end); <-tick.C {
		_, err = fmt.Fprint(c, "PONG\r\n")
	}
}

// sendAll asks as fast as the server takes it, 20 times at least, and lets the answers come.
func sendAll(t *testing.T, url, subject string, end time.Time, data func(n int) []byte) (n int) {
	conn, err := natsgo.Connect(url)
	if err != nil {
		t.Error(err)
		return 0
	}
	defer conn.Close()
	inbox := conn.NewInbox()
	if _, err := conn.Subscribe(inbox, func(*natsgo.Msg) {}); err != nil {
		t.Error(err)
	}
	for ; n < 20 || time.Now().Before(end); n++ {
		if err := conn.PublishRequest(subject, inbox, data(n)); err != nil {
			t.Error(err)
			break
		}
	}
	return n
}

// shout asks without reading any answer, from one connection after the other, as each is
// cut off.
func shout(url string, end time.Time, data func(n int) []byte) (n int) {
	for time.Now().Before(end) {
		c, err := net.Dial("tcp", strings.TrimPrefix(url, "nats://"))
		if err != nil {
			return n
		}
		_ = c.SetDeadline(end)
		_, err = fmt.Fprint(c, "CONNECT {\"verbose\":false}\r\nSUB _INBOX.deaf 1\r\n")
		for ; err == nil && time.Now().Before(end); n++ {
			d := data(n)
			_, err = fmt.Fprintf(c, "PUB shop.decide _INBOX.deaf %d\r\n%s\r\n", len(d), d)
		}
		c.Close()
	}
	return n
}
