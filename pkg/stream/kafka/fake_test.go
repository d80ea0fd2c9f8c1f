package kafka

import (
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"hindsight/pkg/stream/kafkatest"
)

// fake runs an in-process cluster, whose records carry the time of their appending, until the test ends.
func fake(t testing.TB, opts ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	k, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	stampTimes(k)
	return k
}

// stampTimes does what a broker does for topics with LogAppendTime, which the fake
// does not: it writes the time of appending into each batch, never going back. (The
// times are in both fields, so that the bit for them can stay unset: the fake would
// change the fields without the CRC if it were set.)
func stampTimes(k *kfake.Cluster) {
	var last int64
	k.ControlKey(int16(kmsg.Produce), func(r kmsg.Request) (kmsg.Response, error, bool) {
		k.KeepControl()
		last = max(last, time.Now().UnixMilli())
		for _, topic := range r.(*kmsg.ProduceRequest).Topics {
			for _, p := range topic.Partitions {
				if b := p.Records; len(b) > batchHead && crc32.Checksum(b[atAttributes:],
					castagnoli) == binary.BigEndian.Uint32(
					b[atCRC:]) {
					binary.BigEndian.PutUint64(b[atBaseTime:], uint64(last))
					binary.BigEndian.PutUint64(b[atMaxTime:], uint64(last))
					binary.BigEndian.PutUint32(b[atCRC:], crc32.Checksum(b[atAttributes:], castagnoli))
				}
			}
		}
		return nil, nil, false
	})
}

// client connects to a fake until the test ends.
func client(t testing.TB, k *kfake.Cluster, o Options) *Client {
	t.Helper()
	return dialed(t, k.ListenAddrs(), o)
}

// dialed connects to brokers until the test ends.
func dialed(t testing.TB, brokers []string, o Options) *Client {
	t.Helper()
	o.Brokers = brokers
	c, err := Dial(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// everywhere runs a test on a fake and on a real broker, where no topic "t" is.
func everywhere(t *testing.T, test func(t *testing.T, brokers []string)) {
	t.Run("fake", func(t *testing.T) {
		k := fake(t)
		test(t, k.ListenAddrs())
	})
	t.Run("real", func(t *testing.T) {
		if testing.Short() {
			t.Skip("starts a broker")
		}
		brokers := kafkatest.Shared(t).Brokers()
		deleteTopics(t, Options{Brokers: brokers})
		test(t, brokers)
	})
}

var errDropped = errors.Join(errors.New("the test closes this connection"), io.EOF)
