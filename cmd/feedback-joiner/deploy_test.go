package main

import (
	"testing"

	"hindsight/internal/daemon"
	"hindsight/internal/deployed"
)

// TestDeployedFlags holds that every command of this program in the deployment files
// names flags that there are, with values that they take.
func TestDeployedFlags(t *testing.T) {
	all, err := deployed.Commands("../../compose")
	if err != nil {
		t.Fatal(err)
	}
	ours := deployed.Of(all, "feedback-joiner")
	if len(ours) < 2 {
		t.Errorf("only %d commands in the deployment files: %v", len(ours), ours)
	}
	for _, c := range append(ours, deployed.Command{Name: "planted", Args: []string{"feedback-joiner", "--modle=x"}}) {
		cmd := command(&daemon.Env{Getenv: func(string) string { return "" }})
		cmd.Flags().String("log-format", "text", "") // all programs have it
		if err := cmd.ParseFlags(c.Args[1:]); (err != nil) != (c.Name == "planted") {
			t.Errorf("%s, %s: %v", c.File, c.Name, err)
		}
	}
}
