package kafkatest

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Brokers returns the addresses that clients use.
func (c *Cluster) Brokers() []string {
	var addrs []string
	for _, b := range c.brokers {
		addrs = append(addrs, b.address())
	}
	return addrs
}

// Proxy returns what stands before a broker, with Options.Proxied.
func (c *Cluster) Proxy(i int) *Proxy { return c.brokers[i-1].proxy }

// Internal returns addresses where everybody may do everything, without TLS or a login.
func (c *Cluster) Internal() []string {
	var addrs []string
	for _, b := range c.brokers {
		addrs = append(addrs, fmt.Sprintf("127.0.0.1:%d", b.internal))
	}
	return addrs
}

// Client returns a client of the internal listener, which ends with the test.
func (c *Cluster) Client(opts ...kgo.Opt) *kgo.Client {
	c.t.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(c.Internal()...),
		kgo.MetadataMinAge(10 * time.Millisecond)}, opts...)...)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(cl.Close)
	return cl
}

// await waits until a broker says that it and n in all serve.
func (c *Cluster) await(b *broker, n int) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(fmt.Sprintf("127.0.0.1:%d", b.internal)), kgo.RequestRetries(0))
	if err != nil {
		return err
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		try, cancel := context.WithTimeout(ctx, 2*time.Second)
		r := kmsg.NewPtrMetadataRequest()
		r.Topics = []kmsg.MetadataRequestTopic{}
		m, err := r.RequestWith(try, seed(cl))
		cancel()
		if err == nil && len(m.Brokers) >= n && m.ControllerID >= 0 &&
			slices.ContainsFunc(m.Brokers, func(x kmsg.MetadataResponseBroker) bool {
				return int(x.NodeID) == b.number
			}) {
			return nil
		}
		select {
		case <-tick.C:
		case <-b.done:
			return b.failure()
		case <-ctx.Done():
			return fmt.Errorf("broker %d does not serve after %v: %v\n%s", b.number, patience, err, b.complaints(20))
		}
	}
}

// seed asks the one address that the client was given, also after it knows others.
func seed(cl *kgo.Client) kmsg.Requestor { return cl.SeedBrokers()[0] }

