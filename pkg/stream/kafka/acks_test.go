package kafka

import (
	"bytes"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"hindsight/pkg/stream"
)

// Owners and writers ask for the acknowledgement of every in-sync replica.
func TestAcksOfAll(t *testing.T) {
	k := fake(t)
	var asked, others, limits atomic.Int64
	k.ControlKey(int16(kmsg.Produce), func(r kmsg.Request) (kmsg.Response, error, bool) {
		k.KeepControl()
		asked.Add(1)
		q := r.(*kmsg.ProduceRequest)
		if q.Acks != -1 {
			others.Add(1)
		}
		if q.TimeoutMillis == 7000 {
			limits.Add(1)
		}
		return nil, nil, false
	})
	c := client(t, k, Options{RequestTimeout: 7 * time.Second})
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
	if asked.Load() != limits.Load() {
		t.Errorf("%d of %d requests ask for an answer within the time for one", limits.Load(), asked.Load())
	}
}

// Appends that are refused for a while are stored, and from the fifth time on that is logged, once.
func TestRepeatsAreLogged(t *testing.T) {
	for refusals, want := range map[int64]int{4: 0, 7: 1} {
		k := fake(t)
		var left atomic.Int64
		k.ControlKey(int16(kmsg.Produce), func(r kmsg.Request) (kmsg.Response, error, bool) {
			k.KeepControl()
			if left.Add(-1) < 0 {
				return nil, nil, false
			}
			answer := r.ResponseKind().(*kmsg.ProduceResponse)
			part := kmsg.NewProduceResponseTopicPartition()
			part.ErrorCode = 6 // the broker does not lead
			topic := kmsg.NewProduceResponseTopic()
			topic.Topic, topic.Partitions = "t", append(topic.Partitions, part)
			answer.Topics = append(answer.Topics, topic)
			return answer, nil, true
		})
		var log bytes.Buffer
		c := client(t, k, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		l, ctx := c.Log(), t.Context()
		if err := l.Create(ctx, "t", 1, stream.TopicOptions{}); err != nil {
			t.Fatal(err)
		}
		owner, _, err := l.Open(ctx, "t", 0, stream.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		left.Store(refusals)
		fill(t, owner, "owner", 1)
		owner.Close()
		c.Close()
		if n := strings.Count(log.String(), "append is being repeated"); n != want || left.Load() >= 0 {
			t.Errorf("%d refusals: %d lines:\n%s", refusals, n, &log)
		}
	}
}
