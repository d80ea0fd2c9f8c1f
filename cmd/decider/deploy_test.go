package main

import (
	"testing"

	"hindsight/internal/daemon"
	"hindsight/internal/deployed"
	"hindsight/internal/engine"
)

// TestDeployedFlags holds that every command of this program in the deployment files
// names flags that there are, with values that they take.
func TestDeployedFlags(t *testing.T) {
	all, err := deployed.Commands("../../compose")
	if err != nil {
		t.Fatal(err)
	}
	ours := deployed.Of(all, "decider")
	if len(ours) < 8 {
		t.Errorf("only %d commands in the deployment files: %v", len(ours), ours)
	}
	for _, c := range append(ours, deployed.Command{Name: "planted", Args: []string{"decider", "--lag=mem:"}}) {
		cmd := command(&daemon.Env{Getenv: func(string) string { return "" }})
		cmd.Flags().String("log-format", "text", "") // all programs have it
		err := cmd.ParseFlags(c.Args[1:])
		if (err != nil) != (c.Name == "planted") {
			t.Errorf("%s, %s: %v", c.File, c.Name, err)
		}
		if _, err := engine.Parse(cmd.Flag("log").Value.String()); err != nil {
			t.Errorf("%s, %s: %v", c.File, c.Name, err)
		}
	}
}
