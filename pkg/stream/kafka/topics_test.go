package kafka

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"hindsight/pkg/stream"
)

func TestSettingsOfNewTopics(t *testing.T) {
	k := fake(t, kfake.NumBrokers(3))
	c := client(t, k, Options{Replication: 3})
	ctx := context.Background()
	day := int64(24 * time.Hour)
	err := c.Log().Create(ctx, "t.snapshots", 4, stream.TopicOptions{MaxAge: day, MaxBytes: 1 << 30, Trimmable: true})
	if err != nil {
		t.Fatal(err)
	}
	set, err := c.describe(ctx, "t.snapshots")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{timestampType: "LogAppendTime", cleanupPolicy: "delete",
		retentionMs: "86400000",
		segmentMs:   "10800000", retentionBytes: "1073741824", segmentBytes: "134217728", minInsync: "2",
		maxMessage: "1064960"} {
		if set[name] != want {
			t.Errorf("%s is %q, want %q", name, set[name], want)
		}
	}
	if err := c.Log().Create(ctx, "u", 1, stream.TopicOptions{}); err != nil {
		t.Fatal(err)
	}
	if set, err = c.describe(ctx, "u"); err != nil || set[retentionMs] != "-1" || set[retentionBytes] != "-1" {
		t.Errorf("without limits: %v, %v", set, err)
	}
	d := client(t, k, Options{}) // the fake makes three copies if not told
	if err := d.Log().Create(ctx, "v", 1, stream.TopicOptions{}); err != nil {
		t.Fatal(err)
	}
	if set, err = c.describe(ctx, "v"); err != nil || set[minInsync] != "2" {
		t.Errorf("by default: %v, %v", set[minInsync], err)
	}
	topics, err := c.log.Topics(ctx)
	if err != nil || !slices.Equal(topics, []string{"t.snapshots", "u", "v"}) {
		t.Errorf("topics %v, %v", topics, err)
	}
}

// A topic with wrong settings is refused with the command that mends it.
func TestSettingsAreChecked(t *testing.T) {
	right := map[string]string{timestampType: "LogAppendTime", cleanupPolicy: "delete", minInsync: "1"}
	for name, x := range map[string]struct {
		set  map[string]string
		o    Options
		t    stream.TopicOptions
		mend string // "": it is right
	}{
		"right": {},
		"times": {set: map[string]string{timestampType: "CreateTime"},
			mend: "message.timestamp.type=LogAppendTime"},
		"compaction": {set: map[string]string{cleanupPolicy: "compact,delete"}, mend: "cleanup.policy=delete"},
		"too many":   {set: map[string]string{minInsync: "3"}, mend: "min.insync.replicas=1"},
		"too few":    {o: Options{MinISR: 2}, mend: ""}, // there is but one broker
		"all at once": {set: map[string]string{timestampType: "CreateTime", cleanupPolicy: "compact"},
			mend: "message.timestamp.type=LogAppendTime,cleanup.policy=delete"},
		"more than one": {set: map[string]string{maxMessage: "2000000"}},
	} {
		t.Run(name, func(t *testing.T) {
			k := fake(t)
			all := map[string]string{}
			for n, v := range right {
				all[n] = v
			}
			for n, v := range x.set {
				all[n] = v
			}
			if err := k.CreateTopic("t", 1, all); err != nil {
				t.Fatal(err)
			}
			c := client(t, k, x.o)
			err := c.Log().Create(context.Background(), "t", 1, x.t)
			if x.mend == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			command := "kafka-configs.sh --bootstrap-server " + k.ListenAddrs()[0] + " --alter --entity-type topics " +
				"--entity-name t --add-config " + x.mend
			if err == nil || !strings.HasSuffix(err.Error(), command) {
				t.Errorf("%v\nwant the command %s", err, command)
			}
		})
	}
}

