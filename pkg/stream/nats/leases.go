package nats

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"hindsight/pkg/stream"
	"hindsight/pkg/stream/lease"
)

// leases is a [lease.Store] in a key-value bucket.
type leases struct {
	kv  jetstream.KeyValue
	ttl time.Duration
}

var _ lease.Store = (*leases)(nil)

// Leases opens a bucket of leases, making it if it is not there. One that is there keeps its TTL.
func (c *Client) Leases(ctx context.Context, bucket string, ttl time.Duration) (lease.Store, error) {
	o := c.log.o
	js, err := jetstream.NewWithAPIPrefix(c.log.boundsConn, o.APIPrefix)
	if err != nil {
		return nil, fmt.Errorf("leases %s: %w", bucket, err)
	}
	ctx, cancel := context.WithTimeout(ctx, o.APITimeout)
	defer cancel()
	kv, err := js.KeyValue(ctx, bucket)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		kv, err = js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: bucket, TTL: ttl, Replicas: o.Replicas,
			Description: "who does what; entries expire"})
		if errors.Is(err, jetstream.ErrBucketExists) { // another was faster
			kv, err = js.KeyValue(ctx, bucket)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("leases %s: %w", bucket, storeError(err))
	}
	status, err := kv.Status(ctx)
	if err != nil {
		return nil, fmt.Errorf("leases %s: %w", bucket, storeError(err))
	}
	if status.TTL() == 0 {
		return nil, fmt.Errorf("leases %s: the bucket has no TTL, so that leases would never end; remove it: it is "+
			"made anew", bucket)
	}
	return &leases{kv, status.TTL()}, nil
}

// storeError maps an error of the client library.
func storeError(err error) error {
	var e *jetstream.APIError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, jetstream.ErrKeyExists):
		return lease.ErrTaken
	case errors.Is(err, jetstream.ErrKeyNotFound), errors.Is(err, jetstream.ErrKeyDeleted):
		return lease.ErrNone
	case errors.As(err, &e) && e.ErrorCode == codeWrongLastSequence:
		return lease.ErrTaken
	case errors.Is(err, jetstream.ErrNoStreamResponse), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w: %w", stream.ErrUnavailable, err)
	}
	return classify(err)
}

func (l *leases) TTL() time.Duration { return l.ttl }

func (l *leases) Create(ctx context.Context, key string, value []byte) (uint64, error) {
	n, err := l.kv.Create(ctx, key, value)
	return n, storeError(err)
}

func (l *leases) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	n, err := l.kv.Update(ctx, key, value, revision)
	return n, storeError(err)
}

func (l *leases) Delete(ctx context.Context, key string, revision uint64) error {
	return storeError(l.kv.Delete(ctx, key, jetstream.LastRevision(revision)))
}

func (l *leases) Get(ctx context.Context, key string) (lease.Entry, error) {
	e, err := l.kv.Get(ctx, key)
	if err != nil {
		return lease.Entry{}, storeError(err)
	}
	return lease.Entry{Key: e.Key(), Value: e.Value(), Revision: e.Revision()}, nil
}

func (l *leases) List(ctx context.Context) ([]lease.Entry, error) {
	w, err := l.kv.WatchAll(ctx, jetstream.IgnoreDeletes())
	if err != nil {
		return nil, storeError(err)
	}
	defer w.Stop()
	var all []lease.Entry
	for {
		select {
		case e, ok := <-w.Updates():
			if !ok {
				return nil, stream.ErrUnavailable
			}
			if e == nil {
				return all, nil
			}
			all = append(all, lease.Entry{Key: e.Key(), Value: e.Value(), Revision: e.Revision()})
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", stream.ErrUnavailable, ctx.Err())
		}
	}
}
