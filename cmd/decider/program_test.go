package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"
)

// built builds the command of a package once and returns where it lies.
func built(t testing.TB, pkg string) string {
	t.Helper()
	builtOnce.Lock()
	defer builtOnce.Unlock()
	exe := filepath.Join(scratch, "built-"+strings.ReplaceAll(pkg, "/", "-"))
	if _, err := os.Stat(exe); err == nil {
		return exe
	}
	if out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", exe, pkg).CombinedOutput(); err != nil {
		t.Fatalf("go build %s: %v\n%s", pkg, err, out)
	}
	return exe
}

var builtOnce sync.Mutex

// program makes a built command of this module, which ends when the tests end, however
// they do.
func program(t testing.TB, name string, args ...string) *exec.Cmd {
	t.Helper()
	return &exec.Cmd{Path: built(t, "hindsight/cmd/"+name), Args: append([]string{name}, args...), Env: environment(),
		SysProcAttr: leashed()}
}

func leashed() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

// natsProgram is nats-server itself, as its module builds it, on a folder and a port
// of its own.
type natsProgram struct {
	t    testing.TB
	args []string
	url  string // with user and password
	cmd  *exec.Cmd
}

// startNATS starts a nats-server for one user.
func startNATS(t testing.TB, user, password string) *natsProgram {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	dir := t.TempDir()
	config := filepath.Join(dir, "nats.conf")
	text := fmt.Sprintf("listen: %q\njetstream { store_dir: %q, max_mem: 64M, max_file: 8G, sync_interval: 1s "+
		"}\nauthorization { user: %q, password: %q }\n", addr, filepath.Join(dir, "store"), user, password)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &natsProgram{t: t, args: []string{"nats-server", "-c", config}, url: "nats://" + user + ":" +
		password + "@" + addr}
	t.Cleanup(s.kill)
	s.start()
	return s
}

// start starts it, again after a kill, and waits until its streams can be used.
func (s *natsProgram) start() {
	s.t.Helper()
	s.cmd = &exec.Cmd{Path: built(s.t, "github.com/nats-io/nats-server/v2"), Args: s.args, SysProcAttr: leashed()}
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	eventually(s.t, "nats-server answers", func() bool {
		conn, err := natsgo.Connect(s.url, natsgo.Timeout(time.Second))
		if err != nil {
			return false
		}
		defer conn.Close()
		_, err = conn.Request("$JS.API.INFO", nil, time.Second)
		return err == nil
	})
}

// kill is kill -9.
func (s *natsProgram) kill() {
	_ = s.cmd.Process.Kill() // it may be dead already
	_ = s.cmd.Wait()
}
