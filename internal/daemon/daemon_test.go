package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// demo is a program with two verbs; body is what `work` does.
func demo(env *Env, body func(context.Context, *Env, *cobra.Command) error) *cobra.Command {
	root := &cobra.Command{Use: "demo"}
	work := &cobra.Command{Use: "work", Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error {
		return body(c.Context(), env, c)
	}}
	work.Flags().Int("max-rounds", 5, "rounds")
	work.Flags().String("data", "", "a file")
	work.Flags().StringArray("learner", nil, "learners")
	must := &cobra.Command{Use: "must", RunE: func(*cobra.Command, []string) error { return nil }}
	must.Flags().String("model", "", "a file")
	if err := must.MarkFlagRequired("model"); err != nil {
		panic(err)
	}
	root.AddCommand(work, must)
	return root
}

type outcome struct {
	code           int
	stdout, stderr string
}

func try(t *testing.T, vars map[string]string, body func(context.Context, *Env, *cobra.Command) error,
	args ...string) outcome {
	t.Helper()
	return tryContext(t.Context(), vars, body, args...)
}

func tryContext(ctx context.Context, vars map[string]string, body func(context.Context, *Env, *cobra.Command) error,
	args ...string) outcome {
	var stdout, stderr bytes.Buffer
	env := &Env{Args: args, Getenv: func(k string) string { return vars[k] }, Stdin: strings.NewReader(""),
		Stdout: &stdout, Stderr: &stderr}
	if body == nil {
		body = func(context.Context, *Env, *cobra.Command) error { return nil }
	}
	code := Run(ctx, env, demo(env, body))
	return outcome{code, stdout.String(), stderr.String()}
}

func TestExitCodes(t *testing.T) {
	boom := errors.New("boom")
	fail := func(err error) func(context.Context, *Env, *cobra.Command) error {
		return func(context.Context, *Env, *cobra.Command) error { return err }
	}
	hint := "Try: demo work --help\n"
	for _, c := range []struct {
		name string
		args string
		vars map[string]string
		body func(context.Context, *Env, *cobra.Command) error
		code int
		err  string
	}{
		{name: "done", args: "work"},
		{name: "failed", args: "work", body: fail(boom), code: 1, err: "demo: boom\n"},
		{name: "own code", args: "work", body: fail(&ExitError{3, boom}), code: 3, err: "demo: boom\n"},
		{name: "own code wrapped", args: "work", body: fail(fmt.Errorf("x: %w", &ExitError{4, boom})), code: 4,
			err: "demo: x: boom\n"},
		{name: "silent code", args: "work", body: fail(&ExitError{Code: 3}), code: 3},
		{name: "usage from the command", args: "work", body: fail(Usagef("--data: no such set")), code: 2,
			err: "demo: --data: no such set\n" + hint},
		{name: "canceled for another reason", args: "work", body: fail(context.Canceled), code: 1,
			err: "demo: context canceled\n"},
		{name: "unknown flag", args: "work --foo", code: 2, err: "demo: unknown flag: --foo\n" + hint},
		{name: "bad value", args: "work --max-rounds x", code: 2, err: "demo: invalid argument \"x\" for " +
			"\"--max-rounds\" flag"},
		{name: "argument too many", args: "work x", code: 2, err: "demo: unknown command \"x\" for \"demo work\"\n" +
			hint},
		{name: "unknown verb", args: "wrok", code: 2, err: "demo: unknown command \"wrok\" for \"demo\"\n\nDid " +
			"you mean this?\n\twork"},
		{name: "no verb", args: "", code: 2},
		{name: "missing flag", args: "must", code: 2, err: "demo: required flag(s) \"model\" not set\nTry: demo must " +
			"--help\n"},
		{name: "missing flag from the environment", args: "must", vars: map[string]string{"HINDSIGHT_MODEL": "m"}},
		{name: "bad environment", args: "work", vars: map[string]string{"HINDSIGHT_MAX_ROUNDS": "x"}, code: 2,
			err: "demo: invalid value \"x\" of the environment variable HINDSIGHT_MAX_ROUNDS, which stands for " +
				"--max-rounds: "},
		{name: "bad log level", args: "work --log-level loud", code: 2, err: "demo: invalid argument \"loud\" for " +
			"\"--log-level\" flag: expected debug | info | warn | error\n" + hint},
		{name: "help", args: "work --help"},
		{name: "help verb", args: "help work"},
		{name: "help of the root", args: "--help"},
		{name: "version", args: "--version"},
	} {
		got := try(t, c.vars, c.body, strings.Fields(c.args)...)
		if got.code != c.code || !strings.HasPrefix(got.stderr, c.err) || (c.err == "" && got.stderr != "") {
			t.Errorf("%s: got code %d and %q, want %d and %q", c.name, got.code, got.stderr, c.code, c.err)
		}
	}
}

