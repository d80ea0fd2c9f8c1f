package kafkatest

import (
	"context"
	"hash/crc32"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

// These tests hold what the fenced log writer relies on: how a real broker judges
// batches by producer ID, epoch and sequence outside of transactions. The requests are
// those of Kafka 2.4, which is what segmentio/kafka-go speaks.

// producer sends single batches as they are, never again.
type producer struct {
	t     *testing.T
	c     *Cluster
	cl    *kgo.Client
	topic string
}

func newProducer(t *testing.T, c *Cluster, settings ...string) *producer {
	t.Helper()
	topic := strings.ReplaceAll(t.Name(), "/", ".")
	c.CreateTopic(topic, 1, settings...)
	return &producer{t: t, c: c, topic: topic,
		cl: c.Client(kgo.MaxVersions(kversion.V2_4_0()), kgo.RequestRetries(0))}
}

// leader asks the broker that leads, again while the cluster moves.
func (p *producer) leader(ask func(context.Context, *kgo.Broker) (again bool, err error)) {
	p.t.Helper()
	p.c.do("ask the leader of "+p.topic, func(ctx context.Context, _ *kgo.Client) error {
		cl, err := kgo.NewClient(kgo.SeedBrokers(p.c.Internal()...), kgo.MaxVersions(kversion.V2_4_0()),
			kgo.RequestRetries(0))
		if err != nil {
			return err
		}
		defer cl.Close()
		at, err := p.c.partition(ctx, cl, p.topic, 0)
		if err != nil {
			return err
		}
		again, err := ask(ctx, cl.Broker(int(at.Leader)))
		if err == nil && again {
			err = kerr.NotLeaderForPartition
		}
		return err
	})
}

// id returns a new producer ID, epoch 0.
func (p *producer) id() int64 {
	p.t.Helper()
	var id int64
	p.c.do("a producer ID", func(ctx context.Context, cl *kgo.Client) error {
		r := kmsg.NewPtrInitProducerIDRequest()
		r.ProducerID, r.ProducerEpoch = -1, -1
		a, err := r.RequestWith(ctx, cl)
		if err != nil {
			return err
		}
		id = a.ProducerID
		return kerr.ErrorForCode(a.ErrorCode)
	})
	return id
}

// send appends one batch of a record each value and returns the broker's word for it.
// Only a broker that does not lead yet is asked again.
func (p *producer) send(id int64, epoch int16, sequence int32, values ...string) (int64, error) {
	p.t.Helper()
	r := kmsg.NewPtrProduceRequest()
	r.Acks, r.TimeoutMillis = -1, 5000
	t, q := kmsg.NewProduceRequestTopic(), kmsg.NewProduceRequestTopicPartition()
	t.Topic, q.Records = p.topic, batch(id, epoch, sequence, time.Now().UnixMilli(), values...)
	t.Partitions = append(t.Partitions, q)
	r.Topics = append(r.Topics, t)
	var offset int64
	var answer error
	p.leader(func(ctx context.Context, b *kgo.Broker) (bool, error) {
		a, err := r.RequestWith(ctx, b)
		if err != nil {
			return false, err
		}
		offset, answer = a.Topics[0].Partitions[0].BaseOffset, kerr.ErrorForCode(a.Topics[0].Partitions[0].ErrorCode)
		return answer == kerr.NotLeaderForPartition, nil
	})
	return offset, answer
}

// batch encodes records as version 2 of the format.
func batch(id int64, epoch int16, sequence int32, millis int64, values ...string) []byte {
	b := kmsg.RecordBatch{PartitionLeaderEpoch: -1, Magic: 2, LastOffsetDelta: int32(len(values) - 1),
		FirstTimestamp: millis, MaxTimestamp: millis,
		ProducerID: id, ProducerEpoch: epoch, FirstSequence: sequence, NumRecords: int32(len(values))}
	for i, v := range values {
		r := kmsg.Record{OffsetDelta: int32(i), Value: []byte(v)}
		r.Length = int32(len(r.AppendTo(nil)) - 1) // without the length itself, which is one byte here
		b.Records = r.AppendTo(b.Records)
	}
	raw := b.AppendTo(nil)
	b.Length = int32(len(raw) - 12)
	b.CRC = int32(crc32.Checksum(raw[21:], crc32.MakeTable(crc32.Castagnoli)))
	return b.AppendTo(nil)
}

// accepted and refused send a batch and check the broker's word.
func (p *producer) accepted(want, id int64, epoch int16, sequence int32, values ...string) {
	p.t.Helper()
	if offset, err := p.send(id, epoch, sequence, values...); err != nil || offset != want {
		p.t.Errorf("epoch %d sequence %d: offset %d, %v; want offset %d", epoch, sequence, offset, err, want)
	}
}

func (p *producer) refused(want error, id int64, epoch int16, sequence int32) {
	p.t.Helper()
	if offset, err := p.send(id, epoch, sequence, "refused"); err != want {
		p.t.Errorf("epoch %d sequence %d: offset %d, %v; want %v", epoch, sequence, offset, err, want)
	}
}

// holds checks all values of the log.
func (p *producer) holds(want ...string) {
	p.t.Helper()
	var got []string
	for _, b := range p.batches() {
		records := b.Records
		for range b.NumRecords {
			var r kmsg.Record
			if err := r.ReadFrom(records); err != nil {
				p.t.Fatal(err)
			}
			records = records[1+r.Length:]
			got = append(got, string(r.Value))
		}
	}
	if !slices.Equal(got, want) {
		p.t.Errorf("the log holds %q, want %q", got, want)
	}
}

func (p *producer) batches() []kmsg.RecordBatch {
	p.t.Helper()
	var all []kmsg.RecordBatch
	p.leader(func(ctx context.Context, b *kgo.Broker) (bool, error) {
		r := kmsg.NewPtrFetchRequest()
		r.MaxBytes, r.SessionEpoch = 1<<20, -1
		t, q := kmsg.NewFetchRequestTopic(), kmsg.NewFetchRequestTopicPartition()
		t.Topic, q.PartitionMaxBytes = p.topic, 1<<20
		t.Partitions = append(t.Partitions, q)
		r.Topics = append(r.Topics, t)
		a, err := r.RequestWith(ctx, b)
		if err != nil {
			return false, err
		}
		got := a.Topics[0].Partitions[0]
		for raw := got.RecordBatches; len(raw) > 0; {
			var b kmsg.RecordBatch
			if err := b.ReadFrom(raw); err != nil {
				return false, err
			}
			all, raw = append(all, b), raw[12+b.Length:]
		}
		return got.ErrorCode == kerr.NotLeaderForPartition.Code, kerr.ErrorForCode(got.ErrorCode)
	})
	return all
}

// A new owner needs no word of the coordinator: the same ID, the next epoch, sequence
// 0. From then on the old one is refused.
func TestKafkaRealSchemeTakeover(t *testing.T) {
	p := newProducer(t, Shared(t))
	id := p.id()
	p.accepted(0, id, 0, 0, "a0")
	p.accepted(1, id, 0, 1, "a1", "a2")
	p.accepted(3, id, 1, 0, "b0")
	p.refused(kerr.InvalidProducerEpoch, id, 0, 3)
	p.refused(kerr.InvalidProducerEpoch, id, 0, 0)
	p.refused(kerr.InvalidProducerEpoch, id, 0, 1) // even what it had stored
	p.accepted(4, id, 1, 1, "b1")
	p.accepted(5, id, 7, 0, "c0") // epochs may be skipped
	p.refused(kerr.InvalidProducerEpoch, id, 1, 2)
	p.refused(kerr.OutOfOrderSequenceNumber, id, 8, 1) // but not sequence 0
	p.accepted(6, id, 7, 1, "c1")
	p.holds("a0", "a1", "a2", "b0", "b1", "c0", "c1")
	for _, b := range p.batches() {
		if b.ProducerID != id {
			t.Errorf("the batch at %d is of producer %d, not %d", b.FirstOffset, b.ProducerID, id)
		}
	}
}

// What is sent again is stored once. The answer has the offset where it lies while it is
// one of the last five batches; before, it is refused with the code for a gap.
func TestKafkaRealSchemeRepeats(t *testing.T) {
	p := newProducer(t, Shared(t))
	id := p.id()
	p.accepted(0, id, 0, 0, "0", "1")
	p.accepted(0, id, 0, 0, "0", "1")
	for i, v := range []string{"2", "3", "4", "5", "6"} {
		p.accepted(int64(i+2), id, 0, int32(i+2), v)
	}
	for i, v := range []string{"2", "3", "4", "5", "6"} {
		p.accepted(int64(i+2), id, 0, int32(i+2), v)
	}
	p.refused(kerr.OutOfOrderSequenceNumber, id, 0, 0)
	p.refused(kerr.OutOfOrderSequenceNumber, id, 0, 9)
	p.accepted(7, id, 0, 7, "7")
	p.holds("0", "1", "2", "3", "4", "5", "6", "7")
}

// The trap: of two that take over with the same epoch, the second is told success with
// the offset of the first's record, and nothing of it is stored.
func TestKafkaRealSchemeSameEpoch(t *testing.T) {
	p := newProducer(t, Shared(t))
	id := p.id()
	p.accepted(0, id, 0, 0, "a0")
	p.accepted(1, id, 1, 0, "winner's fence")
	p.accepted(1, id, 1, 0, "loser's fence")
	p.accepted(2, id, 1, 1, "winner")
	p.accepted(2, id, 1, 1, "loser")
	p.holds("a0", "winner's fence", "winner")
}

// An ID that this cluster has never given out, as in a mirrored log, may go on at once,
// with any epoch and any sequence: a broker that knows nothing refuses nothing.
func TestKafkaRealSchemeForeignID(t *testing.T) {
	p := newProducer(t, Shared(t))
	const foreign = 1 << 40
	p.accepted(0, foreign, 5, 17, "first")
	p.accepted(1, foreign, 5, 18, "second")
	p.refused(kerr.OutOfOrderSequenceNumber, foreign, 5, 20)
	p.accepted(2, foreign, 6, 0, "fence")
	p.refused(kerr.InvalidProducerEpoch, foreign, 5, 19)
	p.accepted(3, -1, -1, -1, "not fenced") // nor is anybody without an ID
	p.holds("first", "second", "fence", "not fenced")
}

// The last epoch fences all others, and is fenced by none.
func TestKafkaRealSchemeLastEpoch(t *testing.T) {
	p := newProducer(t, Shared(t))
	id, next := p.id(), p.id()
	if id == next {
		t.Fatalf("the same producer ID twice: %d", id)
	}
	p.accepted(0, id, 32766, 0, "a")
	p.accepted(1, id, 32767, 0, "b")
	p.refused(kerr.InvalidProducerEpoch, id, 32766, 1)
	p.refused(kerr.InvalidProducerEpoch, id, 0, 0)
	p.accepted(2, id, 32767, 1, "c")
	p.accepted(3, next, 0, 0, "d")
	p.accepted(4, id, 32767, 2, "the old ID is not fenced by the new one")
	p.refused(kerr.InvalidProducerEpoch, id, 32766, 1)
}

// A sequence goes on at 0 after 2³¹-1, within a batch too.
func TestKafkaRealSchemeSequenceWraps(t *testing.T) {
	p := newProducer(t, Shared(t))
	id := p.id()
	const last = 1<<31 - 1
	p.accepted(0, id, 0, last-1, "first is free")
	p.accepted(1, id, 0, last, "last", "0")
	p.accepted(1, id, 0, last, "last", "0")
	p.accepted(3, id, 0, 1, "1")
	p.refused(kerr.OutOfOrderSequenceNumber, id, 0, 3)
	p.holds("first is free", "last", "0", "1")
}

// With LogAppendTime the broker's clock counts, whatever the producer's says; without,
// what is over an hour ahead is refused.
func TestKafkaRealSchemeClockAhead(t *testing.T) {
	c := Shared(t)
	ahead := time.Now().AddDate(1, 0, 0).UnixMilli()
	for _, kind := range []string{"LogAppendTime", "CreateTime"} {
		t.Run(kind, func(t *testing.T) {
			p := newProducer(t, c, "message.timestamp.type", kind)
			r := kmsg.NewPtrProduceRequest()
			r.Acks, r.TimeoutMillis = -1, 5000
			rt, q := kmsg.NewProduceRequestTopic(), kmsg.NewProduceRequestTopicPartition()
			rt.Topic, q.Records = p.topic, batch(p.id(), 0, 0, ahead, "early")
			rt.Partitions = append(rt.Partitions, q)
			r.Topics = append(r.Topics, rt)
			var answer error
			p.leader(func(ctx context.Context, b *kgo.Broker) (bool, error) {
				a, err := r.RequestWith(ctx, b)
				if err == nil {
					answer = kerr.ErrorForCode(a.Topics[0].Partitions[0].ErrorCode)
				}
				return false, err
			})
			if kind == "CreateTime" {
				if answer != kerr.InvalidTimestamp {
					t.Errorf("answer %v", answer)
				}
				return
			}
			if answer != nil {
				t.Fatal(answer)
			}
			b := p.batches()[0]
			if b.Attributes&8 == 0 || b.MaxTimestamp > time.Now().UnixMilli()+1000 {
				t.Errorf("attributes %#x, time %v", b.Attributes, time.UnixMilli(b.MaxTimestamp))
			}
			if b.FirstTimestamp != ahead {
				t.Errorf("first timestamp %d, sent %d: readers must take the batch's last", b.FirstTimestamp, ahead)
			}
		})
	}
}