func TestWrongSettings(t *testing.T) {
	right := map[string]string{timestampType: "LogAppendTime", cleanupPolicy: "delete", minInsync: "2",
		uncleanLeaders: "false"}
	for name, x := range map[string]struct {
		o           Options
		change      map[string]string
		replication int
		mend        string
		warns       bool
	}{
		"right": {replication: 3},
		"fewer than wanted": {o: Options{MinISR: 2}, change: map[string]string{minInsync: "1"}, replication: 3,
			mend: "min.insync.replicas=2", warns: true},
		"as few as are wanted":   {o: Options{MinISR: 1}, change: map[string]string{minInsync: "1"}, replication: 3},
		"fewer than would do":    {change: map[string]string{minInsync: "1"}, replication: 3, warns: true},
		"fewer than can be told": {o: Options{MinISR: 2}, change: map[string]string{minInsync: "1"}, replication: 1},
		"more than there are": {change: map[string]string{minInsync: "4"}, replication: 3,
			mend: "min.insync.replicas=2"},
		"unclean leaders": {change: map[string]string{uncleanLeaders: "true"}, replication: 3,
			mend: "unclean.leader.election.enable=false"},
	} {
		set := map[string]string{}
		for n, v := range right {
			set[n] = v
		}
		for n, v := range x.change {
			set[n] = v
		}
		var log bytes.Buffer
		x.o.Logger = slog.New(slog.NewTextHandler(&log, nil))
		c := &Client{o: x.o.withDefaults()}
		wrong, mend := c.wrongSettings(set, x.replication, stream.TopicOptions{})
		if strings.Join(mend, ",") != x.mend || len(wrong) != len(mend) {
			t.Errorf("%s: %v, mend %v", name, wrong, mend)
		}
		if warns := strings.Contains(log.String(), "may be on one broker only"); warns != x.warns {
			t.Errorf("%s: logged %q", name, &log)
		}
	}
}

// TestCreateRefused holds that who may not create a topic is told why.
func TestCreateRefused(t *testing.T) {
	k := fake(t)
	k.ControlKey(int16(kmsg.CreateTopics), func(r kmsg.Request) (kmsg.Response, error, bool) {
		k.KeepControl()
		answer, topic := r.ResponseKind().(*kmsg.CreateTopicsResponse), kmsg.NewCreateTopicsResponseTopic()
		topic.Topic, topic.ErrorCode = "t", kerr.PolicyViolation.Code
		topic.ErrorMessage = kmsg.StringPtr("too many partitions")
		answer.Topics = append(answer.Topics, topic)
		return answer, nil, true
	})
	c := client(t, k, Options{})
	err := c.Log().Create(t.Context(), "t", 1, stream.TopicOptions{})
	if err == nil || !strings.Contains(err.Error(), "too many partitions") {
		t.Error(err)
	}
}

// TestUnknownCopies: a service that does not say how many copies a topic gets chooses how many must have a record,
// unless that is asked for.
func TestUnknownCopies(t *testing.T) {
	for minISR, want := range map[int]string{0: "", 2: "2"} {
		k := fake(t)
		var timeouts, factors []int
		set := "none"
		k.ControlKey(int16(kmsg.CreateTopics), func(r kmsg.Request) (kmsg.Response, error, bool) {
			k.KeepControl()
			q := r.(*kmsg.CreateTopicsRequest)
			timeouts = append(timeouts, int(q.TimeoutMillis))
			factors = append(factors, int(q.Topics[0].ReplicationFactor))
			if !q.ValidateOnly {
				set = ""
				for _, c := range q.Topics[0].Configs {
					if c.Name == minInsync {
						set = *c.Value
					}
				}
				return nil, nil, false
			}
			answer, topic := q.ResponseKind().(*kmsg.CreateTopicsResponse), kmsg.NewCreateTopicsResponseTopic()
			topic.Topic, topic.ReplicationFactor = "t", -1
			answer.Topics = append(answer.Topics, topic)
			return answer, nil, true
		})
		c := client(t, k, Options{MinISR: minISR, RequestTimeout: 7 * time.Second})
		err := c.Log().Create(t.Context(), "t", 1, stream.TopicOptions{})
		c.Close()
		k.Close() // what follows is ours now
		if err != nil || set != want || !slices.Equal(factors, []int{-1, -1}) ||
			!slices.Equal(timeouts, []int{7000, 7000}) {
			t.Errorf("%d asked for: %q, want %q; %d copies, within %d ms; %v", minISR, set, want, factors, timeouts,
				err)
		}
	}
}