// do repeats what may fail while a cluster moves, until it succeeds.
func (c *Cluster) do(what string, f func(context.Context, *kgo.Client) error) {
	c.t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.Internal()...), kgo.MetadataMinAge(10*time.Millisecond))
	if err != nil {
		c.t.Fatal(err)
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		if err = f(ctx, cl); err == nil {
			return
		}
		if ctx.Err() != nil || errors.Is(err, errForGood) {
			c.t.Fatalf("kafka: %s: %v", what, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

var errForGood = errors.New("refused")

// CreateTopic makes a topic with as many replicas as there are brokers, at most 3, and
// waits for its leaders. Settings are pairs of name and value.
func (c *Cluster) CreateTopic(topic string, partitions int, settings ...string) {
	c.t.Helper()
	c.do("create "+topic, func(ctx context.Context, cl *kgo.Client) error {
		r := kmsg.NewPtrCreateTopicsRequest()
		r.TimeoutMillis = 10_000
		t := kmsg.NewCreateTopicsRequestTopic()
		t.Topic, t.NumPartitions, t.ReplicationFactor = topic, int32(partitions), int16(min(3, len(c.brokers)))
		for i := 0; i < len(settings); i += 2 {
			s := kmsg.NewCreateTopicsRequestTopicConfig()
			s.Name, s.Value = settings[i], &settings[i+1]
			t.Configs = append(t.Configs, s)
		}
		r.Topics = append(r.Topics, t)
		a, err := r.RequestWith(ctx, cl)
		if err != nil {
			return err
		}
		err = kerr.ErrorForCode(a.Topics[0].ErrorCode)
		switch {
		case errors.Is(err, kerr.TopicAlreadyExists):
			return nil
		case err != nil && !kerr.IsRetriable(err):
			return fmt.Errorf("%w: %w: %s", errForGood, err, deref(a.Topics[0].ErrorMessage))
		}
		return err
	})
	for p := range partitions {
		c.Leader(topic, p)
	}
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// DeleteTopic removes a topic, and waits until no broker knows it.
func (c *Cluster) DeleteTopic(topic string) {
	c.t.Helper()
	c.do("delete "+topic, func(ctx context.Context, cl *kgo.Client) error {
		r := kmsg.NewPtrDeleteTopicsRequest()
		r.TimeoutMillis = 10_000
		r.TopicNames = []string{topic}
		t := kmsg.NewDeleteTopicsRequestTopic()
		t.Topic = &topic
		r.Topics = append(r.Topics, t)
		a, err := r.RequestWith(ctx, cl)
		if err != nil {
			return err
		}
		if err = kerr.ErrorForCode(a.Topics[0].ErrorCode); errors.Is(err, kerr.UnknownTopicOrPartition) {
			return nil
		}
		return err
	})
	for i, addr := range c.Internal() {
		if !c.brokers[i].running() {
			continue
		}
		c.do("no broker knows "+topic, func(ctx context.Context, _ *kgo.Client) error {
			cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.RequestRetries(0))
			if err != nil {
				return err
			}
			defer cl.Close()
			r, t := kmsg.NewPtrMetadataRequest(), kmsg.NewMetadataRequestTopic()
			t.Topic = &topic
			r.Topics = append(r.Topics, t)
			if m, err := r.RequestWith(ctx, seed(cl)); err == nil &&
				m.Topics[0].ErrorCode != kerr.UnknownTopicOrPartition.Code {
				return errors.New("it is still there")
			} else {
				return err
			}
		})
	}
}

// partition returns what the brokers say of a partition that has a leader.
func (c *Cluster) partition(ctx context.Context, cl *kgo.Client, topic string,
	partition int) (kmsg.MetadataResponseTopicPartition, error) {
	r := kmsg.NewPtrMetadataRequest()
	t := kmsg.NewMetadataRequestTopic()
	t.Topic = &topic
	r.Topics = append(r.Topics, t)
	m, err := r.RequestWith(ctx, cl)
	if err != nil {
		return kmsg.MetadataResponseTopicPartition{}, err
	}
	if err := kerr.ErrorForCode(m.Topics[0].ErrorCode); err != nil {
		return kmsg.MetadataResponseTopicPartition{}, err
	}
	for _, p := range m.Topics[0].Partitions {
		if int(p.Partition) == partition {
			return p, kerr.ErrorForCode(p.ErrorCode)
		}
	}
	return kmsg.MetadataResponseTopicPartition{}, kerr.UnknownTopicOrPartition
}

// Leader returns the broker that leads a partition, when one does.
func (c *Cluster) Leader(topic string, partition int) int {
	c.t.Helper()
	var leader int
	c.do(fmt.Sprintf("leader of %s[%d]", topic, partition), func(ctx context.Context, cl *kgo.Client) error {
		p, err := c.partition(ctx, cl, topic, partition)
		leader = int(p.Leader)
		return err
	})
	return leader
}

// InSync waits until n replicas of a partition are in sync.
func (c *Cluster) InSync(topic string, partition, n int) {
	c.t.Helper()
	c.do(fmt.Sprintf("%d replicas of %s[%d] in sync", n, topic, partition),
		func(ctx context.Context, cl *kgo.Client) error {
			p, err := c.partition(ctx, cl, topic, partition)
			if err == nil && len(p.ISR) < n {
				err = fmt.Errorf("only %v", p.ISR)
			}
			return err
		})
}

// MoveLeader makes a broker the leader of a partition that it has a replica of.
func (c *Cluster) MoveLeader(topic string, partition, to int) {
	c.t.Helper()
	c.do(fmt.Sprintf("leader of %s[%d] to %d", topic, partition, to), func(ctx context.Context, cl *kgo.Client) error {
		p, err := c.partition(ctx, cl, topic, partition)
		if err != nil || int(p.Leader) == to {
			return err
		}
		replicas := []int32{int32(to)}
		for _, r := range p.Replicas {
			if int(r) != to {
				replicas = append(replicas, r)
			}
		}
		if err := assign(ctx, cl, topic, partition, replicas); err != nil {
			return err
		}
		if err := elect(ctx, cl, topic, partition, false); err != nil {
			return err
		}
		return fmt.Errorf("broker %d leads", p.Leader)
	})
}

// assign sets a partition's replicas; the first is the preferred leader.
func assign(ctx context.Context, cl *kgo.Client, topic string, partition int, replicas []int32) error {
	r := kmsg.NewPtrAlterPartitionAssignmentsRequest()
	t, p := kmsg.NewAlterPartitionAssignmentsRequestTopic(), kmsg.NewAlterPartitionAssignmentsRequestTopicPartition()
	t.Topic, p.Partition, p.Replicas = topic, int32(partition), replicas
	t.Partitions = append(t.Partitions, p)
	r.Topics = append(r.Topics, t)
	a, err := r.RequestWith(ctx, cl)
	if err != nil {
		return err
	}
	for _, t := range a.Topics {
		for _, p := range t.Partitions {
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				return err
			}
		}
	}
	return kerr.ErrorForCode(a.ErrorCode)
}

// elect makes the preferred replica the leader, or with unclean any that is alive.
func elect(ctx context.Context, cl *kgo.Client, topic string, partition int, unclean bool) error {
	r := kmsg.NewPtrElectLeadersRequest()
	if unclean {
		r.ElectionType = 1
	}
	t := kmsg.NewElectLeadersRequestTopic()
	t.Topic, t.Partitions = topic, []int32{int32(partition)}
	r.Topics = append(r.Topics, t)
	a, err := r.RequestWith(ctx, cl)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(a.ErrorCode)
}

// Tool runs one of Kafka's command line tools by its class, org.apache.kafka.tools.…, and returns what it prints.
func (c *Cluster) Tool(ctx context.Context, class string, args ...string) ([]byte, error) {
	return c.jars.run(ctx, class, args...)
}

// Program compiles and runs a Java program of one source file with Kafka's clients, Kafka Connect's
// JSON converter and Flink's SQL parser, and returns what it prints.
func Program(t testing.TB, source string, args ...string) string {
	t.Helper()
	j := find(t)
	found, err := filepath.Glob(filepath.Join(j.dir, "others", "*.jar"))
	if err != nil || len(found) == 0 {
		t.Fatalf("no jars in %s/others: run .ci/kafka, which fetches them", j.dir)
	}
	j.path, j.archive = strings.Join(append(found, j.path), ":"), ""
	out, err := j.run(t.Context(), source, args...)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func (j jars) run(ctx context.Context, class string, args ...string) ([]byte, error) {
	cmd := j.command([]string{"-Xmx512m"}, class, args...)
	out := new(strings.Builder)
	cmd.Stdout, cmd.Stderr = out, out
	if err := begin(cmd); err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	defer stop()
	err := cmd.Wait()
	var exit *exec.ExitError
	if ctx.Err() != nil {
		err = ctx.Err()
	} else if errors.As(err, &exit) {
		err = fmt.Errorf("%s: %w: %s", class, err, out)
	}
	return []byte(out.String()), err
}
