package kafka

import (
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"hindsight/pkg/stream"
)

// Owners and writers ask for the acknowledgement of every in-sync replica.
func TestAcksOfAll(t *testing.T) {
	k := fake(t)
	defer k.Close()
	var asked, others atomic.Int64
	k.ControlKey(int16(kmsg.Produce), func(r kmsg.Request) (kmsg.Response, error, bool) {
		k.KeepControl()
		asked.Add(1)
		if r.(*kmsg.ProduceRequest).Acks != -1 {
			others.Add(1)
		}
		return nil, nil, false
	})
	c := client(t, k, Options{})
	defer c.Close()
	l, ctx := c.Log(), t.Context()
	if err := l.Create(ctx, "t", 1, stream.TopicOptions{}); err != nil {
		t.Fatal(err)
	}
	owner, _, err := l.Open(ctx, "t", 0, stream.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close()
	fill(t, owner, "owner", 3)
	writer, err := l.Writer(ctx, "t", 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	fill(t, writer, "writer", 3)
	if asked.Load() < 3 || others.Load() > 0 {
		t.Errorf("%d of %d requests are content with less", others.Load(), asked.Load())
	}
}
