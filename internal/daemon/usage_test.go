package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// says compares an error with the text that it is to have; "": there is none.
func says(t *testing.T, name string, err error, want string) {
	t.Helper()
	if err == nil && want != "" || err != nil && err.Error() != want {
		t.Errorf("%s: %v, want %q", name, err, want)
	}
}

func TestArguments(t *testing.T) {
	parent := &cobra.Command{Use: "p", SuggestionsMinimumDistance: 1}
	sub := &cobra.Command{Use: "work", Run: func(*cobra.Command, []string) {}}
	parent.AddCommand(sub)
	for _, c := range []struct {
		name string
		of   *cobra.Command
		with func(f *pflag.FlagSet)
		args string
		want string
	}{
		{name: "none", of: &cobra.Command{Use: "p"}},
		{name: "one", of: &cobra.Command{Use: "p"}, args: "x", want: `unknown command "x" for "p"`},
		{name: "slip", of: parent, args: "wrk", want: `unknown command "wrk" (did you mean "work"?)`},
		{name: "no slip", of: parent, args: "elephant", want: `unknown command "elephant" for "p"`},
		{name: "yaml", of: &cobra.Command{Use: "p"}, with: func(f *pflag.FlagSet) { f.String("model", "", "") },
			args: "m.yaml", want: `p takes no arguments, and found "m.yaml"; a model file is named by a flag: ` +
				`p --model m.yaml`},
		{name: "yml", of: &cobra.Command{Use: "p"}, with: func(f *pflag.FlagSet) { f.String("model", "", "") },
			args: "m.yml", want: `p takes no arguments, and found "m.yml"; a model file is named by a flag: ` +
				`p --model m.yml`},
		{name: "no yaml", of: &cobra.Command{Use: "p"}, with: func(f *pflag.FlagSet) { f.String("model", "", "") },
			args: "m.csv", want: `unknown command "m.csv" for "p"`},
		{name: "no such flag", of: &cobra.Command{Use: "p"}, args: "m.yaml", want: `unknown command "m.yaml" for "p"`},
		{name: "data", of: &cobra.Command{Use: "p"}, with: func(f *pflag.FlagSet) { f.String("data", "", "") },
			args: "m.csv", want: `p takes no arguments, and found "m.csv"; a log is named by a flag: p --data m.csv`},
		{name: "switch", of: &cobra.Command{Use: "p"}, with: func(f *pflag.FlagSet) {
			f.Bool("a", false, "")
			f.Bool("b", false, "")
		}, args: "--a False", want: "--a takes its value after an equals sign: --a=False"},
		{name: "switch, true", of: &cobra.Command{Use: "p"}, with: func(f *pflag.FlagSet) { f.Bool("a", false, "") },
			args: "--a true", want: "--a takes its value after an equals sign: --a=true"},
		{name: "two switches", of: &cobra.Command{Use: "p"}, with: func(f *pflag.FlagSet) {
			f.Bool("a", false, "")
			f.Bool("b", false, "")
		}, args: "--b --a true", want: "--a takes its value after an equals sign: --a=true"},
		{name: "switch off", of: &cobra.Command{Use: "p"}, with: func(f *pflag.FlagSet) { f.Bool("a", true, "") },
			args: "--a=false true", want: `unknown command "true" for "p"`},
		{name: "a word", of: &cobra.Command{Use: "p"}, with: func(f *pflag.FlagSet) { f.Bool("a", true, "") },
			args: "--a yes", want: `unknown command "yes" for "p"`},
	} {
		if c.with != nil {
			c.with(c.of.Flags())
		}
		if err := c.of.ParseFlags(strings.Fields(c.args)); err != nil {
			t.Fatal(err)
		}
		says(t, c.name, NoArguments(c.of, c.of.Flags().Args()), c.want)
	}
	one, p := OneArgument("file", "x.csv"), &cobra.Command{Use: "p"}
	says(t, "none", one(p, nil), "which file? For example: p x.csv")
	says(t, "one", one(p, []string{"x"}), "")
	says(t, "two", one(p, []string{"x", "y"}), `p takes one file, and found 2 arguments, the second "y"`)
}

