package nats

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"hindsight/pkg/stream"
)

// partitionsKey is the metadata of each stream of a topic that says how many there are.
const partitionsKey = "hindsight-partitions"

// duplicateWindow is the shortest the server allows. We need message ids only for
// the chain, and every id in the window costs the server memory.
const duplicateWindow = 100 * time.Millisecond

// Create implements [stream.Log]. Partition 0 is made last: a topic that was made
// by half does not exist, and can be created again.
func (l *Log) Create(ctx context.Context, topic string, partitions int, o stream.TopicOptions) error {
	if partitions < 1 {
		return stream.Place{Topic: topic}.Fail("create", -1, errors.New("needs at least one partition"))
	}
	return l.partitionsDown(topic, partitions, "create", func(p *place) error {
		return l.createOne(ctx, p, partitions, o)
	})
}

func (l *Log) createOne(ctx context.Context, p *place, partitions int, o stream.TopicOptions) error {
	switch i, err := l.info(ctx, l.conn, p); {
	case err == nil:
		return checkStream(p, i, partitions)
	case !errors.Is(err, stream.ErrNotFound):
		return err
	}
	text := fmt.Sprintf("Hindsight: partition %d of %d of %s", p.Partition, partitions, p.Topic)
	c := jetstream.StreamConfig{Name: p.stream, Description: text, Subjects: []string{p.subject},
		MaxAge: time.Duration(o.MaxAge), MaxBytes: o.MaxBytes, Replicas: l.o.Replicas, Duplicates: duplicateWindow,
		AllowDirect: true, DenyDelete: true,
		DenyPurge: !o.Trimmable, AllowAtomicPublish: l.o.replicated(),
		Metadata: map[string]string{partitionsKey: strconv.Itoa(partitions)}}
	if o.MaxAge > 0 {
		c.MaxAge = max(c.MaxAge, duplicateWindow) // the server wants no longer window than age
	}
	if o.RejectWhenFull {
		c.Discard = jetstream.DiscardNew
	}
	err := l.call(ctx, l.conn, "STREAM.CREATE."+p.stream, &c, nil)
	var e *apiError
	if errors.As(err, &e) && e.ErrCode == codeStreamNameInUse { // another was faster
		i, err := l.info(ctx, l.conn, p)
		if err != nil {
			return err
		}
		return checkStream(p, i, partitions)
	}
	return contractError(err)
}

// checkStream reports whether a stream is the partition it should be.
func checkStream(p *place, i *streamInfo, partitions int) error {
	if len(i.Config.Subjects) != 1 || i.Config.Subjects[0] != p.subject {
		return fmt.Errorf("stream %s exists with subjects %q, not %q", p.stream, i.Config.Subjects, p.subject)
	}
	if n := i.partitions(); n != partitions {
		return fmt.Errorf("%w: it has %d, not %d", stream.ErrPartitions, n, partitions)
	}
	return nil
}

// partitions returns the topic's number of partitions, 0 if the stream does not say.
func (i *streamInfo) partitions() int {
	n, err := strconv.Atoi(i.Config.Metadata[partitionsKey])
	if err != nil {
		return 0
	}
	return n
}

// Partitions implements [stream.Log].
func (l *Log) Partitions(ctx context.Context, topic string) (n int, err error) {
	p, err := l.place(topic, 0)
	defer p.Locate("partitions", -1, &err)
	if err != nil {
		return 0, err
	}
	i, err := l.info(ctx, l.conn, &p)
	if err != nil {
		return 0, err
	}
	if n = i.partitions(); n == 0 {
		err = fmt.Errorf("stream %s was not made by this program: it lacks the metadata %s", p.stream, partitionsKey)
	}
	return n, err
}

// Trim implements [stream.Log].
func (l *Log) Trim(ctx context.Context, topic string, partition int, before int64) (err error) {
	p, err := l.place(topic, partition)
	defer p.Locate("trim", before, &err)
	if err != nil {
		return err
	}
	i, err := l.info(ctx, l.conn, &p)
	if err != nil {
		return err
	}
	if i.Config.DenyPurge {
		return stream.ErrNotTrimmable
	}
	first, next := i.bounds()
	if before = min(before, next); before <= first {
		return nil
	}
	request := struct {
		Sequence int64 `json:"seq"`
	}{before}
	return contractError(l.call(ctx, l.conn, "STREAM.PURGE."+p.stream, request, nil))
}
