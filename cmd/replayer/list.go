package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"hindsight/internal/daemon"
	"hindsight/internal/replay"
	"hindsight/internal/words"
)

// listing is the output of list --json.
type listing struct {
	Learners     []replay.Entry `json:"learners"`
	Oracles      []replay.Entry `json:"oracles"`
	Environments []replay.Entry `json:"environments"`
	Twists       []replay.Entry `json:"twists"`
	Delays       []replay.Entry `json:"delays"`
	Policies     []replay.Entry `json:"policies"`
}

func listCommand(env *daemon.Env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "Name the learners, oracles, environments, delays and policies",
		Args:    cobra.NoArgs,
		Example: "  replayer list\n  replayer list --json",
		RunE: func(*cobra.Command, []string) error {
			l := listing{replay.Learners(), replay.Oracles(), replay.Environments(), replay.Twists(), replay.DelayList(),
				replay.Targets()}
			if asJSON {
				return json.NewEncoder(env.Stdout).Encode(l)
			}
			return l.write(env.Stdout)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON object on standard output")
	return cmd
}

func (l *listing) write(w io.Writer) error {
	for _, part := range []struct {
		title   string
		entries []replay.Entry
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
