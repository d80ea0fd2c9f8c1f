package daemon

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"
)

// TestMain is also the program that TestSignals starts.
func TestMain(m *testing.M) {
	if os.Getenv("DAEMON_TEST_CHILD") == "" {
		os.Exit(m.Run())
	}
	Main("child", func(env *Env) *cobra.Command {
		return &cobra.Command{Use: "x [flags]", RunE: func(c *cobra.Command, _ []string) error {
			fmt.Fprintln(env.Stdout, "ready")
			<-c.Context().Done()
			fmt.Fprintln(env.Stdout, "stopping")
			if os.Getenv("DAEMON_TEST_CHILD") == "stuck" {
				_, err := io.Copy(io.Discard, env.Stdin) // until the test lets go
				return err
			}
			return c.Context().Err()
		}}
	})
}

// child starts this test binary as a program and waits until it says ready.
func child(t *testing.T, kind string) (cmd *exec.Cmd, say func(want string)) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd = exec.CommandContext(t.Context(), exe)
	cmd.Env = append(os.Environ(), "DAEMON_TEST_CHILD="+kind)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close() })
	lines := bufio.NewScanner(out)
	say = func(want string) {
		t.Helper()
		if !lines.Scan() || lines.Text() != want {
			t.Fatalf("the child said %q, want %q", lines.Text(), want)
		}
	}
	say("ready")
	return cmd, say
}

func TestSignals(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		cmd, say := child(t, "polite")
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		say("stopping")
		var exit *exec.ExitError
		if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != Interrupted {
			t.Errorf("%v: %v, want exit code %d", sig, err, Interrupted)
		}
	}
}

func TestSecondSignalKills(t *testing.T) {
	cmd, say := child(t, "stuck")
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	say("stopping")
	// The default effect of signals is restored just after the context ends; one
	// that comes before that is taken as the first. Send until the child is gone.
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	for {
		select {
		case err := <-done:
			var exit *exec.ExitError
			if !errors.As(err, &exit) || !exit.Sys().(syscall.WaitStatus).Signaled() {
				t.Errorf("%v, want death by signal", err)
			}
			return
		default:
			if err := cmd.Process.Signal(syscall.SIGINT); err != nil && !errors.Is(err, os.ErrProcessDone) &&
				!strings.Contains(err.Error(), "no such process") {
				t.Fatal(err)
			}
		}
	}
}
