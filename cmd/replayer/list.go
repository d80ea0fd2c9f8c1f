package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"hindsight/internal/daemon"
	"hindsight/internal/delay"
	"hindsight/internal/grammar"
	"hindsight/internal/judge"
	"hindsight/internal/replay"
	"hindsight/internal/words"
	"hindsight/internal/world"
)

// listing is the output of list --json.
type listing struct {
	Learners     []grammar.Entry `json:"learners"`
	Oracles      []grammar.Entry `json:"oracles"`
	Environments []grammar.Entry `json:"environments"`
	Twists       []grammar.Entry `json:"twists"`
	Delays       []grammar.Entry `json:"delays"`
	Policies     []grammar.Entry `json:"policies"`
}

func listCommand(env *daemon.Env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "Name the learners, oracles, environments, delays and policies",
		Args:    cobra.NoArgs,
		Example: "  replayer list\n  replayer list --json",
		RunE: func(*cobra.Command, []string) error {
			l := listing{replay.Learners(), replay.Oracles(), world.List(), replay.Twists(), delay.List(),
				judge.Targets()}
			return show(env, asJSON, &l)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON object on standard output")
	return cmd
}

// Write writes the lists for people.
func (l *listing) Write(w io.Writer) error {
	for _, part := range []struct {
		title   string
		entries []grammar.Entry
	}{
		{"Learners (--learner, or learner: in a model file)", l.Learners},
		{"Oracles (oracle: in a model file)", l.Oracles},
		{"Environments (--env; a file by --data)", l.Environments},
		{"Changes of an environment or a labelled CSV (--twist)", l.Twists},
		{"Delays, in later rounds (--delays; sums with +)", l.Delays},
		{"Policies judged on a log with propensities (--policy)", l.Policies},
	} {
		t := words.Table{Indent: "  ", Left: words.All}
		for _, e := range part.entries {
			name := e.Name
			if e.Params != "" {
				name += ":" + e.Params
			}
			t.Row(name, e.Meaning)
		}
		fmt.Fprintln(w, part.title)
		if err := t.Write(w, words.NoLimit); err != nil {
			return err
		}
		fmt.Fprintln(w)
	}
	return nil
}
