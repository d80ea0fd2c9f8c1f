package kafkatest

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Line returns both ends of a partition by another client: send produces with acks=all and without linger, and does not
// wait; receive waits, and calls f for what has come. It makes the topic if there is none.
func (c *Cluster) Line(topic string) (send func(value []byte), receive func(f func(r *kgo.Record))) {
	c.t.Helper()
	c.CreateTopic(topic, 1)
	from := c.Client(kgo.DefaultProduceTopic(topic), kgo.ProducerLinger(0), kgo.RequiredAcks(kgo.AllISRAcks()))
	to := c.Client(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}))
	ctx := context.Background()
	send = func(value []byte) {
		from.Produce(ctx, &kgo.Record{Value: value}, func(_ *kgo.Record, err error) {
			if err != nil {
				c.t.Error(err)
			}
		})
	}
	receive = func(f func(r *kgo.Record)) {
		fetched := to.PollFetches(ctx)
		if err := fetched.Err(); err != nil {
			c.t.Error(err)
		}
		fetched.EachRecord(f)
	}
	return send, receive
}

// Trip returns one trip of a value through a partition by another client, until a consumer that waits has it. It is the
// least that anything on this cluster can take, and makes the topic if there is none.
func (c *Cluster) Trip(topic string) func(value []byte) {
	c.t.Helper()
	send, receive := c.Line(topic)
	trip := func(value []byte) {
		send(value)
		for arrived := false; !arrived && !c.t.Failed(); {
			receive(func(*kgo.Record) { arrived = true })
		}
	}
	for range 20 { // connections, metadata, compilers
		trip([]byte("warm"))
	}
	return trip
}
