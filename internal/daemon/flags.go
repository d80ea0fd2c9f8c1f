package daemon

import (
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// EnvName returns the environment variable that a flag falls back to: HINDSIGHT_SEED_FILE for --seed-file.
func EnvName(flag string) string {
	return "HINDSIGHT_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// fillFromEnv sets every flag that was not given and has an environment variable. It then counts as given.
func fillFromEnv(flags *pflag.FlagSet, getenv func(string) string) error {
	var first error
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed || first != nil || f.Name == "help" || f.Name == "version" {
			return
		}
		text := getenv(EnvName(f.Name))
		if text == "" {
			return
		}
		if err := f.Value.Set(text); err != nil {
			first = fmt.Errorf("invalid value %q of the environment variable %s, which stands for --%s: %w", text,
				EnvName(f.Name), f.Name, err)
			return
		}
		f.Changed = true
	})
	return first
}

// choice is the value of a flag that takes one of a few words.
type choice struct {
	Value   string
	Allowed []string
}

// Set implements [pflag.Value].
func (c *choice) Set(s string) error {
	if !slices.Contains(c.Allowed, s) {
		return fmt.Errorf("expected %s", strings.Join(c.Allowed, " | "))
	}
	c.Value = s
	return nil
}

// String implements [pflag.Value].
func (c *choice) String() string { return c.Value }

// Type implements [pflag.Value]; it names the value in --help.
func (c *choice) Type() string { return strings.Join(c.Allowed, "|") }

type logFlags struct{ format, level choice }

func addLogFlags(cmd *cobra.Command) *logFlags {
	l := &logFlags{
		format: choice{Value: "text", Allowed: []string{"text", "json"}},
		level:  choice{Value: "info", Allowed: []string{"debug", "info", "warn", "error"}},
	}
	cmd.PersistentFlags().Var(&l.format, "log-format", "format of the log on standard error")
	cmd.PersistentFlags().Var(&l.level, "log-level", "least level that is logged")
	return l
}

// withUnits writes durations as 1.5s: a bare number would not say of what.
func withUnits(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}

func (l *logFlags) logger(w io.Writer) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(l.level.Value)); err != nil {
		level = slog.LevelInfo // not reached: Choice allows slog's names only
	}
	o := &slog.HandlerOptions{Level: level}
	if l.format.Value == "json" {
		o.ReplaceAttr = withUnits
		return slog.New(newQuota(slog.NewJSONHandler(w, o)))
	}
	return slog.New(newQuota(slog.NewTextHandler(w, o)))
}
