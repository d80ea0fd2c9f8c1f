package verify

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"

	"hindsight/internal/model"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/mem"

	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"
)

// countedLog counts what its readers return, by topic.
type countedLog struct {
	stream.Log
	mu   sync.Mutex
	read map[string]int
}

type countedReader struct {
	stream.Reader
	l     *countedLog
	topic string
}

func (l *countedLog) Read(ctx context.Context, topic string, partition int, from int64) (stream.Reader, error) {
	r, err := l.Log.Read(ctx, topic, partition, from)
	first, _, failed := l.Bounds(ctx, topic, partition)
	if err != nil || failed != nil || from > first { // it searches for a last mark
		return r, err
	}
	return &countedReader{r, l, topic}, nil
}

func (r *countedReader) Next(ctx context.Context, dst []stream.Record) ([]stream.Record, error) {
	dst, err := r.Reader.Next(ctx, dst)
	r.l.mu.Lock()
	defer r.l.mu.Unlock()
	r.l.read[r.topic] += len(dst)
	return dst, err
}

// TestVerifyReadsOnce holds that a log is read once, though two checks need most of it.
func TestVerifyReadsOnce(t *testing.T) {
	w := liveWorld(t, 1, 5, 60)
	l := &countedLog{Log: w.log, read: map[string]int{}}
	r, err := w.run(l)
	w.no(err)
	if r.ExitCode() != Identical {
		t.Fatal(r.text())
	}
	for _, topic := range []string{w.ts.Decisions, w.ts.Feedback, w.ts.Outcomes, w.ts.Contexts} {
		if n := len(w.records(topic, 0)); l.read[topic] < n || l.read[topic] > n+60 {
			// the first records are searched for marks
			t.Errorf("%s: %d records were read of %d", topic, l.read[topic], n)
		}
	}
}

// growingLog grows after the first time that the bounds of a topic are fetched.
type growingLog struct {
	stream.Log
	topic string
	mu    sync.Mutex // held while it grows
	grow  func()
}

func (l *growingLog) Bounds(ctx context.Context, topic string, partition int) (first, next int64, err error) {
	first, next, err = l.Log.Bounds(ctx, topic, partition)
	l.mu.Lock()
	defer l.mu.Unlock()
	if grow := l.grow; topic == l.topic && grow != nil {
		l.grow = nil
		grow()
	}
	return first, next, err
}

// TestVerifyGrows holds that the models are known of what comes while the ends are fetched, though only
// the learner reads so far.
func TestVerifyGrows(t *testing.T) {
	w := liveWorld(t, 1, 5, 20)
	l := &growingLog{Log: w.log, topic: w.ts.Feedback}
	w.name(worldModels[4])
	w.source.Version, w.source.Model = 6, bytes.Replace(w.source.Model, []byte("version: 5"), []byte("version: 6"), 1)
	l.grow = w.openJoiner
	v, err := Config{Log: l, Name: worldName, Seed: worldSeed(), Build: model.Epoch, Dedup: worldDedup}.attempt(w.ctx)
	w.no(err)
	if n, e := int64(len(worldModels))+1, v.report.Epochs; e.Records != n || e.Checked != n {
		t.Errorf("%d epochs, not %+v", n, e)
	}
}

// TestPipeNeverSticks holds that both sides of a pipe get every record of every partition, in order, in
// whatever order they turn to the partitions: neither waits for ever, and what is queued is bounded.
func TestPipeNeverSticks(t *testing.T) {
	log := mem.New(mem.Options{MaxBatch: 3, StrictBytes: true})
	const topics, records = 3, 40
	for i := range topics {
		name := fmt.Sprint("t", i)
		if err := log.Create(t.Context(), name, 1, stream.TopicOptions{}); err != nil {
			t.Fatal(err)
		}
		a, err := log.Writer(t.Context(), name, 0, nil)
		for n := 0; err == nil && n < records; n++ {
			_, err = a.Append(t.Context(), &stream.Record{Key: fmt.Appendf(nil, "k%d", n),
				Value: fmt.Appendf(nil, "%s value %d", name, n)})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		p := newPipe(log)
		p.room = rapid.Int64Range(0, 600).Draw(t, "room")
		var sides [2][]*logCursor
		v := &verification{Config: Config{Log: log}}
		for i := range topics {
			for side := range sides {
				c, err := v.openCursor(context.Background(), fmt.Sprint("t", i), 0)
				if err != nil {
					t.Fatal(err)
				}
				c.end -= rapid.Int64Range(0, 5).Draw(t, "short of the end")
				sides[side] = append(sides[side], c)
			}
			p.take(sides[0][i])
			sides[1][i].log = p
		}
		g, ctx := errgroup.WithContext(context.Background())
		for side := range sides {
			order := rapid.SliceOfN(rapid.IntRange(0, topics-1), 0, 100).Draw(t, "order")
			g.Go(func() error { return walk(ctx, p, sides[side], order) })
		}
		if err := g.Wait(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestQueueFull: a queue that had no room for a batch takes no more. Its reader has what it holds, which makes room for
// other queues, and then reads the log.
func TestQueueFull(t *testing.T) {
	six := stream.Record{Value: []byte("6bytes")}
	log := logOf(t, "t", []stream.Record{six, six, six, six})
	v, p := &verification{Config: Config{Log: log}}, newPipe(log)
	c, err := v.openCursor(t.Context(), "t", 0)
	if err != nil {
		t.Fatal(err)
	}
	p.room = 10
	p.take(c)
	var batches [][]stream.Record
	err = stream.Scan(t.Context(), log, "t", 0, stream.Earliest, 100, func(r *stream.Record) error {
		batches = append(batches, []stream.Record{{Offset: r.Offset, Value: bytes.Clone(r.Value)}})
		return nil
	})
	if err != nil || len(batches) != 4 {
		t.Fatal(batches, err)
	}
	for _, b := range batches[:3] { // there is no room for the last
		c.to.put(b)
	}
	r, err := p.Read(t.Context(), "t", 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for i := range batches {
		if i == 2 {
			if c.to.put(batches[3]); p.bytes.Load() != 0 {
				t.Errorf("%d bytes are queued", p.bytes.Load())
			}
		}
		var got []stream.Record
		for err == nil && len(got) == 0 {
			got, err = r.Next(t.Context(), nil)
		}
		if err != nil || len(got) != 1 || got[0].Offset != batches[i][0].Offset {
			t.Fatalf("%d: %+v, %v", i, got, err)
		}
	}
}

// walk reads cursors in an order, then each to its end.
func walk(ctx context.Context, p *pipe, all []*logCursor, order []int) error {
	read := make([]int, len(all))
	step := func(i int) (more bool, err error) {
		r, err := all[i].head(ctx)
		if err != nil || r == nil {
			return false, err
		}
		if want := fmt.Sprint("t", i, " value ", read[i]); string(r.Value) != want || string(r.Key) != fmt.Sprint(
			"k", read[i]) {
			return false, fmt.Errorf("read %s %q, not %q", r.Key, r.Value, want)
		}
		if queued := p.bytes.Load(); queued > p.room+80 {
			return false, fmt.Errorf("%d bytes are queued, more than %d", queued, p.room)
		}
		read[i]++
		all[i].take()
		return true, nil
	}
	for _, i := range order {
		if _, err := step(i); err != nil {
			return err
		}
	}
	for i, c := range all {
		for more := true; more; {
			var err error
			if more, err = step(i); err != nil {
				return err
			}
		}
		if want := int(c.end - c.first); read[i] != want {
			return fmt.Errorf("t%d: %d records of %d", i, read[i], want)
		}
		c.close()
	}
	return nil
}
