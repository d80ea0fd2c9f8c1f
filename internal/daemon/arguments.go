package daemon

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// NoArguments is [cobra.NoArgs] that knows some mistakes: the value of a flag that is true or
// false after a space, a slip in a verb, and a model file or a log that is named without its flag.
func NoArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if name := switchBefore(cmd, args[0]); name != "" {
		return fmt.Errorf("--%s takes its value after an equals sign: --%[1]s=%s", name, args[0])
	}
	if near := cmd.SuggestionsFor(args[0]); cmd.HasSubCommands() && len(near) > 0 {
		return fmt.Errorf("unknown command %q (did you mean %q?)", args[0], near[0])
	}
	if ext := filepath.Ext(args[0]); (ext == ".yaml" || ext == ".yml") && cmd.Flags().Lookup("model") != nil {
		return fmt.Errorf("%s takes no arguments, and found %q; a model file is named by a flag: %[1]s --model %[2]s",
			cmd.CommandPath(), args[0])
	}
	if f := cmd.Flags().Lookup("data"); f != nil {
		return fmt.Errorf("%s takes no arguments, and found %q; a log is named by a flag: %[1]s --data %s",
			cmd.CommandPath(), args[0], args[0])
	}
	return cobra.NoArgs(cmd, args)
}

// switchBefore returns a flag that was given without a value, which the argument probably is; "" if there is none.
func switchBefore(cmd *cobra.Command, arg string) (name string) {
	if a := strings.ToLower(arg); a != "true" && a != "false" {
		return ""
	}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if name == "" && f.NoOptDefVal != "" && f.Value.String() == f.NoOptDefVal {
			name = f.Name
		}
	})
	return name
}

// OneArgument returns a check that a command has exactly one argument, and says which.
func OneArgument(what, example string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch len(args) {
		case 0:
			return fmt.Errorf("which %s? For example: %s %s", what, cmd.CommandPath(), example)
		case 1:
			return nil
		}
		return fmt.Errorf("%s takes one %s, and found %d arguments, the second %q", cmd.CommandPath(), what,
			len(args), args[1])
	}
}
