package kafka

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go/sasl"
	saslplain "github.com/segmentio/kafka-go/sasl/plain"
	"github.com/segmentio/kafka-go/sasl/scram"
	"github.com/twmb/franz-go/pkg/kmsg"

	"hindsight/pkg/stream"
	"hindsight/pkg/stream/kafkatest"
)

func scramOf(t *testing.T, a scram.Algorithm, user, password string) sasl.Mechanism {
	t.Helper()
	m, err := scram.Mechanism(a, user, password)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func trusting(t *testing.T, ca string) *tls.Config {
	t.Helper()
	text, err := os.ReadFile(ca)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	return &tls.Config{RootCAs: pool}
}

// TestKafkaRealAccess logs in to a broker with TLS, SASL and rights in every way, and is
// told by name what is wrong, never with the password.
func TestKafkaRealAccess(t *testing.T) {
	kafkatest.Heavy(t)
	t.Parallel() // on a cluster of its own
	const password = "S3cret-of-shop"
	k := kafkatest.Start(t, kafkatest.Options{TLS: true, ACL: true,
		Users: []kafkatest.User{{Name: "shop", Password: password}}})
	k.CreateTopic("shop.contexts", 1, "message.timestamp.type", "LogAppendTime")
	trusted := trusting(t, k.Authority.CA)
	other := kafkatest.Start(t, kafkatest.Options{})
	for _, c := range []struct {
		name string
		o    Options
		want error
	}{
		{"PLAIN", Options{TLS: trusted, SASL: saslplain.Mechanism{Username: "shop", Password: password}}, nil},
		{"SCRAM-SHA-256", Options{TLS: trusted, SASL: scramOf(t, scram.SHA256, "shop", password)}, nil},
		{"SCRAM-SHA-512", Options{TLS: trusted, SASL: scramOf(t, scram.SHA512, "shop", password)}, nil},
		{"PLAIN wrong password", Options{TLS: trusted, SASL: saslplain.Mechanism{Username: "shop", Password: password +
			"x"}}, ErrAuthentication},
		{"SCRAM wrong password", Options{TLS: trusted, SASL: scramOf(t, scram.SHA512, "shop", password+"x")},
			ErrAuthentication},
		{"SCRAM wrong user", Options{TLS: trusted, SASL: scramOf(t, scram.SHA256, "nobody", password)},
			ErrAuthentication},
		{"authority not known", Options{TLS: &tls.Config{}, SASL: saslplain.Mechanism{Username: "shop",
			Password: password}}, ErrTLS},
		{"no TLS", Options{SASL: saslplain.Mechanism{Username: "shop", Password: password}}, stream.ErrUnavailable},
		{"no login", Options{TLS: trusted}, stream.ErrUnavailable},
		{"TLS where there is none", Options{Brokers: other.Brokers(), TLS: trusted}, ErrTLS},
		{"SASL where there is none", Options{Brokers: other.Brokers(), SASL: scramOf(t, scram.SHA256, "shop",
			password)}, ErrAuthentication},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.o.Brokers == nil {
				c.o.Brokers = k.Brokers()
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			start := time.Now()
			client, err := Dial(ctx, c.o)
			if err == nil {
				defer client.Close()
			}
			t.Logf("after %v: %v", time.Since(start), err)
			if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
				t.Errorf("error is not %v", c.want)
			}
			if err != nil && strings.Contains(err.Error(), password) {
				t.Error("the error has the password")
			}
		})
	}
	t.Run("rights", func(t *testing.T) {
		client, err := Dial(t.Context(), Options{Brokers: k.Brokers(), TLS: trusted, AckTimeout: 2 * time.Second,
			SASL: scramOf(t, scram.SHA512, "shop", password)})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		testRights(t, k, client.Log())
	})
}

// testRights gives rights one by one, and takes them away under an owner.
func testRights(t *testing.T, k *kafkatest.Cluster, l stream.Log) {
	ctx := t.Context()
	const topic = "shop.contexts"
	open := func() (stream.Appender, error) {
		a, _, err := l.Open(ctx, topic, 0, stream.OpenOptions{})
		return a, err
	}
	refused := func(what string, err error) {
		t.Helper()
		t.Logf("%s: %v", what, err)
		if !errors.Is(err, ErrAuthorization) {
			t.Errorf("%s: not ErrAuthorization", what)
		}
	}
	_, err := open()
	refused("open without any right", err)
	k.Allow("shop", kafkatest.Topic(topic), kmsg.ACLOperationDescribe, kmsg.ACLOperationDescribeConfigs)
	_, err = open()
	refused("open without write", err)
	k.Allow("shop", kafkatest.Topic(topic), kmsg.ACLOperationWrite)
	_, err = open()
	refused("open without read", err)
	k.Allow("shop", kafkatest.Topic(topic), kmsg.ACLOperationRead)
	a, err := open()
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	appendOne := func(a stream.Appender) error {
		if _, err := a.Append(ctx, &stream.Record{Value: []byte("v")}); err != nil {
			return err
		}
		return a.Flush(ctx)
	}
	if err := appendOne(a); err != nil {
		t.Fatal(err)
	}
	refused("create", l.Create(ctx, "shop.other", 1, stream.TopicOptions{}))
	k.Disallow("shop", kafkatest.Topic(topic))
	for err = nil; err == nil; { // brokers learn of it a little later
		err = appendOne(a)
	}
	refused("append after rights were taken", err)
	k.Allow("shop", kafkatest.Topic(topic), kmsg.ACLOperationAll)
	for err = nil; ; {
		if a, err = open(); err == nil {
			break
		}
		if !stream.IsRetryable(err) {
			t.Fatal(err)
		}
	}
	defer a.Close()
	if err := appendOne(a); err != nil {
		t.Error(err)
	}
}