// TestPowerWarning warns of topics of which a power cut of one broker takes acknowledged records.
func TestPowerWarning(t *testing.T) {
	for _, x := range []struct {
		flush       string
		replication int
		warns       bool
	}{
		{"9223372036854775807", 1, true},
		{"9223372036854775807", 3, false},
		{"1", 1, false},
		{"", 1, false}, // the broker does not say
	} {
		var log bytes.Buffer
		c := &Client{o: Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}.withDefaults()}
		for range 2 {
			c.wrongSettings(map[string]string{minInsync: "1", flushMessages: x.flush}, x.replication,
				stream.TopicOptions{})
		}
		if n := strings.Count(log.String(), "flush.messages=1"); n > 1 || (n == 1) != x.warns {
			t.Errorf("flush.messages %q, %d replicas: %d warnings", x.flush, x.replication, n)
		}
	}
}

func TestCreateRefuses(t *testing.T) {
	k := fake(t)
	c := client(t, k, Options{})
	ctx := context.Background()
	if err := c.Log().Create(ctx, "t", 1, stream.TopicOptions{MaxBytes: 1 << 20, RejectWhenFull: true}); err == nil {
		t.Error("a topic was made that Kafka cannot keep to")
	}
	for _, name := range []string{"", "..", "a b", "ä", strings.Repeat("x", 250)} {
		if err := c.Log().Create(ctx, name, 1, stream.TopicOptions{}); err == nil {
			t.Errorf("topic %q was made", name)
		}
	}
	d := client(t, k, Options{Replication: 1, MinISR: 2})
	if err := d.Log().Create(ctx, "t", 1, stream.TopicOptions{}); err == nil {
		t.Error("a topic was made that takes no record")
	}
	e := client(t, k, Options{Replication: 3})
	if err := e.Log().Create(ctx, "t", 1, stream.TopicOptions{}); err == nil || errors.Is(err, stream.ErrNotFound) {
		t.Errorf("three replicas on one broker: %v", err)
	}
}

// TestSettingsOfNewTopic has a broker that does not know yet of a topic that another
// process has just made: its settings are asked for again.
func TestSettingsOfNewTopic(t *testing.T) {
	k := fake(t)
	maker, c := client(t, k, Options{}), client(t, k, Options{})
	if err := maker.Log().Create(t.Context(), "t", 1, stream.TopicOptions{}); err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int32
	k.ControlKey(int16(kmsg.DescribeConfigs), func(req kmsg.Request) (kmsg.Response, error, bool) {
		k.KeepControl()
		if asked.Add(1) > 2 {
			return nil, nil, false
		}
		q := req.(*kmsg.DescribeConfigsRequest)
		r, x := q.ResponseKind().(*kmsg.DescribeConfigsResponse), kmsg.NewDescribeConfigsResponseResource()
		x.ErrorCode, x.ResourceType, x.ResourceName = kerr.UnknownTopicOrPartition.Code, q.Resources[0].ResourceType,
			"t"
		r.Resources = append(r.Resources, x)
		return r, nil, true
	})
	if err := c.Log().Create(t.Context(), "t", 1, stream.TopicOptions{}); err != nil || asked.Load() != 3 {
		t.Errorf("asked %d times: %v", asked.Load(), err)
	}
	if _, err := c.describe(t.Context(), "none"); !errors.Is(err, stream.ErrNotFound) {
		t.Errorf("settings of no topic: %v", err)
	}
	err := c.log.checkTopic(t.Context(), "none", 1, stream.TopicOptions{})
	if !errors.Is(err, stream.ErrUnavailable) || errors.Is(err, stream.ErrPartitions) {
		t.Errorf("a topic that its broker does not know now is told to be another: %v", err)
	}
}
