package kafkatest

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Trip returns one trip of a value through a partition by another client: produced with
// acks=all and without linger, until a consumer that waits has it. It is the least that
// anything on this cluster can take, and makes the topic if there is none.
func (c *Cluster) Trip(topic string) func(value []byte) {
	c.t.Helper()
	c.CreateTopic(topic, 1)
	from := c.Client(kgo.DefaultProduceTopic(topic), kgo.ProducerLinger(0), kgo.RequiredAcks(kgo.AllISRAcks()))
	to := c.Client(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}))
	ctx := context.Background()
	trip := func(value []byte) {
		stored := make(chan int64, 1)
		from.Produce(ctx, &kgo.Record{Value: value}, func(r *kgo.Record, err error) {
			if err != nil {
				c.t.Error(err)
			}
			stored <- r.Offset
		})
		for offset, at := <-stored, int64(-1); at < offset && !c.t.Failed(); {
			fetched := to.PollFetches(ctx)
			if err := fetched.Err(); err != nil {
				c.t.Fatal(err)
			}
			fetched.EachRecord(func(r *kgo.Record) { at = r.Offset })
		}
	}
	for range 20 { // connections, metadata, compilers
		trip([]byte("warm"))
	}
	return trip
}
