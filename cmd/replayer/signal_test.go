package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"hindsight/internal/daemon"
)

// TestSignalIsHeard sends SIGTERM to each verb in phases that would last for ever: while it
// waits for a standard input that has begun, and while it plays.
func TestSignalIsHeard(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() })
	for _, args := range []string{"tail --log nats://" + silent.Addr().String(), "convert -", "backtest --data -",
		"window --data -",
		"worst --data -", "fit --data -", "inject --data - --log mem:",
		"backtest --rounds 1000000000 --learner uniform --delays none", "inject --rounds 1000000000 --log mem:"} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			text, err := json.Marshal(strings.Fields(args))
			if err != nil {
				t.Fatal(err)
			}
			exe, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(exe)
			cmd.Env, cmd.Dir = append(os.Environ(), asReplayer+"="+string(text)), t.TempDir()
			cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			said, err := cmd.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			hung := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
			defer hung.Stop()
			if strings.HasPrefix(args, "tail") {
				conn, err := silent.Accept()
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
			} else if strings.Contains(args, "--data -") || strings.HasSuffix(args, " -") {
				// A pipe takes 64 KiB: when twice as much is written, it is being read.
				if _, err := io.WriteString(in,
					strings.Repeat(`{"id":"a","features":{"x":1},"actions":["u","v"],"action":"u","reward":1}`+"\n",
						2000)); err != nil {
					t.Fatal(err)
				}
			} else if _, err := bufio.NewReader(said).ReadString('\n'); err != nil { // it says what it plays
				t.Fatal(err)
			}
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, said)
			if err := cmd.Wait(); cmd.ProcessState.ExitCode() != daemon.Interrupted {
				t.Errorf("%v", err)
			}
		})
	}
}
