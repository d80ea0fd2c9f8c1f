package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"hindsight/pkg/stream"
	"hindsight/pkg/stream/kafkatest"
)

// observer is the log as another Kafka client sees it, franz-go. What it has read of a
// partition it keeps, so that it can tell later whether that has changed. Nobody opens
// a partition through it.
type observer struct {
	stream.Log // nil: what is not here must not be called
	t          testing.TB
	client     *kgo.Client
	done       chan struct{}

	mu   sync.Mutex
	seen map[observed]*sight
}

type observed struct {
	topic     string
	partition int32
}

// sight is what was read of a partition so far.
type sight struct {
	records []stream.Record
	raw     []*kgo.Record
	more    chan struct{} // closed when there is more
}

// observe connects an observer until the end of the test.
func observe(t testing.TB, c *kafkatest.Cluster) *observer {
	t.Helper()
	o := &observer{t: t, done: make(chan struct{}), seen: map[observed]*sight{}}
	o.client = c.Client(kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.RetryBackoffFn(func(int) time.Duration { return 50 * time.Millisecond }),
		kgo.MetadataMaxAge(10*time.Second),
		kgo.FetchMaxWait(200*time.Millisecond)) // a partition that is added waits for the end of a fetch that has none
	t.Cleanup(func() { // before the client is closed
		o.client.CloseAllowingRebalance()
		<-o.done
	})
	go o.follow()
	return o
}

// follow keeps what comes.
func (o *observer) follow() {
	defer close(o.done)
	for {
		fetches := o.client.PollFetches(context.Background())
		if fetches.IsClientClosed() {
			return
		}
		fetches.EachError(func(topic string, partition int32, err error) {
			if !kerr.IsRetriable(err) && !errors.Is(err, context.Canceled) {
				o.t.Errorf("another client reads %s[%d]: %v", topic, partition, err)
			}
		})
		fetches.EachPartition(func(p kgo.FetchTopicPartition) { o.keep(observed{p.Topic, p.Partition}, p.Records) })
	}
}

func (o *observer) keep(at observed, records []*kgo.Record) {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.seen[at]
	for _, r := range records {
		if n := len(s.raw); n > 0 && s.raw[n-1].Offset+1 != r.Offset {
			o.t.Errorf("%s[%d]: record %d follows record %d", at.topic, at.partition, r.Offset, s.raw[n-1].Offset)
		}
		s.raw, s.records = append(s.raw, r), append(s.records, recordOf(r))
	}
	close(s.more)
	s.more = make(chan struct{})
}

func recordOf(r *kgo.Record) stream.Record {
	out := stream.Record{Offset: r.Offset, Time: r.Timestamp.UnixNano(), Key: r.Key, Value: r.Value}
	for _, h := range r.Headers {
		if h.Key == stream.HeaderType {
			out.Type = string(h.Value)
		} else {
			out.Headers = append(out.Headers, stream.Header{Key: h.Key, Value: string(h.Value)})
		}
	}
	return out
}

// Partitions implements [stream.Log].
func (o *observer) Partitions(ctx context.Context, topic string) (int, error) {
	r, t := kmsg.NewPtrMetadataRequest(), kmsg.NewMetadataRequestTopic()
	t.Topic = &topic
	r.Topics = append(r.Topics, t)
	answer, err := r.RequestWith(ctx, o.client)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", stream.ErrUnavailable, err)
	}
	return len(answer.Topics[0].Partitions), kerr.ErrorForCode(answer.Topics[0].ErrorCode)
}

// Bounds implements [stream.Log].
func (o *observer) Bounds(ctx context.Context, topic string, partition int) (first, next int64, err error) {
	for _, ask := range []struct {
		at int64
		to *int64
	}{{-1, &next}, {-2, &first}} {
		r, t, p := kmsg.NewPtrListOffsetsRequest(), kmsg.NewListOffsetsRequestTopic(),
			kmsg.NewListOffsetsRequestTopicPartition()
		p.Partition, p.Timestamp = int32(partition), ask.at
		t.Topic, t.Partitions = topic, append(t.Partitions, p)
		r.ReplicaID, r.Topics = -1, append(r.Topics, t)
		answer, err := r.RequestWith(ctx, o.client)
		if err != nil {
			return 0, 0, fmt.Errorf("%w: %w", stream.ErrUnavailable, err)
		}
		if len(answer.Topics) != 1 || len(answer.Topics[0].Partitions) != 1 {
			return 0, 0, fmt.Errorf("%w: no answer for %s[%d]", stream.ErrUnavailable, topic, partition)
		}
		found := answer.Topics[0].Partitions[0]
		switch err := kerr.ErrorForCode(found.ErrorCode); {
		case errors.Is(err, kerr.UnknownTopicOrPartition):
			return 0, 0, fmt.Errorf("%w: %w", stream.ErrNotFound, err)
		case err != nil:
			return 0, 0, fmt.Errorf("%w: %w", stream.ErrUnavailable, err)
		}
		*ask.to = found.Offset
	}
	return first, next, nil
}

