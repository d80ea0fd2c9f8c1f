package daemon

import (
	"context"
	"time"

	"github.com/spf13/cobra"
)

// hurry is how long what a signal has stopped may still take, to say what it has.
const hurry = 800 * time.Millisecond

// Hurried runs f, and does not wait for it longer than that once ctx is done, whatever f does:
// reads standard input where nothing comes, or computes. The process is to end then.
func Hurried(ctx context.Context, f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return err
	case <-time.After(hurry):
		return ctx.Err()
	}
}

// batchKey is the annotation of commands that [Main] hurries.
const batchKey = "hindsight_batch"

// Batch marks a command that has nothing to put away when a signal stops it.
func Batch(c *cobra.Command) *cobra.Command {
	c.Annotations = map[string]string{batchKey: "yes"}
	return c
}

// hurryBatches lets no command below c that is marked outlive a signal for long.
func hurryBatches(c *cobra.Command) {
	for _, sub := range c.Commands() {
		if run := sub.RunE; sub.Annotations[batchKey] != "" {
			sub.RunE = func(c *cobra.Command, args []string) error {
				return Hurried(c.Context(), func() error { return run(c, args) })
			}
		}
	}
}
