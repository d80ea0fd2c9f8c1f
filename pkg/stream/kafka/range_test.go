package kafka

import (
	"context"
	"errors"
	"testing"
	"time"

	"hindsight/pkg/stream"
)

// TestOutOfRange: where a broker has no record at an offset it was trimmed or is not there yet; where the broker
// cannot say which, its error tells.
func TestOutOfRange(t *testing.T) {
	k := fake(t)
	c := dialed(t, k.ListenAddrs(), Options{})
	fill(t, open(t, c, "t", 1), "a", 2)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	p := &place{Topic: "t"}
	first, next, err := c.ends(ctx, p)
	if err != nil {
		t.Fatal(err)
	}
	for offset, want := range map[int64]error{first - 1: errTrimmed, first: errNotYet, next: errNotYet} {
		if err := c.outOfRange(ctx, p, offset); !errors.Is(err, want) {
			t.Errorf("offset %d of %d to %d: %v", offset, first, next, err)
		}
	}
	for _, offset := range []int64{first - 1, next} {
		if err := c.outOfRange(ctx, &place{Topic: "none"}, offset); !errors.Is(err, stream.ErrNotFound) {
			t.Errorf("offset %d of a topic that is not there: %v", offset, err)
		}
	}
}