// TestBounds: at a bound, a step outside of it, by the arguments and by the environment.
func TestBounds(t *testing.T) {
	for _, c := range []struct{ args, env, want string }{
		{"", "", ""}, // the default, which is out of bounds, says that nothing is said
		{"--n 1 --x 0.5 --wait 1s", "", ""}, {"--n 9 --x 2.5 --wait 1m", "", ""},
		{"--n 0", "", "--n 0: it must be at least 1"}, {"--n 10", "", "--n 10: it must be at most 9"},
		{"--x 0.49", "", "--x 0.49: it must be at least 0.5"}, {"--x 2.51", "", "--x 2.51: it must be at most 2.5"},
		{"--x NaN", "", "--x NaN: it must be at least 0.5"},
		{"--wait 999ms", "", "--wait 999ms: it must be at least 1s"},
		{"--wait 1m1ns", "", "--wait 1m0.000000001s: it must be at most 1m0s"},
		{"--n 10 --x 7", "", "--n 10: it must be at most 9"}, {"--free 1000", "", ""},
		{"", "11", "--n 11: it must be at most 9"}, {"--n 3", "11", ""},
	} {
		var stderr bytes.Buffer
		env := &Env{Args: strings.Fields(c.args), Stdout: &stderr, Stderr: &stderr, Getenv: func(k string) string {
			return map[string]string{"HINDSIGHT_N": c.env}[k]
		}}
		cmd := &cobra.Command{Use: "p", RunE: func(*cobra.Command, []string) error { return nil }}
		f := cmd.Flags()
		f.Int("n", -5, "")
		f.Int("free", 0, "")
		f.Float64("x", 1, "")
		f.Duration("wait", 0, "")
		Bounds{"n": {3, 4}}.Set(f)
		Bounds{"n": {1, 9}, "x": {0.5, 2.5}, "wait": {1e9, 60e9}}.Set(f)
		code, want, is := Run(t.Context(), env, cmd), c.want, WrongUsage
		if want == "" {
			is = Done
		} else {
			want = "p: " + want + "\nTry: p --help\n"
		}
		if code != is || stderr.String() != want {
			t.Errorf("%q, %q: %d and %q, want %q", c.args, c.env, code, stderr.String(), want)
		}
		if !Bounded(f.Lookup("n")) || Bounded(f.Lookup("free")) {
			t.Error("the wrong flags have bounds")
		}
	}
}

func TestHurried(t *testing.T) {
	boom := errors.New("boom")
	for _, c := range []struct {
		signal, takes, ends time.Duration
		err                 error
	}{
		{time.Hour, time.Second, time.Second, boom},
		{time.Second, time.Second + hurry - 1, time.Second + hurry - 1, boom},
		{time.Second, time.Second + hurry + 1, time.Second + hurry, context.DeadlineExceeded},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), c.signal)
			defer cancel()
			begin := time.Now()
			err := Hurried(ctx, func() error { time.Sleep(c.takes); return boom })
			if took := time.Since(begin); !errors.Is(err, c.err) || took != c.ends {
				t.Errorf("%+v: %v after %v", c, err, took)
			}
			time.Sleep(time.Hour)
		})
	}
}

// TestBatches: those commands alone that are marked do not outlive a signal.
func TestBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root := &cobra.Command{Use: "p"}
		slow := func(*cobra.Command, []string) error { time.Sleep(time.Minute); return nil }
		batch, other := Batch(&cobra.Command{Use: "b", RunE: slow}), &cobra.Command{Use: "o", RunE: slow}
		root.AddCommand(batch, other)
		hurryBatches(root)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for cmd, want := range map[*cobra.Command]time.Duration{batch: hurry, other: time.Minute} {
			cmd.SetContext(ctx)
			begin := time.Now()
			if err := cmd.RunE(cmd, nil); time.Since(begin) != want || (err != nil) != (cmd == batch) {
				t.Errorf("%s took %v, and failed with %v", cmd.Name(), time.Since(begin), err)
			}
		}
		time.Sleep(time.Hour)
	})
}

