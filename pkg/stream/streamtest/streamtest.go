// Package streamtest is the test suite of package stream: what every log and bus
// must do. A backend runs it with a function that makes a fresh one.
package streamtest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"hindsight/pkg/stream"
)

// Harness is a fresh, empty log and what a test may do to it. A nil function means
// that the backend cannot; the tests that need it are skipped.
type Harness struct {
	Log   stream.Log
	Close func(t testing.TB) // closes Log and all behind it

	// Reopen closes the log and opens it again on the same data.
	Reopen func(t testing.TB) stream.Log
	// LoseAcks makes the acknowledgements of what is appended from now on get lost
	// until an Open, whether the records are stored or not.
	LoseAcks func(t testing.TB)
	// TooLarge is a size of a record's value that is too large for the log.
	TooLarge int
	// MinFull is the smallest TopicOptions.MaxBytes worth testing; 0 means 64 KiB.
	MinFull int64
	// ForeignHoles says that after a record written past the owner a refused record of
	// the owner may be followed by one that is stored.
	ForeignHoles bool
	// NoFull says that the log cannot refuse records over TopicOptions.MaxBytes.
	NoFull bool
	// LazyRetention says that the log drops what is over its limits later and roughly.
	LazyRetention bool
	// Begin writes the values prefix0 … prefix(n−1) to partition 0 in a transaction of another
	// client; end commits or aborts it.
	Begin func(t testing.TB, topic, prefix string, n int) (end func(commit bool))
	// Floor is what [BenchmarkLog] compares with.
	Floor Floor
}

// timeout bounds every wait of the suite; it passes only when a test fails.
const timeout = time.Minute

// suite is one test's log.
type suite struct {
	*testing.T
	*Harness
	ctx context.Context
}

// TestLog runs the suite; open is called for each test.
func TestLog(t *testing.T, open func(t testing.TB) *Harness) {
	tests := []struct {
		name string
		run  func(s *suite)
	}{
		{"Order", testOrder},
		{"Content", testContent},
		{"Topics", testTopics},
		{"CreateTogether", testCreateTogether},
		{"Bounds", testBounds},
		{"Positions", testPositions},
		{"ScanBack", testScanBack},
		{"NextWaits", testNextWaits},
		{"NextCancelled", testNextCancelled},
		{"NextClosed", testNextClosed},
		{"Batches", testBatches},
		{"Follow", testFollow},
		{"ManyWriters", testManyWriters},
		{"BytesAreFree", testBytesAreFree},
		{"CancelledAppend", testCancelledAppend},
		{"TooLarge", testTooLarge},
		{"BadHeaders", testBadHeaders},
		{"AppenderClosed", testAppenderClosed},
		{"LogClosed", testLogClosed},
		{"Fence", testFence},
		{"FencePipelined", testFencePipelined},
		{"OpenersTogether", testOpenersTogether},
		{"OpenAgainstBusyOwner", testOpenAgainstBusyOwner},
		{"WriterAfterOwner", testWriterBreaksNothing},
		{"LostAcks", testLostAcks},
		{"Restart", testRestart},
		{"Full", testFull},
		{"DropOldest", testDropOldest},
		{"Transactions", testTransactions},
		{"Trim", testTrim},
		{"TrimUnderReader", testTrimUnderReader},
		{"TrimUnderScan", testTrimUnderScan},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before := goleak.IgnoreCurrent()
			ctx, cancel := context.WithTimeout(context.Background(), timeout)
			defer goleak.VerifyNone(t, before)
			defer cancel()
			h := open(t)
			defer func() { h.Close(t) }()
			tt.run(&suite{t, h, ctx})
		})
	}
}

// create makes the topic "shop.contexts" and returns its name.
func (s *suite) create(partitions int, o stream.TopicOptions) string {
	s.Helper()
	const topic = "shop.contexts"
	s.check(s.Log.Create(s.ctx, topic, partitions, o))
	return topic
}

