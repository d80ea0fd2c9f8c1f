package kafka

import (
	"context"
	"maps"
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
func (l *Log) place(op, topic string, partition int) (place, error) {
	p, err := newPlace(topic, partition)
	if err == nil && l.isClosed() {
		err = stream.ErrClosed
	}
	if err != nil {
		return p, p.Fail(op, -1, err)
	}
	return p, nil
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
func (l *Log) Partitions(ctx context.Context, topic string) (int, error) {
	p, err := l.place("partitions", topic, 0)
	if err != nil {
		return 0, err
	}
	leaders, err := l.c.topic(ctx, topic, true)
	if err != nil {
		return 0, p.Fail("partitions", -1, err)
	}
	return len(leaders), nil
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
	p, err := l.place("bounds", topic, partition)
	if err != nil {
		return 0, 0, err
	}
	first, next, err = l.c.settledEnds(ctx, &p)
	if err != nil {
		return 0, 0, p.Fail("bounds", -1, err)
	}
	return first, next, nil
}

// Trim implements [stream.Log].
func (l *Log) Trim(ctx context.Context, topic string, partition int, before int64) error {
	p, err := l.place("trim", topic, partition)
	if err != nil {
		return err
	}
	if err := l.trim(ctx, &p, before); err != nil {
		return p.Fail("trim", before, err)
	}
	return nil
}

func (l *Log) trim(ctx context.Context, p *place, before int64) error {
	if !trimmable(p.Topic) {
		return stream.ErrNotTrimmable
	}
	return l.c.atLeader(ctx, p, func(cn *conn) (int16, error) {
		const v = deleteRecordsVersion
		if has, ok := cn.versions[protocol.DeleteRecords]; !ok || v < has[0] || v > has[1] {
			if !l.untrimmed.Swap(true) {
				l.c.o.Logger.Warn("the broker does not offer DeleteRecords: what could be dropped stays, "+
					"unless the topic gets a retention.ms", "topic", p.Topic)
			}
			return 0, nil
		}
		first, next, code, err := cn.bounds(p)
		if err != nil || code != 0 {
			return code, err
		}
		to := min(before, next)
		if to <= first {
			return 0, nil
		}
		return cn.deleteRecords(p, to, int32(l.c.o.RequestTimeout/time.Millisecond))
	})
}
