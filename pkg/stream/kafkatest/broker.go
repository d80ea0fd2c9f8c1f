package kafkatest

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"
)

var errPortTaken = errors.New("a port is in use")

// broker is one process with its folder and ports, which stay when it is restarted.
type broker struct {
	number                       int
	dir                          string
	client, internal, controller int // ports
	cmd                          *exec.Cmd
	done                         chan struct{} // closed when the process has ended
	proxy                        *Proxy        // nil: clients reach it directly
	classes                      string        // a folder of classes that are found first, after SetClock
}

// address returns where clients reach it.
func (b *broker) address() string {
	if b.proxy != nil {
		return b.proxy.Addr()
	}
	return fmt.Sprintf("127.0.0.1:%d", b.client)
}

func (b *broker) log() string { return filepath.Join(b.dir, "log") }

// run starts the process; await tells when it serves.
func (b *broker) run(c *Cluster) error {
	log, err := os.OpenFile(b.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	heap := c.o.HeapMB
	if heap == 0 {
		heap = 256
	}
	options := []string{fmt.Sprintf("-Xmx%dm", heap), "-Dlog4j2.configurationFile=" + filepath.Join(b.dir,
		"log4j2.xml")}
	if !c.o.Optimized {
		options = append(options, quick...)
	}
	jars := c.jars
	if b.classes != "" {
		jars.path, jars.archive = b.classes+":"+jars.path, ""
	}
	cmd := jars.command(options, "kafka.Kafka", filepath.Join(b.dir, "properties"))
	cmd.Stdout, cmd.Stderr = log, log
	if err := begin(cmd); err != nil {
		return err
	}
	done := make(chan struct{})
	b.cmd, b.done = cmd, done
	go func() {
		_ = cmd.Wait()
		close(done)
	}()
	return nil
}

// begin starts a process from a thread that lives as long as this process: Linux ends
// a process with the thread that started it, not with that thread's process.
func begin(cmd *exec.Cmd) error {
	s := starting{cmd, make(chan error)}
	starter() <- s
	return <-s.err
}

type starting struct {
	cmd *exec.Cmd
	err chan error
}

var starter = sync.OnceValue(func() chan<- starting {
	c := make(chan starting)
	go func() {
		runtime.LockOSThread()
		for s := range c {
			s.err <- s.cmd.Start()
		}
	}()
	return c
})

func (b *broker) running() bool {
	if b.cmd == nil {
		return false
	}
	select {
	case <-b.done:
		return false
	default:
		return true
	}
}

func (b *broker) kill() {
	if b.running() {
		_ = b.cmd.Process.Kill()
		<-b.done
	}
}

// failure tells why the process has ended.
func (b *broker) failure() error {
	text, _ := os.ReadFile(b.log())
	if bytes.Contains(text, []byte("Address already in use")) {
		return fmt.Errorf("broker %d: %w", b.number, errPortTaken)
	}
	return fmt.Errorf("broker %d has ended:\n%s", b.number, tail(text, 30, "ERROR", "FATAL", "Exception", "Error"))
}

func (b *broker) complaints(lines int) []byte {
	text, _ := os.ReadFile(b.log())
	return tail(text, lines, " WARN ", " ERROR ", " FATAL ", "Exception")
}

// Kill is kill -9 of a broker.
func (c *Cluster) Kill(i int) { c.brokers[i-1].kill() }

// Stop lets a broker hand over and end.
func (c *Cluster) Stop(i int) {
	c.t.Helper()
	b := c.brokers[i-1]
	c.signal(i, syscall.SIGTERM)
	select {
	case <-b.done:
	case <-time.After(patience):
		b.kill()
		c.t.Errorf("kafka: broker %d did not stop in %v", i, patience)
	}
}

// Restart starts a broker again after Kill or Stop, on the same ports and folder, and waits until it serves.
func (c *Cluster) Restart(i int) {
	c.t.Helper()
	c.Launch(i)
	c.Await(i)
}

// Launch is Restart without the wait.
func (c *Cluster) Launch(i int) {
	c.t.Helper()
	if b := c.brokers[i-1]; b.running() {
		c.t.Fatalf("kafka: broker %d runs", i)
	} else if err := b.run(c); err != nil {
		c.t.Fatalf("kafka: %v", err)
	}
}

// Await waits until a broker serves and knows all that run.
func (c *Cluster) Await(i int) {
	c.t.Helper()
	n := 0
	for _, b := range c.brokers {
		if b.running() {
			n++
		}
	}
	if err := c.await(c.brokers[i-1], n); err != nil {
		c.t.Fatalf("kafka: %v", err)
	}
}

// Pause is SIGSTOP, Resume is SIGCONT.
func (c *Cluster) Pause(i int)  { c.signal(i, syscall.SIGSTOP) }
func (c *Cluster) Resume(i int) { c.signal(i, syscall.SIGCONT) }

func (c *Cluster) signal(i int, sig os.Signal) {
	c.t.Helper()
	if err := c.brokers[i-1].cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		c.t.Errorf("kafka: signal broker %d: %v", i, err)
	}
}

// freePorts returns ports that nobody listens on, below those that systems give to
// outgoing connections: a broker must get its ports again after a restart.
func freePorts(n int) ([]int, error) {
	var ports []int
	var held []net.Listener
	defer func() {
		for _, l := range held {
			_ = l.Close()
		}
	}()
	for tries := 0; len(ports) < n; tries++ {
		p := 11000 + rand.IntN(20000)
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", p))
		if err != nil {
			if tries < 1000 {
				continue
			}
			return nil, err
		}
		held, ports = append(held, l), append(ports, p)
	}
	return ports, nil
}