func TestHelpAndVersionAreOutput(t *testing.T) {
	got := try(t, nil, nil, "work", "--help")
	for _, want := range []string{"--max-rounds", "HINDSIGHT_", "Exit codes: 0 done", "least level that is logged"} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("help: no %q in %q", want, got.stdout)
		}
	}
	for line := range strings.Lines(got.stdout) {
		if len(line) > 101 {
			t.Errorf("a line of %d bytes: %s", len(line), line)
		}
	}
	if got := try(t, nil, nil, "--version"); !strings.HasPrefix(got.stdout, "demo ") ||
		!strings.Contains(got.stdout, "go1.") {
		t.Errorf("version: %q", got.stdout)
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	wait := func(ctx context.Context, _ *Env, _ *cobra.Command) error {
		cancel() // as the first signal does
		<-ctx.Done()
		return fmt.Errorf("inject: %w", ctx.Err())
	}
	if got := tryContext(ctx, nil, wait, "work"); got.code != Interrupted || got.stderr != "demo: interrupted\n" {
		t.Errorf("got %+v", got)
	}
	graceful := func(ctx context.Context, _ *Env, _ *cobra.Command) error { return nil }
	if got := tryContext(ctx, nil, graceful, "work"); got.code != Done {
		t.Errorf("a command that ended well: %+v", got)
	}
	failed := func(ctx context.Context, _ *Env, _ *cobra.Command) error { return errors.New("disk full") }
	if got := tryContext(ctx, nil, failed, "work"); got.code != Failed || got.stderr != "demo: disk full\n" {
		t.Errorf("a command that failed while stopping: %+v", got)
	}
}

func TestFlagsFallBackToTheEnvironment(t *testing.T) {
	vars := map[string]string{"HINDSIGHT_MAX_ROUNDS": "7", "HINDSIGHT_DATA": "env.csv", "HINDSIGHT_LEARNER": "greedy",
		"HINDSIGHT_HELP": "true"}
	got := try(t, vars, func(_ context.Context, env *Env, c *cobra.Command) error {
		n, _ := c.Flags().GetInt("max-rounds")
		data, _ := c.Flags().GetString("data")
		learner, _ := c.Flags().GetStringArray("learner")
		_, err := fmt.Fprintln(env.Stdout, n, data, learner, c.Flags().Changed("max-rounds"))
		return err
	}, "work", "--data", "flag.csv")
	if got.stdout != "7 flag.csv [greedy] true\n" {
		t.Errorf("got %+v; a flag wins over the environment, which wins over the default", got)
	}
}

func TestLogger(t *testing.T) {
	talk := func(_ context.Context, env *Env, _ *cobra.Command) error {
		env.Logger.Debug("quiet")
		env.Logger.Info("hello", "partition", 3)
		return nil
	}
	if got := try(t, nil, talk, "work"); !strings.Contains(got.stderr, "level=INFO msg=hello program=demo "+
		"partition=3") || strings.Contains(got.stderr, "quiet") {
		t.Errorf("text: %q", got.stderr)
	}
	if got := try(t, nil, talk, "work", "--log-level", "debug"); !strings.Contains(got.stderr, "quiet") {
		t.Errorf("debug: %q", got.stderr)
	}
	if got := try(t, nil, talk, "work", "--log-level=warn"); got.stderr != "" {
		t.Errorf("warn: %q", got.stderr)
	}
	got := try(t, map[string]string{"HINDSIGHT_LOG_FORMAT": "json"}, talk, "work")
	var line struct {
		Msg       string
		Partition int
	}
	if err := json.Unmarshal([]byte(got.stderr), &line); err != nil || line.Msg != "hello" || line.Partition != 3 {
		t.Errorf("json: %q: %v", got.stderr, err)
	}
}
