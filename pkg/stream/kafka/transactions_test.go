package kafka

import (
	"context"
	"strings"
	"testing"
	"time"

	"hindsight/pkg/stream"
)

// A transaction that nobody ends is named, with its producer where the broker tells that and
// the command that ends it, and no longer when it has ended.
func TestOpenTransactionIsNamed(t *testing.T) {
	everywhere(t, openTransactionIsNamed)
}

func openTransactionIsNamed(t *testing.T, brokers []string) {
	c := dialed(t, brokers, Options{})
	c.hangs = 0
	a := open(t, c, "t", 1)
	end := begin(t, brokers, "t", "x", 1)
	fill(t, a, "a", 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := c.Log().Read(ctx, "t", 0, stream.Earliest)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if recs, err := r.Next(ctx, nil); err != nil || len(recs) != 1 || recs[0].Type != stream.TypeOpen {
		t.Fatalf("before the transaction: %v, %v", recs, err)
	}
	held := c.Log().(stream.Holder).Held
	for held() == nil && ctx.Err() == nil {
		<-time.After(time.Millisecond)
	}
	t.Log(held())
	if said := held().Error(); !strings.Contains(said, "the transaction of producer ") ||
		!strings.Contains(said, "--topic t --partition 0 --start-offset 1") {
		t.Errorf("it says %s", said)
	}
	end(true)
	recs, err := r.Next(ctx, nil)
	if err != nil || len(recs) == 0 || string(recs[0].Value) != "x0" {
		t.Errorf("after the transaction: %v, %v", recs, err)
	}
	if err := held(); err != nil {
		t.Errorf("it has ended, and still: %v", err)
	}
}
