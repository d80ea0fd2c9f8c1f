package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"hindsight/internal/daemon"
	"hindsight/internal/join"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream/kafkatest"
)

// addPartitions makes a topic have n.
func addPartitions(t *testing.T, cl *kgo.Client, topic string, n int32) {
	t.Helper()
	r := kmsg.NewPtrCreatePartitionsRequest()
	r.TimeoutMillis = 10_000
	r.Topics = []kmsg.CreatePartitionsRequestTopic{{Topic: topic, Count: n}}
	a, err := r.RequestWith(t.Context(), cl)
	if err == nil {
		err = kerr.ErrorForCode(a.Topics[0].ErrorCode)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// committed returns the position that a group shows, -1 if it shows none.
func committed(t *testing.T, cl *kgo.Client, group, topic string, partition int32) int64 {
	t.Helper()
	r := kmsg.NewPtrOffsetFetchRequest()
	r.Group = group
	r.Topics = []kmsg.OffsetFetchRequestTopic{{Topic: topic, Partitions: []int32{partition}}}
	a, err := r.RequestWith(t.Context(), cl)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range a.Groups {
		for _, topic := range g.Topics {
			return topic.Partitions[0].Offset
		}
	}
	for _, topic := range a.Topics {
		return topic.Partitions[0].Offset
	}
	return -1
}

// TestKafkaRealGuests has a pipeline and an operator do what Kafka lets them: transactions that
// are aborted and tried again, one that stays open, a record that inflates without end, partitions
// that are added to every topic. Each context has its one decision or reject, and the operator is told.
func TestKafkaRealGuests(t *testing.T) {
	kafkatest.Heavy(t)
	k := kafkatest.Shared(t)
	s := fresh(t, k, 2, "--nats", "none", "--model", writeModel(t, t.TempDir(), "name: shop\nversion: 1\nwindow: 1h\n"))
	d := s.decider().ready()
	cl := k.Client(kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.TransactionalID("guest"))
	plain := k.Client(kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchMaxBytes(64<<20),
		kgo.BrokerMaxWriteBytes(100<<20))
	put := func(cl *kgo.Client, topic string, partition int32, value string) {
		t.Helper()
		if err := cl.ProduceSync(t.Context(), &kgo.Record{Topic: "shop." + topic, Partition: partition,
			Value: []byte(value)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	begin := func() {
		t.Helper()
		if err := cl.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
	}
	end := func(how kgo.TransactionEndTry) {
		t.Helper()
		if err := cl.EndTransaction(t.Context(), how); err != nil {
			t.Fatal(err)
		}
	}
	for _, loss := range []float64{1, .5} {
		begin()
		put(cl, "contexts", 0, fmt.Sprintf(`{"id":"tx","actions":["x","y"],"features":{"loss":%g}}`, loss))
		end(loss == .5)
	}
	eventually(t, "what was committed is decided", func() bool { return decided(t, s.log, "tx") })
	for _, loss := range []float64{1, .5} {
		begin()
		put(cl, "outcomes", 1, fmt.Sprintf(`{"id":"tx","loss":%g}`, loss))
		end(loss == .5)
	}
	if f := fated(t, s.log, "tx"); f.Loss != .5 {
		t.Errorf("learned %v, which was aborted", f.Loss)
	}
	d.becomes(d.admin(), 200, "ready")

	put(plain, "contexts", 0, strings.Repeat(" ", 20<<20)+`{"id":"large","actions":["x","y"]}`)
	put(plain, "contexts", 0, `{"id":"after","actions":["x","y"]}`)
	eventually(t, "what follows is decided", func() bool { return decided(t, s.log, "after") })

	eventually(t, "the groups show how far it is", func() bool {
		return committed(t, plain, "shop.deciders", "shop.contexts", 0) == s.next("shop.contexts") &&
			committed(t, plain, "shop.joiner", "shop.decisions", 0) == s.next("shop.decisions")
	})

	for _, topic := range shopTopics {
		addPartitions(t, plain, "shop."+topic, 4)
	}
	d.becomes(d.admin(), 503, "has 4 partitions by now, the model has 2 for good")
	put(k.Client(kgo.RecordPartitioner(kgo.ManualPartitioner())), "contexts", 3,
		`{"id":"elsewhere","actions":["x","y"]}`)
	if r := rejectOf(t, s.log, "contexts", `{"id":"elsewhere","actions":["x","y"]}`); r.Partition != 3 ||
		r.Reason != codec.ReasonMalformed {
		t.Errorf("a context in a partition that was added: %+v", r)
	}
	d.stop(patience)
	s.partitions = 0
	again := s.decider().ready()
	again.becomes(again.admin(), 200, "ready")
	again.owns(2)
	again.stop(patience)
	seed, err := daemon.SeedFile(filepath.Join(s.dir, "seed"))
	if err != nil {
		t.Fatal(err)
	}
	verifyLogs(t.Context(), t, s.log, "shop", seed, join.ClockSkew)
}
