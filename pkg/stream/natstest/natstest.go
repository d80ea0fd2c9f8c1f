// Package natstest runs NATS servers with JetStream in processes of their own, so that tests can kill, stop and restart
// them. The test binary starts itself again for that: its TestMain calls Main first.
package natstest

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

const asServer = "HINDSIGHT_TEST_NATS_SERVER"

// User may do everything, or with NKey instead of a name and password.
type User struct{ Name, Password, NKey string }

// Options configure a server.
type Options struct {
	Dir          string // of its store; "": a temporary one
	Users        []User // none: anybody
	Cert, Key    string // files: TLS is required
	CA           string // file: clients must have a certificate that it signed
	Operator     *Operator
	Name         string // of a server in a cluster
	Cluster      int    // port of the cluster; 0: a single server
	Routes       []int  // ports of the cluster's servers
	OnlyRoutes   bool   // servers meet by Routes alone, not by what others tell them
	Port         int    // 0: a free one, which stays the same after a restart
	MaxStoreSize int64  // 0: 1 GiB

	SyncInterval time.Duration // of the disk; 0: 1 s
	SyncAlways   bool          // the disk has each record before its acknowledgement

	// How soon a client that hangs is cut off; 0: as servers do.
	PingInterval time.Duration
	MaxPings     int

	// Patience is how long a start may take: after kill -9 a server reads its store, which takes seconds a GB. 0: 30 s.
	Patience time.Duration
}

// Main runs a server and does not return if the process was started for that.
func Main() {
	text := os.Getenv(asServer)
	if text == "" {
		return
	}
	go func() { // the end of the tests, however they end, is the end of their processes
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(3)
	}()
	if err := serve(text); err != nil {
		fmt.Println("ERROR", strings.ReplaceAll(err.Error(), "\n", " "))
		os.Exit(1)
	}
	select {}
}

// TestMain is that of a package whose tests start servers and need no more.
func TestMain(m *testing.M) {
	Main()
	os.Exit(m.Run())
}

func serve(text string) error {
	var o Options
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	so, err := o.server()
	if err != nil {
		return err
	}
	s, err := server.NewServer(so)
	if err != nil {
		return err
	}
	var fatal fatalLog
	s.SetLoggerV2(&fatal, false, false, false)
	s.Start()
	for !s.ReadyForConnections(50 * time.Millisecond) {
		if err := fatal.err(); err != nil {
			return err
		}
	}
	if err := fatal.err(); err != nil {
		return err
	}
	fmt.Println("READY", s.Addr().(*net.TCPAddr).Port)
	return nil
}

func (o *Options) server() (*server.Options, error) {
	if o.MaxStoreSize == 0 {
		o.MaxStoreSize = 1 << 30
	}
	so := &server.Options{ServerName: "test" + o.Name, Host: "127.0.0.1", Port: o.Port, NoSigs: true,
		JetStream: true, StoreDir: o.Dir, JetStreamMaxMemory: 64 << 20, JetStreamMaxStore: o.MaxStoreSize,
		SyncInterval: cmp.Or(o.SyncInterval, time.Second), SyncAlways: o.SyncAlways,
		PingInterval: o.PingInterval, MaxPingsOut: o.MaxPings}
	for _, u := range o.Users {
		if u.NKey != "" {
			so.Nkeys = append(so.Nkeys, &server.NkeyUser{Nkey: u.NKey})
		} else {
			so.Users = append(so.Users, &server.User{Username: u.Name, Password: u.Password})
		}
	}
	if o.Cert != "" {
		c, err := server.GenTLSConfig(&server.TLSConfigOpts{CertFile: o.Cert, KeyFile: o.Key, CaFile: o.CA,
			Verify: o.CA != "", Timeout: 5})
		if err != nil {
			return nil, err
		}
		so.TLSConfig, so.TLS, so.TLSVerify, so.TLSTimeout = c, true, o.CA != "", 5
	}
	if o.Operator != nil {
		if err := o.Operator.configure(so); err != nil {
			return nil, err
		}
	}
	if o.Cluster != 0 {
		so.Cluster = server.ClusterOpts{Name: "test", Host: "127.0.0.1", Port: o.Cluster}
		if o.OnlyRoutes {
			so.Cluster.Advertise = "127.0.0.1:1" // where nobody answers
		}
		for _, p := range o.Routes {
			so.Routes = append(so.Routes, server.RoutesFromStr(fmt.Sprintf("nats://127.0.0.1:%d", p))...)
		}
	}
	return so, nil
}

// fatalLog keeps the first error that the server reports to its log only.
type fatalLog struct {
	mu   sync.Mutex
	text string
}

func (l *fatalLog) err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.text == "" {
		return nil
	}
	return errors.New(l.text)
}

