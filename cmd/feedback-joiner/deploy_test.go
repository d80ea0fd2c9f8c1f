package main

import (
	"testing"

	"hindsight/internal/daemon"
	"hindsight/internal/deployed"
)

// TestDeployedFlags holds that every command of this program in the deployment files
// names flags that there are, with values that they take.
func TestDeployedFlags(t *testing.T) {
	if err := deployed.Check("../../compose", "feedback-joiner", 2, func(args []string) error {
		cmd := command(&daemon.Env{Getenv: func(string) string { return "" }})
		cmd.Flags().String("log-format", "text", "") // all programs have it
		return cmd.ParseFlags(args)
	}); err != nil {
		t.Error(err)
	}
}