func (s *suite) check(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// acks collects the fates of an appender's records.
type acks struct {
	mu      sync.Mutex
	next    uint64
	offsets []int64 // of the acknowledged, in order
	errs    []error // one for each append
	wrong   string  // a breach of the contract
}

func (a *acks) fn(seq uint64, offset int64, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.next++
	if seq != a.next {
		a.wrong = fmt.Sprintf("acknowledgement %d came as number %d", seq, a.next)
	}
	if err == nil && len(a.offsets) > 0 && offset <= a.offsets[len(a.offsets)-1] {
		a.wrong = fmt.Sprintf("offset %d after %d", offset, a.offsets[len(a.offsets)-1])
	}
	if err == nil && len(a.errs) != len(a.offsets) {
		a.wrong = fmt.Sprintf("append %d succeeded after one that failed", seq)
	}
	a.errs = append(a.errs, err)
	if err == nil {
		a.offsets = append(a.offsets, offset)
	}
}

// get returns what was collected.
func (s *suite) get(a *acks) (offsets []int64, errs []error) {
	s.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.wrong != "" {
		s.Fatal(a.wrong)
	}
	return append([]int64(nil), a.offsets...), append([]error(nil), a.errs...)
}

func (s *suite) open(topic string, a *acks) (stream.Appender, stream.Tail) {
	s.Helper()
	o := stream.OpenOptions{Owner: "suite"}
	if a != nil {
		o.Ack = a.fn
	}
	ap, tail, err := s.Log.Open(s.ctx, topic, 0, o)
	s.check(err)
	return ap, tail
}

func (s *suite) writer(topic string, a *acks) stream.Appender {
	s.Helper()
	var fn stream.AckFunc
	if a != nil {
		fn = a.fn
	}
	ap, err := s.Log.Writer(s.ctx, topic, 0, fn)
	s.check(err)
	return ap
}

// fill appends values prefix0 … prefix(n−1) and waits for them.
func (s *suite) fill(a stream.Appender, prefix string, n int) {
	s.Helper()
	for i := range n {
		_, err := a.Append(s.ctx, &stream.Record{Value: fmt.Appendf(nil, "%s%d", prefix, i)})
		s.check(err)
	}
	s.check(a.Flush(s.ctx))
}

// all reads a partition from the first record to its present end and checks what holds for every read.
func (s *suite) all(topic string) []stream.Record {
	s.Helper()
	first, next, err := s.Log.Bounds(s.ctx, topic, 0)
	s.check(err)
	return s.span(topic, first, next)
}

// span reads [first, next).
func (s *suite) span(topic string, first, next int64) []stream.Record {
	s.Helper()
	if first == next {
		return nil
	}
	r, err := s.Log.Read(s.ctx, topic, 0, first)
	for stream.IsRetryable(err) && s.ctx.Err() == nil { // after a cut the connections come back one by one
		r, err = s.Log.Read(s.ctx, topic, 0, first)
	}
	s.check(err)
	defer r.Close()
	var all, batch []stream.Record
	for r.Position() < next {
		batch, err = r.Next(s.ctx, batch[:0])
		s.check(err)
		if len(batch) == 0 {
			s.Fatal("Next returned nothing")
		}
		for _, rec := range batch {
			if n := len(all); n > 0 && (rec.Offset <= all[n-1].Offset || rec.Time < all[n-1].Time) {
				s.Fatalf("record %d at %d follows %d at %d", rec.Offset, rec.Time, all[n-1].Offset, all[n-1].Time)
			}
			if rec.Offset >= next {
				break
			}
			rec.Key, rec.Value = append([]byte(nil), rec.Key...), append([]byte(nil), rec.Value...)
			all = append(all, rec)
		}
		if last := batch[len(batch)-1].Offset; r.Position() <= last {
			s.Fatalf("position %d after reading %d", r.Position(), last)
		}
	}
	return all
}
