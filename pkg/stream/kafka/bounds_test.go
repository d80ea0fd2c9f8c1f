package kafka

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"hindsight/pkg/stream"
	"hindsight/pkg/stream/kafkatest"
)

// TestBoundsWaitForReplicas has brokers that tell clients of less than is written, as
// they do until all replicas in sync have it: the end is told when that can be read. A
// new leader may have dropped some of it.
func TestBoundsWaitForReplicas(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name              string
		readable, written []int64 // by question; the last one stays
		want              int64
		atLeast           int32 // questions
		fails             bool
	}{
		{"all replicas have it", []int64{3}, []int64{3}, 3, 1, false},
		{"more is written meanwhile", []int64{1, 2, 3, 4}, []int64{3, 7, 8, 9}, 3, 3, false},
		{"a new leader has less", []int64{1, 2}, []int64{3, 2}, 2, 2, false},
		{"a replica hangs", []int64{1}, []int64{3}, 0, 10, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			k := fake(t)
			l := client(t, k, Options{RequestTimeout: 2 * time.Second})
			if err := l.Log().Create(t.Context(), "t", 1, stream.TopicOptions{}); err != nil {
				t.Fatal(err)
			}
			var asked, looked atomic.Int32
			k.ControlKey(int16(kmsg.Metadata), func(kmsg.Request) (kmsg.Response, error, bool) {
				k.KeepControl()
				looked.Add(1)
				return nil, nil, false
			})
			nth := func(all []int64) int64 { return all[max(0, min(int(asked.Load()), len(all))-1)] }
			k.ControlKey(int16(kmsg.ListOffsets), func(req kmsg.Request) (kmsg.Response, error, bool) {
				k.KeepControl()
				q := req.(*kmsg.ListOffsetsRequest)
				switch {
				case q.Topics[0].Partitions[0].Timestamp == earliest:
					return listed(q, 0), nil, true
				case q.ReplicaID == -1:
					return listed(q, nth(c.readable)), nil, true
				}
				asked.Add(1) // comes first
				return listed(q, nth(c.written)), nil, true
			})
			_, next, err := l.Log().Bounds(t.Context(), "t", 0)
			switch {
			case c.fails && !stream.IsRetryable(err):
				t.Errorf("next %d, %v", next, err)
			case !c.fails && (err != nil || next != c.want):
				t.Errorf("next %d, want %d: %v", next, c.want, err)
			case c.fails == (looked.Load() == 0):
				t.Errorf("the leader is looked for %d times", looked.Load())
			case asked.Load() < c.atLeast:
				t.Errorf("asked %d times", asked.Load())
			}
		})
	}
}

// listed answers a question for an offset of topic t.
func listed(q *kmsg.ListOffsetsRequest, offset int64) *kmsg.ListOffsetsResponse {
	a := kmsg.NewListOffsetsResponseTopicPartition()
	a.Offset = offset
	r, top := q.ResponseKind().(*kmsg.ListOffsetsResponse), kmsg.NewListOffsetsResponseTopic()
	top.Topic, top.Partitions = "t", append(top.Partitions, a)
	r.Topics = append(r.Topics, top)
	return r
}

// TestBoundsWaitForAppends holds that who is to tell an end is asked first for what waits
// for records that have a time and no offset yet (see settledOffsets).
func TestBoundsWaitForAppends(t *testing.T) {
	k := fake(t)
	c := client(t, k, Options{})
	if err := c.Log().Create(t.Context(), "t", 1, stream.TopicOptions{}); err != nil {
		t.Fatal(err)
	}
	var asked []int16
	k.Control(func(r kmsg.Request) (kmsg.Response, error, bool) {
		k.KeepControl()
		if key := r.Key(); key == int16(kmsg.DescribeProducers) || key == int16(kmsg.ListOffsets) {
			asked = append(asked, key)
		}
		return nil, nil, false
	})
	if _, next, err := c.Log().Bounds(t.Context(), "t", 0); next != 0 || err != nil {
		t.Fatal(next, err)
	}
	k.Close() // asked is ours now
	if len(asked) != 4 || asked[0] != int16(kmsg.DescribeProducers) || slices.Contains(asked[1:], asked[0]) {
		t.Errorf("asked %v", asked)
	}
}

// TestKafkaRealBoundsWaitForReplicas has a record that one of three replicas holds alone:
// nobody can read it yet, and nobody is told that it is not there.
func TestKafkaRealBoundsWaitForReplicas(t *testing.T) {
	kafkatest.Heavy(t)
	k := kafkatest.Hurt(t, 3)
	k.CreateTopic("alone", 1, "message.timestamp.type", "LogAppendTime", "min.insync.replicas", "2")
	k.InSync("alone", 0, 3)
	c := dialReal(t, k, Options{RequestTimeout: time.Minute})
	if _, next, err := c.Log().Bounds(t.Context(), "alone", 0); next != 0 || err != nil {
		t.Fatal(next, err)
	}
	leader := k.Leader("alone", 0)
	writer := k.Client(kgo.RequiredAcks(kgo.LeaderAck()), kgo.DisableIdempotentWrite())
	if err := writer.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := 1; i <= 3; i++ {
		if i != leader {
			k.Pause(i)
		}
	}
	if err := writer.ProduceSync(t.Context(), &kgo.Record{Topic: "alone", Value: []byte("x")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	p := place{Topic: "alone", Partition: 0}
	if _, next, err := c.ends(t.Context(), &p); next != 0 || err != nil {
		t.Fatalf("what one replica has can be read: %d %v", next, err)
	}
	type told struct {
		next int64
		err  error
	}
	answer := make(chan told, 1)
	go func() {
		_, next, err := c.Log().Bounds(context.WithoutCancel(t.Context()), "alone", 0)
		answer <- told{next, err}
	}()
	select {
	case a := <-answer:
		t.Errorf("told that the end is %d, %v, while a record waits for its replicas", a.next, a.err)
	case <-time.After(time.Second):
	}
	for i := 1; i <= 3; i++ {
		if i != leader {
			k.Resume(i)
		}
	}
	if a := <-answer; a.err != nil || a.next != 1 {
		t.Errorf("told that the end is %d: %v", a.next, a.err)
	}
}
