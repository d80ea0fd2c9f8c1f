package kafkatest

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// survives checks that what a broker knows of an ID outlives an event: the next sequence,
// the last epoch, and what is a repeat. The log must be empty before.
func survives(p *producer, event func()) {
	p.t.Helper()
	id := p.id()
	p.accepted(0, id, 3, 0, "a")
	p.accepted(1, id, 4, 0, "b")
	p.accepted(2, id, 4, 1, "c")
	event()
	p.accepted(2, id, 4, 1, "c")
	p.refused(kerr.InvalidProducerEpoch, id, 3, 1)
	p.refused(kerr.OutOfOrderSequenceNumber, id, 4, 3)
	p.accepted(3, id, 4, 2, "d")
	p.accepted(4, id, 5, 0, "e")
	p.refused(kerr.InvalidProducerEpoch, id, 4, 3)
	p.holds("a", "b", "c", "d", "e")
}

func TestKafkaRealSchemeRestarts(t *testing.T) {
	Heavy(t)
	c := Hurt(t, 1)
	for _, f := range []struct {
		name string
		end  func(int)
	}{{"kill", c.Kill}, {"stop", c.Stop}} {
		t.Run(f.name, func(t *testing.T) {
			p := newProducer(t, c)
			survives(p, func() {
				f.end(1)
				c.Restart(1)
			})
		})
	}
}

// Deleting all records leaves what the leader knows: an old epoch is refused on an empty log. In the
// long form through kill -9, too, which does not always hold: once a broker that was killed right
// after the deletion had forgotten the ID, and took the old epoch.
func TestKafkaRealSchemeDeletedRecords(t *testing.T) {
	Heavy(t)
	c := Hurt(t, 1)
	p := newProducer(t, c)
	id := p.id()
	p.accepted(0, id, 3, 0, "a")
	p.accepted(1, id, 4, 0, "b")
	p.trim(2)
	p.refused(kerr.InvalidProducerEpoch, id, 3, 1)
	if os.Getenv("HINDSIGHT_LONG") != "" {
		c.Kill(1)
		c.Restart(1)
	}
	p.refused(kerr.InvalidProducerEpoch, id, 3, 1)
	p.accepted(2, id, 5, 0, "c")
}

// trim deletes the records before an offset.
func (p *producer) trim(before int64) {
	p.t.Helper()
	p.leader(func(ctx context.Context, b *kgo.Broker) (bool, error) {
		r := kmsg.NewPtrDeleteRecordsRequest()
		r.TimeoutMillis = 5000
		t, q := kmsg.NewDeleteRecordsRequestTopic(), kmsg.NewDeleteRecordsRequestTopicPartition()
		t.Topic, q.Offset = p.topic, before
		t.Partitions = append(t.Partitions, q)
		r.Topics = append(r.Topics, t)
		a, err := r.RequestWith(ctx, b)
		if err != nil {
			return false, err
		}
		return false, kerr.ErrorForCode(a.Topics[0].Partitions[0].ErrorCode)
	})
}

// A hole: a broker forgets an ID that has written nothing for producer.id.expiration.ms
// (a day, unless set otherwise), and then takes an older epoch again. The ID stays in
// the log's tail, and a fence with it works as before.
func TestKafkaRealSchemeExpires(t *testing.T) {
	Heavy(t)
	t.Parallel() // on a cluster of its own
	c := Start(t, Options{Properties: map[string]string{
		"producer.id.expiration.ms": "2000", "producer.id.expiration.check.interval.ms": "50"}})
	p := newProducer(t, c)
	id := p.id()
	p.accepted(0, id, 3, 0, "a")
	p.accepted(1, id, 4, 0, "b")
	p.refused(kerr.InvalidProducerEpoch, id, 3, 1)
	for limit := time.Now().Add(patience); p.known(); <-time.After(10 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatal("the ID does not expire")
		}
	}
	p.accepted(2, id, 3, 1, "a zombie's")
	p.accepted(3, id, 5, 0, "c")
	p.refused(kerr.InvalidProducerEpoch, id, 3, 2)
}

// known reports whether the leader remembers any producer.
func (p *producer) known() (known bool) {
	p.t.Helper()
	cl := p.c.Client()
	leader := p.c.Leader(p.topic, 0)
	r := kmsg.NewPtrDescribeProducersRequest()
	t := kmsg.NewDescribeProducersRequestTopic()
	t.Topic, t.Partitions = p.topic, []int32{0}
	r.Topics = append(r.Topics, t)
	a, err := r.RequestWith(p.t.Context(), cl.Broker(leader))
	if err != nil {
		p.t.Fatal(err)
	}
	return len(a.Topics[0].Partitions[0].ActiveProducers) > 0
}

// A new leader knows what the old one knew, whether it was moved or killed.
func TestKafkaRealSchemeLeaders(t *testing.T) {
	Heavy(t)
	c := Hurt(t, 3)
	for _, f := range []struct {
		name  string
		event func(topic string, leader int)
	}{
		{"move", func(topic string, leader int) { c.MoveLeader(topic, 0, leader%3+1) }},
		{"kill", func(topic string, leader int) { c.Kill(leader) }},
	} {
		t.Run(f.name, func(t *testing.T) {
			p := newProducer(t, c, "min.insync.replicas", "2")
			survives(p, func() {
				leader := c.Leader(p.topic, 0)
				f.event(p.topic, leader)
				for c.Leader(p.topic, 0) == leader {
					<-time.After(10 * time.Millisecond)
				}
			})
		})
	}
}