// TestObeyed: the first and the last of each range of characters that a terminal obeys, and their neighbours.
func TestObeyed(t *testing.T) {
	for _, c := range []struct {
		r    rune
		want bool
	}{{0, true}, {8, true}, {'\t', false}, {'\n', false}, {11, true}, {'\r', false}, {14, true}, {31, true},
		{' ', false}, {0x7e, false}, {0x7f, true}, {0x80, true}, {0x9f, true}, {0xa0, false}, {0x61b, false},
		{0x61c, true}, {0x61d, false}, {0x200d, false}, {0x200e, true}, {0x200f, true}, {0x2010, false},
		{0x2029, false}, {0x202a, true}, {0x202e, true}, {0x202f, false}, {0x2065, false}, {0x2066, true},
		{0x2069, true}, {0x206a, false}} {
		var b bytes.Buffer
		text := string(c.r)
		if _, err := (&Visible{w: &b}).Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if shown := b.String() == text; obeyed(c.r) != c.want || shown == c.want {
			t.Errorf("%U is written %q", c.r, b.String())
		}
	}
	for raw, want := range map[byte]string{0x80: `\u0080`, 0x9f: `\u009f`, 0xa0: "\xa0", 0xff: "\xff"} {
		var b bytes.Buffer
		if _, err := (&Visible{w: &b}).Write([]byte{raw, 'x'}); err != nil || b.String() != want+"x" {
			t.Errorf("%x is written %q, %v", raw, b.String(), err)
		}
	}
	if n, err := (&Visible{w: broken{}}).Write([]byte("x")); n != 0 || !errors.Is(err, errBroken) {
		t.Errorf("%d, %v of a broken pipe", n, err)
	}
}

var errBroken = errors.New("broken pipe")

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errBroken }

func TestLoopback(t *testing.T) {
	for host, want := range map[string]bool{"localhost": true, "127.0.0.1": true, "127.9.9.9": true, "::1": true,
		"10.0.0.1": false, "example.org": false, "": false, "0.0.0.0": false} {
		in := host
		if strings.Contains(host, ":") {
			in = "[" + host + "]"
		}
		if IsLoopback(host) != want || ToLoopback(in) != want || ToLoopback(in+":80") != want {
			t.Errorf("%q: %t, %t, %t", host, IsLoopback(host), ToLoopback(in), ToLoopback(in+":80"))
		}
	}
}

func TestListenRefuses(t *testing.T) {
	for address, want := range map[string]string{
		"nonsense": "address nonsense: missing port in address", "127.0.0.1:0": ""} {
		l, err := Listen(nil, "listen", address, false, "requests")
		says(t, address, err, want)
		if err == nil {
			l.Close()
		}
	}
	_, err := Listen(nil, "listen", "nonsense", true, "requests")
	says(t, "given", err, "--listen nonsense: listen tcp: address nonsense: missing port in address; choose another "+
		"address, or none")
}

func TestExitErrorSays(t *testing.T) {
	says(t, "code", &ExitError{Code: 3}, "exit code 3")
	says(t, "error", &ExitError{3, errors.New("boom")}, "boom")
}

// TestPasswordSeen: a password among the arguments is warned of, and no other command line.
func TestPasswordSeen(t *testing.T) {
	for _, seen := range []bool{false, true} {
		var stderr bytes.Buffer
		env := &Env{Args: []string{"work"}, Stdout: &stderr, Stderr: &stderr, Getenv: func(string) string { return "" },
			passwordSeen: seen}
		code := Run(t.Context(), env, demo(env, func(context.Context, *Env, *cobra.Command) error { return nil }))
		if warned := strings.Contains(stderr.String(), "HINDSIGHT_LOG"); code != Done || warned != seen {
			t.Errorf("seen %t: %d and %q", seen, code, stderr.String())
		}
	}
}

// TestErrorIsJSON: where the log is JSON the error is a line of it, whoever says that it is, and however early.
func TestErrorIsJSON(t *testing.T) {
	for _, c := range []struct {
		args, env string
		want      bool
	}{{"work --log-format=json", "", true}, {"work --log-format json", "", true}, {"work", "json", true},
		{"work --log-format json --nonsense", "", true}, {"work --nonsense", "json", true},
		{"work --nonsense", "", false}, {"work --nonsense --log-format=jsonx", "", false},
		{"work --log-format=text", "json", false}, {"work", "", false}} {
		got := try(t, map[string]string{"HINDSIGHT_LOG_FORMAT": c.env}, func(_ context.Context, env *Env,
			c *cobra.Command) error {
			fmt.Fprintln(c.ErrOrStderr(), "")
			return errors.New("boom")
		}, strings.Fields(c.args)...)
		if is := strings.Contains(got.stderr, `"exit_code":`) && strings.Contains(got.stderr, `"program":"demo"`); is !=
			c.want {
			t.Errorf("%q, %q: %q", c.args, c.env, got.stderr)
		}
	}
}
