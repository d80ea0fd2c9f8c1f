package mem_test

import (
	"sync/atomic"
	"testing"

	"hindsight/pkg/stream"
	"hindsight/pkg/stream/mem"
	"hindsight/pkg/stream/streamtest"
)

// harness returns a log; o says what is special about it.
func harness(o mem.Options) func(testing.TB) *streamtest.Harness {
	return func(testing.TB) *streamtest.Harness {
		var losing atomic.Bool
		o := o
		o.OnAppend = func(_ string, _ int, r *stream.Record) mem.Fault {
			switch {
			case r.Type == stream.TypeOpen:
				losing.Store(false)
			case losing.Load() && r.Value[0]%2 == 0:
				return mem.StoredUnknown
			case losing.Load():
				return mem.NotStoredUnknown
			}
			return mem.None
		}
		l := mem.New(o)
		return &streamtest.Harness{
			Log:      l,
			Close:    func(t testing.TB) { l.Close() },
			LoseAcks: func(testing.TB) { losing.Store(true) },
			TooLarge: mem.DefaultMaxBytes + 1,
		}
	}
}

func TestLog(t *testing.T) {
	t.Run("default", func(t *testing.T) { streamtest.TestLog(t, harness(mem.Options{})) })
	t.Run("strange offsets", func(t *testing.T) {
		streamtest.TestLog(t, harness(mem.Options{FirstOffset: 100, Step: 3, MaxBatch: 7, StrictBytes: true}))
	})
}

func TestBus(t *testing.T) {
	streamtest.TestBus(t, func(testing.TB) *streamtest.BusHarness {
		l := mem.New(mem.Options{})
		return &streamtest.BusHarness{Server: l, Client: l, Close: func(testing.TB) { l.Close() },
			TooLarge: mem.DefaultMaxBytes + 1}
	})
}

func BenchmarkLog(b *testing.B) { streamtest.BenchmarkLog(b, harness(mem.Options{})) }
