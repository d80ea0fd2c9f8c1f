package inject

import (
	"bytes"
	"context"
	"sync"

	"hindsight/pkg/stream"
)

// decisionFeed reads the decisions of all partitions as they come.
type decisionFeed struct {
	one     stream.Reader        // of the only partition
	batches chan []stream.Record // of several
	failed  chan error
	cancel  context.CancelFunc
	readers sync.WaitGroup
}

// openDecisions reads decisions from here on, or all of them.
func (in *Injection) openDecisions(ctx context.Context) (*decisionFeed, error) {
	f := &decisionFeed{batches: make(chan []stream.Record), failed: make(chan error, in.Partitions), cancel: func() {}}
	var readers []stream.Reader
	for p := range in.Partitions {
		_, from, err := in.Log.Bounds(ctx, in.Topics.Decisions, p)
		if in.Taught {
			from = stream.Earliest
		}
		if err == nil {
			var r stream.Reader
			if r, err = in.Log.Read(ctx, in.Topics.Decisions, p, from); err == nil {
				readers = append(readers, r)
			}
		}
		if err != nil {
			for _, r := range readers {
				r.Close()
			}
			return nil, err
		}
	}
	if len(readers) == 1 {
		f.one = readers[0]
		return f, nil
	}
	ctx, f.cancel = context.WithCancel(ctx)
	for _, r := range readers {
		f.readers.Go(func() {
			defer r.Close()
			f.failed <- f.pump(ctx, r)
		})
	}
	return f, nil
}

// pump hands on what a reader reads.
func (f *decisionFeed) pump(ctx context.Context, r stream.Reader) error {
	for {
		batch, err := r.Next(ctx, nil)
		if err != nil {
			return err
		}
		for i := range batch {
			batch[i].Value = bytes.Clone(batch[i].Value)
		}
		select {
		case f.batches <- batch:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// next reads on, but not for ever. What it returns is valid until the next call.
func (f *decisionFeed) next(ctx context.Context, dst []stream.Record) ([]stream.Record, error) {
	stalled, cancel := context.WithTimeoutCause(ctx, injectStall, errInjectStalled)
	defer cancel()
	var err error
	if f.one != nil {
		dst, err = f.one.Next(stalled, dst)
	} else {
		select {
		case batch := <-f.batches:
			return append(dst, batch...), nil
		case err = <-f.failed:
		case <-stalled.Done():
			err = stalled.Err()
		}
	}
	if err != nil && ctx.Err() == nil && stalled.Err() != nil {
		return dst, errInjectStalled
	}
	return dst, err
}

func (f *decisionFeed) close() {
	f.cancel()
	f.readers.Wait()
	if f.one != nil {
		f.one.Close()
	}
}
