package cores

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
)

// After an error nothing more begins, and it is the one that is returned; a context that has ended begins nothing.
func TestEach(t *testing.T) {
	wrong, n := errors.New("wrong"), atomic.Int64{}
	if err := Each(t.Context(), 1e6, func(context.Context, int) error { n.Add(1); return wrong }); err != wrong ||
		n.Load() > 1000 {
		t.Errorf("%v after %d", err, n.Load())
	}
	var sum atomic.Int64
	add := func(_ context.Context, i int) error { sum.Add(int64(i)); return nil }
	if err := Each(t.Context(), 100, add); err != nil ||
		sum.Load() != 4950 {
		t.Errorf("%v, sum %d", err, sum.Load())
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Each(ended, 1, func(context.Context, int) error { t.Error("begun"); return nil }); err != context.Canceled {
		t.Error(err)
	}
}