// Read implements [stream.Log].
func (o *observer) Read(ctx context.Context, topic string, partition int, from int64) (stream.Reader, error) {
	first, next, err := o.Bounds(ctx, topic, partition)
	switch {
	case err != nil:
		return nil, err
	case from == stream.Earliest:
		from = first
	case from < first:
		return nil, stream.ErrTruncated
	case from > next:
		return nil, stream.ErrAhead
	}
	at := observed{topic, int32(partition)}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.seen[at] == nil {
		o.seen[at] = &sight{more: make(chan struct{})}
		o.client.AddConsumePartitions(map[string]map[int32]kgo.Offset{topic: {at.partition: kgo.NewOffset().AtStart()}})
	}
	return &observing{o, at, from, make(chan struct{})}, nil
}

// observing reads what the observer keeps.
type observing struct {
	o    *observer
	at   observed
	from int64
	quit chan struct{}
}

func (r *observing) Next(ctx context.Context, dst []stream.Record) ([]stream.Record, error) {
	for {
		r.o.mu.Lock()
		s := r.o.seen[r.at]
		if n := len(s.records); n > 0 && s.records[n-1].Offset >= r.from {
			i, _ := slices.BinarySearchFunc(s.records, r.from,
				func(x stream.Record, at int64) int { return int(x.Offset - at) })
			dst = append(dst, s.records[i:]...)
			r.from = s.records[n-1].Offset + 1
			r.o.mu.Unlock()
			return dst, nil
		}
		more := s.more
		r.o.mu.Unlock()
		select {
		case <-more:
		case <-ctx.Done():
			return dst, ctx.Err()
		case <-r.quit:
			return dst, stream.ErrClosed
		}
	}
}

func (r *observing) Position() int64 { return r.from }

func (r *observing) Close() error { close(r.quit); return nil }

// Writer implements [stream.Log]: users write by another client than ours, too.
func (o *observer) Writer(_ context.Context, topic string, partition int, ack stream.AckFunc) (stream.Appender, error) {
	return &producing{o: o, at: observed{topic, int32(partition)}, ack: ack}, nil
}

type producing struct {
	o   *observer
	at  observed
	ack stream.AckFunc
	seq uint64

	mu    sync.Mutex
	wait  sync.WaitGroup
	err   error // the first
	muted bool
}

func (p *producing) Append(ctx context.Context, r *stream.Record) (uint64, error) {
	p.seq++
	seq, out := p.seq, &kgo.Record{Topic: p.at.topic, Partition: p.at.partition, Key: bytes.Clone(r.Key),
		Value: bytes.Clone(r.Value)}
	for _, h := range r.Headers {
		out.Headers = append(out.Headers, kgo.RecordHeader{Key: h.Key, Value: []byte(h.Value)})
	}
	p.wait.Add(1)
	p.o.client.Produce(context.WithoutCancel(ctx), out, func(stored *kgo.Record, err error) {
		defer p.wait.Done()
		p.mu.Lock()
		defer p.mu.Unlock()
		if err != nil {
			err = fmt.Errorf("%w: %w", stream.ErrUnknown, err)
		}
		if p.err == nil {
			p.err = err
		}
		if p.ack != nil && !p.muted {
			p.ack(seq, stored.Offset, err)
		}
	})
	return seq, nil
}

func (p *producing) Flush(ctx context.Context) error {
	all := make(chan struct{})
	go func() { p.wait.Wait(); close(all) }()
	select {
	case <-all:
	case <-ctx.Done():
		return ctx.Err()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

func (p *producing) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.muted = true
	return nil
}
