// Package kafka keeps a log in Apache Kafka, 2.8 or later.
//
// Topic shop.contexts is the Kafka topic of that name, a partition is a partition, offsets are Kafka's. The type of a
// record is the header hindsight-type, its key is the Kafka key, other headers pass through. Times are append times of
// the brokers (message.timestamp.type=LogAppendTime).
//
// # Appending
//
// An appender has one batch of records in flight and fills the next one meanwhile; nothing waits for a batch to become
// larger. Batches are idempotent: they carry a producer id, an epoch and a sequence number, and while the outcome of
// one is not known the same bytes are sent again. The leader stores them once, in order.
//
// # Fencing
//
// All owners of a partition use one producer id, a hash of its name, each with a higher epoch than the one before. Once
// the open record of an owner, the first of its epoch, is stored, the leader refuses every earlier epoch. Two that open
// at once with the same epoch look like one that repeats itself: the second is told the offset of the first's open
// record. So an open record carries a random number and is read back. When epochs run out the next producer id takes
// over. (The ids are far above those that brokers give to producers. A producer id that a broker gave would have to be
// found at the end of the partition by the next owner, where other clients' records may be, or nothing at all after a
// Trim.)
//
// Appenders without a fence use producer ids that the brokers give.
//
// # Limits
//
// Kafka applies MaxAge and MaxBytes later and roughly, segment by segment, and always by dropping the oldest. It cannot
// refuse instead: Create fails for a topic that is to be RejectWhenFull and has MaxBytes. Topics made Trimmable are
// known by the end of their names, .snapshots; anyone with the right to may delete records of any topic.
//
// Brokers forget a producer that has written nothing to a partition for a day (producer.id.expiration.ms), and would
// then take records of an owner before it. So an owner that has written nothing for hours looks for a later one before
// it writes again; what it had on its way when it was stopped is beyond that.
//
// # Reading
//
// A reader fetches ahead on a connection of its own, checks every batch's CRC, and
// passes markers of transactions. It reads as a consumer with read_committed does: to the
// last stable offset, and without the batches of transactions that were aborted.
package kafka

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"sync"
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

	// Replication and MinISR are of the topics that Create makes: how many copies, and how many must have a record
	// before it is acknowledged. 0: the brokers' default, and one less than there are copies, but at least 1.
	Replication, MinISR int

	// Headers returns, for the appenders of a topic, what headers a record gets beside its own. They are
	// used before the next call. nil: none.
	Headers func(topic string) func(*stream.Record) []stream.Header

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

func (o Options) withDefaults() Options {
	o.ClientID = cmp.Or(o.ClientID, DefaultClientID)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Dial == nil {
		o.Dial = (&net.Dialer{KeepAlive: 15 * time.Second}).DialContext
	}
	o.RequestTimeout = cmp.Or(max(o.RequestTimeout, 0), DefaultRequestTimeout)
	o.AckTimeout = cmp.Or(max(o.AckTimeout, 0), DefaultAckTimeout)
	return o
}

// Client is a log in a cluster, with its connections.
type Client struct {
	o       Options
	cluster cluster
	log     *Log
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc

	patience time.Duration // how long a reader waits in silence for a partition that cannot be read now
	hangs    time.Duration // how long for the end of a transaction

	unsynced sync.Once // to warn of topics that a power cut of one broker shortens
}

// Dial asks the brokers for the cluster's metadata, so that one that is away, a wrong
// password or a TLS failure is told as what it is.
func Dial(ctx context.Context, o Options) (*Client, error) {
	if len(o.Brokers) == 0 {
		return nil, errors.New("kafka: no broker is given")
	}
	c := &Client{o: o.withDefaults(), patience: 5 * time.Second, hangs: longestTransaction}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.cluster.init(c.o.Brokers)
	c.log = &Log{c: c, open: map[closer]struct{}{}, held: map[place]error{}, at: map[place]int64{}}
	if _, err := c.metadata(ctx, []string{}); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// Log returns the log, which is also a [stream.Lister].
func (c *Client) Log() stream.Log { return c.log }

// Close closes the log and every connection.
func (c *Client) Close() error {
	err := c.log.Close()
	c.cancel()
	c.cluster.close()
	return err
}
