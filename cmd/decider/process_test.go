package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"hindsight/pkg/stream/attach"
	"hindsight/pkg/stream/natstest"
)

// asCommand makes this test binary the decider itself.
const asCommand = "DECIDER_TEST_AS_COMMAND"

// TestMain is also the real command, which the tests start as a process.
func TestMain(m *testing.M) {
	natstest.Main()
	if os.Getenv(asCommand) == "" {
		os.Exit(run(m))
	}
	go func() { // the end of the tests, however they end, is the end of their processes
		io.Copy(io.Discard, os.Stdin)
		os.Exit(3)
	}()
	main()
}

// scratch is a folder for what several tests use.
var scratch string

func run(m *testing.M) int {
	var err error
	if scratch, err = os.MkdirTemp("", "hindsight-decider-test-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(scratch)
	flag.Parse()
	const most = "test.parallel"
	asked := false
	flag.Visit(func(f *flag.Flag) { asked = asked || f.Name == most })
	if !asked { // they wait for processes, mostly
		if err := flag.Set(most, strconv.Itoa(3*runtime.GOMAXPROCS(0))); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return m.Run()
}

// process is a command at work.
type process struct {
	t       testing.TB
	cmd     *exec.Cmd
	ended   chan struct{}
	isReady chan struct{} // closed when it says so
	took    time.Duration // to ready

	mu    sync.Mutex
	lines []string // the last of its log
}

// environment is that of the tests without what the commands would read.
func environment(more ...string) []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "HINDSIGHT_") {
			env = append(env, v)
		}
	}
	return append(env, more...)
}

// decider makes the command, not yet started.
func decider(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	env := environment(asCommand + "=1")
	if !strings.Contains(strings.Join(args, " "), "--nats none") { // with --nats none there are no requests at all
		env = append(env, "HINDSIGHT_HTTP=127.0.0.1:0")
	}
	return &exec.Cmd{Path: exe, Args: append([]string{"decider"}, args...), Env: env}
}

// feedbackJoiner makes that command.
func feedbackJoiner(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	return &exec.Cmd{Path: built(t, "hindsight/cmd/feedback-joiner"), Args: append([]string{"feedback-joiner"},
		args...), Env: environment()}
}

// start starts a command and follows its log.
func start(t testing.TB, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{t: t, cmd: cmd, ended: make(chan struct{}), isReady: make(chan struct{})}
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go p.follow(log, began)
	t.Cleanup(p.kill)
	return p
}

// follow reads the log to its end and waits for the process.
func (p *process) follow(log io.Reader, began time.Time) {
	defer close(p.ended)
	for lines := bufio.NewScanner(log); lines.Scan(); {
		p.mu.Lock()
		p.lines = append(p.lines, lines.Text())
		p.mu.Unlock()
		if strings.Contains(lines.Text(), "msg=ready ") && p.took == 0 {
			p.took = time.Since(began)
			close(p.isReady)
		}
	}
	var exit *exec.ExitError
	if err := p.cmd.Wait(); err != nil && !errors.As(err, &exit) {
		p.t.Errorf("wait for %s: %v", p.cmd.Args[0], err)
	}
}

// log returns the last lines that the process wrote.
func (p *process) log() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.lines[max(0, len(p.lines)-40):], "\n")
}

// ready waits until the process says that it is.
func (p *process) ready() *process {
	p.t.Helper()
	select {
	case <-p.isReady:
	case <-p.ended:
		p.t.Fatalf("%s ended with %v instead of becoming ready:\n%s", p.cmd.Args[0], p.cmd.ProcessState, p.log())
	case <-time.After(patience):
		p.t.Fatalf("%s is not ready after %v:\n%s", p.cmd.Args[0], patience, p.log())
	}
	return p
}

// kill is kill -9.
func (p *process) kill() { p.signal(syscall.SIGKILL); <-p.ended }

func (p *process) signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Errorf("signal %s: %v", p.cmd.Args[0], err)
	}
}

// stop is SIGTERM, and must end the process well within the time given.
func (p *process) stop(within time.Duration) {
	p.t.Helper()
	began := time.Now()
	p.signal(syscall.SIGTERM)
	if code := p.wait(within); code != 0 {
		p.t.Errorf("%s ended with %v after SIGTERM, want exit code 0:\n%s", p.cmd.Args[0], p.cmd.ProcessState, p.log())
	}
	p.t.Logf("%s stopped in %v", p.cmd.Args[0], time.Since(began).Round(time.Millisecond))
}

// wait waits for the end of the process and returns its exit code, -1 for death by
// signal.
func (p *process) wait(limit time.Duration) int {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(limit):
		p.t.Fatalf("%s has not ended after %v:\n%s", p.cmd.Args[0], limit, p.log())
	}
	return p.cmd.ProcessState.ExitCode()
}

var readyLine = regexp.MustCompile(`msg=ready .*url=(nats://127\.0\.0\.1:\d+)`)

// answersAt returns the URL of the server inside a process that answers requests, as its log
// has it.
func (p *process) answersAt() string {
	p.t.Helper()
	m := readyLine.FindStringSubmatch(p.log())
	if m == nil {
		p.t.Fatalf("it does not say where it answers:\n%s", p.log())
	}
	return m[1]
}

// patience bounds what should take an instant, on a machine that may be busy.
const patience = time.Minute

// eventually waits for a condition of another process. The longer it has waited, the less
// often it looks: who looks takes from the processor that others work with.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for began := time.Now(); !holds(); {
		waited := time.Since(began)
		if waited > patience {
			t.Fatalf("not within %v: %s", patience, what)
		}
		<-time.After(min(max(waited/10, 5*time.Millisecond), 100*time.Millisecond))
	}
}

// reached waits until connect.json is that of the process, and returns it.
func (p *process) reached(dir string) attach.Connect {
	p.t.Helper()
	var c attach.Connect
	eventually(p.t, "connect.json of the new process", func() bool {
		var err error
		c, err = attach.Read(dir)
		return err == nil && c.PID == p.cmd.Process.Pid
	})
	return c
}

// writeModel writes a model file and returns its path.
func writeModel(t testing.TB, dir, text string) string {
	t.Helper()
	path := filepath.Join(dir, "model.yaml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}
