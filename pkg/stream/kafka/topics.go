package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/createtopics"
	"github.com/segmentio/kafka-go/protocol/describeconfigs"

	"hindsight/pkg/stream"
)

// Settings of a topic.
const (
	cleanupPolicy  = "cleanup.policy"
	timestampType  = "message.timestamp.type"
	minInsync      = "min.insync.replicas"
	maxMessage     = "max.message.bytes"
	retentionMs    = "retention.ms"
	retentionBytes = "retention.bytes"
	segmentMs      = "segment.ms"
	segmentBytes   = "segment.bytes"
	uncleanLeaders = "unclean.leader.election.enable"
	flushMessages  = "flush.messages"
)

// trimmable reports whether a topic may be trimmed: the last part of its name says so.
func trimmable(topic string) bool { return strings.HasSuffix(topic, ".snapshots") }

// messageBytes is the largest batch of the topics we make: records of 1 MiB fit.
const messageBytes = 1<<20 + 16<<10

// defaultMessageBytes is the brokers' own, for users that may not read settings.
const defaultMessageBytes = 1<<20 + 12

// parts is into how many segments a limit is divided: only whole ones are dropped.
const parts = 8

// Create implements [stream.Log]. A topic that exists is checked, and the error says how to mend what is wrong.
func (l *Log) Create(ctx context.Context, topic string, partitions int, o stream.TopicOptions) (err error) {
	p, err := l.place(topic, 0)
	defer p.Locate("create", -1, &err)
	switch {
	case err != nil:
		return err
	case partitions < 1:
		return errors.New("needs at least one partition")
	case o.Trimmable && !trimmable(topic):
		return errors.New("a topic of Kafka that is to be trimmed has a name that ends with .snapshots")
	case o.RejectWhenFull && o.MaxBytes > 0:
		return errors.New("a topic of Kafka cannot refuse records when it is full: leave out its size limit")
	}
	if _, err = l.c.topic(ctx, topic, true); err == nil {
		return l.checkTopic(ctx, topic, partitions, o)
	}
	if !errors.Is(err, stream.ErrNotFound) {
		return err
	}
	r := &createtopics.Request{TimeoutMs: int32(l.c.o.RequestTimeout / time.Millisecond),
		Topics: []createtopics.RequestTopic{{
			Name: topic, NumPartitions: int32(partitions), ReplicationFactor: int16(l.c.o.Replication)}}}
	minISR, err := l.c.chooseCopies(ctx, r)
	if err == nil {
		r.Topics[0].Configs = settings(o, minISR)
		_, err = l.c.createTopic(ctx, r)
	}
	if errors.Is(err, kafkago.InvalidConfiguration) || errors.Is(err, kafkago.PolicyViolation) {
		l.c.o.Logger.Warn("the service refuses settings of a topic; only those that must be are set, so its own apply "+
			"to the size of records and of segments, to how much is kept and how many copies are in sync",
			"topic", topic,
			"error", err)
		r.Topics[0].Configs = slices.DeleteFunc(r.Topics[0].Configs, func(c createtopics.RequestConfig) bool {
			return !slices.Contains(musts, c.Name)
		})
		_, err = l.c.createTopic(ctx, r)
	}
	there := errors.Is(err, kafkago.TopicAlreadyExists) // another was faster
	if err != nil && !there {
		return err
	}
	l.c.cluster.made(topic)
	if err := l.c.awaitTopic(ctx, topic, partitions); err != nil || !there {
		return err
	}
	return l.checkTopic(ctx, topic, partitions, o)
}

// chooseCopies puts the replication of a topic to be made into r, and returns how many
// copies must have a record before it is acknowledged; 0 leaves that to the brokers.
func (c *Client) chooseCopies(ctx context.Context, r *createtopics.Request) (minISR int, err error) {
	n := c.o.Replication
	if n == 0 { // what the brokers would do
		r.Topics[0].ReplicationFactor = -1
		ask := *r
		ask.ValidateOnly = true
		if n, err = c.createTopic(ctx, &ask); err != nil {
			return 0, err
		}
	}
	switch {
	case n > 0 && c.o.MinISR > n:
		return 0, fmt.Errorf("%d in-sync replicas are wanted of %d replicas", c.o.MinISR, n)
	case c.o.MinISR > 0:
		return c.o.MinISR, nil
	}
	return min(n, max(1, n-1)), nil // 0 of as many as are not known
}

