package nats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"hindsight/pkg/stream"
)

// Of a copy: bytes sent at once, and how long the servers may take to store what was sent last,
// which for a large partition is all of it.
const (
	copyChunk = 128 << 10
	copyLimit = 10 * time.Minute
)

// ErrOther reports a partition that exists with other records.
var ErrOther = errors.New("exists with other records")

// StreamConfig tells the configuration of a stream, as the server's interface takes it.
type StreamConfig func(stream string) (map[string]any, error)

// CopyTopic makes a topic on to's servers with the same records: their offsets, times and bytes. The age in its
// configuration counts only after [Log.KeepAges]. A partition that is there already must have the same first and last
// offset. Like [Log.Create] it ends with partition 0.
func (l *Log) CopyTopic(ctx context.Context, to *Log, topic string, config StreamConfig) error {
	return l.eachPartition(ctx, topic, "copy", func(p *place) error {
		from, err := l.info(ctx, l.conn, p)
		if err != nil {
			return err
		}
		switch there, err := to.info(ctx, to.conn, p); {
		case err == nil:
			first, next := from.bounds()
			if a, b := there.bounds(); a != first || b != next {
				return fmt.Errorf("stream %s %w: %d to %d, and not %d to %d", p.stream, ErrOther, a, b-1, first, next-1)
			}
			return nil
		case !errors.Is(err, stream.ErrNotFound):
			return err
		}
		c, err := config(p.stream)
		if err != nil {
			return err
		}
		c["max_age"], c["num_replicas"], c["allow_atomic"] = 0, to.o.Replicas, to.o.replicated()
		return contractError(l.copy(ctx, to, p.stream, c))
	})
}

// KeepAges gives the streams of a copied topic the age of their configurations.
func (l *Log) KeepAges(ctx context.Context, topic string, config StreamConfig) error {
	return l.eachPartition(ctx, topic, "update", func(p *place) error {
		want, err := config(p.stream)
		if err != nil {
			return err
		}
		var now struct {
			Config map[string]any `json:"config"`
		}
		if err := l.call(ctx, l.conn, "STREAM.INFO."+p.stream, nil, &now); err != nil {
			return contractError(err)
		}
		now.Config["max_age"] = want["max_age"]
		return contractError(l.call(ctx, l.conn, "STREAM.UPDATE."+p.stream, now.Config, nil))
	})
}

// eachPartition calls f for the partitions of a topic, the first one last.
func (l *Log) eachPartition(ctx context.Context, topic, op string, f func(p *place) error) error {
	n, err := l.Partitions(ctx, topic)
	if err != nil {
		return err
	}
	return l.partitionsDown(topic, n, op, f)
}

// partitionsDown calls f for so many partitions of a topic, the first one last.
func (l *Log) partitionsDown(topic string, n int, op string, f func(p *place) error) error {
	for i := n - 1; i >= 0; i-- {
		p, err := l.place(topic, i)
		if err == nil {
			err = f(&p)
		}
		if err != nil {
			return p.Fail(op, -1, err)
		}
	}
	return nil
}

// copy sends a stream as the servers' own tools do: a backup here is restored there.
func (l *Log) copy(ctx context.Context, to *Log, name string, config map[string]any) error {
	inbox := l.conn.NewInbox()
	chunks, err := l.conn.SubscribeSync(inbox)
	if err != nil {
		return classify(err)
	}
	defer chunks.Unsubscribe()
	var head struct {
		State json.RawMessage `json:"state"`
	}
	if err := l.call(ctx, l.conn, "STREAM.SNAPSHOT."+name,
		map[string]any{"deliver_subject": inbox, "no_consumers": true, "chunk_size": copyChunk}, &head); err != nil {
		return err
	}
	var dest struct {
		Subject string `json:"deliver_subject"`
	}
	request := map[string]any{"config": config, "state": head.State}
	if err := to.call(ctx, to.conn, "STREAM.RESTORE."+name, request, &dest); err != nil {
		return err
	}
	for end := false; !end; {
		if end, err = forward(ctx, name, chunks, to, dest.Subject); err != nil {
			return err
		}
	}
	return nil
}

// forward sends the next chunk of a backup to where it is restored. The last one is empty.
func forward(ctx context.Context, name string, chunks *natsgo.Subscription, to *Log, subject string) (end bool,
	err error) {
	ctx, cancel := context.WithTimeout(ctx, copyLimit)
	defer cancel()
	chunk, err := chunks.NextMsgWithContext(ctx)
	if err != nil {
		return false, classify(err)
	}
	end = len(chunk.Data) == 0
	if status := chunk.Header.Get("Status"); end && status != "" && status != "204" {
		return false, fmt.Errorf("backup of %s: %s %s", name, status, chunk.Header.Get("Description"))
	}
	answer, err := to.conn.RequestWithContext(ctx, subject, chunk.Data)
	if err != nil {
		return false, classify(err)
	}
	if end || len(answer.Data) > 0 {
		err = parseAnswer(answer.Data, nil)
	}
	if err == nil && chunk.Reply != "" {
		err = classify(chunk.Respond(nil))
	}
	return end, err
}
