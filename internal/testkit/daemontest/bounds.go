// Package daemontest holds what all programs' flags must keep.
package daemontest

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hindsight/internal/daemon"
)

// Bounds holds that every flag of a program whose value is a number has bounds, and that
// numbers beside them are wrong usage.
func Bounds(t *testing.T, build func(*daemon.Env) *cobra.Command) {
	t.Helper()
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if kind := f.Value.Type(); slices.Contains([]string{"string", "stringArray", "stringSlice", "bool"},
				kind) || strings.Contains(kind, "|") {
				return
			}
			if !daemon.Bounded(f) {
				t.Errorf("%s --%s is a %s without daemon.Bounds", c.CommandPath(), f.Name, f.Value.Type())
			} else if f.Value.Type() != "uint64" { // every one is a seed
				refused(t, build, c, f)
			}
		})
		for _, sub := range c.Commands() {
			visit(sub)
		}
	}
	visit(build(&daemon.Env{Getenv: noEnv}))
}

func refused(t *testing.T, build func(*daemon.Env) *cobra.Command, c *cobra.Command, f *pflag.Flag) {
	for _, number := range []string{"1000000000000000000", "-2"} {
		if f.Value.Type() == "duration" {
			number = strings.Replace(number+"s", "1000000000000000000s", "2562047h", 1)
		}
		args := append(strings.Fields(c.CommandPath())[1:], "--"+f.Name+"="+number)
		if c.Args != nil && c.Args(c, nil) != nil {
			args = append(args, "argument")
		}
		var said strings.Builder
		env := &daemon.Env{Args: args, Getenv: noEnv, Stdout: io.Discard, Stderr: &said}
		code := daemon.Run(t.Context(), env, build(env))
		if code != daemon.WrongUsage || !strings.Contains(said.String(), "--"+f.Name+" ") ||
			!strings.Contains(said.String(), ": it must be at ") {
			t.Errorf("%v: exit code %d: %s", args, code, said.String())
		}
	}
}

func noEnv(string) string { return "" }
