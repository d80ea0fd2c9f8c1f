package kafka

import (
	"context"
	"testing"
	"time"

	"github.com/segmentio/kafka-go/protocol/deletetopics"
)

// deleteTopics removes the suite's topics and waits until they are gone.
func deleteTopics(t testing.TB, o Options) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	c, err := Dial(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, topic := range []string{"shop.contexts", "shop.snapshots", "other", "bench", "t"} {
		r, err := c.metadata(ctx, []string{topic})
		if err != nil {
			t.Fatal(err)
		}
		for len(r.Topics) == 1 && r.Topics[0].ErrorCode == 0 {
			if _, err := c.ask(ctx, c.cluster.brokers[c.cluster.controller],
				&deletetopics.Request{TopicNames: []string{topic}, TimeoutMs: 10000}); err != nil {
				t.Fatal(err)
			}
			if r, err = c.metadata(ctx, []string{topic}); err != nil {
				t.Fatal(err)
			}
		}
	}
}
