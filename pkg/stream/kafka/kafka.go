// Package kafka keeps a log in Apache Kafka (2.8 or later).
//
// Topic shop.contexts is the Kafka topic of that name, a partition is a partition,
// offsets are Kafka's. The type of a record is the header hindsight-type, its key is
// the Kafka key, other headers pass through.
package kafka

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"time"

	"github.com/segmentio/kafka-go/sasl"

	"hindsight/pkg/stream"
)

// Options configure a connection to a cluster. Only Brokers has no default.
type Options struct {
	Brokers  []string       // host:port of some of the brokers; the others are asked for
	TLS      *tls.Config    // nil: no TLS
	SASL     sasl.Mechanism // nil: none
	ClientID string         // shown by the broker's tools and logs; "": hindsight
	Logger   *slog.Logger   // nil: silent

	// Replication and MinISR are of the topics that Create makes: how many copies, and
	// how many must have a record before it is acknowledged. 0: the broker's default
	// replication, and one less than the replication but at least 1.
	Replication, MinISR int

	// Dial makes the connections; nil: a net.Dialer.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)

	RequestTimeout time.Duration // most that one question to a broker takes; 0: DefaultRequestTimeout
	// AckTimeout is how long an append is sent again while its outcome is not known or
	// no leader takes it; 0: DefaultAckTimeout.
	AckTimeout time.Duration
}

// Defaults of [Options].
const (
	DefaultClientID       = "hindsight"
	DefaultRequestTimeout = 10 * time.Second
	DefaultAckTimeout     = 30 * time.Second
)

// Client is a log in a cluster, with its connections.
type Client struct{ o Options }

// Dial asks the brokers for the cluster's metadata, so that one that is away, a wrong
// password or a TLS failure is told as what it is.
func Dial(ctx context.Context, o Options) (*Client, error) {
	return nil, errors.New("kafka: not built yet")
}

// Log returns the log, which is also a [stream.Lister].
func (c *Client) Log() stream.Log { return nil }

// Close closes the log and every connection.
func (c *Client) Close() error { return nil }
