// Package tail follows the logs of a live system and says, now and then, how it goes.
package tail

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"hindsight/internal/join"
	"hindsight/internal/topics"
	"hindsight/internal/watch"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// Config says what is followed.
type Config struct {
	Log  stream.Log
	Name string // of the model
	// Last is how many records before the end of each partition are read first; negative: all.
	Last int64
}

// Tail follows decisions, feedback and rejects. Several goroutines read; [Tail.Line] may be called meanwhile.
type Tail struct {
	cfg     Config
	topics  join.Topics
	scope   *watch.Scope
	readers []reader

	ends []int64 // of decisions, by partition, when [Open] looked

	mu       sync.Mutex
	decided  []int64 // by partition: N of the last decision; −1: none was seen
	released int64   // N of the last feedback; −1: none was seen
	now      counts
	was      counts
	asked    time.Time // of the last line
}

// counts are of records read.
type counts struct {
	decisions int64
	appended  int64 // decisions behind the end of the log when it was opened
	fates     map[codec.Fate]int64
	rejects   map[string]int64 // by topic and reason; foreign: no record of this product, passed over
}

func (c counts) clone() counts {
	return counts{c.decisions, c.appended, maps.Clone(c.fates), maps.Clone(c.rejects)}
}

type reader struct {
	topic     string
	partition int
	from      int64
	take      func(*stream.Record) error
}

// Open finds where to begin.
func Open(ctx context.Context, cfg Config) (*Tail, error) {
	t := &Tail{cfg: cfg, topics: join.TopicsOf(cfg.Name), scope: watch.NewScope(), released: -1, asked: time.Now(),
		now: counts{fates: map[codec.Fate]int64{}, rejects: map[string]int64{}}}
	t.was = t.now.clone()
	partitions, err := topics.Partitions(ctx, cfg.Log, cfg.Name)
	if err != nil {
		return nil, err
	}
	for p := range partitions {
		t.decided = append(t.decided, -1)
		if err := t.add(ctx, t.topics.Decisions, p, t.decision); err != nil {
			return nil, err
		}
	}
	if err := t.add(ctx, t.topics.Feedback, 0, t.feedback); err != nil {
		return nil, err
	}
	return t, t.add(ctx, t.topics.Rejects, 0, t.reject)
}

func (t *Tail) add(ctx context.Context, topic string, partition int, take func(*stream.Record) error) error {
	first, end, err := t.cfg.Log.Bounds(ctx, topic, partition)
	if err != nil {
		return err
	}
	if topic == t.topics.Decisions {
		t.ends = append(t.ends, end)
	}
	from := first
	if t.cfg.Last >= 0 {
		from = max(first, end-t.cfg.Last)
	}
	t.readers = append(t.readers, reader{topic, partition, from, take})
	return nil
}

// Follow reads until the context ends, in whichever way, which is no error.
func (t *Tail) Follow(parent context.Context) error {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	var g sync.WaitGroup
	for _, r := range t.readers {
		g.Go(func() {
			if err := t.read(ctx, r); err != nil {
				cancel(fmt.Errorf("%s[%d]: %w", r.topic, r.partition, err))
			}
		})
	}
	g.Wait()
	if parent.Err() != nil {
		return nil
	}
	return context.Cause(ctx)
}

// retryAfter is how long a log that is away is left alone.
const retryAfter = time.Second

// read follows one partition. What retention has dropped before it was read is passed over.
func (t *Tail) read(ctx context.Context, r reader) error {
	in, err := t.cfg.Log.Read(ctx, r.topic, r.partition, r.from)
	if err != nil {
		return err
	}
	defer func() { in.Close() }()
	var batch []stream.Record
	for ctx.Err() == nil {
		batch, err = in.Next(ctx, batch[:0])
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, stream.ErrTruncated):
			again, err := t.cfg.Log.Read(ctx, r.topic, r.partition, stream.Earliest)
			if err != nil {
				return err
			}
			in.Close()
			in = again
		case stream.IsRetryable(err):
			select {
			case <-time.After(retryAfter):
			case <-ctx.Done():
			}
		case err != nil:
			return err
		}
		for i := range batch {
			if err := t.take(r, &batch[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *Tail) take(r reader, record *stream.Record) error {
	if record.Type != "" {
		return nil
	}
	err := r.take(record)
	if codec.Foreign(err) { // the joiner and the deciders pass over it, too
		t.mu.Lock()
		defer t.mu.Unlock()
		t.now.rejects[strings.TrimPrefix(r.topic, t.cfg.Name+".")+"/foreign"]++
		return nil
	}
	if err != nil {
		return fmt.Errorf("record %d: %w", record.Offset, err)
	}
	return nil
}

func (t *Tail) decision(r *stream.Record) error {
	var d codec.Decision
	if err := codec.ParseDecision(&d, r.Value); err != nil {
		return err
	}
	if d.Partition < 0 || d.Partition >= len(t.decided) {
		return nil // of another program: the log has no such partition
	}
	t.scope.Decision(&d)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.decided[d.Partition] = d.N
	t.now.decisions++
	if r.Offset >= t.ends[d.Partition] {
		t.now.appended++
	}
	return nil
}

func (t *Tail) feedback(r *stream.Record) error {
	var f codec.Feedback
	if err := codec.ParseFeedback(&f, r.Value); err != nil {
		return err
	}
	t.scope.Feedback(&f)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.released = f.N
	if f.Stage == 0 {
		t.now.fates[f.Fate]++
	}
	return nil
}

func (t *Tail) reject(r *stream.Record) error {
	x, err := codec.ParseReject(r.Value)
	if err != nil {
		return err
	}
	t.scope.Reject(&x)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.now.rejects[x.Topic+"/"+x.Reason]++
	return nil
}

// waiting returns how many decisions wait for their feedback; −1: unknown, for not of each log a record was seen.
func (t *Tail) waiting() int64 {
	if t.released < 0 || slices.Contains(t.decided, -1) {
		return -1
	}
	n := -t.released
	for _, d := range t.decided {
		n += d
	}
	return max(n, 0)
}