// musts are the settings without which a log breaks a promise; a service may refuse the others.
var musts = []string{cleanupPolicy, timestampType, retentionMs}

// settings are those of a topic to be made; minISR 0 leaves it to the broker.
func settings(o stream.TopicOptions, minISR int) []createtopics.RequestConfig {
	age, size := int64(-1), int64(-1)
	var all []createtopics.RequestConfig
	set := func(name, value string) {
		all = append(all, createtopics.RequestConfig{Name: name, Value: value})
	}
	if o.MaxAge > 0 {
		age = max(1, o.MaxAge/1e6)
		set(segmentMs, strconv.FormatInt(max(age/parts, 1000), 10))
	}
	if o.MaxBytes > 0 {
		size = o.MaxBytes
		set(segmentBytes, strconv.FormatInt(min(max(size/parts, 1<<20), 1<<30), 10))
	}
	set(cleanupPolicy, "delete")
	set(timestampType, "LogAppendTime")
	set(retentionMs, strconv.FormatInt(age, 10))
	set(retentionBytes, strconv.FormatInt(size, 10))
	set(maxMessage, strconv.Itoa(messageBytes))
	if minISR > 0 {
		set(minInsync, strconv.Itoa(minISR))
	}
	return all
}

// createTopic asks the controller, again while that moves, and returns how many copies
// the topic has, 0 if the broker does not say.
func (c *Client) createTopic(ctx context.Context, r *createtopics.Request) (copies int, err error) {
	err = c.again(ctx, func(ctx context.Context) (final bool, err error) {
		if copies, err = c.createOnce(ctx, r); !isTransient(err) {
			return true, err
		}
		_, unknown := c.metadata(ctx, []string{})
		return unknown != nil, err
	})
	return copies, err
}

func (c *Client) createOnce(ctx context.Context, r *createtopics.Request) (copies int, err error) {
	c.cluster.mu.Lock()
	addr := c.cluster.brokers[c.cluster.controller]
	c.cluster.mu.Unlock()
	if addr == "" {
		return 0, fmt.Errorf("%w: the cluster has no controller now", stream.ErrUnavailable)
	}
	m, err := c.ask(ctx, addr, r)
	if err != nil {
		return 0, err
	}
	for _, t := range m.(*createtopics.Response).Topics {
		if err := classify(t.ErrorCode); err != nil {
			if t.ErrorMessage != "" {
				err = fmt.Errorf("%w: %s", err, t.ErrorMessage)
			}
			return 0, err
		}
		copies = max(0, int(t.ReplicationFactor))
	}
	return copies, nil
}

// made notes that a topic exists even if a broker does not know yet.
func (k *cluster) made(topic string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.created[topic] = time.Now()
}

// awaitTopic waits until every partition of a new topic has a leader.
func (c *Client) awaitTopic(ctx context.Context, topic string, partitions int) error {
	return c.again(ctx, func(ctx context.Context) (bool, error) {
		leaders, err := c.topic(ctx, topic, true)
		if err != nil {
			return true, err
		}
		unled := 0
		for _, id := range leaders {
			if id < 0 {
				unled++
			}
		}
		if unled > 0 {
			err = fmt.Errorf("%w: %d of %d partitions of the new topic have no leader", stream.ErrUnavailable, unled,
				partitions)
		}
		return false, err
	})
}

// describe returns the settings of a topic.
func (c *Client) describe(ctx context.Context, topic string) (set map[string]string, err error) {
	err = c.again(ctx, func(ctx context.Context) (final bool, err error) {
		if set, err = c.describeOnce(ctx, topic); errors.Is(err, stream.ErrNotFound) {
			_, unknown := c.topic(ctx, topic, true)
			return unknown != nil, err // another broker may know of it: it is new
		}
		return true, err
	})
	return set, err
}

