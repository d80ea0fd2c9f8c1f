package verify

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"hindsight/internal/model"
	"hindsight/pkg/codec"
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
	if err != nil || from != stream.Earliest { // looks for a last mark
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

// A log in which nothing is wrong is read once, though two checks need most of it.
func TestVerifyReadsOnce(t *testing.T) {
	w := liveWorld(t, 1, 5, 60)
	l := &countedLog{Log: w.log, read: map[string]int{}}
	c := Config{Log: l, Name: worldName, Seed: worldSeed(), Build: model.Epoch, Dedup: worldDedup}
	r, err := Run(w.ctx, c)
	w.no(err)
	if r.ExitCode() != Identical {
		t.Fatal(r.text())
	}
	for _, topic := range []string{w.ts.Decisions, w.ts.Feedback, w.ts.Outcomes, w.ts.Contexts} {
		if n := len(w.records(topic, 0)); l.read[topic] != n {
			t.Errorf("%s: %d records were read of %d", topic, l.read[topic], n)
		}
	}
}

// What is judged by reading once is what is judged after looking over the log first,
// to the last number. Whatever is wrong is not judged by reading once.
func TestVerifyOnceAgrees(t *testing.T) {
	for seed := range uint64(24 / every(8)) {
		w := liveWorld(t, 1+int(seed%2), seed, 30)
		lossy := seed%3 == 1
		for lossy && !w.tellsOfLoss() {
			w.powerLoss()
			w.rounds(20)
		}
		if w.agrees("whole") == lossy {
			t.Errorf("seed %d: told of losses: %v, but reading once says otherwise", seed, lossy)
		}
		for _, topic := range []string{w.ts.Contexts, w.ts.Decisions, w.ts.Outcomes, w.ts.Feedback, w.ts.Rejects} {
			for range 20 / every(10) {
				recs := w.records(topic, 0)
				d, i := damages()[w.rng.IntN(3)], w.rng.IntN(len(recs)-1)
				restore := func([]stream.Record) []stream.Record { return recs }
				w.no(w.log.Edit(topic, 0, func(now []stream.Record) []stream.Record {
					return d.change(append([]stream.Record(nil), now...), i)
				}))
				w.agrees(fmt.Sprint(topic, " ", i, " ", d.name))
				w.no(w.log.Edit(topic, 0, restore))
			}
		}
	}
}

// agrees holds that both ways of reading say the same, or that reading once says nothing.
// It reports whether that said something.
func (w *world) agrees(what string) bool {
	w.Helper()
	c := Config{Log: w.log, Name: worldName, Seed: worldSeed(), Build: model.Epoch, Dedup: worldDedup}
	once, err := c.attempt(w.ctx, true, nil)
	if err == errTwice {
		return false
	}
	w.no(err)
	twice, err := c.attempt(w.ctx, false, nil)
	w.no(err)
	a, err := json.Marshal(&once.report)
	w.no(err)
	b, err := json.Marshal(&twice.report)
	w.no(err)
	if !bytes.Equal(a, b) || twice.report.Differences > 0 {
		w.Errorf("%s: read once\n%s\nlooked over first\n%s", what, once.report.text(), twice.report.text())
	}
	return true
}

// What comes while the ends are fetched is looked over too, though only the learner could
// read so far.
func TestVerifyOnceLooksToTheEnd(t *testing.T) {
	w := liveWorld(t, 1, 5, 20)
	l := &growingLog{Log: w.log, topic: w.ts.Feedback}
	w.name(worldModels[4])
	w.source.Version, w.source.Model = 6, bytes.Replace(w.source.Model, []byte("version: 5"), []byte("version: 6"), 1)
	l.grow = w.openJoiner
	v, err := Config{Log: l, Name: worldName, Seed: worldSeed(), Build: model.Epoch, Dedup: worldDedup}.attempt(w.ctx, true, nil)
	w.no(err)
	if n, e := int64(len(worldModels))+1, v.report.Epochs; e.Records != n || e.Checked != n {
		t.Errorf("%d epochs, not %+v", n, e)
	}
}

// growingLog grows after the first time that the bounds of a topic are fetched. Its
// readers return one record at a time.
type growingLog struct {
	stream.Log
	topic string
	grow  func()
}

func (l *growingLog) Bounds(ctx context.Context, topic string, partition int) (first, next int64, err error) {
	first, next, err = l.Log.Bounds(ctx, topic, partition)
	if grow := l.grow; topic == l.topic && grow != nil {
		l.grow = nil
		grow()
	}
	return first, next, err
}

type slowReader struct {
	stream.Reader
	have []stream.Record
}

func (l *growingLog) Read(ctx context.Context, topic string, partition int, from int64) (stream.Reader, error) {
	r, err := l.Log.Read(ctx, topic, partition, from)
	return &slowReader{Reader: r}, err
}

func (r *slowReader) Next(ctx context.Context, dst []stream.Record) (_ []stream.Record, err error) {
	if len(r.have) == 0 {
		if r.have, err = r.Reader.Next(ctx, nil); err != nil {
			return dst, err
		}
	}
	dst, r.have = append(dst, r.have[0]), r.have[1:]
	return dst, nil
}

func (r *slowReader) Position() int64 {
	if len(r.have) > 0 {
		return r.have[0].Offset
	}
	return r.Reader.Position()
}

// A mark that tells of a loss is enough to begin again.
func TestVerifyOnceHeedsLosses(t *testing.T) {
	gap := codec.AppendDecisionMark(nil, &codec.DecisionMark{GapFrom: 3, GapTo: 4})
	lost := codec.AppendFeedbackMark(nil, &codec.FeedbackMark{N: 3, Lost: 7})
	for _, value := range [][]byte{gap, lost} {
		v := &verification{once: true, abort: func() {}}
		c := &logCursor{end: 10}
		o := &overlook{v: v, end: 10}
		o.models = newModelReader(v, c, &o.losses)
		tap := o.decisions(c)
		if bytes.Equal(value, lost) {
			tap = o.feedback()
		}
		for _, at := range []int64{10, 9} { // behind the end, and before it
			if err := tap(&stream.Record{Offset: at, Time: 1, Type: codec.TypeMark, Value: value}); err != nil || v.redo.Load() != (at < 10) {
				t.Errorf("%q at %d: begins again: %v, %v", value, at, v.redo.Load(), err)
			}
		}
	}
}

// Both sides of feeds get every record of every partition, in order, in whatever order
// they turn to the partitions: none waits for ever, and what is held for the slower is
// bounded.
func TestFeedsNeverStick(t *testing.T) {
	log := mem.New(mem.Options{MaxBatch: 3, StrictBytes: true})
	const topics, records = 3, 40
	v := &verification{Config: Config{Log: log}}
	for i := range topics {
		name := fmt.Sprint("t", i)
		if err := log.Create(t.Context(), name, 1, stream.TopicOptions{}); err != nil {
			t.Fatal(err)
		}
		a, err := log.Writer(t.Context(), name, 0, nil)
		for n := 0; err == nil && n < records; n++ {
			_, err = a.Append(t.Context(), &stream.Record{Key: fmt.Appendf(nil, "k%d", n), Value: fmt.Appendf(nil, "%s value %d", name, n)})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		s := newFeeds(topics)
		s.most = rapid.IntRange(0, 600).Draw(t, "most")
		var sides [2][]*logCursor
		for i := range topics {
			for side := range sides {
				c, err := v.openCursor(context.Background(), fmt.Sprint("t", i), 0)
				if err != nil {
					t.Fatal(err)
				}
				c.end -= rapid.Int64Range(0, 5).Draw(t, "short of the end")
				sides[side] = append(sides[side], c)
			}
			s.share(sides[0][i], sides[1][i], nil)
		}
		g, ctx := errgroup.WithContext(context.Background())
		for side := range sides {
			order := rapid.SliceOfN(rapid.IntRange(0, topics-1), 0, 100).Draw(t, "order")
			g.Go(func() error { return walk(ctx, sides[side], order) })
		}
		if err := g.Wait(); err != nil {
			t.Fatal(err)
		}
	})
}

// walk reads cursors in an order, then each to its end.
func walk(ctx context.Context, all []*logCursor, order []int) error {
	read := make([]int, len(all))
	step := func(i int) (more bool, err error) {
		r, err := all[i].head(ctx)
		if err != nil || r == nil {
			return false, err
		}
		if want := fmt.Sprint("t", i, " value ", read[i]); string(r.Value) != want || string(r.Key) != fmt.Sprint("k", read[i]) {
			return false, fmt.Errorf("read %s %q, not %q", r.Key, r.Value, want)
		}
		if f := all[i].feed; f != nil {
			f.mu.Lock()
			held, n := f.held, len(f.window)
			f.mu.Unlock()
			if n > 2 && held > f.most+80 {
				return false, fmt.Errorf("%d bytes are held, more than %d", held, f.most)
			}
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
