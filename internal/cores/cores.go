// Package cores does many things in parallel over the cores of the machine.
package cores

import (
	"context"
	"runtime"

	"golang.org/x/sync/errgroup"
)

// Each does the things 0 … n−1, as many at once as there are cores, and returns the first error; no more begin after
// one, nor after the context has ended.
func Each(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	g, running := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := range n {
		g.Go(func() error {
			if running.Err() != nil {
				return running.Err()
			}
			return do(running, i)
		})
	}
	return g.Wait()
}
