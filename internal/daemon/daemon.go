package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"hindsight/internal/secret"
)

// Exit codes of all programs.
const (
	Done        = 0
	Failed      = 1
	WrongUsage  = 2
	Interrupted = 130
)

// Env is all that a program touches of its process.
type Env struct {
	Args   []string            // without the program's name
	Getenv func(string) string // "" means unset
	Stdin  io.Reader
	Stdout io.Writer // results
	Stderr io.Writer // logs, errors, progress
	Logger *slog.Logger

	passwordSeen bool // the arguments held a password
}

// ExitError ends the process with a code of its own. Err may be nil: the command has said all there is to say.
type ExitError struct {
	Code int
	Err  error
}

func (e *ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

func (e *ExitError) Unwrap() error { return e.Err }

// Usagef returns an error that ends the process with [WrongUsage] and a hint to
// --help: for values of flags and arguments that only the command can judge.
func Usagef(format string, args ...any) error {
	return &ExitError{Code: WrongUsage, Err: fmt.Errorf(format, args...)}
}

// Main runs a program in the real environment and ends the process.
func Main(name string, build func(*Env) *cobra.Command) {
	ctx, stop := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		signal.Stop(signals) // from now on a signal has its default effect: it kills
		stop()
	}()
	args, seen := secret.TakeArguments()
	env := &Env{
		Args: args, passwordSeen: seen, Getenv: os.Getenv,
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	}
	cmd := build(env)
	hurryBatches(cmd)
	cmd.Use = name + strings.TrimPrefix(cmd.Use, cmd.Name())
	os.Exit(Run(ctx, env, cmd))
}

// Run runs a command in env and returns its exit code. It adds the flags that all programs have (--log-format,
// --log-level, --version), fills flags that are not given from the environment, sets env.Logger, and writes an error to
// env.Stderr. The commands below cmd must not have a PersistentPreRun of their own: it would take the place of this
// one.
func Run(ctx context.Context, env *Env, cmd *cobra.Command) int {
	env.Stdout, env.Stderr = &Visible{w: env.Stdout}, &Visible{w: env.Stderr}
	r := &run{env: env, stderr: env.Stderr, logs: addLogFlags(cmd)}
	if env.Logger == nil {
		env.Logger = slog.New(slog.NewTextHandler(env.Stderr, nil))
	}
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.Version = Version()
	cmd.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	cmd.SetUsageTemplate(usage(cmd.UsageTemplate()))
	cmd.SetArgs(append([]string{}, env.Args...)) // nil would mean os.Args
	cmd.SetIn(env.Stdin)
	cmd.SetOut(env.Stdout)
	cmd.SetErr(env.Stderr)
	cmd.InitDefaultHelpCmd()
	r.wrap(cmd)
	before := cmd.PersistentPreRunE
	cmd.PersistentPreRunE = func(c *cobra.Command, args []string) error {
		if err := r.prepare(c); err != nil || before == nil {
			return err
		}
		return before(c, args)
	}
	at, err := cmd.ExecuteContextC(ctx)
	if at == nil {
		at = cmd
	}
	return r.end(ctx, at, err)
}

// usageColumns is the width of help, in which long texts of flags are wrapped.
const usageColumns = "100"

// usage makes the template of help from cobra's.
func usage(template string) string {
	return strings.ReplaceAll(template, ".FlagUsages |", ".FlagUsagesWrapped "+usageColumns+" |") + `
A flag that is not given is taken from the environment: HINDSIGHT_SEED_FILE for --seed-file.
Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted, unless the text above has others.
`
}

// run is one execution of a command.
type run struct {
	env      *Env
	stderr   io.Writer
	logs     *logFlags
	prepared bool // the flags are read to their end
	started  bool // the command's own code has begun: errors are its errors, not usage
}

// inJSON reports whether the log is, or would have been, JSON.
func (r *run) inJSON() bool {
	return r.logs.format.Value == "json" || !r.prepared &&
		(r.env.Getenv(EnvName("log-format")) == "json" || strings.Contains(strings.Join(r.env.Args, "=")+"=",
			"--log-format=json="))
}

// wrap notes, for every command of the tree, when its own code begins.
func (r *run) wrap(c *cobra.Command) {
	if run := c.RunE; run != nil {
		c.RunE = func(c *cobra.Command, args []string) error {
			r.started = true
			return run(c, args)
		}
	}
	for _, sub := range c.Commands() {
		r.wrap(sub)
	}
}

// prepare runs when the flags of c are parsed.
func (r *run) prepare(c *cobra.Command) error {
	if err := fillFromEnv(c.Flags(), r.env.Getenv); err != nil {
		return err
	}
	if err := checkBounds(c.Flags()); err != nil {
		return err
	}
	r.env.Logger = r.logs.logger(r.env.Stderr).With("program", c.Root().Name())
	if r.prepared = true; r.inJSON() {
		r.env.Stderr = &Lines{log: r.env.Logger}
	}
	if r.env.passwordSeen {
		r.env.Logger.Warn("a password among the arguments could be seen by everybody on this machine: give it in a " +
			"file or the environment, for example the URL in " + EnvName("log"))
	}
	return nil
}

// end reports err, if any, and chooses the exit code.
func (r *run) end(ctx context.Context, c *cobra.Command, err error) int {
	var exit *ExitError
	code := Failed
	switch {
	case err == nil && !c.Runnable() && !asked(c, "help") && !asked(c, "version"):
		return WrongUsage // a verb is missing; cobra has shown the help
	case err == nil:
		return Done
	case errors.As(err, &exit):
		code = exit.Code
		if exit.Err == nil {
			return code
		}
	case !r.started:
		code = WrongUsage
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		err, code = errors.New("interrupted"), Interrupted
	}
	if r.inJSON() {
		r.logs.format.Value = "json"
		r.logs.logger(r.stderr).Error(err.Error(), "program", c.Root().Name(), "exit_code", code)
		return code
	}
	fmt.Fprintf(r.env.Stderr, "%s: %v\n", c.Root().Name(), err)
	if code == WrongUsage {
		fmt.Fprintf(r.env.Stderr, "Try: %s --help\n", c.CommandPath())
	}
	return code
}

// asked reports whether a bool flag was given.
func asked(c *cobra.Command, flag string) bool {
	f := c.Flags().Lookup(flag)
	return f != nil && f.Changed
}
