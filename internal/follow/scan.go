package follow

import (
	"context"

	"hindsight/pkg/stream"
)

// pauseEvery is how many records lie between two calls of pause.
const pauseEvery = 64

// ScanAll is [stream.Scan] of the first partition of a topic, from what is kept of it to before end,
// which may take minutes. Now and then it calls pause, whose error ends it; nil: disabled.
func ScanAll(ctx context.Context, log stream.Log, topic string, end int64, pause func() error,
	f func(*stream.Record) error) error {
	n := 0
	return stream.Scan(ctx, log, topic, 0, stream.Earliest, end, func(r *stream.Record) error {
		if n%pauseEvery == 0 && pause != nil {
			if err := pause(); err != nil {
				return err
			}
		}
		n++
		return f(r)
	})
}
