package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go/sasl"
	"github.com/segmentio/kafka-go/sasl/scram"
	"github.com/twmb/franz-go/pkg/kmsg"

	"hindsight/pkg/stream/kafka"
	"hindsight/pkg/stream/kafkatest"
)

// TestKafkaRealRights runs a system on a real broker as a user who has just the rights
// that docs/kafka.md lists, and a pipeline as one who may write contexts and
// outcomes and read decisions. Without those on the group the decider says which.
func TestKafkaRealRights(t *testing.T) {
	kafkatest.Heavy(t)
	t.Parallel() // on a cluster of its own
	c := kafkatest.Start(t, kafkatest.Options{ACL: true, Users: []kafkatest.User{{Name: "shop", Password: "secret-1"},
		{Name: "pipeline", Password: "secret-2"}, {Name: "auditor", Password: "secret-3"}}})
	const (
		read, write, describe = kmsg.ACLOperationRead, kmsg.ACLOperationWrite, kmsg.ACLOperationDescribe
		configs, create       = kmsg.ACLOperationDescribeConfigs, kmsg.ACLOperationCreate
	)
	allow := func(user string, topics []string, operations ...kmsg.ACLOperation) {
		for _, topic := range topics {
			c.Allow(user, kafkatest.Topic("shop."+topic), operations...)
		}
	}
	all := []string{"contexts", "decisions", "outcomes", "feedback", "rejects", "snapshots"}
	allow("shop", all, read, write, describe, configs, create, kmsg.ACLOperationDelete)
	dir := t.TempDir()
	password := filepath.Join(dir, "password")
	if err := os.WriteFile(password, []byte("secret-1"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &brokered{t: t, dir: dir, partitions: 2}
	s.args = []string{"--log", "kafka://" + strings.Join(c.Brokers(), ",") + "?session=6s", "--kafka-user", "shop",
		"--kafka-password-file", password,
		"--model", writeModel(t, dir, shop), "--seed-file", filepath.Join(dir, "seed"), "--admin", "127.0.0.1:0",
		"--nats", "none"}
	d := s.decider()
	eventually(t, "the decider names the right that it needs", func() bool {
		return strings.Contains(d.log(), "ACL operation Read on the group shop.deciders")
	})
	for _, group := range []string{"shop.deciders", "shop.joiner"} {
		c.Allow("shop", kafkatest.Group(group), read, describe)
	}
	d.ready()
	allow("pipeline", []string{"contexts", "outcomes"}, write, describe)
	allow("pipeline", []string{"decisions"}, read, describe)
	allow("auditor", all, read, describe)
	s.dialAs(c.Brokers(), "pipeline", "secret-2")
	w := s.pipeline(testSeed(t))
	after(d, time.Second)
	w.end()
	s.dialAs(c.Brokers(), "auditor", "secret-3")
	s.settled()
	d.stop(patience)
	if r := s.audit(); int64(r.Decisions) != w.n || r.Snapshots == 0 {
		t.Errorf("%d contexts: %s", w.n, figures(r))
	}
}

// dialAs makes the test another user.
func (s *brokered) dialAs(brokers []string, user, password string) {
	s.t.Helper()
	m, err := scram.Mechanism(scram.SHA512, user, password)
	if err != nil {
		s.t.Fatal(err)
	}
	c, err := kafka.Dial(s.t.Context(), kafka.Options{Brokers: brokers, SASL: sasl.Mechanism(m)})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	s.log = c.Log()
}
