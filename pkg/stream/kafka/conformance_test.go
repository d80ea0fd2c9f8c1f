package kafka

import (
	"encoding/binary"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"hindsight/pkg/stream"
	"hindsight/pkg/stream/kafkatest"
	"hindsight/pkg/stream/streamtest"
)

// harness returns a fresh log on a fake of so many brokers.
func harness(brokers int) func(testing.TB) *streamtest.Harness {
	return func(t testing.TB) *streamtest.Harness {
		k := fake(t, kfake.NumBrokers(brokers), kfake.DataDir(t.TempDir()))
		o := Options{AckTimeout: 200 * time.Millisecond}
		c := client(t, k, o)
		return &streamtest.Harness{
			Log:   c.Log(),
			Close: func(t testing.TB) { c.Close(); k.Close() },
			Reopen: func(t testing.TB) stream.Log {
				c.Close()
				c = client(t, k, o)
				return c.Log()
			},
			LoseAcks:      func(t testing.TB) { loseAcks(k) },
			TooLarge:      messageBytes,
			NoFull:        true,
			LazyRetention: true,
			Begin: func(t testing.TB, topic, prefix string, n int) func(bool) {
				return begin(t, k.ListenAddrs(), topic, prefix, n)
			},
		}
	}
}

// loseAcks makes the fake store what is appended, and say that it does not know, until
// an open record comes.
func loseAcks(k *kfake.Cluster) {
	var opened atomic.Bool
	k.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.RequestTimedOut, Count: -1,
		When: func(r kmsg.Request) bool {
			for _, topic := range r.(*kmsg.ProduceRequest).Topics {
				for _, p := range topic.Partitions {
					if len(p.Records) > batchHead && binary.BigEndian.Uint32(p.Records[atSequence:]) == 0 {
						opened.Store(true)
					}
				}
			}
			return !opened.Load()
		}})
}

func TestLog(t *testing.T) {
	t.Run("one broker", func(t *testing.T) { streamtest.TestLog(t, harness(1)) })
	if !testing.Short() {
		t.Run("three brokers", func(t *testing.T) { streamtest.TestLog(t, harness(3)) })
	}
}

func BenchmarkLog(b *testing.B) {
	b.Run("fake", func(b *testing.B) { streamtest.BenchmarkLog(b, harness(1)) })
	b.Run("real", func(b *testing.B) { streamtest.BenchmarkLog(b, onCluster(kafkatest.Shared(b))) })
}
