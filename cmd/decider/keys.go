package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"hindsight/internal/daemon"
	"hindsight/internal/door"
)

// keysCommand is decider keys.
func keysCommand(env *daemon.Env) *cobra.Command {
	var file string
	add := &cobra.Command{
		Use:   "add NAME ROLE --keys FILE",
		Short: "Make a key for a client, and print it",
		Long: `Make a key for a client of HTTP, add its hash to a file of keys, and print it: it is
shown this once. A decider that has the file takes the key within a second.

ROLE is decide, outcome, read or admin, which is all of them, or several with commas
between them. To take a key back, remove its line.`,
		Example: "  decider keys add web decide,outcome --keys shop.keys",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return fmt.Errorf("expected NAME and ROLE, and found %d arguments; for example: decider keys add web "+
					"decide,outcome --keys shop.keys", len(args))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if file == "" {
				return daemon.Usagef("--keys is missing: name the file that the key is added to, for example --keys " +
					"shop.keys")
			}
			made, err := door.AddKey(file, args[0], args[1])
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(env.Stdout, made)
			return err
		},
	}
	add.Flags().StringVar(&file, "keys", "", "file of keys, made with mode 0600 if there is none")
	all := &cobra.Command{Use: "keys", Short: "Make keys for clients of HTTP"}
	all.AddCommand(add)
	return all
}
