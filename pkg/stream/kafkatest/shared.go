package kafkatest

import (
	"sync"
	"syscall"
	"testing"
)

// shared are the clusters that several tests of a process use.
var shared struct {
	sync.Mutex
	whole *Cluster
	hurt  map[int]*Cluster // by their number of brokers
}

// Shared returns one broker that all tests of a process use which do not break it. It ends with the process.
func Shared(t testing.TB) *Cluster {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.whole == nil {
		shared.whole = lasting(t, 1)
	}
	return shared.whole.of(t)
}

// Hurt returns a cluster of so many brokers that all tests of a process use, one after the other, which kill, stop and
// pause brokers. Those that a test leaves behind so are started again. It ends with the process.
func Hurt(t testing.TB, brokers int) *Cluster {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.hurt[brokers] == nil {
		if shared.hurt == nil {
			shared.hurt = map[int]*Cluster{}
		}
		shared.hurt[brokers] = lasting(t, brokers)
	}
	c := shared.hurt[brokers].of(t)
	c.mend()
	return c
}

// lasting starts a cluster that ends with the process.
func lasting(t testing.TB, brokers int) *Cluster {
	t.Helper()
	c := &Cluster{t: t, o: Options{Brokers: brokers, HeapMB: 384}, jars: find(t)}
	if err := c.start(); err != nil {
		c.end()
		t.Fatalf("kafka: %v", err)
	}
	return c
}

// of returns the same cluster for another test.
func (c *Cluster) of(t testing.TB) *Cluster {
	again := *c
	again.t = t
	return &again
}

// mend brings all brokers back to work.
func (c *Cluster) mend() {
	c.t.Helper()
	var down []int
	for _, b := range c.brokers {
		if b.running() {
			c.signal(b.number, syscall.SIGCONT)
			continue
		}
		c.Launch(b.number)
		down = append(down, b.number)
	}
	for _, i := range down {
		c.Await(i)
	}
}
