package kafka

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
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
	k.ControlKey(int16(kmsg.CreateTopics), func(r kmsg.Request) (kmsg.Response, error, bool) {
		k.KeepControl()
		q := r.(*kmsg.CreateTopicsRequest)
		for _, c := range q.Topics[0].Configs {
			if c.Name == segmentBytes || c.Name == segmentMs {
				a := q.ResponseKind().(*kmsg.CreateTopicsResponse)
				a.Topics = append(a.Topics, kmsg.CreateTopicsResponseTopic{Topic: q.Topics[0].Topic,
					ErrorCode: kerr.PolicyViolation.Code})
				return a, nil, true
			}
		}
		return nil, nil, false
	})
	var log bytes.Buffer
	c := client(t, k, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	ctx := t.Context()
	for range 2 { // the second finds it
		if err := c.Log().Create(ctx, "t.snapshots", 1, stream.TopicOptions{MaxAge: 1e15,
			Trimmable: true}); err != nil {
			t.Fatal(err)
		}
	}
	set, err := c.describe(ctx, "t.snapshots")
	if err != nil || set[timestampType] != "LogAppendTime" || set[retentionMs] != "1000000000" ||
		set[cleanupPolicy] != "delete" {
		t.Errorf("it has %v, %v", set, err)
	}
	a, _, err := c.Log().Open(ctx, "t.snapshots", 0, stream.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	fill(t, a, "x", 3)
	for range 3 {
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

// A broker that keeps taking records of a replaced owner has no fence, which the first Open of a process
// reports. One that does so once has forgotten the owner: Open goes on with a later epoch.
func TestBrokerWithoutFence(t *testing.T) {
	for takes, wants := range map[int]string{1: "open open open", 1000: "open open open open open open"} {
		k := fake(t)
		last, left := uint16(0), takes // epoch, probes
		var sequences uint32           // of probes, which must be the first of their epoch
		k.ControlKey(int16(kmsg.Produce), func(r kmsg.Request) (kmsg.Response, error, bool) {
			k.KeepControl()
			b := r.(*kmsg.ProduceRequest).Topics[0].Partitions[0].Records
			if epoch := binary.BigEndian.Uint16(b[atEpoch:]); epoch >= last {
				last = epoch
			} else if sequences |= binary.BigEndian.Uint32(b[atSequence:]); left > 0 { // as of one without an epoch
				left--
				copy(b[atProducer:atCount], bytes.Repeat([]byte{0xff}, atCount-atProducer))
				binary.BigEndian.PutUint32(b[atCRC:], crc32.Checksum(b[atAttributes:], castagnoli))
			}
			return nil, nil, false
		})
		c := client(t, k, Options{})
		if err := c.Log().Create(t.Context(), "t", 1, stream.TopicOptions{}); err != nil {
			t.Fatal(err)
		}
		a, _, err := c.Log().Open(t.Context(), "t", 0, stream.OpenOptions{})
		if fenced := takes < maxTaken; fenced != (err == nil) || !fenced && !errors.Is(err, errNoFence) ||
			stream.IsRetryable(err) {
			t.Errorf("it takes %d probes, and opens: %v", takes, err)
		}
		if err == nil {
			fill(t, a, "a", 2)
			wants += " a0 a1"
		}
		want(t, values(t, c, "t"), wants)
		if k.Close(); sequences != 0 { // ours now
			t.Error("a probe is not the first of its epoch")
		}
	}
}

// A record with its producer's time, which is ahead, is told once: the topic was changed.
func TestProducersTime(t *testing.T) {
	k, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "t"))
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	p, err := kgo.NewClient(kgo.SeedBrokers(k.ListenAddrs()...))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	var log bytes.Buffer
	c := client(t, k, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	for i, years := range []int{0, -1, 1, 1} {
		r := &kgo.Record{Topic: "t", Value: []byte("x"), Timestamp: time.Now().AddDate(years, 0, 0)}
		if err := p.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
		values(t, c, "t")
		if said := strings.Count(log.String(), "producer's time"); said != max(0, i-1) { // each reader says it once
			t.Errorf("after %d records it is said %d times:\n%s", i+1, said, &log)
		}
	}
}
