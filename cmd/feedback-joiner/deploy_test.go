package main

import (
	"testing"

	"github.com/spf13/pflag"

	"hindsight/internal/daemon"
	"hindsight/internal/testkit/deployed"
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
	cmd := command(&daemon.Env{Getenv: func(string) string { return "" }})
	known := map[string]bool{}
	cmd.Flags().VisitAll(func(f *pflag.Flag) { known[daemon.EnvName(f.Name)] = true })
	if err := deployed.CheckVariables("../../compose", "feedback-joiner", 6,
		func(name string) bool { return known[name] }); err != nil {
		t.Error(err)
	}
}
