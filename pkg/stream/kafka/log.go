package kafka

import (
	"context"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/segmentio/kafka-go/protocol"

	"hindsight/pkg/stream"
)

// closer is an appender or a reader that is in use.
type closer interface{ logClosed() }

// Log is a [stream.Log] in a cluster.
type Log struct {
	c *Client

	mu     sync.Mutex
	open   map[closer]struct{}
	held   map[place]error // partitions whose next records cannot be read
	at     map[place]int64 // what was reported, and no group has taken yet
	closed bool

	fences    atomic.Bool // the broker was seen to refuse an old epoch
	untrimmed atomic.Bool // it was said that nothing can be trimmed
}

var (
	_ stream.Log    = (*Log)(nil)
	_ stream.Lister = (*Log)(nil)
	_ stream.Holder = (*Log)(nil)

	_ stream.Reporter = (*Log)(nil)
)

// register notes what has to be closed with the log.
func (l *Log) register(x closer) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return stream.ErrClosed
	}
	l.open[x] = struct{}{}
	return nil
}

func (l *Log) unregister(x closer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, x)
}

func (l *Log) isClosed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

// place checks a place and that the log is open.
func (l *Log) place(topic string, partition int) (place, error) {
	p := place{Topic: topic, Partition: partition}
	switch {
	case partition < 0 || partition > math.MaxInt32:
		return p, stream.ErrNotFound
	case l.isClosed():
		return p, stream.ErrClosed
	}
	return p, checkTopic(topic)
}

// Close implements [stream.Log]. What is not acknowledged by then is unknown.
func (l *Log) Close() error {
	l.mu.Lock()
	l.closed = true
	all := slices.Collect(maps.Keys(l.open))
	l.mu.Unlock()
	for _, x := range all {
		x.logClosed()
	}
	return nil
}

// Partitions implements [stream.Log].
func (l *Log) Partitions(ctx context.Context, topic string) (n int, err error) {
	p, err := l.place(topic, 0)
	defer p.Locate("partitions", -1, &err)
	if err != nil {
		return 0, err
	}
	leaders, err := l.c.topic(ctx, topic, true)
	return len(leaders), err
}

// Topics implements [stream.Lister].
func (l *Log) Topics(ctx context.Context) ([]string, error) {
	if l.isClosed() {
		return nil, stream.ErrClosed
	}
	r, err := l.c.metadata(ctx, nil)
	if err != nil {
		return nil, err
	}
	var topics []string
	for i := range r.Topics {
		if t := &r.Topics[i]; t.ErrorCode == 0 && !t.IsInternal {
			topics = append(topics, t.Name)
		}
	}
	slices.Sort(topics)
	return topics, nil
}

// Bounds implements [stream.Log]. The end is the high watermark, what every in-sync
// replica has, once that is past all that the leader had when it was asked.
func (l *Log) Bounds(ctx context.Context, topic string, partition int) (first, next int64, err error) {
	p, err := l.place(topic, partition)
	defer p.Locate("bounds", -1, &err)
	if err != nil {
		return 0, 0, err
	}
	return l.c.settledEnds(ctx, &p)
}

// Trim implements [stream.Log].
func (l *Log) Trim(ctx context.Context, topic string, partition int, before int64) (err error) {
	p, err := l.place(topic, partition)
	defer p.Locate("trim", before, &err)
	if err == nil && !trimmable(topic) {
		err = stream.ErrNotTrimmable
	}
	if err != nil {
		return err
	}
	return l.c.atLeader(ctx, &p, func(cn *conn) (int16, error) {
		if !cn.speaks(protocol.DeleteRecords, deleteRecordsVersion) {
			if !l.untrimmed.Swap(true) {
				l.c.o.Logger.Warn("the broker does not offer DeleteRecords: what could be dropped stays, unless the "+
					"topic gets a retention.ms", "topic", topic)
			}
			return 0, nil
		}
		first, next, code, err := cn.bounds(&p)
		if err != nil || code != 0 {
			return code, err
		}
		to := min(before, next)
		if to <= first {
			return 0, nil
		}
		return cn.deleteRecords(&p, to, int32(l.c.o.RequestTimeout/time.Millisecond))
	})
}
