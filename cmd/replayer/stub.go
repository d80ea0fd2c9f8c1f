package main

import (
	"github.com/spf13/cobra"

	"hindsight/internal/daemon"
)

func injectCommand(env *daemon.Env) *cobra.Command { return &cobra.Command{Use: "inject"} }
func verifyCommand(env *daemon.Env) *cobra.Command { return &cobra.Command{Use: "verify"} }
