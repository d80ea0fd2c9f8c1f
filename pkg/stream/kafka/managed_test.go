package kafka

import (
	"bytes"
	"encoding/binary"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"hindsight/pkg/stream"
)

// A service that refuses settings and does not let records be deleted, as managed ones may, is
// worked with all the same; what that means is said once.
func TestManagedService(t *testing.T) {
	versions := kversion.Stable()
	versions.SetMaxKeyVersion(int16(kmsg.DeleteRecords), -1)
	k := fake(t, kfake.MaxVersions(versions))
	defer k.Close()
	k.ControlKey(int16(kmsg.CreateTopics), func(r kmsg.Request) (kmsg.Response, error, bool) {
		k.KeepControl()
		q := r.(*kmsg.CreateTopicsRequest)
		for _, c := range q.Topics[0].Configs {
			if c.Name == segmentBytes || c.Name == segmentMs {
				a := q.ResponseKind().(*kmsg.CreateTopicsResponse)
				a.Topics = append(a.Topics, kmsg.CreateTopicsResponseTopic{Topic: q.Topics[0].Topic, ErrorCode: kerr.PolicyViolation.Code})
				return a, nil, true
			}
		}
		return nil, nil, false
	})
	var log bytes.Buffer
	c := client(t, k, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	defer c.Close()
	ctx := t.Context()
	for range 2 { // the second finds it
		if err := c.Log().Create(ctx, "t.snapshots", 1, stream.TopicOptions{MaxAge: 1e15, Trimmable: true}); err != nil {
			t.Fatal(err)
		}
	}
	set, err := c.describe(ctx, "t.snapshots")
	if err != nil || set[timestampType] != "LogAppendTime" || set[retentionMs] != "1000000000" || set[cleanupPolicy] != "delete" {
		t.Errorf("it has %v, %v", set, err)
	}
	a, _, err := c.Log().Open(ctx, "t.snapshots", 0, stream.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	fill(t, a, "x", 3)
	for range 2 {
		if err := c.Log().Trim(ctx, "t.snapshots", 0, 2); err != nil {
			t.Error(err)
		}
	}
	if first, _, err := c.Log().Bounds(ctx, "t.snapshots", 0); first != 0 || err != nil {
		t.Errorf("it begins at %d, %v", first, err)
	}
	for _, says := range []string{"refuses settings of a topic", "does not offer DeleteRecords"} {
		if n := strings.Count(log.String(), says); n != 1 {
			t.Errorf("%q is said %d times:\n%s", says, n, &log)
		}
	}
}

// A broker that takes what an owner sends that was replaced is told from one that refuses it, at the
// first opening of all.
func TestBrokerWithoutFence(t *testing.T) {
	k := fake(t)
	defer k.Close()
	k.ControlKey(int16(kmsg.Produce), func(r kmsg.Request) (kmsg.Response, error, bool) {
		k.KeepControl()
		q := r.(*kmsg.ProduceRequest)
		if p := q.Topics[0].Partitions[0]; binary.BigEndian.Uint16(p.Records[atEpoch:]) != 0 {
			return nil, nil, false
		}
		a := q.ResponseKind().(*kmsg.ProduceResponse)
		a.Topics = []kmsg.ProduceResponseTopic{{Topic: q.Topics[0].Topic, Partitions: []kmsg.ProduceResponseTopicPartition{{BaseOffset: 7}}}}
		return a, nil, true
	})
	c := client(t, k, Options{})
	defer c.Close()
	if err := c.Log().Create(t.Context(), "t", 1, stream.TopicOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Log().Open(t.Context(), "t", 0, stream.OpenOptions{}); !errors.Is(err, errNoFence) || stream.IsRetryable(err) {
		t.Errorf("it is opened: %v", err)
	}
}