func (c *Client) describeOnce(ctx context.Context, topic string) (map[string]string, error) {
	r := &describeconfigs.Request{Resources: []describeconfigs.RequestResource{
		{ResourceType: int8(kafkago.ResourceTypeTopic), ResourceName: topic}}}
	m, err := c.askAny(ctx, func() protocol.Message { return r }, func(protocol.Message) error { return nil })
	if err != nil {
		return nil, err
	}
	set := map[string]string{}
	for _, res := range m.(*describeconfigs.Response).Resources {
		if err := classify(res.ErrorCode); err != nil {
			return nil, err
		}
		for _, e := range res.ConfigEntries {
			set[e.ConfigName] = e.ConfigValue
		}
	}
	return set, nil
}

// checkTopic compares a topic that exists with what it must be.
func (l *Log) checkTopic(ctx context.Context, topic string, partitions int, o stream.TopicOptions) error {
	r, err := l.c.metadata(ctx, []string{topic})
	if err != nil {
		return err
	}
	if len(r.Topics) != 1 || r.Topics[0].ErrorCode != 0 {
		return fmt.Errorf("%w: the topic is being changed", stream.ErrUnavailable)
	}
	if n := len(r.Topics[0].Partitions); n != partitions {
		return fmt.Errorf("%w: it has %d, not %d", stream.ErrPartitions, n, partitions)
	}
	set, err := l.c.describe(ctx, topic)
	if errors.Is(err, ErrAuthorization) {
		l.c.o.Logger.Warn("settings of topic not checked", "topic", topic, "error", err)
		return nil
	}
	if err != nil {
		return err
	}
	replication := len(r.Topics[0].Partitions[0].ReplicaNodes)
	wrong, mend := l.c.wrongSettings(set, replication, o)
	if len(wrong) == 0 {
		return nil
	}
	return fmt.Errorf("its settings are wrong: %s; mend with: kafka-configs.sh --bootstrap-server %s --alter "+
		"--entity-type topics --entity-name %s --add-config %s",
		strings.Join(wrong, ", "), strings.Join(l.c.o.Brokers, ","), topic, strings.Join(mend, ","))
}

// wrongSettings says what of a topic's settings breaks a promise of the log, and what to set.
func (c *Client) wrongSettings(set map[string]string, replication int, o stream.TopicOptions) (wrong, mend []string) {
	check := func(name, want, why string, ok bool) {
		if !ok {
			wrong = append(wrong, fmt.Sprintf("%s is %q (%s)", name, set[name], why))
			mend = append(mend, name+"="+want)
		}
	}
	check(timestampType, "LogAppendTime", "times must be the brokers'", set[timestampType] == "LogAppendTime")
	check(cleanupPolicy, "delete", "compaction would remove records", set[cleanupPolicy] == "delete")
	check(uncleanLeaders, "false", "acknowledged records could be lost", set[uncleanLeaders] != "true")
	inSync, err := strconv.Atoi(set[minInsync])
	if err != nil {
		return wrong, mend
	}
	want := max(1, replication-1)
	if c.o.MinISR > 0 {
		want = min(c.o.MinISR, replication)
	}
	check(minInsync, strconv.Itoa(want), fmt.Sprintf("of %d replicas", replication), inSync <= replication &&
		inSync >= min(c.o.MinISR, replication))
	if n, err := strconv.ParseInt(set[flushMessages], 10, 64); err == nil && n > 1 && replication == 1 {
		c.unsynced.Do(func() {
			c.o.Logger.Warn("a power cut of the broker can take acknowledged records: replicate the topics, or set "+
				"flush.messages=1 on them", flushMessages, n, "replicas", replication)
		})
	}
	if inSync < want {
		c.o.Logger.Warn("an acknowledged record may be on one broker only", minInsync, inSync, "replicas", replication)
	}
	return wrong, mend
}

// largestMessage is the topic's limit for a batch, in bytes.
func (c *Client) largestMessage(ctx context.Context, topic string) (int, error) {
	set, err := c.describe(ctx, topic)
	switch {
	case errors.Is(err, ErrAuthorization):
		return defaultMessageBytes, nil
	case err != nil:
		return 0, err
	}
	n, err := strconv.Atoi(set[maxMessage])
	if err != nil {
		return defaultMessageBytes, nil
	}
	return n, nil
}
