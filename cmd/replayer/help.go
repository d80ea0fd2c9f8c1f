package main

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// groupKey is the annotation of a flag that says in which group help shows it.
const groupKey = "hindsight_group"

// groups are those of flags, as help shows them. What is in none is of the output.
var groups = []string{"Data", "Learners and delays", "Policies", "Output", "Servers"}

// rare are the flags that the first screen of help leaves out, beside those of servers; those of verbs
// with few flags are all shown.
var rare = strings.Fields(`mapping format csv outcome-time-column outcome-columns loss-column id-column
	feature-prefix rejects strict dedup twist accept order oracle hold-out distance action-columns lambda crossfit
	bootstrap min-events at sweep keep-inactive encoding sync`)

// firstScreen is how many flags a verb may have before help shows the first screen only.
const firstScreen = 25

// grouped puts the flags that register adds into a group.
func grouped(f *pflag.FlagSet, group string, register func()) {
	had := map[string]bool{}
	f.VisitAll(func(flag *pflag.Flag) { had[flag.Name] = true })
	register()
	f.VisitAll(func(flag *pflag.Flag) {
		if !had[flag.Name] && len(flag.Annotations[groupKey]) == 0 {
			_ = f.SetAnnotation(flag.Name, groupKey, []string{group}) // it is there
		}
	})
}

// withGroups lets help show the flags of a verb in groups, and of many the first screen only:
// --help-all shows the rest.
func withGroups(cmd *cobra.Command) *cobra.Command {
	n := 0
	cmd.Flags().VisitAll(func(*pflag.Flag) { n++ })
	all, run := n <= firstScreen, cmd.RunE
	if !all {
		asked := cmd.Flags().Bool("help-all", false, "help with all flags")
		args := cmd.Args
		cmd.Args = func(cmd *cobra.Command, given []string) error {
			if *asked {
				return nil
			}
			return args(cmd, given)
		}
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			if !*asked {
				return run(cmd, args)
			}
			all = true
			return cmd.Help()
		}
	}
	cmd.SetUsageFunc(func(c *cobra.Command) error {
		out := c.OutOrStdout()
		var b bytes.Buffer
		c.SetOut(&b)
		err := c.Parent().UsageFunc()(c)
		c.SetOut(out)
		head, rest, _ := strings.Cut(b.String(), "\nFlags:\n")
		_, tail, _ := strings.Cut(rest, "\n\nGlobal Flags:")
		_, werr := fmt.Fprintf(out, "%s\n%sGlobal Flags:%s", head, flagGroups(c.LocalFlags(), all), tail)
		return errors.Join(err, werr)
	})
	return cmd
}

// flagGroups writes flags in their groups.
func flagGroups(flags *pflag.FlagSet, all bool) string {
	var b strings.Builder
	for _, group := range groups {
		set := pflag.NewFlagSet(group, pflag.ContinueOnError)
		flags.VisitAll(func(f *pflag.Flag) {
			of := "Output"
			if a := f.Annotations[groupKey]; len(a) > 0 {
				of = a[0]
			}
			if of == group && (all || of != "Servers" && !slices.Contains(rare, f.Name)) {
				set.AddFlag(f)
			}
		})
		if set.HasAvailableFlags() {
			fmt.Fprintf(&b, "%s:\n%s\n", group, set.FlagUsagesWrapped(100))
		}
	}
	return b.String()
}
