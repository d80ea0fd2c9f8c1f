package service

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hindsight/internal/follow"
	"hindsight/internal/model"
	"hindsight/internal/topics"
	"hindsight/internal/watch"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/mem"
)

// refuserBus is a bus that says when it does not hand a request over.
type refuserBus struct {
	stream.Bus
	refused func(subject string)
}

func (b *refuserBus) OnRefused(f func(subject string)) { b.refused = f }

// TestRefusedReplies holds that requests which a bus refuses for their reply are counted.
func TestRefusedReplies(t *testing.T) {
	log := mem.New(mem.Options{Clock: clock()})
	defer log.Close()
	if err := topics.Create(t.Context(), log, "m", 1, topics.Retention{}); err != nil {
		t.Fatal(err)
	}
	bus, reg := &refuserBus{Bus: log}, prometheus.NewRegistry()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if err := RunSystem(ctx, SystemConfig{Log: log, Bus: bus, Name: "m", Source: &follow.Source{Name: "m", Version: 1,
		Model: []byte("x")}, Build: testBuild,
		Seed: []byte("seed"), Partitions: 1, Owned: []int{0}, Owner: "test", Metrics: watch.NewMetrics(reg, nil),
		Logger: slog.New(slog.DiscardHandler)}, cancel); err != nil {
		t.Fatal(err)
	}
	for _, subject := range []string{"m.decide", "m.decide.0", "m.outcome"} {
		bus.refused(subject)
	}
	got := scrape(t, reg)
	for series, want := range map[string]float64{
		`hindsight_requests_refused_total{code="no-inbox",subject="decide"}`:  2,
		`hindsight_requests_refused_total{code="no-inbox",subject="outcome"}`: 1,
		`hindsight_requests_refused_total{code="other",subject="decide"}`:     0,
	} {
		if got[series] != want {
			t.Errorf("%s is %v, want %v", series, got[series], want)
		}
	}
}

// hangingLog is a log that does not answer from the call on at which left reaches 0.
type hangingLog struct {
	*mem.Log
	left atomic.Int64
	hung chan struct{}
}

func (l *hangingLog) hang(ctx context.Context) error {
	if l.left.Add(-1) > 0 {
		return nil
	}
	select {
	case l.hung <- struct{}{}:
	default:
	}
	<-ctx.Done()
	return ctx.Err()
}

func (l *hangingLog) Bounds(ctx context.Context, topic string, partition int) (first, end int64, err error) {
	if err := l.hang(ctx); err != nil {
		return 0, 0, err
	}
	return l.Log.Bounds(ctx, topic, partition)
}

func (l *hangingLog) Open(ctx context.Context, topic string, partition int, o stream.OpenOptions) (stream.Appender,
	stream.Tail, error) {
	if err := l.hang(ctx); err != nil {
		return nil, stream.Tail{}, err
	}
	return l.Log.Open(ctx, topic, partition, o)
}

func (l *hangingLog) Writer(ctx context.Context, topic string, partition int, ack stream.AckFunc) (stream.Appender,
	error) {
	if err := l.hang(ctx); err != nil {
		return nil, err
	}
	return l.Log.Writer(ctx, topic, partition, ack)
}

func (l *hangingLog) Read(ctx context.Context, topic string, partition int, from int64) (stream.Reader, error) {
	if err := l.hang(ctx); err != nil {
		return nil, err
	}
	r, err := l.Log.Read(ctx, topic, partition, from)
	return &hangingReader{r, l}, err
}

type hangingReader struct {
	stream.Reader
	log *hangingLog
}

func (r *hangingReader) Next(ctx context.Context, dst []stream.Record) ([]stream.Record, error) {
	if err := r.log.hang(ctx); err != nil {
		return dst, err
	}
	return r.Reader.Next(ctx, dst)
}

// TestStopIsHeard stops a system while its log does not answer: at each call of a start, from the
// first of a recovery through the teaching of a new model. It ends in time, without an error of its own.
func TestStopIsHeard(t *testing.T) { synctest.Test(t, testStopIsHeard) }

func testStopIsHeard(t *testing.T) {
	log := mem.New(mem.Options{Clock: clock()})
	defer log.Close()
	createTopics(t, log, "m", 1)
	contexts, err := log.Writer(t.Context(), "m.contexts", 0, nil)
	must(t, contexts, err)
	for range 5 {
		_, err := contexts.Append(t.Context(), &stream.Record{Value: []byte(`{"actions":["a","b"]}`)})
		must(t, 0, err)
	}
	stop := func(calls int64) (hung bool) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		l := &hangingLog{Log: log, hung: make(chan struct{}, 1)}
		l.left.Store(calls)
		ready, ended := make(chan struct{}), make(chan error, 1)
		go func() {
			ended <- RunSystem(ctx, SystemConfig{Log: l, Bus: log, Name: "m", Source: &follow.Source{Name: "m",
				Version: 2, Model: []byte("name: m\nwarm: refit\n"), Warm: model.Warm{Refit: true}}, Build: modeBuild,
				Seed: []byte("seed"), Partitions: 1, Owner: "test", Logger: slog.New(slog.DiscardHandler)},
				func() { close(ready) })
		}()
		select {
		case <-l.hung:
			hung = true
		case <-ready:
		}
		began := time.Now()
		cancel()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("call %d: %v", calls, err)
		}
		if took := time.Since(began); took > stopGrace+time.Second {
			t.Errorf("call %d: the system stops after %v", calls, took)
		}
		return hung
	}
	calls := int64(1)
	for calls < 200 && stop(calls) {
		calls++
	}
	if calls < 20 || calls == 200 {
		t.Errorf("a start has %d calls", calls)
	}
}
