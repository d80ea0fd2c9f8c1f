package embedded_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"hindsight/pkg/stream"
	"hindsight/pkg/stream/embedded"
)

// BenchmarkSync appends one record at a time with Sync "always" and waits for it, against a
// bare write and fdatasync of a file on the same disk; then as many at once as an appender
// takes.
func BenchmarkSync(b *testing.B) {
	e := open(b, embedded.Options{Dir: b.TempDir(), DontListen: true, Sync: embedded.SyncAlways})
	defer closeEngine(b, e)
	if err := e.Log().Create(b.Context(), "a", 1, stream.TopicOptions{}); err != nil {
		b.Fatal(err)
	}
	w, err := e.Log().Writer(b.Context(), "a", 0, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer w.Close()
	f, err := os.Create(filepath.Join(b.TempDir(), "bare"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	value, took := make([]byte, 300), map[string][]time.Duration{}
	measure := func(what string, do func() error) {
		start := time.Now()
		if err := do(); err != nil {
			b.Fatal(err)
		}
		took[what] = append(took[what], time.Since(start))
	}
	appendN := func(n int) error {
		for range n {
			if _, err := w.Append(b.Context(), &stream.Record{Value: value}); err != nil {
				return err
			}
		}
		return w.Flush(b.Context())
	}
	for b.Loop() {
		measure("append", func() error { return appendN(1) })
		measure("bare", func() error {
			_, err := f.Write(value)
			return errors.Join(err, syscall.Fdatasync(int(f.Fd())))
		})
		if len(took["append"])%100 == 0 {
			measure("many", func() error { return appendN(1000) })
		}
	}
	ours, floor := median(took["append"]), median(took["bare"])
	b.ReportMetric(float64(ours.Nanoseconds())/1e3, "p50-µs")
	b.ReportMetric(float64(ours)/float64(floor), "x-fdatasync-p50")
	if many := took["many"]; len(many) > 0 {
		b.ReportMetric(1000/median(many).Seconds(), "records/s")
	}
}