func (l *fatalLog) Fatalf(format string, v ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.text == "" {
		l.text = fmt.Sprintf(format, v...)
	}
}
func (l *fatalLog) Noticef(string, ...any) {}
func (l *fatalLog) Warnf(string, ...any)   {}
func (l *fatalLog) Errorf(string, ...any)  {} // mostly what tests provoke
func (l *fatalLog) Debugf(string, ...any)  {}
func (l *fatalLog) Tracef(string, ...any)  {}

// Server is a server in a process of its own.
type Server struct {
	t    testing.TB
	o    Options
	cmd  *exec.Cmd
	done chan struct{}

	exe, env string // of another program than this one
}

// patience bounds what should take an instant, on a machine that may be busy.
const patience = 30 * time.Second

// Start starts a server, which ends with the test.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	if o.Port == 0 {
		o.Port = -1
	}
	s := &Server{t: t, o: o}
	t.Cleanup(s.Kill)
	s.Restart()
	return s
}

// Restart starts the server again, on the same port and folder, after a Kill.
func (s *Server) Restart() {
	s.t.Helper()
	if err := s.restart(); err != nil {
		s.t.Fatalf("nats-server: %v", err)
	}
}

func (s *Server) restart() error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	text, err := json.Marshal(&s.o)
	if err != nil {
		return err
	}
	s.cmd = &exec.Cmd{Path: cmp.Or(s.exe, exe), Args: []string{"nats-server"},
		Env: append(os.Environ(), asServer+"="+string(text), s.env), Stderr: os.Stderr}
	if _, err := s.cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := s.cmd.Start(); err != nil {
		return err
	}
	ready := make(chan error, 1)
	done := make(chan struct{})
	s.done = done
	go func(cmd *exec.Cmd) {
		defer close(done)
		line, err := bufio.NewReader(out).ReadString('\n')
		if err == nil {
			if n, _ := fmt.Sscanf(line, "READY %d", &s.o.Port); n != 1 {
				err = errors.New(strings.TrimSpace(line))
			}
		}
		ready <- err
		_ = cmd.Wait()
	}(s.cmd)
	select {
	case err := <-ready:
		return err
	case <-time.After(cmp.Or(s.o.Patience, patience)):
		return fmt.Errorf("not ready after %v", cmp.Or(s.o.Patience, patience))
	}
}

// Kill is kill -9.
func (s *Server) Kill() {
	if s.cmd == nil || s.cmd.Process == nil {
		return
	}
	s.signal(syscall.SIGKILL)
	<-s.done
}

// Pause is SIGSTOP, Resume is SIGCONT.
func (s *Server) Pause()  { s.signal(syscall.SIGSTOP) }
func (s *Server) Resume() { s.signal(syscall.SIGCONT) }

func (s *Server) signal(sig os.Signal) {
	if err := s.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		s.t.Errorf("signal nats-server: %v", err)
	}
}

// URL returns where it listens.
func (s *Server) URL() string { return fmt.Sprintf("nats://127.0.0.1:%d", s.o.Port) }

// Addr returns host and port.
func (s *Server) Addr() string { return fmt.Sprintf("127.0.0.1:%d", s.o.Port) }

// Dir returns the folder of its store.
func (s *Server) Dir() string { return s.o.Dir }

// Cluster starts servers that form a cluster.
func Cluster(t testing.TB, n int) []*Server {
	return ClusterOf(t, n, Options{}, nil)
}

// ClusterOf starts servers with these options that form a cluster. If via is not nil it returns the port by
// which one server reaches the port of another.
func ClusterOf(t testing.TB, n int, o Options, via func(from, to, port int) int) []*Server {
	t.Helper()
	var ports []int
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
		_ = l.Close()
	}
	servers := make([]*Server, n)
	for i := range servers {
		o.Name, o.Cluster, o.Routes = fmt.Sprint(i), ports[i], ports
		if via != nil {
			o.OnlyRoutes, o.Routes = true, nil
			for j, port := range ports {
				if j != i {
					o.Routes = append(o.Routes, via(i, j, port))
				}
			}
		}
		servers[i] = Start(t, o)
	}
	awaitLeader(t, servers[0].URL(), n)
	return servers
}

// awaitLeader waits until the cluster can make streams with as many replicas.
func awaitLeader(t testing.TB, url string, replicas int) {
	t.Helper()
	conn, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	request := fmt.Appendf(nil,
		`{"name":"ready","subjects":["ready"],"retention":"limits","storage":"memory","discard":"old","num_replicas":%d}`,
		replicas)
	for limit := time.Now().Add(patience); ; {
		m, err := conn.Request("$JS.API.STREAM.CREATE.ready", request, time.Second)
		if err == nil && strings.Contains(string(m.Data), `"leader"`) {
			return
		}
		if time.Now().After(limit) {
			t.Fatalf("the cluster has no leader after %v: %v", patience, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
