// Package kafkatest runs Apache Kafka for tests: real brokers in processes of their own, that can be killed, stopped
// and restarted, from the jars that .ci/kafka fetches, and kfake, which speaks the protocol inside the test's process.
//
// Tests against real brokers are called TestKafkaReal…, so that one pattern runs them
// all. Without the jars they skip; with HINDSIGHT_KAFKA=require they fail.
package kafkatest

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"hindsight/pkg/stream/tlstest"
)

// patience bounds what should take seconds, on a machine that may be busy.
const patience = 60 * time.Second

// User may log in with a password. Without Options.ACL it may do everything.
type User struct{ Name, Password string }

// Options configure a cluster.
type Options struct {
	Brokers int    // each is also a controller; 0: 1. Their numbers start at 1.
	TLS     bool   // clients must use TLS; Cluster.Authority signs
	Users   []User // clients must log in as one of them, by PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512
	Tokens  bool   // clients must log in with an unsigned token, by OAUTHBEARER
	ACL     bool   // users may do only what Cluster.Allow tells
	// DiskMB puts each broker's records on a file system of that size, in MiB. Only root can make one: others skip.
	DiskMB     int
	Proxied    bool              // clients reach broker i through Cluster.Proxy(i)
	HeapMB     int               // of a broker; 0: 256
	Optimized  bool              // compile as in production: slower to start, faster later; for benchmarks
	Properties map[string]string // of server.properties, on top of ours
}

// Cluster is some brokers. Methods that number brokers count from 1, as Kafka's node
// IDs do. Those that change it are not safe for concurrent use.
type Cluster struct {
	// Authority signed the brokers' certificates; nil without TLS.
	Authority *tlstest.Authority

	t       testing.TB
	o       Options
	dir     string
	id      string
	jars    jars
	brokers []*broker
	reaper  *reaper
}

// Fake starts kfake with n brokers, which ends with the test, and returns the brokers' addresses.
func Fake(t testing.TB, n int, opts ...kfake.Opt) ([]string, *kfake.Cluster) {
	t.Helper()
	c, err := kfake.NewCluster(
		append([]kfake.Opt{kfake.NumBrokers(n), kfake.GroupMinSessionTimeout(100 * time.Millisecond)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c.ListenAddrs(), c
}

// Heavy skips a test that takes long, unless HINDSIGHT_KAFKA=require.
func Heavy(t testing.TB) {
	t.Helper()
	if !required() {
		t.Skip("long test against a real Kafka: HINDSIGHT_KAFKA=require runs it")
	}
}

// Start starts a cluster, which ends with the test.
func Start(t testing.TB, o Options) *Cluster {
	t.Helper()
	c := &Cluster{t: t, o: o, jars: find(t)}
	if c.o.Brokers == 0 {
		c.o.Brokers = 1
	}
	if o.DiskMB > 0 && os.Geteuid() != 0 {
		t.Skip("only root can make a small file system")
	}
	if o.TLS {
		c.Authority = tlstest.NewAuthority(t)
	}
	t.Cleanup(c.end)
	if err := c.start(); err != nil {
		t.Fatalf("kafka: %v", err)
	}
	return c
}

// start makes the brokers' folders and runs them. A port that somebody else took in
// the meantime makes it choose others.
func (c *Cluster) start() error {
	for try := 1; ; try++ {
		err := c.tryStart()
		if err == nil || try == 3 || !errors.Is(err, errPortTaken) {
			return err
		}
		c.end()
	}
}

func (c *Cluster) tryStart() (err error) {
	if c.dir, err = os.MkdirTemp("", "kafkatest"); err != nil {
		return err
	}
	if c.reaper, err = newReaper(c.dir); err != nil {
		return err
	}
	c.id = newID()
	ports, err := freePorts(4 * c.o.Brokers)
	if err != nil {
		return err
	}
	c.brokers = nil
	for i := range c.o.Brokers {
		c.brokers = append(c.brokers, &broker{number: i + 1, dir: filepath.Join(c.dir, fmt.Sprint(i+1)),
			client: ports[4*i], internal: ports[4*i+1], controller: ports[4*i+2]})
		if c.o.Proxied {
			b := c.brokers[i]
			if b.proxy, err = newProxy(ports[4*i+3], b.client, false); err != nil {
				return err
			}
		}
	}
	errs := make([]error, len(c.brokers))
	var wg sync.WaitGroup
	for i, b := range c.brokers {
		wg.Go(func() {
			if errs[i] = c.format(b); errs[i] == nil {
				errs[i] = b.run(c)
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for _, b := range c.brokers {
		if err := c.await(b, len(c.brokers)); err != nil {
			return err
		}
	}
	return nil
}

// newID returns an ID of a cluster or a folder.
func newID() string {
	id := make([]byte, 16)
	_, _ = rand.Read(id) // never fails
	id[0] &= 0x7f        // it must not start with a dash
	return base64.RawURLEncoding.EncodeToString(id)
}

// end kills the brokers and removes their folders.
func (c *Cluster) end() {
	for _, b := range c.brokers {
		b.kill()
		if b.proxy != nil {
			b.proxy.close()
		}
		if c.t.Failed() {
			c.t.Logf("broker %d complained last:\n%s", b.number, b.complaints(20))
		}
	}
	if c.reaper != nil {
		c.reaper.end()
	}
}

// reaper removes a folder when its standard input ends, however this process ends.
type reaper struct {
	cmd  *exec.Cmd
	hold io.Closer
}

const reap = `cat >/dev/null
for _ in 1 2 3 4 5 6 7 8 9 10; do
	umount "$1"/*/data 2>/dev/null
	rm -rf "$1" 2>/dev/null && exit
	sleep 0.2
done`

func newReaper(dir string) (*reaper, error) {
	r := &reaper{cmd: exec.Command("sh", "-c", reap, "sh", dir)}
	r.cmd.SysProcAttr = ownGroup()
	var err error
	if r.hold, err = r.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	return r, r.cmd.Start()
}

func (r *reaper) end() {
	_ = r.hold.Close()
	_ = r.cmd.Wait()
}

// tail returns the last lines of text that contain one of the words.
func tail(text []byte, n int, words ...string) []byte {
	var kept [][]byte
	for line := range bytes.Lines(text) {
		for _, w := range words {
			if bytes.Contains(line, []byte(w)) {
				kept = append(kept, line)
				break
			}
		}
	}
	return bytes.Join(kept[max(0, len(kept)-n):], nil)
}
