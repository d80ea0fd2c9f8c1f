package kafkatest

import (
	"context"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha512"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// DeleteRecords drops the records of a partition before an offset, as retention would; −1 is its end.
func (c *Cluster) DeleteRecords(topic string, partition int, before int64) {
	c.t.Helper()
	leader := c.Leader(topic, partition)
	c.do("delete records of "+topic, func(ctx context.Context, cl *kgo.Client) error {
		r := kmsg.NewPtrDeleteRecordsRequest()
		r.TimeoutMillis = 10_000
		t, p := kmsg.NewDeleteRecordsRequestTopic(), kmsg.NewDeleteRecordsRequestTopicPartition()
		p.Partition, p.Offset = int32(partition), before
		t.Topic, t.Partitions = topic, append(t.Partitions, p)
		r.Topics = append(r.Topics, t)
		if _, err := cl.Request(ctx, kmsg.NewPtrMetadataRequest()); err != nil {
			// so that the client knows the leader's address
			return err
		}
		a, err := r.RequestWith(ctx, cl.Broker(leader))
		if err != nil {
			return err
		}
		return kerr.ErrorForCode(a.Topics[0].Partitions[0].ErrorCode)
	})
}

// SetTopic changes a setting of a topic.
func (c *Cluster) SetTopic(topic, name, value string) {
	c.t.Helper()
	c.do("set "+name+" of "+topic, func(ctx context.Context, cl *kgo.Client) error {
		q := kmsg.NewPtrIncrementalAlterConfigsRequest()
		r, s := kmsg.NewIncrementalAlterConfigsRequestResource(), kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
		s.Name, s.Value = name, &value
		r.ResourceType, r.ResourceName, r.Configs = kmsg.ConfigResourceTypeTopic, topic, append(r.Configs, s)
		q.Resources = append(q.Resources, r)
		a, err := q.RequestWith(ctx, cl)
		if err != nil {
			return err
		}
		return kerr.ErrorForCode(a.Resources[0].ErrorCode)
	})
}

// SetPassword changes a user's password for SCRAM-SHA-512. Connections that have logged in stay.
func (c *Cluster) SetPassword(user, password string) {
	c.t.Helper()
	const iterations = 4096
	salt := make([]byte, 16)
	_, _ = rand.Read(salt) // never fails
	salted, err := pbkdf2.Key(sha512.New, password, salt, iterations, sha512.Size)
	if err != nil {
		c.t.Fatal(err)
	}
	c.do("set the password of "+user, func(ctx context.Context, cl *kgo.Client) error {
		q := kmsg.NewPtrAlterUserSCRAMCredentialsRequest()
		u := kmsg.NewAlterUserSCRAMCredentialsRequestUpsertion()
		u.Name, u.Mechanism, u.Iterations, u.Salt, u.SaltedPassword = user, 2, iterations, salt, salted
		q.Upsertions = append(q.Upsertions, u)
		a, err := q.RequestWith(ctx, cl)
		if err != nil {
			return err
		}
		return kerr.ErrorForCode(a.Results[0].ErrorCode)
	})
}

// Elect makes the preferred replica of a partition its leader; with unclean also one that lacks records, if it is
// the only one alive.
func (c *Cluster) Elect(topic string, partition int, unclean bool) {
	c.t.Helper()
	c.do(fmt.Sprintf("elect a leader of %s[%d]", topic, partition), func(ctx context.Context, cl *kgo.Client) error {
		return elect(ctx, cl, topic, partition, unclean)
	})
}

// Assign moves a partition to these brokers.
func (c *Cluster) Assign(topic string, partition int, brokers ...int32) {
	c.t.Helper()
	c.do(fmt.Sprintf("assign %s[%d]", topic, partition), func(ctx context.Context, cl *kgo.Client) error {
		p, err := c.partition(ctx, cl, topic, partition)
		if err != nil || slices.Equal(p.Replicas, brokers) {
			return err
		}
		if err := assign(ctx, cl, topic, partition, brokers); err != nil {
			return err
		}
		return fmt.Errorf("its replicas are %v", p.Replicas)
	})
}
